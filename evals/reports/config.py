"""The options that every evaluation has, what names its input again, how far it is, and how long it took."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Final, ParamSpec

from adjudge import wire
from adjudge.evals.reports.result import Result
from adjudge.io.jobs.report import JobProgress, JobSnapshot, Pace
from adjudge.io.row import Cursor
from adjudge.io.source import Source, open_source
from adjudge.options import Options, Range
from adjudge.statistics.intervals import LEVEL, Draws

ROW_BYTES: Final = 256 << 20
"""A row of a text file takes no more."""


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Options):
    """Options of an evaluation; an evaluation extends them with its own.

    Attributes:
        needs_input: whether an empty input is a mistake; a benchmark that knows its place on the hub needs none.
    """

    needs_input: ClassVar[bool] = True

    input: str
    """A .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder of them or of a saved dataset, a pattern,
    an address such as s3://..., or a dataset of the Hugging Face hub; several with commas."""

    output: str = ""
    """Folder for result.json and report.html; without it, the table is all."""

    split: str = ""
    """Which split of a dataset; several with + between them."""

    subset: str = ""
    """Which configuration of a dataset on the hub."""

    revision: str = ""
    """Which commit of a dataset on the hub."""

    limit: Annotated[int, Range(ge=0)] = 0
    """Use only the first rows, so many; 0 uses all."""

    resamples: Annotated[int, Range(ge=0)] = 2_000
    """Resamples that bounds are drawn from; 0 draws none."""

    level: Annotated[float, Range(gt=0, lt=1)] = LEVEL
    """Coverage of the bounds, between 0 and 1."""

    seed: int = 0
    """Of everything that is drawn."""

    worst: Annotated[int, Range(ge=0)] = 50
    """How many cases the report holds to read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needs_input and not self.input:
            raise ValueError("there is no input; give a file, a folder, or the name of a dataset on the hub")
        if self.resamples == 1:
            raise ValueError("option resamples=1; give 0 for no bounds, or 2 or more")

    def opened(self, name: str = "") -> Source:
        """Open the input, or another file."""
        if name:
            return open_source(name, limit=ROW_BYTES)
        return open_source(self.input, limit=ROW_BYTES, split=self.split, subset=self.subset, revision=self.revision)

    @property
    def draws(self) -> Draws:
        """How bounds are drawn."""
        return Draws(rounds=self.resamples, level=self.level, seed=self.seed)

    def told(self, *hidden: str, empty: tuple[Any, ...] = ("", ())) -> dict[str, Any]:
        """Return the options as plain data, without paths, without hidden ones, and without empty values."""
        left_out = ("input", "output", *hidden)
        return {name: value for name, value in asdict(self).items() if name not in left_out and value not in empty}


def input_facts(source: Source, rows: int) -> dict[str, Any]:
    """Return the facts of `Result.source`.

    The digest is of each file's size and first MiB, and of what else names the input; a copy has the same one.
    """
    identity = source.identity()
    files = {name: [file["bytes"], file["head"]] for name, file in identity.pop("files", {}).items()}
    named = {key: value for key, value in identity.items() if value and key != "name"}
    digest = hashlib.sha256(wire.dumps([files, named]).encode()).hexdigest()[:16]
    return {"name": source.name, "rows": rows, "digest": digest, **named}


P = ParamSpec("P")


def timed(run: Callable[P, Result]) -> Callable[P, Result]:
    """Have the result of an evaluation say how many seconds it took."""

    @functools.wraps(run)
    def timed_run(*args: P.args, **kwargs: P.kwargs) -> Result:
        begun = time.monotonic()
        result = run(*args, **kwargs)
        return replace(result, seconds=time.monotonic() - begun)

    return timed_run


def tell_rows(
    progress: JobProgress | None, pace: Pace, after: Cursor, *, made: int, dropped: Mapping[str, int]
) -> None:
    """Tell a watcher, if there is one, how far the rows are read, and what came of them."""
    if progress is None:
        return
    share = pace.share(after)
    progress.update(
        JobSnapshot(
            rows=after.row,
            made=made,
            dropped={name: count for name, count in dropped.items() if count},
            rows_per_second=pace.per_second(after.row),
            fraction=share,
            eta_seconds=pace.seconds_left(share),
        )
    )


class PartsProgress:
    """Tells a watcher how far all parts together are, each an equal share; without a watcher it does nothing."""

    def __init__(self, progress: JobProgress | None, parts: Sequence[str]) -> None:
        self._progress = progress
        self._parts = list(parts)
        self._begun = time.monotonic()

    def __call__(self, part: str, share: float, *, rows: int, made: int) -> None:
        """Take the share that is done of a part, and how many rows are done and scores made in all."""
        if self._progress is None:
            return
        fraction = min((self._parts.index(part) + share) / len(self._parts), 1.0)
        seconds = max(time.monotonic() - self._begun, 1e-9)
        self._progress.update(
            JobSnapshot(
                rows=rows,
                made=made,
                dropped={},
                rows_per_second=rows / seconds,
                fraction=fraction,
                eta_seconds=seconds * (1 / fraction - 1) if fraction else None,
            )
        )
