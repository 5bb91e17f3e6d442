"""A scorer as attackers meet it: a box that takes responses, of which nothing but numbers comes back.

Not covered: scorers that see whole groups, whose answer to one response means nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adjudge import registry
from adjudge.compose.by_kind import ByKind
from adjudge.compose.composite import Composite
from adjudge.evals.attacks.rows import AttackRow
from adjudge.protocol import NO_COST, Cost, Score, Scorer
from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample
from adjudge.runtime.verifying import VerifierScorer


class Target:
    """A scorer under attack, with a count of all that it was asked.

    Args:
        spec: what `adjudge.load` takes.

    Attributes:
        scorer: the scorer.
        statuses: its answers by their status.
        reasons: its answers without a number by their reason.
        cost: of all answers together.

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
        """Return the scores of responses to rows, in order.

        Raises:
            BrokenScorer: the scorer raised, or did not give one proper score for each.
        """
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
