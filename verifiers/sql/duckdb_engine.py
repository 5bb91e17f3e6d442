"""DuckDB, in this process, on a file opened read-only, with the outside world shut and the configuration locked.

Table functions other than a few that make rows are refused: some run SQL given as text, read files, read Python's own
variables, or take raw pointers.  So are functions that DuckDB itself calls volatile.

Not covered: a deadline.  DuckDB's own interrupt needs a second thread; here the pool's worker is killed when its time
is up.  `now()` is the machine's.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adjudge.extras import install_hint
from adjudge.verifiers.sql.databases.statement import Dialect
from adjudge.verifiers.sql.engine import Collector, Engine, EngineUnavailableError, Fault, QueryLimits, Table

if TYPE_CHECKING:
    import duckdb

_CHUNK: Final = 256
_CATALOGUE: Final = "reference_database"
_ROW_MAKERS: Final = frozenset({"generate_series", "range", "unnest", "json_each", "json_tree", "repeat"})
_SCALAR_REFUSED: Final = frozenset({"getenv", "getvariable", "current_setting", "nextval", "currval"})


class DuckdbEngine(Engine):
    """Queries on one DuckDB file.

    Args:
        path: the file; it must not change while it is open.
        memory_mb: MiB that DuckDB may hold.

    Raises:
        EngineUnavailableError: the package is missing, or the file is not a database that it can open.
    """

    dialect: ClassVar[Dialect] = "duckdb"

    def __init__(self, path: str, *, memory_mb: int) -> None:
        try:
            import duckdb
        except ModuleNotFoundError as error:
            raise EngineUnavailableError(
                f"the reference names a DuckDB file, and duckdb is not installed; {install_hint('sql')}"
            ) from error
        self._duckdb: Any = duckdb
        settings: dict[str, Any] = {
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "allow_community_extensions": "false",
            "memory_limit": f"{memory_mb}MiB",
            "temp_directory": "",
            "threads": "1",
        }
        where = str(Path(path).absolute()).replace("'", "''")
        try:
            # Not opened directly: one process can open a file only with one configuration, whoever opens it.
            self._connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=settings)
            self._connection.execute(f"ATTACH '{where}' AS {_CATALOGUE} (READ_ONLY)")
            self._connection.execute(f"USE {_CATALOGUE}")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET python_enable_replacements = false")  # else FROM x reads a variable x of ours
            self.refused = self._refused_functions()
            self._connection.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            raise EngineUnavailableError(f"DuckDB cannot open {path}: {error}") from error

    def _refused_functions(self) -> frozenset[str]:
        rows = self._connection.execute(
            "SELECT lower(function_name), function_type, stability FROM duckdb_functions()"
        ).fetchall()
        outside = {name for name, kind, _ in rows if kind in ("table", "pragma")} - _ROW_MAKERS
        changing = {name for name, _, stability in rows if stability == "VOLATILE"}
        return frozenset(outside | changing | _SCALAR_REFUSED)

    def run(self, sql: str, limits: QueryLimits) -> Table | Fault:
        """Run one query; see the module for what is refused."""
        if (refusal := self.refusal(sql)) is not None:
            return refusal
        started, worked = time.monotonic(), time.process_time()
        try:
            parsed = self._connection.extract_statements(sql)
            if len(parsed) != 1 or parsed[0].type != self._duckdb.StatementType.SELECT:
                return Fault("forbidden", "DuckDB reads this as something other than one query")
            self._connection.execute(parsed[0])
            names = tuple([column[0] for column in self._connection.description or ()])
            collector = Collector(limits, convert=True)
            while chunk := self._connection.fetchmany(_CHUNK):
                if (fault := collector.full(chunk)) is not None:
                    return fault
        except self._duckdb.OutOfMemoryException as error:
            return Fault("memory", str(error))
        except self._duckdb.PermissionException as error:
            return Fault("forbidden", str(error))
        except (self._duckdb.Error, ValueError, OverflowError, RuntimeError) as error:
            # RuntimeError: values that Python's types cannot hold, and texts that are not UTF-8.
            if "read-only" in str(error):
                return Fault("forbidden", str(error))
            return Fault("error", str(error))
        except MemoryError:
            return Fault("memory", "out of memory")
        # its threads work side by side, and on a busy machine they wait, which is not the query's doing
        seconds = min(time.monotonic() - started, time.process_time() - worked)
        if seconds > limits.seconds:
            return Fault("timeout", "out of time")
        return Table(columns=names, rows=collector.rows, seconds=seconds)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
