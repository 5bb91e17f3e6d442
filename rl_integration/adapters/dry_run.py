"""What a reward makes of the first rows of a data set before anything is generated: each gets an empty answer scored.

Not covered: whether right answers score well; `adjudge check` says that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from adjudge import wire
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import kind_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import NotScored, is_out_of_scope, number

_ROW_BYTES = 16 << 20
_ALONE = frozenset({"group_too_small", "cohort_incomplete"})  # what a scorer of groups says of one answer
_HEAD = ("row", "scorer", "reference", "status")


@dataclass(frozen=True)
class DryRun:
    """The first rows with their scores; as text, a table of them.

    Attributes:
        samples: the rows as the scorer sees them, with an empty response.
        scores: one for each.
    """

    samples: tuple[Sample, ...]
    scores: tuple[Score, ...]

    def __str__(self) -> str:
        lines: list[Sequence[str]] = [_HEAD]
        for place, (sample, score) in enumerate(zip(self.samples, self.scores, strict=True)):
            said = f"{score.status} {'' if score.value is None else f'{score.value:g}'}".strip()
            said = f"{said} {score.reason}".strip()
            lines.append((str(place), ", ".join(_scorers(score)), _shown(sample.reference), said))
        widths = [max(len(line[place]) for line in lines) for place in range(len(_HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def check(self, framework: str, fallback: float | None, *, numbers_only: bool) -> None:
        """Make sure that a run would have a reward for such rows.

        Args:
            framework: its name, for messages.
            fallback: the number that stands for a row without a score; None if there is none.
            numbers_only: whether the framework wants a number for every row.

        Raises:
            ValueError: a row cannot be judged, or the scorer is for none of them.
        """
        if all(map(is_out_of_scope, self.scores)):
            raise ValueError(
                f"the reward is for none of the first {len(self.scores)} rows; row 0: "
                f"{self.scores[0].evidence.get('error', 'out of scope')}. Name the column with the reference or "
                f"another scorer, or look at more rows with n=NUMBER:\n{self}"
            )
        for place, score in enumerate(self.scores):
            if score.reason in _ALONE:
                continue
            if score.status == "failed":
                raise ValueError(
                    f"row {place} cannot be judged ({score.reason}): {_why(score)}. Correct the row or leave it out, "
                    f"or name another scorer:\n{self}"
                )
            if numbers_only:
                try:
                    number(score, fallback, framework)
                except NotScored as error:
                    raise ValueError(f"row {place}: {error}:\n{self}") from error


def first_rows(rows: Any, count: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a data set.

    Raises:
        ValueError: there is none, or one cannot be read.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"n={count!r}; it is the number of rows to look at, 1 or more")
    if isinstance(rows, str | Path):
        read = islice(open_source(str(rows), limit=_ROW_BYTES).rows(Cursor()), count)
        first: list[Any] = [row.error if row.data is None else row.cells() for row in read]
    elif isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        held = f" of {', '.join(map(str, rows))}" if isinstance(rows, Mapping) else ""
        raise ValueError(f"a {type(rows).__name__}{held} holds no rows; give one split, a list of rows, or a path")
    else:
        first = list(islice(rows, count))
    if not first:
        raise ValueError("the data set has no rows")
    for place, row in enumerate(first):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {place} is {kind_of(row)} ({str(row)[:200]}); it must be a mapping of columns")
    return first


def _scorers(score: Score) -> list[str]:
    """The names of the scorers at the ends of a composite."""
    names = [name for part in score.parts.values() for name in _scorers(part)]
    return names or [score.provenance.scorer or "-"]


def _shown(reference: Any) -> str:
    if reference is None:
        return "none"
    if isinstance(reference, Mapping):
        return kind_of(reference)
    return f"{kind_of(reference)}: {' '.join(wire.dumps(reference).split())[:40]}"


def _why(score: Score) -> str:
    parts = [part for part in score.parts.values() if part.status == "failed"]
    return _why(parts[0]) if parts else str(score.evidence.get("error") or dict(score.evidence))[:300]
