"""Easy and hard pairs by how far apart the two are (MPO).

MPO trains on the easy pairs first and draws prompts of the hard ones later.  Its threshold is not known; a share is
taken here.

Not covered: thresholds for each source; make a job for each.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from adjudge.data_pipelines.jobs.maker import Kind
from adjudge.data_pipelines.pairs.answers import ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import LearningRule, Needs, Rule
from adjudge.data_pipelines.pairs.rules.best_worst import BestWorst
from adjudge.statistics.intervals import quantile


@dataclass(frozen=True, kw_only=True)
class GapSplit(LearningRule):
    """The pairs of another rule, marked `easy` or `hard` in the column `split`.

    Without a threshold the input is read once before: 8 bytes of memory for each pair.

    Attributes:
        of: the rule that makes the pairs.
        by: column of the numbers whose distance is the gap; "" for the pair's margin.
        hard: share of the pairs that is hard, in (0, 1).
        threshold: the smallest gap of an easy pair; None takes it from the share and the whole input.
    """

    name: ClassVar[str] = "gap_split"

    of: Rule = field(default_factory=BestWorst)
    by: str = ""
    hard: float = 0.5
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Reject shares that split nothing."""
        if isinstance(self.of, LearningRule):
            raise ValueError(f"gap_split: of is {self.of.name}, which splits pairs too; name a rule that makes them")
        if not 0 < self.hard < 1:
            raise ValueError(f"gap_split: hard is {self.hard!r}; it is a share above 0 and below 1")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"gap_split: threshold is {self.threshold!r}; it must be finite, or left out")

    @property
    def needs(self) -> Needs:
        """As the rule that makes the pairs, and the column of the gap."""
        needs = self.of.needs
        return replace(needs, columns=(*needs.columns, self.by)) if self.by else needs

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What the other rule adds, and the split."""
        return {**self.of.columns, "split": "text", "gap": "number"}

    def learnt(self, groups: Iterable[ScoredGroup]) -> Self:
        """Return the rule with the threshold that the groups' pairs give, if it has none."""
        if self.threshold is not None:
            return self
        gaps = array("d")
        for group in groups:
            gaps.extend(gap for pair in self.of.pairs(group) if (gap := self._gap(pair)) is not None)
        return replace(self, threshold=quantile(gaps, self.hard) if gaps else 0.0)

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the other rule's pairs; those without a gap are in neither split, and left out."""
        if self.threshold is None:
            raise RuntimeError("gap_split: the threshold is not known yet; use the rule that `learnt` returns")
        for pair in self.of.pairs(group):
            gap = self._gap(pair)
            if gap is not None:
                split = "easy" if gap >= self.threshold else "hard"
                yield replace(pair, more={**pair.more, "split": split, "gap": gap})

    def _gap(self, pair: Pair) -> float | None:
        if not self.by:
            return pair.margin
        one, other = pair.chosen.number(self.by), pair.rejected.number(self.by)
        return abs(one - other) if one is not None and other is not None else None
