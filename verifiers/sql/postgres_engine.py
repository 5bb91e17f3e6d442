"""PostgreSQL, a real server, as an ordinary role, each query in a read-only transaction of its own that is rolled back.

The server's own catalogue says which functions are volatile; those are refused by name.  They are the ones that sleep,
lock, read files, send notices, change settings (the deadline among them), run SQL given as text, or differ from call to
call.  A role that is a superuser, or that may read or write the server's files, is refused altogether.

`work_mem` is set low, and where the server runs on this host its backend's memory is looked at while a query runs.

What a query may take of memory: in the PostgreSQL backend that runs it, on this host, and here.

No setting of PostgreSQL bounds a backend: `work_mem` makes sorts and hashes spill, but `array_agg` or `repeat` take
what they take, 1 GB for one value and any number of values.  Each connection has a backend process of its own.  Who
runs the server, or is root, may limit that process, and its `malloc` fails in good time.  Everybody else can see its
memory grow, cancel the query and hang up.

Not covered: memory of a server elsewhere, and the disk space of temporary files, which only an administrator can
limit (`ALTER ROLE reader SET temp_file_limit`); the deadline ends both.  `now()` is the server's.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import psycopg
from psycopg.pq import ExecStatus

from adjudge.databases.statement import Statement
from adjudge.databases.tokens import Dialect
from adjudge.extras import install_hint
from adjudge.verifiers.sql.cells import Table
from adjudge.verifiers.sql.engine import Collector, Engine, EngineUnavailableError, Fault, QueryLimits, refused_function

if TYPE_CHECKING:
    import psycopg

    from adjudge.verifiers.sql.postgres_engine import WatchedConnection
if TYPE_CHECKING:
    from psycopg.abc import PQGen

Result = TypeVar("Result")

INTERVAL: Final = 0.02
"""Seconds between two looks; in that time `array_agg` took 2 MB more where this was tried, `repeat` 15 MB."""

_LOCAL: Final = ("", "127.0.0.1", "::1", "localhost")


class MemoryExceededError(Exception):
    """A query took more memory than it may; the connection is closed."""


class OversizedRowError(Exception):
    """A row has more bytes than the whole result may have; the connection is closed."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that bounds what a query takes, from `watch` to `unwatch`."""

    _watched_processes: dict[int, int] | None = None  # bytes that each may hold; None while nothing is watched
    _backend: int | None = None  # its number, 0 if this process cannot see it, None before that is known
    _growth = 0
    _row_bytes = 0
    _next_look = 0.0

    def watch(self, growth: int, row_bytes: int) -> None:
        """Bound what runs from now on.

        Args:
            growth: bytes by which the backend's memory may grow, and this process's.
            row_bytes: bytes that one row may have as it is sent; psycopg makes up to 30 times as many of them.
        """
        self._watched_processes = {}
        self._growth, self._row_bytes = growth, row_bytes
        self._next_look = time.monotonic() + INTERVAL
        if self._backend is None:
            self._backend = self.info.backend_pid if self._is_local() else 0
        if self._backend and (memory := _memory(self._backend)) is not None:
            self._watched_processes[self._backend] = memory.private + growth
            _limit(self._backend, memory.data + growth)

    def unwatch(self) -> None:
        """Look no longer."""
        self._watched_processes = None

    def wait(self, gen: PQGen[Result], interval: float = INTERVAL, timeout: float | None = None) -> Result:
        """Wait as a connection does, look from time to time, and at each row.

        Raises:
            MemoryExceededError: the backend or this process has grown too much.
            OversizedRowError: a row is too large to be read.
        """
        if self._watched_processes is None:
            return super().wait(gen, interval=interval, timeout=timeout)
        result = super().wait(self._watched(gen), interval=interval, timeout=timeout)
        if isinstance(result, psycopg.pq.PGresult) and result.status == ExecStatus.SINGLE_TUPLE:
            size = sum([len(result.get_value(0, at) or b"") for at in range(result.nfields)])
            if size > self._row_bytes:
                self._hang_up()
                raise OversizedRowError(f"a row of {size:,} bytes")
        return result

    def _watched(self, gen: PQGen[Result]) -> Generator[Any, Any, Result]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if time.monotonic() >= self._next_look:
                    self._look()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _look(self) -> None:
        watched = self._watched_processes
        if watched is None:
            return
        for pid in {*watched, os.getpid()}:
            memory = _memory(pid)
            # This process is weighed when a query has run for a while: most end before, and a look costs 10 us.
            if memory is not None and memory.private > watched.setdefault(pid, memory.private + self._growth):
                self._hang_up()
                raise MemoryExceededError
        self._next_look = time.monotonic() + INTERVAL

    def _hang_up(self) -> None:
        self.unwatch()
        with contextlib.suppress(psycopg.Error):  # then the deadline ends the query
            self.pgconn.get_cancel().cancel()
        self.close()

    def _is_local(self) -> bool:
        """Whether the backend is a process that this one can see."""
        if not (self.info.host.startswith("/") or self.info.host in _LOCAL):
            return False
        try:
            with open(f"/proc/{self.info.backend_pid}/cmdline", "rb") as file:
                title = file.read(500)
        except OSError:
            return False
        # A server in a container counts its processes anew, so the number alone may be somebody else's.
        return title.startswith(b"postgres:") and f" {self.info.user} {self.info.dbname} ".encode() in title


class Memory(NamedTuple):
    """Bytes of a process.

    Attributes:
        private: what it alone holds; the server's shared buffers are left out.
        data: what it has asked for, held or not, as `RLIMIT_DATA` counts it.
    """

    private: int
    data: int


def _memory(pid: int) -> Memory | None:
    """Return the memory of a process, which Linux tells every user; None if it is not seen."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, _, _, data, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return Memory((resident - shared) * resource.getpagesize(), data * resource.getpagesize())


def _limit(pid: int, most: int) -> None:
    """Limit what a process may ask for, where this one has the right to; its hard limit stays as it is."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: more than the hard limit, which then holds
        _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, hard))


_CONNECT_SECONDS: Final = 10
_MIGHTY: Final = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
_SETTINGS: Final = (
    "SET LOCAL work_mem = '16MB'",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL jit = off",
    "SET LOCAL TIME ZONE 'UTC'",
    "SET LOCAL DATESTYLE = 'ISO'",
    "SET LOCAL standard_conforming_strings = on",
)
# Stable by the catalogue, but they tell of the server instead of the database, or run what a table holds.
_ALSO_REFUSED: Final = frozenset(
    "current_setting version inet_client_addr inet_client_port inet_server_addr inet_server_port pg_backend_pid "
    "pg_postmaster_start_time pg_conf_load_time pg_stat_get_activity dblink dblink_exec dblink_connect "
    "database_to_xml schema_to_xml table_to_xml cursor_to_xml pg_show_all_settings pg_stat_get_backend_activity".split()
)
_PREFIXES: Final = ("dblink", "lo_", "pg_read_", "pg_ls_", "postgres_fdw_")


class PostgresEngine(Engine):
    """Queries on one PostgreSQL database.

    Args:
        dsn: a connection string; never shown in errors, since it may hold a password.
        memory_mb: MiB by which a backend on this host may grow for one query.

    Raises:
        EngineUnavailableError: the package is missing, the server does not answer, or the role may do too much.
    """

    dialect: ClassVar[Dialect] = "postgres"

    def __init__(self, dsn: str, *, memory_mb: int) -> None:
        try:
            import psycopg

            from adjudge.verifiers.sql.postgres_engine import WatchedConnection
        except ModuleNotFoundError as error:
            raise EngineUnavailableError(
                f"the reference names a PostgreSQL database, and psycopg is not installed; {install_hint('sql')}"
            ) from error
        self._psycopg: Any = psycopg
        self._memory = memory_mb << 20
        try:
            self._connection: WatchedConnection = WatchedConnection.connect(
                dsn, connect_timeout=_CONNECT_SECONDS, autocommit=True, application_name="adjudge"
            )
            self._refuse_mighty_role()
            rows = self._connection.execute("SELECT DISTINCT lower(proname) FROM pg_proc WHERE provolatile = 'v'")
            self._refused = frozenset(name for (name,) in rows.fetchall()) | _ALSO_REFUSED
        except psycopg.Error as error:
            raise EngineUnavailableError(
                f"PostgreSQL cannot be used: {type(error).__name__}: {_first_line(error)}"
            ) from error

        # psycopg warns of a connection that nobody closed; a forked child must leave the parent's alone.
        self._finalizer = weakref.finalize(self, _close, self._connection, os.getpid())

    def _refuse_mighty_role(self) -> None:
        row = self._connection.execute(
            "SELECT rolname, rolsuper OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = session_user"
        ).fetchone()
        name, mighty = row or ("?", True)
        for role in _MIGHTY:
            found = self._connection.execute("SELECT pg_has_role(session_user, %s, 'MEMBER')", (role,)).fetchone()
            mighty = mighty or bool(found and found[0])
        if mighty:
            self._connection.close()
            raise EngineUnavailableError(
                f"the role {name!r} may do more than read; make one for the queries: "
                "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
            )

    @property
    def alive(self) -> bool:
        """Whether the connection is open and idle."""
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return not self._connection.closed and self._connection.info.transaction_status == idle

    def run(self, sql: str, limits: QueryLimits) -> Table | Fault:
        """Run one query; see the module for what is refused."""
        statement = Statement(sql, "postgres")
        if any(token.kind == "bad" or token.text[:2] in ("U&", "u&") for token in statement.tokens):
            return Fault("error", "the query has an open or an escaped quotation")
        if not statement.is_query:
            return Fault("error", "the text is not one query")
        calls = statement.calls()
        refused = sorted(name for name in calls if name in self._refused or name.startswith(_PREFIXES))
        if refused:
            return refused_function(refused[0])
        started = time.monotonic()
        done = self._run(sql, limits)
        self._clean_up()
        if isinstance(done, Fault):
            return done
        names, collector = done
        return Table(columns=names, rows=collector.rows, seconds=time.monotonic() - started)

    def _run(self, sql: str, limits: QueryLimits) -> Fault | tuple[tuple[str, ...], Collector]:
        from adjudge.verifiers.sql.postgres_engine import MemoryExceededError, OversizedRowError

        errors = self._psycopg.errors
        milliseconds = max(1, int(limits.seconds * 1000))
        collector = Collector(limits, convert=True)
        names: tuple[str, ...] = ()
        try:
            guards = ["BEGIN READ ONLY", f"SET LOCAL statement_timeout = {milliseconds}", *_SETTINGS]
            if self._connection.info.server_version >= 140_000:
                guards.append("SET LOCAL client_connection_check_interval = '1s'")
            self._connection.execute("; ".join(guards).encode())
            self._connection.watch(self._memory, limits.output_bytes)
            with self._connection.cursor() as cursor:
                # The extended protocol, which `stream` uses, takes one statement and no more.
                if (fault := collector.full(cursor.stream(sql.encode()))) is not None:
                    return fault
                names = tuple([column.name for column in cursor.description or ()])
        except MemoryExceededError:
            return Fault("memory", f"it needs more than {self._memory >> 20} MiB")
        except OversizedRowError as error:
            return Fault("output", str(error))
        except errors.QueryCanceled:
            return Fault("timeout", "out of time")
        except errors.ReadOnlySqlTransaction as error:
            return Fault("forbidden", _first_line(error))
        except (errors.OutOfMemory, errors.ConfigurationLimitExceeded) as error:  # the latter: temp_file_limit
            return Fault("memory", _first_line(error))
        except (self._psycopg.Error, ValueError, OverflowError) as error:
            # ValueError and OverflowError: a value that Python's types cannot hold, or a NUL in the query.
            if self._connection.closed or self._connection.broken:
                return Fault("lost", _first_line(error))
            return Fault("error", _first_line(error))
        except MemoryError:
            self._connection.close()
            return Fault("memory", "out of memory")
        return names, collector

    def _clean_up(self) -> None:
        self._connection.unwatch()
        with contextlib.suppress(self._psycopg.Error):
            self._connection.execute("ROLLBACK")
        if not self.alive:
            self._connection.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _close(connection: psycopg.Connection[Any], owner: int) -> None:
    if os.getpid() == owner:
        connection.close()


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
