"""The ranking that two scorers share (CycleAlign).

Of the answers that both scored, the longest list that both put in the same strict order; its members are pairs.

Not covered: more than two scorers, and the round in which the agreed ranking becomes the next demonstration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import ClassVar, Literal

from adjudge.data_pipelines.pairs.answers import Answer, ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, kw_only=True)
class Agreement(Rule):
    """Answers that two scorers rank alike; margins are differences of the first scorer's.

    Attributes:
        first: column of the one scorer's numbers.
        second: column of the other's.
        pairs_of: "all" members of the agreed ranking, or only "neighbours" in it.
    """

    name: ClassVar[str] = "agreement"

    first: str
    second: str
    pairs_of: Literal["all", "neighbours"] = "all"

    def __post_init__(self) -> None:
        """Reject one scorer twice."""
        if not self.first or not self.second or self.first == self.second:
            raise ValueError(
                f"agreement: first is {self.first!r} and second {self.second!r}; name two columns with scores"
            )
        if self.pairs_of not in ("all", "neighbours"):
            raise ValueError(f"agreement: pairs_of is {self.pairs_of!r}; it must be all or neighbours")

    @property
    def needs(self) -> Needs:
        """The two scorers."""
        return Needs(score=False, columns=(self.first, self.second))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """How many answers the agreed ranking has, and how many both scored."""
        return {"agreed": "whole", "of": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        known = [
            (a, b, one)
            for one in group.answers
            if (a := one.number(self.first)) is not None and (b := one.number(self.second)) is not None
        ]
        known.sort(key=lambda found: (-found[0], found[1], group.draw(found[2].text)))
        ranking = longest_falling(known)
        more = {"agreed": len(ranking), "of": len(known)}
        together = combinations(ranking, 2) if self.pairs_of == "all" else pairwise(ranking)
        for (high, _, better), (low, _, worse) in together:
            yield Pair(chosen=better, rejected=worse, margin=high - low, more=more)


def longest_falling(found: list[tuple[float, float, Answer]]) -> list[tuple[float, float, Answer]]:
    """Return the longest part in which both numbers fall strictly.

    Args:
        found: two numbers of each answer, falling in the first.
    """
    best: list[int] = []
    before: list[int] = []
    for at, (_, second, _) in enumerate(found):
        earlier = [other for other in range(at) if found[other][1] > second and found[other][0] > found[at][0]]
        before.append(max(earlier, key=lambda other: best[other], default=-1))
        best.append(1 + (best[before[-1]] if before[-1] >= 0 else 0))
    ranking: list[tuple[float, float, Answer]] = []
    at = max(range(len(found)), key=lambda place: best[place], default=-1)
    while at >= 0:
        ranking.append(found[at])
        at = before[at]
    return ranking[::-1]
