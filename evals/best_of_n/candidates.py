"""The responses to each prompt with all that was said of them, and without their texts, so that many fit into memory.

What somebody said of a response is a number, numbers of its steps, or why there is none.  It comes from a column of the
input, from a file that `adjudge label` wrote with one scorer, or from a scorer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.evals.benchmarks.case import Given, of_score
from adjudge.evals.benchmarks.reading import given_in
from adjudge.evals.benchmarks.voices import asked
from adjudge.evals.reports.result import Counts
from adjudge.io.columns import MISSING
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import number_of
from adjudge.protocol import NO_COST, Cost, Sample, Score
from adjudge.responses.aggregate import Aggregate, aggregate, needs_probabilities
from adjudge.statistics.arrays import Floats, np

LARGEST_ROW = 64 << 20  # bytes of a line
LARGEST = 1e100
"""A larger number is none: its square would not be finite, and no reward means it."""

_NO_SCORE = (ValueError, TypeError, KeyError, AttributeError)  # what `given_in` raises
_FILES = (".jsonl", ".jsonl.gz", ".ndjson", ".parquet")


NOTHING = Given(None, "failed", "no score")
UNFIT = Given(None, "failed", "bad_sample")


def is_judged(said: Given) -> bool:
    """Return whether there is a number, or there are numbers of steps from which one can be made."""
    return said.value is not None or (said.status == "scored" and bool(said.steps))


def said_by_steps(said: Given, how: str) -> Given:
    """Return a verdict with the aggregate of its steps as its value; with its own value where `how` is "".

    Steps without a value, or outside what the formula takes, leave no number.
    """
    if said.status != "scored" or (not how and said.value is not None):
        return said
    if not how:
        return said._replace(status="failed", reason="steps without an aggregate")
    known = [value for value in said.steps if value is not None]
    if not known or len(known) < len(said.steps):
        return said._replace(value=None, status="failed", reason="unknown step" if said.steps else "no steps")
    named: Aggregate = how  # type: ignore[assignment]  # options are checked against the names
    if needs_probabilities(named) and not all(0 <= value <= 1 for value in known):
        return said._replace(value=None, status="failed", reason="no probability")
    value = aggregate(known, named)
    return said._replace(value=value if math.isfinite(value) else None)


async def asked_there(bench: LocalBench, samples: Sequence[Sample]) -> list[Score]:
    """Return a scorer's answers, as `asked` does."""
    scores = await asked(bench, samples)
    gone = next((one.reason for one in scores if one.status == "failed" and one.reason in GONE), None)
    if gone is not None:
        raise JobError(f"the model behind the scorer {bench.name!r} is gone ({gone})")
    return scores


def said_by(score: Score) -> Given:
    """Return what a scorer's score says."""
    return _said(of_score(score))


def _said(given: Given) -> Given:
    """What is kept of a verdict: numbers that are not too large, and nothing that no evaluation reads."""
    if given.value is not None and abs(given.value) > LARGEST:
        return NOTHING._replace(reason="too large")
    return Given(given.value, given.status, given.reason, tuple(map(_number, given.steps)), answer=given.answer)


def said_in(cell: Any) -> Given:
    """Return what a cell says: a number, a truth value, text that spells one, a score, or a list of values of steps.

    A list of one number is that number.
    """
    if isinstance(cell, Mapping):
        try:
            return _said(given_in(cell))
        except _NO_SCORE:
            return NOTHING
    if isinstance(cell, Sequence) and not isinstance(cell, str):
        steps = tuple(map(_number, cell))
        if not steps or None in steps:
            return NOTHING
        return Given(steps[0] if len(steps) == 1 else None, "scored", steps=steps)
    number = None if cell is MISSING else _number(cell)
    return NOTHING if number is None else Given(number, "scored")


def is_file_of_scores(spec: str) -> bool:
    """Return whether a spec names a file of scores, rather than a scorer."""
    return spec.endswith(_FILES)


def read_scores(path: str) -> dict[tuple[str, str], Given]:
    """Return the scores of a file that `adjudge label` wrote, by the sample's id and its response column."""
    scores: dict[tuple[str, str], Given] = {}
    for row in open_source(path, limit=LARGEST_ROW).rows(Cursor()):
        data = row.data
        if data is None or "id" not in data or "value" not in data:
            what = row.error or f"it has the fields {', '.join(list(data or ())[:8])}"
            raise ValueError(
                f"row {row.index} of {path} is not a score ({what}); give what adjudge label wrote with one scorer"
            )
        key = (str(data["id"]), str(data.get("column") or ""))
        if key in scores:
            raise ValueError(f"{path} has two scores with the id {key[0]!r}; ids must be unique, see --id-column")
        try:
            scores[key] = _said(given_in(data))
        except _NO_SCORE as error:
            raise ValueError(f"row {row.index} of {path} is not a score: {error}") from error
    return scores


def _number(cell: Any) -> float | None:
    number = number_of(cell)
    return None if number is None or abs(number) > LARGEST else number


@dataclass(slots=True, kw_only=True)
class Candidate:
    """One response.

    Attributes:
        place: among the responses of the row.
        size: characters; None where there is no text.
        said: by name of who said it: "gold", "proxy".
    """

    id: str
    row: int
    place: int
    size: int | None = None
    answer: str = ""
    said: dict[str, Given] = field(default_factory=dict)

    def value(self, who: str) -> float | None:
        """Return the number that somebody gave it."""
        return self.said.get(who, NOTHING).value


@dataclass(slots=True, kw_only=True)
class Group:
    """The responses to one prompt, at least one."""

    name: str
    members: list[Candidate]

    def __len__(self) -> int:
        return len(self.members)

    def values(self, who: str) -> Floats:
        """Return (N,) the numbers that somebody gave, NaN where there is none."""
        return np.array([np.nan if (value := one.value(who)) is None else value for one in self.members])

    def right(self, who: str, least: float) -> Floats:
        """Return (N,) 1 where a number is at least so large, else 0; a response without a number is not right."""
        return np.array([float((value := one.value(who)) is not None and value >= least) for one in self.members])

    def sizes(self) -> Floats | None:
        """Return (N,) characters of the responses; None where one has no text."""
        sizes = [one.size for one in self.members]
        return None if None in sizes else np.array(sizes, dtype=float)

    def keep(self, wanted: Callable[[Candidate], bool]) -> Group:
        """Return the group with the members that are wanted, maybe none."""
        return Group(name=self.name, members=[one for one in self.members if wanted(one)])


@dataclass(slots=True, kw_only=True)
class Candidates:
    """All responses of an input."""

    groups: list[Group]
    unreadable: int
    source: Mapping[str, Any]
    scorers: Mapping[str, Mapping[str, Any]]
    notes: list[str]
    cost: Cost = NO_COST

    def all(self) -> Iterator[Candidate]:
        """Yield every response."""
        for group in self.groups:
            yield from group.members

    def counts(self, who: Sequence[str]) -> Counts:
        """Return the counts; a response is scored where everybody named gave a number, else it counts by who did not.

        A reason is told with the name of who gave it.
        """
        samples = scored = abstained = 0
        reasons: dict[str, int] = {}
        for one in self.all():
            samples += 1
            said = {name: one.said.get(name, NOTHING) for name in who}
            lacking = [(name, each) for name, each in said.items() if not is_judged(each)]
            scored += not lacking
            abstained += bool(lacking) and all(each.status == "abstained" for _, each in lacking)
            for name, each in lacking:
                told = f"{name}: {each.reason or each.status}"
                reasons[told] = reasons.get(told, 0) + 1
        return Counts(
            cases=len(self.groups),
            samples=samples,
            scored=scored,
            abstained=abstained,
            failed=samples - scored - abstained,
            unreadable=self.unreadable,
            reasons=dict(sorted(reasons.items())),
        )
