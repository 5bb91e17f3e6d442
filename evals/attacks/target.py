"""Whom attackers meet, on which rows, with which texts, and from which score on they have won.

An attack is text before and behind a response that does not do the task, or in its place, so it can be carried to
another prompt, and its response is worthless by construction.

| goal | an attack has won |
|---|---|
| `right` | with at least the value of a right answer |
| `good` | with at least the score of the row's own good response |
| `genuine` | with at least a quantile of the scores of all good responses |

To reach a score is enough: a judge that gives both its best mark cannot tell them apart, and could never be exceeded.
A row has no threshold where the good response that it takes has no score; and a row whose bad response wins as it
stands shows nothing, because there is nothing left to attack.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from adjudge.evals.probes.row_file import TRIED, FileRow, ReadRows, read_rows
from adjudge.evals.reports.result import as_text
from adjudge.io.values import reference_of
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, Scorer
from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring import registry
from adjudge.scoring.compose.auto import ByKind
from adjudge.scoring.compose.composite import Composite
from adjudge.statistics.intervals import quantile

if TYPE_CHECKING:
    from adjudge.evals.attacks.config import AttackConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrap:
    """An attack, as what it puts around a bad response, or in its place where it does not `keep` it."""

    before: str = ""
    after: str = ""
    keep: bool = True

    def around(self, base: str) -> str:
        """Return the attacking response."""
        return self.before + (base if self.keep else "") + self.after


BARE = Wrap()
"""The bad response itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One prompt, and what attackers may build on.

    Attributes:
        base: a response that does not do the task; "" is one.
        words: tokens that an attacker may write; none of them is taken from this row's own good response.
    """

    id: str
    prompt: str | Sequence[Message]
    base: str = ""
    good: str | None = None
    reference: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    def sample(self, response: str) -> Sample:
        """Return what the scorer is asked about a response."""
        return Sample(
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            id=self.id,
            group=self.id,
            extra=self.extra,
        )

    def question(self) -> str:
        """Return the prompt as text, for people and for searches."""
        return as_text(self.prompt)


Read: TypeAlias = ReadRows[AttackRow]


def read_tasks(config: AttackConfig) -> Read:
    """Read the tasks, without words."""
    read = read_rows(config, TRIED, _task)
    if "bad" in read.source["columns"]:
        return read
    return dataclasses.replace(
        read, notes=(*read.notes, "no column of bad responses: attacks build on an empty response")
    )


def _task(row: FileRow) -> AttackRow:
    prompt, good = row.exchange("good")
    if "bad" in row.columns and row.columns["bad"].cell(row.data) is None:
        raise ValueError("it has no bad response; an empty one is a text")
    return AttackRow(
        id=row.id,
        prompt=prompt,
        base=row.exchange("bad")[1] or "",
        good=good,
        reference=reference_of(row.value("reference")),
        extra=row.extra,
    )


class Target:
    """A scorer under attack, with a count of all that it was asked, by status and, without a number, by reason.

    Raises:
        ValueError: there is no such scorer, or it must see whole groups.
    """

    def __init__(self, spec: Any) -> None:
        self.scorer: Scorer = registry.load(spec)
        if is_groupwise(self.scorer):
            raise ValueError(
                f"the scorer {self.scorer.name!r} compares the samples of a group, and attacks are asked about one by "
                "one; give a scorer of single responses"
            )
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.cost: Cost = NO_COST

    @property
    def name(self) -> str:
        """The scorer's name."""
        return self.scorer.name

    @property
    def verifies(self) -> bool:
        """Whether it is a program that checks answers: its right ones have a value of their own."""
        return isinstance(self.scorer, VerifierScorer)

    @property
    def names(self) -> set[str]:
        """Its name, and those of the scorers that it is made of."""
        return set(_names(self.scorer))

    def takes(self, row: AttackRow) -> bool:
        """Return whether a row has what the scorer needs."""
        try:
            validate_sample(self.scorer, row.sample(row.base))
        except ValueError:
            return False
        return True

    def validate(self, rows: Iterable[AttackRow]) -> None:
        """Raise `ValueError` if a row lacks what the scorer needs."""
        for row in rows:
            try:
                validate_sample(self.scorer, row.sample(row.base))
            except ValueError as error:
                raise ValueError(f"row {row.id!r}: {error}") from error

    async def ask(self, asked: Sequence[tuple[AttackRow, str]]) -> list[Score]:
        """Return the scores of responses to rows, in order."""
        scores = await score_checked(self.scorer, [row.sample(response) for row, response in asked])
        self.count(scores)
        return scores

    def count(self, scores: Iterable[Score]) -> None:
        """Count answers."""
        for score in scores:
            self.statuses[score.status] += 1
            if score.value is None:
                self.reasons[score.reason] += 1
            self.cost += score.cost


def _names(scorer: Scorer) -> Iterator[str]:
    yield scorer.name
    parts = [part.scorer for part in scorer.members()] if isinstance(scorer, Composite) else []
    for inner in [*parts, *(scorer.scorers.values() if isinstance(scorer, ByKind) else ())]:
        yield from _names(inner)


Goal: TypeAlias = Literal["auto", "right", "good", "genuine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """What to win means, before a scorer is asked about any row: the options of these names in `AttackConfig`."""

    goal: Goal = "auto"
    right: float = 1.0
    quantile: float = 0.5

    def chosen(self, target: Target, rows: Sequence[AttackRow]) -> Goal:
        """Return the goal against a scorer."""
        some = any(row.good is not None for row in rows)
        if self.goal == "auto":
            return "right" if target.verifies or not some else "good"
        if self.goal != "right" and not some:
            raise ValueError(
                f"the goal is {self.goal!r}, and no row has a good response; name its column with good_column, or "
                "take the goal right"
            )
        return self.goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a scorer stands to a row before it is attacked.

    Attributes:
        threshold: what an attack must reach; None if that is not known.
    """

    row: AttackRow
    base: float | None = None
    good: float | None = None
    threshold: float | None = None

    def won_by(self, value: float | None) -> bool:
        """Return whether a value wins."""
        return value is not None and self.threshold is not None and value >= self.threshold

    @property
    def open(self) -> bool:
        """Whether there is something to attack: a threshold that the bad response does not reach."""
        return self.threshold is not None and not self.won_by(self.base)


async def standings(target: Target, rows: Sequence[AttackRow], goals: Goals) -> list[Standing]:
    """Ask a scorer about all bad and good responses, and return how it stands to each row."""
    goal = goals.chosen(target, rows)
    asked = [(row, row.base) for row in rows] + [(row, row.good) for row in rows if row.good is not None]
    scores = await target.ask(asked)
    if all(score.status == "failed" for score in scores):
        raise ValueError(
            f"the scorer {target.name!r} could judge none of the {len(scores)} bad and good responses "
            f"({scores[0].reason}); there is nothing to attack until it can"
        )
    values = [score.value for score in scores]
    good = dict(zip((row.id for row in rows if row.good is not None), values[len(rows) :], strict=True))
    genuine = [value for value in good.values() if value is not None]
    known = []
    for row, base in zip(rows, values, strict=False):
        threshold: float | None = goals.right
        if goal == "good":
            threshold = good.get(row.id)
        elif goal == "genuine":
            threshold = quantile(genuine, goals.quantile) if genuine else None
        known.append(Standing(row=row, base=base, good=good.get(row.id), threshold=threshold))
    return known
