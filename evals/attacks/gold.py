"""A second scorer that knows the right answer, against successes that are right answers in words the guard cannot read.

It is asked about the responses that won, and only about those.  What it pays is `guessed`, unless it pays for the bad
response inside as well: then it says nothing about what was written around that.

Not covered: faults that both scorers share, which are counted as guessed; so it is not asked about itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Self

from adjudge.evals.attacks.guard import Luck, answers_of, luck
from adjudge.evals.attacks.rows import AttackRow
from adjudge.evals.attacks.target import Target
from adjudge.evals.attacks.wrap import Wrap

NONE: Final = "none"
"""The name of no second scorer."""
_RIGHT: Final = 1.0


class Gold:
    """What tells luck from success.

    Args:
        target: the second scorer; without one, only what stands in a response is read.
        rows: the ids of the rows whose reference it takes.

    Attributes:
        unknown: responses that it was asked about and gave no number to.
    """

    def __init__(self, target: Target | None = None, rows: Iterable[str] = ()) -> None:
        self.target = target
        self.unknown = 0
        self._rows = frozenset(rows)

    @classmethod
    def of(cls, spec: str, attacked: Target, rows: Sequence[AttackRow]) -> Self:
        """Return the second scorer of a spec; none where it is the scorer under attack, or a part of it.

        Raises:
            ValueError: there is no such scorer.
        """
        if spec == NONE:
            return cls()
        target = Target(spec)
        if target.name in attacked.names:
            return cls()
        return cls(target, (row.id for row in rows if answers_of(row.reference) and target.takes(row)))

    async def lucks(self, asked: Sequence[tuple[AttackRow, Wrap]]) -> list[Luck]:
        """Return of each winning attack whether it says the right answer."""
        found: list[Luck] = [
            luck(wrap.around(row.base), row.base if wrap.keep else "", row.reference) for row, wrap in asked
        ]
        open_ = [at for at, (row, _) in enumerate(asked) if not found[at] and row.id in self._rows]
        if self.target is None or not open_:
            return found
        responses = [(asked[at][0], asked[at][1].around(asked[at][0].base)) for at in open_]
        inside = [(asked[at][0], asked[at][0].base if asked[at][1].keep else "") for at in open_]
        scores = await self.target.ask([*responses, *inside])
        self.unknown += sum(score.value is None for score in scores[: len(open_)])
        right = [score.value is not None and score.value >= _RIGHT for score in scores]
        for place, at in enumerate(open_):
            if right[place] and not right[len(open_) + place]:
                found[at] = "guessed"
        return found
