"""From a schema, and an accepted query where there is one, to databases that are worth keeping.

A database's file is named by the digest of its bytes and is put in its place in one step, so a job that was interrupted
makes the same files again, and no file of another row is touched.

_Queries run through the scorer `sql`.  A query counts as told apart on a database when it runs there and gives another
result than every accepted one.  A mutant that never is may mean the same as the accepted query.

Not covered: queries that differ only in time; cleaning up files that no row names, which a job leaves that was begun
anew with other options.
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
from typing import Any, ClassVar, TypeAlias

from adjudge.data_pipelines.tasks.config import DatabasesConfig
from adjudge.data_pipelines.tasks.database_filling import FillingError, GivenSchema, fill, given_schema, read_schemas
from adjudge.io.columns import MISSING, no_column
from adjudge.io.errors import JobError
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of, texts_in
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked
from adjudge.scoring import registry
from adjudge.verifiers.sql.databases.aim import aimed_rows
from adjudge.verifiers.sql.databases.mutants import mutants, parsed
from adjudge.verifiers.sql.databases.schema_shape import SchemaError, read_schema

_MAX_CELLS = 20_000  # rows of one result; made databases give far fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a database is good for.

    Attributes:
        runs: whether an accepted query runs on it.
        finds: whether an accepted query finds something on it.
        apart: the numbers of the other queries that it tells apart.
        ran: the numbers of those that run on it.
        fault: why no accepted query runs.
    """

    runs: bool
    finds: bool
    apart: frozenset[int] = frozenset()
    ran: frozenset[int] = frozenset()
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Judges:
    """The scorers that compare results: one wants accepted queries to find something, the other does not."""

    strict: Scorer
    lenient: Scorer

    @classmethod
    def of(cls, moment: str, seconds: float) -> Judges:
        """Return the judges of a job."""
        options = {"moment": moment, "seconds": seconds, "rows": _MAX_CELLS, "variations": 0}
        return cls(
            strict=registry.load({"sql": {**options, "empty": "refuse"}}),
            lenient=registry.load({"sql": {**options, "empty": "accept"}}),
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever a comparison could come out otherwise."""
        return self.strict.fingerprint

    async def aims(self, files: Sequence[str], accepted: Sequence[str], others: Sequence[str]) -> list[Aim]:
        """Return what each database is good for."""
        references: list[Mapping[str, Any]] = [{"sql": list(accepted), "database": file} for file in files]
        first = _response(accepted[0])
        finds = await self._scored(self.strict, [(first, reference) for reference in references])
        runs = await self._scored(self.lenient, [(first, reference) for reference in references])
        pairs = [(_response(other), reference) for reference in references for other in others]
        verdicts = await self._scored(self.lenient, pairs)
        aims = []
        for at, (finding, running) in enumerate(zip(finds, runs, strict=True)):
            mine = verdicts[at * len(others) : (at + 1) * len(others)]
            apart = frozenset(number for number, verdict in enumerate(mine) if verdict.reason == "wrong")
            same = frozenset(number for number, verdict in enumerate(mine) if verdict.value == 1.0)
            fault = "" if running.value == 1.0 else str(running.evidence.get("error", running.reason))
            aim = Aim(runs=running.value == 1.0, finds=finding.value == 1.0, apart=apart, ran=apart | same, fault=fault)
            aims.append(aim)
        return aims

    async def _scored(self, scorer: Scorer, pairs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Score]:
        samples = [Sample(prompt="", response=response, reference=reference) for response, reference in pairs]
        scores = await score_checked(scorer, samples)
        lost = next((score for score in scores if score.reason == "engine_unavailable"), None)
        if lost is not None:
            raise JobError(f"a database cannot be opened: {lost.evidence.get('error', '')}")
        return scores


def _response(query: str) -> str:
    """Return a query as a response that holds nothing else; no query holds the closing tag outside a text."""
    return f"<sql>{query}</sql>"


def chosen(aims: Sequence[Aim], most: int, *, distill: bool) -> list[int]:
    """Return the numbers of the databases to keep, in the order in which they were chosen.

    The first is one on which an accepted query finds something.  Each one tells the most queries apart that none before
    it does, and of equals the most in all; the rest of equals go to the first.
    """
    kept: list[int] = []
    reached: frozenset[int] = frozenset()
    while len(kept) < most:
        left = [at for at, aim in enumerate(aims) if at not in kept and aim.runs and (aim.finds or kept)]
        best = max(
            left, key=lambda at: (len(aims[at].apart - reached), aims[at].finds, len(aims[at].apart), -at), default=None
        )
        if best is None or (distill and kept and not aims[best].apart - reached):
            break
        kept.append(best)
        reached |= aims[best].apart
    return kept


Filled: TypeAlias = tuple[Path, int]
"""A database that was made, and how many rows it has."""

VERSION = "1"
_MAX_QUERIES = 64
_MAX_CHARACTERS = 10_000  # of a query; trying its mutants takes time with the square of its length


@dataclass(frozen=True, kw_only=True)
class _Queries:
    """What a row asks: accepted queries, mutants of the first, and candidates."""

    accepted: tuple[str, ...]
    mutants: tuple[str, ...]
    candidates: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        return (*self.mutants, *self.candidates)


class _DatabaseMaker(RowMaker[DatabasesConfig]):
    """Makes databases for each row; see the module.

    Raises:
        ValueError: the file of schemas cannot be read.
    """

    name = "databases"
    reads = ("schema", "values", "database", "name", "sql", "candidates", "prompt", "id")
    fields: ClassVar[Mapping[str, Kind]] = {
        "id": "text", "prompt": "chat", "reference": "any", "databases": "texts", "rows": "wholes",
        "mutants": "whole", "told_apart": "whole", "given_told_apart": "whole", "candidates": "whole",
        "candidates_told_apart": "whole", "alike": "texts",
    }  # fmt: skip

    def __init__(self, config: DatabasesConfig, judges: Judges) -> None:
        super().__init__(config)
        self._judges = judges
        self._schemas = read_schemas(config.schemas) if config.schemas else {}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.name, VERSION, self.config.own_options(), self._judges.fingerprint, self._schemas)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        known = self.check_columns(columns, first, optional=self.reads).known

        def there(name: str) -> bool:
            column = self._columns.get(name)
            return column is not None and (column.name in known or any(column.of(row) is not MISSING for row in first))

        if not (there("schema") or there("database") or (self._schemas and there("name"))):
            raise ValueError(
                no_column("schema", known, usual=[self.config.schema_column or "schema"])
                + " A SQLite file will do (--database-column), or a name in a file of schemas (--schemas)"
            )
        if there("sql"):
            return (f"accepted queries: column {self.config.sql_column!r}",)
        return ("accepted queries: no such column, so the databases aim at nothing (--sql-column names one)",)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        (row,) = unit.rows
        head = {"id": self.id_of(unit), "prompt": self.chat(row)}
        given = given_schema(
            self.cell(row, "schema"),
            self.cell(row, "values"),
            self.cell(row, "name"),
            self.cell(row, "database"),
            schemas=self._schemas,
            folder=self.config.database_folder,
        )
        queries = await asyncio.to_thread(self._queries, row)
        try:
            with tempfile.TemporaryDirectory(prefix="adjudge-databases-") as folder:
                filled = await asyncio.to_thread(self._filled, given, queries, Path(folder))
                return [head | await self._chosen(given, queries, filled, account)]
        except SchemaError as error:
            raise DroppedError("bad_schema") from error
        except FillingError as error:
            raise DroppedError("schema_takes_no_rows") from error

    def _filled(self, given: GivenSchema, queries: _Queries | None, folder: Path) -> list[Filled]:
        schema = read_schema(given.schema)
        accepted = queries.accepted if queries else ()
        said = json.dumps([self.config.seed, given.schema, accepted], sort_keys=True, default=str)
        seed = hashlib.sha256(said.encode()).hexdigest()
        maker = aimed_rows(schema, accepted, seed, self.config.moment, through_keys=True)
        count = self.config.count * (self.config.tries if queries else 1)
        edges = frozenset(self.config.edges) - {"none"}
        paths = [folder / f"{at}.sqlite" for at in range(count)]
        return [(path, fill(path, schema, maker, at, edges, seed)) for at, path in enumerate(paths)]

    async def _chosen(
        self, given: GivenSchema, queries: _Queries | None, filled: Sequence[Filled], account: Account
    ) -> dict[str, Any]:
        if queries is None:
            paths = self._kept(filled)
            nothing = dict.fromkeys([name for name in self.fields if name not in ("id", "prompt")])
            account.counts["databases"] += float(len(paths))
            return {**nothing, "databases": paths, "rows": [rows for _, rows in filled]}
        files = [*(str(path) for path, _ in filled), *([given.file] if given.file else [])]
        aims = await self._judges.aims(files, queries.accepted, queries.others)
        own = aims.pop() if given.file else Aim(runs=False, finds=False)
        if not any(aim.runs for aim in aims):
            raise DroppedError("query_fails")
        if not any(aim.finds for aim in aims):
            raise DroppedError("query_finds_nothing")
        kept = chosen(aims, self.config.count, distill=self.config.distill)
        apart = frozenset[int]().union(*(aims[at].apart for at in kept))
        ran = frozenset[int]().union(*(aim.ran for aim in aims))
        wrong = frozenset(range(len(queries.mutants)))
        if len(apart & wrong) < self.config.min_told * len(ran & wrong):
            raise DroppedError("told_too_few_apart")
        paths = self._kept([filled[at] for at in kept])
        account.counts |= {"databases": len(paths), "mutants": len(ran & wrong), "told_apart": len(apart & wrong)}
        return {
            "reference": {"sql": list(queries.accepted), "database": paths},
            "databases": paths,
            "rows": [filled[at][1] for at in kept],
            "mutants": len(ran & wrong),
            "told_apart": len(apart & wrong),
            "given_told_apart": len(own.apart & wrong) if own.runs else None,
            "candidates": len(ran - wrong),
            "candidates_told_apart": len(apart - wrong),
            "alike": [queries.others[at] for at in sorted(ran - apart)],
        }

    def _kept(self, filled: Sequence[Filled]) -> list[str]:
        """Put databases into the folder under the digests of their bytes, and return their paths."""
        folder = self.config.made_folder
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for made, _ in filled:
            path = folder / f"{hashlib.sha256(made.read_bytes()).hexdigest()[:24]}.sqlite"
            if not path.exists():
                fresh = folder / f".{path.name}.{os.getpid()}"
                shutil.copyfile(made, fresh)
                fresh.replace(path)
            paths.append(str(path))
        return paths

    def _queries(self, row: Mapping[str, Any]) -> _Queries | None:
        accepted = _texts(self.cell(row, "sql"), "bad_query")
        if not accepted:
            return None
        tree = next((tree for tree in map(parsed, accepted) if tree is not None), None)
        wrong = tuple(mutants(tree)) if tree is not None else ()
        candidates = _texts(self.cell(row, "candidates"), "bad_candidates")
        known = {*accepted, *wrong}
        return _Queries(
            accepted=accepted, mutants=wrong, candidates=tuple(text for text in candidates if text not in known)
        )


def _texts(value: Any, reason: str) -> tuple[str, ...]:
    texts = texts_in(value, reason)
    if len(texts) > _MAX_QUERIES or not all(map(str.strip, texts)):
        raise DroppedError(reason)
    if any(len(text) > _MAX_CHARACTERS for text in texts):
        raise DroppedError("query_too_long")
    return tuple(dict.fromkeys(texts))


def make_databases(config: DatabasesConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make SQLite databases from schemas, or go on with a job that was interrupted.

    `dropped` of the report says why rows came to nothing: "no_schema", "bad_schema", "schema_takes_no_rows",
    "query_fails", "query_finds_nothing", "told_too_few_apart" and others.
    """
    return run_job(config, _DatabaseMaker(config, Judges.of(config.moment, config.seconds)), progress=progress)
