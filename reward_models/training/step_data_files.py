"""Files of step data, and what became of their rows: those that cannot be used are counted and named.

A bad row never stops a file and is never dropped in silence: the reading says how many there were, why, and where the
first of them stand.

Not covered: the files themselves (`adjudge.reward_models.training.row_files`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.reward_models.training.bad_rows import BadRows
from adjudge.reward_models.training.row_files import rows_of
from adjudge.reward_models.training.step_data import StepExample, StepOptions
from adjudge.reward_models.training.step_data_formats import READERS, format_of


@dataclass(frozen=True, kw_only=True)
class StepData:
    """What a file held.

    Attributes:
        examples: in the file's order; a row can give several.
        format: the rows' format.
        rows: rows that were read, bad ones included; blank lines are none.
        bad: how many rows could not be used, by reason, with the numbers and names left out of the reasons.
        first_bad: the first of them: "row 7: why", rows counted from 1.
        digest: 16 hex digits of the examples.
    """

    examples: tuple[StepExample, ...]
    format: str
    rows: int
    bad: Mapping[str, int] = field(default_factory=dict)
    first_bad: tuple[str, ...] = ()
    digest: str = ""

    @property
    def bad_rows(self) -> int:
        """How many rows could not be used."""
        return sum(self.bad.values())


def read_steps(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    options: StepOptions | None = None,
    limit: int | None = None,
    split: str = "",
) -> StepData:
    """Return the examples of a file.

    Args:
        path: a .jsonl, .json (also .gz) or .parquet file, a folder of `datasets`, or "hub:NAME".
        format: a name of `step_data_formats.READERS`; "auto" looks at the first row that is an object.
        options: what becomes of labels that can be read in several ways.
        limit: only the first rows, so many.
        split: which part of a data set that has several; "train" without it.

    Raises:
        ValueError: the file cannot be read, no format has its fields, or not one row can be used.
    """
    if format != "auto" and format not in READERS:
        raise ValueError(f"the format of step data is {format!r}; give auto or one of {', '.join(READERS)}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit!r}; it must be at least 1 row, or None")
    rows = itertools.islice(rows_of(os.fspath(path), split=split), limit)
    found = parse_steps(rows, format=format, options=options)
    if not found.examples:
        shown = "; ".join(found.first_bad[:3]) or "the file holds no rows"
        raise ValueError(
            f"no row of {os.fspath(path)!r} can be used as step data ({shown}); name its format, or another"
        )
    return found


def parse_steps(rows: Iterable[Any], *, format: str = "auto", options: StepOptions | None = None) -> StepData:
    """Return the examples of rows that are at hand; items that are a `ValueError` count as bad rows.

    Args:
        rows: objects, as JSON holds them.
        format: as in `read_steps`.
        options: as in `read_steps`.
    """
    chosen, name = options or StepOptions(), format
    examples: list[StepExample] = []
    bad = BadRows()
    number = 0
    for number, row in enumerate(rows, start=1):
        try:
            if isinstance(row, ValueError):
                raise row
            if not isinstance(row, Mapping):
                raise ValueError(f"the row is a {type(row).__name__}; it must be a JSON object")
            if name == "auto":
                name = format_of(row)
            examples += READERS[name](row, chosen)
        except ValueError as error:
            bad.add(number, error)
    return StepData(
        examples=tuple(examples),
        format=name,
        rows=number,
        bad=bad.reasons,
        first_bad=tuple(bad.first),
        digest=digest_of(examples),
    )


def digest_of(examples: Iterable[StepExample]) -> str:
    """Return 16 hex digits that change with any text, label or outcome of the examples, and with their order."""
    found = hashlib.sha256()
    for example in examples:
        record = [example.prompt, example.steps, example.labels, example.outcome, example.group]
        found.update(json.dumps(record).encode() + b"\n")
    return found.hexdigest()[:16]
