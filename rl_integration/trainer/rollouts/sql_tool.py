"""Questions in SQL to one SQLite file, which they can read and nothing else.

A query may select and no more: an authoriser refuses everything that writes, attaches, sets or loads, and functions
that are different each time; and the file is opened for reading alone.

Not covered: other databases, a database of each task's own, and memory: sorting much data takes temporary files for
as long as the query is allowed to run.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown, one_text, shortened

_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_REFUSED = frozenset(("load_extension", "fts3_tokenizer", "random", "randomblob", "zeroblob"))
_OURS = frozenset(
    getattr(sqlite3, f"SQLITE_{name}") for name in "BUSY CANTOPEN CORRUPT FULL IOERR LOCKED NOMEM NOTADB PERM".split()
)
_LIMITS = {
    # A row of as many columns as fit into a query, each as long as allowed, is then 200 MB at most.
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 20_000,
    sqlite3.SQLITE_LIMIT_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
}
_BETWEEN_LOOKS = 1_000  # steps of SQLite's machine between two looks at the clock
_MAX_CELL = 200  # characters


@dataclass(frozen=True, kw_only=True)
class SqlTool(Options, what="sql tool option"):
    """Answers queries.

    Attributes:
        database: path of the SQLite file.
        name: what it is called by.
        seconds: wall-clock seconds of a query.
        max_rows: rows of an answer.
        max_output: characters of an answer.
    """

    database: str
    name: str = "sql"
    seconds: Annotated[float, Range(gt=0)] = 5.0
    max_rows: Count = 50
    max_output: Count = 2_000

    description = "Run one SELECT statement on the SQLite database. The table sqlite_master lists its tables."
    parameters = one_text("query", "one SELECT statement")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not Path(self.database).is_file():
            raise ValueError(f"the sql tool's database {self.database!r} is not a file; give the path of a SQLite file")
        try:
            with closing(self._connected()) as connection:
                self._confine(connection)
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise ValueError(f"the sql tool's database {self.database!r} cannot be read: {error}") from error

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Answer a query.

        Raises:
            ToolDown: the file cannot be read any more, or another program keeps it locked.
        """
        query: str = arguments["query"]
        try:
            with closing(self._connected()) as connection:
                self._confine(connection)
                return ToolAnswer(text=shortened(self._table(connection, query), self.max_output))
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _OURS:
                raise ToolDown(f"the database {self.database!r} cannot be read: {error}") from error
            problem = self._problem(error, code)
        except (sqlite3.Warning, ValueError) as error:  # several statements; characters that SQLite does not take
            problem = str(error)
        return ToolAnswer(text=shortened(f"error: {problem}", self.max_output), ok=False)

    def _problem(self, error: sqlite3.Error, code: int | None) -> str:
        if code == sqlite3.SQLITE_INTERRUPT:
            return f"the query was stopped after {self.seconds:g} seconds"
        if code == sqlite3.SQLITE_AUTH or "not authorized" in str(error):
            return f"{error}; only SELECT is allowed, and functions that are the same each time"
        return str(error)

    def _connected(self) -> sqlite3.Connection:
        uri = f"{Path(self.database).absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=self.seconds, isolation_level=None)

    def _confine(self, connection: sqlite3.Connection) -> None:
        """From here on the clock runs."""
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for pragma in ("query_only = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        until = time.monotonic() + self.seconds
        connection.set_progress_handler(lambda: time.monotonic() > until, _BETWEEN_LOOKS)
        connection.set_authorizer(_authorised)

    def _table(self, connection: sqlite3.Connection, query: str) -> str:
        """The rows as lines, as many as may be shown."""
        cursor = connection.execute(query)
        if cursor.description is None:
            raise ValueError("there is no SELECT statement in the query")
        lines = [" | ".join(_cell(column[0]) for column in cursor.description)]
        size = 0
        for row in cursor:
            if len(lines) > self.max_rows or size > self.max_output:
                lines.append("... more rows follow")
                break
            lines.append(" | ".join(map(_cell, row)))
            size += len(lines[-1])
        return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}\n(no rows)"


def _authorised(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite's question whether a query may do something; of a function, `second` is the name."""
    refused = action not in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _REFUSED)
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    text = str(value).replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}... ({len(text)} characters)"
