"""From a schema, and an accepted query where there is one, to databases that are worth keeping.

A database's file is named by the digest of its bytes and is put in its place in one step.  So a job that was
interrupted makes the same files again, and no file of another row is touched.

Not covered: cleaning up files that no row names, which a job leaves that was begun anew with other options.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge import wire
from adjudge.data_pipelines.tasks.databases.config import DatabasesConfig
from adjudge.data_pipelines.tasks.databases.filling import Filled, FillingError, fill
from adjudge.data_pipelines.tasks.databases.given_schema import GivenSchema, NoSchemaError, given_schema, read_schemas
from adjudge.data_pipelines.tasks.databases.suite import Aim, Judges, chosen
from adjudge.databases.aim import aimed_rows
from adjudge.databases.mutants import mutants, parsed
from adjudge.databases.schema_shape import SchemaError, read_schema
from adjudge.io.columns import MISSING, Choice, Column, no_column
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.kinds import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport

VERSION = "1"
_MOST_QUERIES = 64
_MOST_CHARACTERS = 10_000  # of a query; trying its mutants takes time with the square of its length


@dataclass(frozen=True, kw_only=True)
class Queries:
    """What a row asks: accepted queries, mutants of the first, and candidates."""

    accepted: tuple[str, ...]
    mutants: tuple[str, ...]
    candidates: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """Mutants and candidates, in this order."""
        return (*self.mutants, *self.candidates)


class DatabaseMaker:
    """Makes databases for each row; see the module.

    Args:
        config: the options.
        judges: the scorers that compare results.

    Raises:
        ValueError: the file of schemas cannot be read.
    """

    name = "databases"
    grouped = False
    fields: Mapping[str, Kind] = {
        "id": "text",
        "prompt": "chat",
        "reference": "any",
        "databases": "texts",
        "rows": "wholes",
        "mutants": "whole",
        "told_apart": "whole",
        "given_told_apart": "whole",
        "candidates": "whole",
        "candidates_told_apart": "whole",
        "alike": "texts",
    }

    def __init__(self, config: DatabasesConfig, judges: Judges) -> None:
        self._config, self._judges = config, judges
        self._schemas = read_schemas(config.schemas) if config.schemas else {}
        self._columns = {
            name: Column(getattr(config, f"{name}_column"))
            for name in ("schema", "values", "database", "name", "sql", "candidates", "prompt", "id")
            if getattr(config, f"{name}_column")
        }

    @property
    def fingerprint(self) -> str:
        """Changes with the options, the scorer and the schemas."""
        options = self._config.own_options()
        text = wire.dumps([VERSION, options, self._judges.fingerprint, self._schemas])
        return f"{self.name}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look for the columns; see `Maker`."""
        choice = Choice(columns, first)

        def there(name: str) -> bool:
            column = self._columns.get(name)
            return column is not None and (
                column.name in choice.known or any(column.of(row) is not MISSING for row in first)
            )

        named = {name: column.name for name, column in self._columns.items()}
        choice.check({name: said for name, said in named.items() if said != getattr(DatabasesConfig, f"{name}_column")})
        if not (there("schema") or there("database") or (self._schemas and there("name"))):
            raise ValueError(
                no_column("schema", choice.known, usual=[self._config.schema_column or "schema"])
                + " A SQLite file will do (--database-column), or a name in a file of schemas (--schemas)"
            )
        if there("sql"):
            return (f"accepted queries: column {self._config.sql_column!r}",)
        return ("accepted queries: no such column, so the databases aim at nothing (--sql-column names one)",)

    async def make(self, unit: Unit) -> Made:
        """Return the databases of a row, or why there are none; see `Maker`."""
        (row,) = unit.rows
        try:
            head = {"id": self._id(unit, row), "prompt": self._prompt(row)}
            given = given_schema(
                self._value(row, "schema"),
                self._value(row, "values"),
                self._value(row, "name"),
                self._value(row, "database"),
                schemas=self._schemas,
                folder=self._config.database_folder,
            )
            queries = await asyncio.to_thread(self._queries, row)
            with tempfile.TemporaryDirectory(prefix="adjudge-databases-") as folder:
                filled = await asyncio.to_thread(self._filled, given, queries, Path(folder))
                return await self._chosen(head, given, queries, filled)
        except (NoSchemaError, DroppedError) as error:
            return Made(dropped={error.reason: 1})
        except SchemaError:
            return Made(dropped={"bad_schema": 1})
        except FillingError:
            return Made(dropped={"schema_takes_no_rows": 1})

    def _filled(self, given: GivenSchema, queries: Queries | None, folder: Path) -> list[Filled]:
        """Return the databases to choose from."""
        schema = read_schema(given.schema)
        accepted = queries.accepted if queries else ()
        said = json.dumps([self._config.seed, given.schema, accepted], sort_keys=True, default=str)
        seed = hashlib.sha256(said.encode()).hexdigest()
        maker = aimed_rows(schema, accepted, seed, self._config.moment, through_keys=True)
        count = self._config.count * (self._config.tries if queries else 1)
        edges = self._config.wanted_edges
        return [fill(folder / f"{at}.sqlite", schema, maker, at, edges, seed) for at in range(count)]

    async def _chosen(
        self, head: Mapping[str, Any], given: GivenSchema, queries: Queries | None, filled: Sequence[Filled]
    ) -> Made:
        if queries is None:
            paths = self._kept(filled)
            nothing = dict.fromkeys([name for name in self.fields if name not in ("id", "prompt")])
            found = {"databases": paths, "rows": [one.rows for one in filled]}
            return Made(rows=({**head, **nothing, **found},), counts={"databases": float(len(paths))})
        files = [*map(str, (one.path for one in filled)), *([given.file] if given.file else [])]
        aims = await self._judges.aims(files, queries.accepted, queries.others)
        own = aims.pop() if given.file else Aim(runs=False, finds=False)
        if not any(aim.runs for aim in aims):
            raise DroppedError("query_fails")
        if not any(aim.finds for aim in aims):
            raise DroppedError("query_finds_nothing")
        kept = chosen(aims, self._config.count, distill=self._config.distill)
        told = frozenset[int]().union(*(aims[at].told for at in kept))
        ran = frozenset[int]().union(*(aim.ran for aim in aims))
        wrong = frozenset(range(len(queries.mutants)))
        if len(told & wrong) < self._config.min_told * len(ran & wrong):
            raise DroppedError("told_too_few_apart")
        paths = self._kept([filled[at] for at in kept])
        made = {
            **head,
            "reference": {"sql": list(queries.accepted), "database": paths},
            "databases": paths,
            "rows": [filled[at].rows for at in kept],
            "mutants": len(ran & wrong),
            "told_apart": len(told & wrong),
            "given_told_apart": len(own.told & wrong) if own.runs else None,
            "candidates": len(ran - wrong),
            "candidates_told_apart": len(told - wrong),
            "alike": [queries.others[at] for at in sorted(ran - told)],
        }
        counts = {"databases": len(paths), "mutants": len(ran & wrong), "told_apart": len(told & wrong)}
        return Made(rows=(made,), counts=counts)

    def _kept(self, filled: Sequence[Filled]) -> list[str]:
        """Put databases into the folder under the digests of their bytes, and return their paths."""
        folder = self._config.made_folder
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for one in filled:
            path = folder / f"{hashlib.sha256(one.path.read_bytes()).hexdigest()[:24]}.sqlite"
            if not path.exists():
                fresh = folder / f".{path.name}.{os.getpid()}"
                shutil.copyfile(one.path, fresh)
                fresh.replace(path)
            paths.append(str(path))
        return paths

    def _queries(self, row: Mapping[str, Any]) -> Queries | None:
        accepted = _texts(self._value(row, "sql"), "bad_query")
        if not accepted:
            return None
        tree = next((tree for tree in map(parsed, accepted) if tree is not None), None)
        wrong = tuple(mutants(tree)) if tree is not None else ()
        candidates = _texts(self._value(row, "candidates"), "bad_candidates")
        known = {*accepted, *wrong}
        return Queries(
            accepted=accepted, mutants=wrong, candidates=tuple(text for text in candidates if text not in known)
        )

    def _prompt(self, row: Mapping[str, Any]) -> Any:
        try:
            return fitted(self._value(row, "prompt"), "chat")
        except Unfit as error:
            raise DroppedError("bad_prompt") from error

    def _value(self, row: Mapping[str, Any], name: str) -> Any:
        found = self._columns[name].of(row) if name in self._columns else None
        return None if found is MISSING else found

    def _id(self, unit: Unit, row: Mapping[str, Any]) -> str:
        named = self._value(row, "id")
        return str(unit.first if named is None else named)


def _texts(value: Any, reason: str) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(found, list | tuple) or len(found) > _MOST_QUERIES:
        raise DroppedError(reason)
    if not all(isinstance(text, str) and text.strip() for text in found):
        raise DroppedError(reason)
    if any(len(text) > _MOST_CHARACTERS for text in found):
        raise DroppedError("query_too_long")
    return tuple(dict.fromkeys(found))


def make_databases(config: DatabasesConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make SQLite databases from schemas, or go on with a job that was interrupted.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.

    Returns:
        The counts.  `dropped` says why rows came to nothing: "no_schema", "bad_schema", "schema_takes_no_rows",
        "query_fails", "query_finds_nothing", "told_too_few_apart" and others.

    Raises:
        ValueError: a mistake in the call, or a package that is not installed; no work was done.
        JobError: the job could not go on; the message says how it can.
    """
    return run_job(config, DatabaseMaker(config, Judges.of(config.moment, config.seconds)), progress=progress)
