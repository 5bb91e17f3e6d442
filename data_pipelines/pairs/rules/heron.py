"""Factors in the order of their importance (HERON, after the paper).

Two answers are compared by the first factor; if they differ by no more than its threshold, by the next, and so on.

With thresholds above 0 this is no order: A may win over B, B over C, and C over A.  Direct contradictions it has none.

Not covered: the hierarchy of the released code, which is `execution_order`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from adjudge.data_pipelines.pairs.answers import Answer, ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, kw_only=True)
class Heron(Rule):
    """The most important factor in which two answers differ decides.

    An answer that lacks a factor is compared by none behind it: with those before it undecided there is no pair.

    Attributes:
        factors: columns that hold numbers, most important first; more is better.  "-name" for less is better.
        over: differences up to this do not decide: one for each factor, or one for all.
        margin: "level": `scale` times the number of factors from the deciding one on, so the most important counts
            most; "difference": the deciding factor's difference.
        scale: of a level.
    """

    name: ClassVar[str] = "heron"

    factors: tuple[str, ...]
    over: tuple[float, ...] = (0.0,)
    margin: Literal["level", "difference"] = "level"
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Reject thresholds that fit no factors."""
        if not self.factors or not all(name.removeprefix("-") for name in self.factors):
            raise ValueError(f"heron: factors is {self.factors!r}; name the columns to compare, most important first")
        if len(self.over) not in (1, len(self.factors)) or not all(0 <= one < math.inf for one in self.over):
            raise ValueError(
                f"heron: over is {self.over!r} for {len(self.factors)} factors; give one threshold of 0 or more for "
                "each, or one for all"
            )
        if self.margin not in ("level", "difference"):
            raise ValueError(f"heron: margin is {self.margin!r}; it must be level or difference")
        if not 0 < self.scale < math.inf:
            raise ValueError(f"heron: scale is {self.scale!r}; it must be above 0")

    @property
    def needs(self) -> Needs:
        """The factors."""
        return Needs(score=False, columns=tuple(name.removeprefix("-") for name in self.factors))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """The factor that decided."""
        return {"factor": "text"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        known = [(one, [self._worth(one, name) for name in self.factors]) for one in group.answers]
        known.sort(key=lambda one: group.draw(one[0].text))
        over = self.over * len(self.factors) if len(self.over) == 1 else self.over
        for (one, mine), (other, theirs) in combinations(known, 2):
            for level, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                if a is None or b is None:
                    break
                if abs(a - b) > over[level]:
                    chosen, rejected = (one, other) if a > b else (other, one)
                    margin = abs(a - b) if self.margin == "difference" else self.scale * (len(self.factors) - level)
                    yield Pair(chosen=chosen, rejected=rejected, margin=margin, more={"factor": self.factors[level]})
                    break

    def _worth(self, answer: Answer, factor: str) -> float | None:
        found = answer.number(factor.removeprefix("-"))
        return -found if found is not None and factor.startswith("-") else found
