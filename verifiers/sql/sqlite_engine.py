"""SQLite, in this process, with everything shut that a query does not need.

The file is opened read-only and immutable; an authorizer allows reading, functions and recursion and nothing else; a
progress handler keeps the deadline; lengths, columns, depth and result size are capped; in a pool's worker SQLite's
heap is capped, too.  Functions whose value changes from call to call are refused, and the clock stands still.

A clock that stands still for SQLite queries.

`date('now')` and CURRENT_TIMESTAMP would give one sample another score tomorrow.  The date functions are replaced by
ones that read a fixed moment; they cost about 3 microseconds a call, so queries that cannot read the clock keep
SQLite's own.

Not covered: a single step of SQLite's machine that never ends (`instr` on two long texts), and, before SQLite 3.41, a
query whose parts double so often that it is never ready to run.  The pool's worker is killed then.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from adjudge.runtime.pool import in_worker
from adjudge.verifiers.sql.databases.schema_shape import quoted, unchanging
from adjudge.verifiers.sql.databases.statement import Dialect, Statement
from adjudge.verifiers.sql.engine import (
    CHANGING,
    Collector,
    Engine,
    EngineOptions,
    EngineUnavailableError,
    Fault,
    QueryLimits,
    Table,
    refused_function,
)

_FUNCTIONS: Final = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}
"""Name -> position of the first time value."""
_CONSTANTS: Final = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_CLOCK_WORDS: Final = frozenset(_FUNCTIONS) | frozenset(_CONSTANTS) | {"timediff"}
_NOW: Final = ("now", "subsec", "subsecond")

# What can put the letters n-o-w together at run time.
_BUILDERS: Final = frozenset(
    "char substr substring replace printf format lower upper trim ltrim rtrim group_concat string_agg concat concat_ws "
    "unhex cast".split()
)


def may_read_clock(statement: Statement) -> bool:
    """Return whether a query could learn the present moment; in doubt, True."""
    tokens = statement.tokens
    names = {token.name for token in tokens}
    if not names & _CLOCK_WORDS:
        return False
    if names & frozenset(_CONSTANTS) or names & _BUILDERS or any(name.startswith("json") for name in names):
        return True
    for index, token in enumerate(tokens):
        if token.kind in ("string", "quoted") and (token.text[0] in "xX" or "now" in token.text.lower()):
            return True
        if token.text == "||" or (token.kind in ("string", "quoted") and "subsec" in token.text.lower()):
            return True
        if token.name in _FUNCTIONS and _arguments(statement, index + 1) <= _FUNCTIONS[token.name]:
            return True
    return False


def _arguments(statement: Statement, at: int) -> int:
    """Return how many arguments the call whose bracket stands at a token has; many when it is not a call."""
    tokens = statement.tokens
    if at >= len(tokens) or tokens[at].text != "(":
        return 99
    depth, commas = 0, 0
    for index, token in enumerate(tokens[at:], at):
        depth += (token.text == "(") - (token.text == ")")
        commas += depth == 1 and token.text == ","
        if depth == 0:
            return 0 if index == at + 1 else commas + 1
    return 99


def stop_clock(connection: sqlite3.Connection, moment: str) -> sqlite3.Connection:
    """Make the date functions of a connection read a fixed moment; return the connection that computes them.

    A moment is a time value such as "2025-01-01 00:00:00", in UTC.
    """
    inner = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    known = {row[0] for row in inner.execute("SELECT name FROM pragma_function_list")}
    for name, first in _FUNCTIONS.items():
        if name in known:
            connection.create_function(name, -1, _stopped(inner, name, first, moment), deterministic=True)
    if "timediff" in known:
        connection.create_function("timediff", 2, _stopped(inner, "timediff", 0, moment), deterministic=True)
    for name, function in _CONSTANTS.items():
        value = inner.execute(f"SELECT {function}(?)", (moment,)).fetchone()[0]
        connection.create_function(name, 0, lambda value=value: value, deterministic=True)
    return inner


def _stopped(inner: sqlite3.Connection, name: str, first: int, moment: str) -> Callable[..., Any]:
    def function(*given: Any) -> Any:
        # SQLite reads a blob as text, and a text up to its first NUL.
        arguments = [
            value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for value in (given if len(given) > first else (*given, "now"))
        ]
        for at, value in enumerate(arguments):
            if isinstance(value, str) and value.partition("\0")[0].lower() in _NOW:
                arguments[at] = moment
        marks = ",".join("?" * len(arguments))
        return inner.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]

    return function


STEPS: Final = 1000  # instructions of SQLite's machine between two looks at the clock: well below a millisecond

_PRIVATE: Final = frozenset(
    "load_extension fts3_tokenizer fts5 fts5_source_id sqlite_log sqlite_version sqlite_source_id rtreecheck optimize "
    "sqlite_compileoption_get sqlite_compileoption_used readfile writefile edit".split()
)
# Tables that show the engine's own state, such as the text of other statements, instead of the database.
_INTERNAL: Final = frozenset(
    "sqlite_stmt dbstat sqlite_dbpage sqlite_dbdata sqlite_dbptr sqlite_memstat bytecode tables_used completion "
    "fts3tokenize fts4aux fts5vocab".split()
)
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 8 << 20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 2_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class _Guard:
    """The authorizer: what a statement may do, and what it did."""

    def __init__(self, tables: frozenset[str]) -> None:
        self._tables = tables
        self.reads: set[str] = set()
        self.refused = ""
        self.changing = ""

    def reset(self) -> None:
        self.reads, self.refused, self.changing = set(), "", ""

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
    ) -> int:
        if action == sqlite3.SQLITE_READ:
            table = (first or "").lower()
            if table in _INTERNAL or table.startswith("pragma_"):
                return self._refuse(f"reading {table}")
            if table in self._tables:  # not json_each and the like, which show what the query itself says
                self.reads.add(table)
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            name = (second or "").lower()
            if name in CHANGING:
                self.changing = self.changing or name
                return sqlite3.SQLITE_DENY
            return self._refuse(f"the function {name}") if name in _PRIVATE else sqlite3.SQLITE_OK
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and (first, second) == ("data_version", None):  # FTS5 asks for it by itself
            return sqlite3.SQLITE_OK
        return self._refuse(f"action {action} on {first}")

    def _refuse(self, what: str) -> int:
        self.refused = self.refused or what
        return sqlite3.SQLITE_DENY


class SqliteEngine(Engine):
    """Queries on one SQLite database.

    Args:
        connect: opens a connection to it; called at most twice.
        options: what the clock shows, and MiB of heap for all of SQLite in this process, where it is a pool's worker.
        always_clocked: whether all queries run on one connection, on which the clock stands still.
    """

    dialect: ClassVar[Dialect] = "sqlite"

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], options: EngineOptions, *, always_clocked: bool = False
    ) -> None:
        self._connect, self._options, self._always_clocked = connect, options, always_clocked
        self._open: dict[bool, tuple[sqlite3.Connection, _Guard]] = {}
        self._clocks: list[sqlite3.Connection] = []
        # A connection that nobody closed is a warning from Python 3.13 on.
        self._finalizer = weakref.finalize(self, _close_all, self._open, self._clocks)
        self._connection(always_clocked)  # so that a bad file is reported now

    @classmethod
    def of_file(cls, path: str, options: EngineOptions) -> SqliteEngine:
        """Return an engine on a file, which must not change while it is open.

        Raises:
            EngineUnavailableError: there is no such file, it is not a database, or it has changes in a write-ahead log.
        """
        wal = Path(f"{path}-wal")
        if wal.exists() and wal.stat().st_size:
            raise EngineUnavailableError(
                f"{path} has changes that lie in its write-ahead log; run `PRAGMA wal_checkpoint(TRUNCATE)` on it"
            )
        return cls(lambda: _connected(unchanging(path), uri=True), options)

    @classmethod
    def of_script(cls, fill: Callable[[sqlite3.Connection], None], options: EngineOptions) -> SqliteEngine:
        """Return an engine on a database in memory that `fill` makes."""

        def connect() -> sqlite3.Connection:
            connection = _connected(":memory:")
            fill(connection)
            return connection

        return cls(connect, options, always_clocked=True)

    def _connection(self, clocked: bool) -> tuple[sqlite3.Connection, _Guard]:
        if clocked in self._open:
            return self._open[clocked]
        connection = None
        try:
            connection = self._connect()
            for pragma in (
                "trusted_schema=OFF",
                "query_only=ON",
                "temp_store=MEMORY",
                "mmap_size=0",
                "cell_size_check=ON",
            ):
                connection.execute(f"PRAGMA {pragma}")
            if in_worker():  # for the whole process, and it can only be lowered: not ours to set elsewhere
                connection.execute(f"PRAGMA hard_heap_limit={self._options.memory_mb << 20}")
            _touch_virtual_tables(connection)
            tables = connection.execute(
                "SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')"
            ).fetchall()
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise EngineUnavailableError(f"SQLite cannot open the database: {error}") from error
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        if clocked:
            self._clocks.append(stop_clock(connection, self._options.moment))
        guard = _Guard(frozenset(name for (name,) in tables))
        connection.set_authorizer(guard)
        self._open[clocked] = (connection, guard)
        return connection, guard

    def run(self, sql: str, limits: QueryLimits) -> Table | Fault:
        """Run one query; see the module for what is refused."""
        connection, guard = self._connection(self._always_clocked or may_read_clock(Statement(sql, "sqlite")))
        guard.reset()
        connection.text_factory = str
        done = self._run(connection, guard, sql, limits)
        if isinstance(done, Fault) and "Could not decode to UTF-8" in done.text:
            connection.text_factory = _decoded
            done = self._run(connection, guard, sql, limits)
        return done

    def _run(self, connection: sqlite3.Connection, guard: _Guard, sql: str, limits: QueryLimits) -> Table | Fault:
        started = time.thread_time()  # of the processor: a busy machine makes no query slow
        deadline = started + limits.seconds
        left = limits.steps or -1

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left == 0 or time.thread_time() > deadline

        connection.set_progress_handler(stop, STEPS)
        cursor = None
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                return Fault("error", "the statement has no result")
            names = tuple([column[0] for column in cursor.description])
            collector = Collector(limits, convert=False)
            if (fault := collector.full(cursor)) is not None:
                return fault
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            # ValueError: the text holds a NUL or a lone surrogate.  Warning: several statements.
            return self._fault(error, guard)
        except MemoryError:
            return Fault("memory", "SQLite ran out of memory")
        finally:
            if cursor is not None:
                cursor.close()
            connection.set_progress_handler(None, 0)
        return Table(
            columns=names,
            rows=collector.rows,
            reads=frozenset(guard.reads),
            seconds=time.thread_time() - started,
        )

    @staticmethod
    def _fault(error: Exception, guard: _Guard) -> Fault:
        if guard.refused:
            return Fault("forbidden", f"{guard.refused} is not allowed")
        if guard.changing:
            return refused_function(guard.changing)
        text = str(error)
        if text == "interrupted":
            return Fault("timeout", "out of time")
        if "out of memory" in text:
            return Fault("memory", text)
        return Fault("error", text)

    def steps(self, sql: str, limits: QueryLimits, every: int = 20) -> int | Fault:
        """Return how many instructions of SQLite's machine a query takes, to the next multiple of `every`.

        Unlike its seconds the number is the same on every machine with the same SQLite.
        """
        connection, guard = self._connection(self._always_clocked or may_read_clock(Statement(sql, "sqlite")))
        guard.reset()
        count = 0
        deadline = time.thread_time() + limits.seconds

        def tick() -> bool:
            nonlocal count
            count += 1
            return count % 64 == 0 and time.thread_time() > deadline

        connection.set_progress_handler(tick, every)
        connection.text_factory = bytes
        try:
            for _ in connection.execute(sql):
                pass
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            return self._fault(error, guard)
        finally:
            connection.set_progress_handler(None, 0)
        return (count + 1) * every

    def close(self) -> None:
        """Close the connections."""
        _close_all(self._open, self._clocks)


def _close_all(opened: dict[bool, tuple[sqlite3.Connection, _Guard]], clocks: list[sqlite3.Connection]) -> None:
    for connection in (*(connection for connection, _ in opened.values()), *clocks):
        connection.close()
    opened.clear()
    clocks.clear()


def _connected(place: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, uri=uri, isolation_level=None, cached_statements=0, check_same_thread=False)


def _touch_virtual_tables(connection: sqlite3.Connection) -> None:
    """Have SQLite declare its virtual tables, which it does on first use and then asks the authorizer to write."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").fetchall()
    for table in (*(quoted(name) for (name,) in names), "json_each('[]')", "json_tree('[]')"):
        with contextlib.suppress(sqlite3.Error):  # a module that this SQLite lacks: queries on it will say so
            connection.execute(f"SELECT 1 FROM {table} LIMIT 0").fetchall()


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
