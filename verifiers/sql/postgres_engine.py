"""PostgreSQL, a real server, as an ordinary role, each query in a read-only transaction of its own that is rolled back.

The server's own catalogue says which functions are volatile; those are refused by name.  They are the ones that sleep,
lock, read files, send notices, change settings (the deadline among them), run SQL given as text, or differ from call to
call.  A role that is a superuser, or that may read or write the server's files, is refused altogether.

`work_mem` is set low, and where the server runs on this host its backend's memory is looked at while a query runs.

Not covered: memory of a server elsewhere, and the disk space of temporary files, which only an administrator can
limit (`ALTER ROLE reader SET temp_file_limit`); the deadline ends both.  `now()` is the server's.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adjudge.extras import install_hint
from adjudge.verifiers.sql.databases.statement import Dialect
from adjudge.verifiers.sql.engine import Collector, Engine, EngineUnavailableError, Fault, QueryLimits, Table

if TYPE_CHECKING:
    import psycopg

    from adjudge.verifiers.sql.postgres_memory import WatchedConnection

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


class PostgresEngine(Engine):
    """Queries on one PostgreSQL database.

    Args:
        dsn: a connection string; never shown in errors, since it may hold a password.
        memory_mb: MiB by which a backend on this host may grow for one query.

    Raises:
        EngineUnavailableError: the package is missing, the server does not answer, or the role may do too much.
    """

    dialect: ClassVar[Dialect] = "postgres"
    refused_prefixes = ("dblink", "lo_", "pg_read_", "pg_ls_", "postgres_fdw_")

    def __init__(self, dsn: str, *, memory_mb: int) -> None:
        try:
            import psycopg

            from adjudge.verifiers.sql.postgres_memory import WatchedConnection
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
            self.refused = frozenset(name for (name,) in rows.fetchall()) | _ALSO_REFUSED
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
            member = self._connection.execute("SELECT pg_has_role(session_user, %s, 'MEMBER')", (role,)).fetchone()
            mighty = mighty or bool(member and member[0])
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
        if (refusal := self.refusal(sql)) is not None:
            return refusal
        started = time.monotonic()
        done = self._run(sql, limits)
        self._clean_up()
        if isinstance(done, Fault):
            return done
        names, collector = done
        return Table(columns=names, rows=collector.rows, seconds=time.monotonic() - started)

    def _run(self, sql: str, limits: QueryLimits) -> Fault | tuple[tuple[str, ...], Collector]:
        from adjudge.verifiers.sql.postgres_memory import MemoryExceededError, OversizedRowError

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
