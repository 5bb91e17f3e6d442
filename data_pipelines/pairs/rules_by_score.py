"""Rules that compare scores: the best and the worst, all that differ, what passed and what failed, easy and hard pairs.

`best_worst` and `best_random` are RLHF Workflow's `max_min` and `max_random`; `pass_fail` is VeriPrefer's, with a known
solution as one more that passed (HERON); `gap_split` is MPO's, which trains on the easy pairs first and draws prompts
of the hard ones later.  MPO's threshold is not known; a share is taken here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from operator import itemgetter
from typing import Annotated, ClassVar, Literal, Self

from adjudge.data_pipelines.pairs.rule import Answer, Needs, Pair, Rule, ScoredGroup
from adjudge.io.jobs.maker import Kind
from adjudge.options import Range
from adjudge.statistics.intervals import quantile


@dataclass(frozen=True, kw_only=True)
class BestWorst(Rule):
    """The answer with the highest score wins over the one with the lowest.

    Attributes:
        length_penalty: what 1,000 characters cost before answers are compared; margins are of what is left.
    """

    name: ClassVar[str] = "best_worst"

    length_penalty: Annotated[float, Range(ge=0)] = 0.0

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield one pair, or none where all are worth the same."""
        worth = [(score - self.length_penalty * len(one.text) / 1000, one) for one, score in group.ranked()]
        if not worth:
            return
        best, worst = max(worth, key=itemgetter(0)), min(worth, key=itemgetter(0))
        if best[0] > worst[0]:
            yield Pair(chosen=best[1], rejected=worst[1], margin=best[0] - worst[0])


@dataclass(frozen=True, kw_only=True)
class BestRandom(Rule):
    """The answer with the highest score wins over one drawn from the others; the group and the seed draw."""

    name: ClassVar[str] = "best_random"

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield one pair, or none where all scores are equal."""
        ranked = group.ranked()
        worse = [one for one, score in ranked if score < ranked[0][1]]
        if worse:
            yield Pair.of(ranked[0][0], min(worse, key=lambda one: group.draw("worse", one.text)))


@dataclass(frozen=True, kw_only=True)
class AllOrdered(Rule):
    """Any two answers whose scores differ by more than `over` are a pair.

    Attributes:
        over: differences up to this say nothing.
        levels: "next": only with answers of the next lower score of the group, as LeReT's code has it; "all".
    """

    name: ClassVar[str] = "all_ordered"

    over: Annotated[float, Range(ge=0)] = 0.0
    levels: Literal["all", "next"] = "all"

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs, the best answer's first."""
        ranked = group.ranked()
        below = dict(pairwise(dict.fromkeys(score for _, score in ranked)))
        for (better, high), (worse, low) in combinations(ranked, 2):
            if high - low > self.over and (self.levels == "all" or low == below[high]):
                yield Pair.of(better, worse)


@dataclass(frozen=True, kw_only=True)
class PassFail(Rule):
    """Every answer that passed wins over every answer that failed; what lies between is in no pair.

    Attributes:
        passing: the score from which an answer passed.
        failing: the score up to which it failed.
        solution: a column with a solution that is known to be right; it counts as passed.  "" for none.
    """

    name: ClassVar[str] = "pass_fail"
    reads = ("solution",)

    passing: float = 1.0
    failing: float = 0.0
    solution: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.failing >= self.passing:
            raise ValueError(
                f"pass_fail option passing={self.passing!r} and failing={self.failing!r}; what fails must score below "
                "what passes"
            )

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        ranked = group.ranked()
        passed = [one for one, score in ranked if score >= self.passing]
        known = self._known(group, {one.text for one in passed})
        for better in [*known, *passed]:
            for worse, score in ranked:
                if score <= self.failing:
                    yield Pair.of(better, worse)

    def _known(self, group: ScoredGroup, passed: set[str]) -> list[Answer]:
        if not self.solution:
            return []
        texts = {text for one in group.answers if isinstance(text := one.value(self.solution), str) and text.strip()}
        return [Answer(id="solution", text=text, score=self.passing, place=-1) for text in sorted(texts - passed)]


@dataclass(frozen=True, kw_only=True)
class GapSplit(Rule):
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
    hard: Annotated[float, Range(gt=0, lt=1)] = 0.5
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.of, GapSplit):
            raise ValueError(f"gap_split option of={self.of.name}, which splits pairs too; name a rule that makes them")

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
