"""The base of scorers that compare a response with another one: the reference's, or every other of its group.

Within a group a response wins against those that hold nothing to judge, and a game that it makes too long is lost.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from adjudge.prompts.scorer import Case, ModelScorer
from adjudge.protocol import Sample, Score, split_reasoning
from adjudge.runtime.contract import grouped

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Case):
    """A response beside another one.

    Attributes:
        other: the response it is compared with.
        response_first: whether the response is shown first.
    """

    other: str
    response_first: bool = True

    @property
    def at_fault(self) -> bool:
        """Whether the response is the longer one, so that it may be what makes a prompt too long."""
        return len(self.response) >= len(self.other)


@dataclass(frozen=True, kw_only=True)
class PairScorer(ModelScorer, Generic[R]):
    """A scorer of a response beside others, by what comes of each pair.

    Attributes:
        against: "reference" or "group".
    """

    needs_reference: ClassVar[bool | None] = True

    against: Literal["reference", "group"] = "reference"

    @property
    def groupwise(self) -> bool:
        """Whether a score depends on the other samples of its group."""
        return self.against == "group"

    @property
    def reference_needed(self) -> bool:
        """Whether, with these options, a sample without a reference is a mistake."""
        return not self.groupwise

    @abstractmethod
    def other_of(self, reference: Any) -> str:
        """Return the other response that a reference holds; `ValueError` if there is none."""

    @abstractmethod
    async def compared(self, pairs: Sequence[Pair]) -> list[R]:
        """Return what came of each pair, in order; equal responses need not be asked about."""

    @abstractmethod
    def scored(self, results: Sequence[R], forfeits: int) -> Score:
        """Return the score of a response from its pairs, and so many others that hold nothing to judge."""

    def shown(self, other: str) -> str:
        """Return the other response as it is shown: without its reasoning, if the response's is stripped too."""
        return (split_reasoning(other)[1] if self.reasoning == "strip" else other).strip()

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        return await self.judge_beside(cases, ())

    async def judge_beside(self, cases: Sequence[Case], unseen: Sequence[Sample]) -> list[Score]:
        """Return one score per case; in a group each wins against those that hold nothing to judge."""
        groups = grouped({place: case.sample.group for place, case in enumerate(cases)})
        rows = [
            [cases[other].response for other in groups[case.sample.group] if other != place]
            if self.groupwise
            else [self.shown(self.other_of(case.sample.reference))]
            for place, case in enumerate(cases)
        ]
        pairs = [
            Pair(sample=case.sample, response=case.response, other=other)
            for case, row in zip(cases, rows, strict=True)
            for other in row
        ]
        results = iter(await self.compared(pairs))
        forfeits = Counter(sample.group for sample in unseen if self.groupwise)
        mixed = _mixed_groups([*(case.sample for case in cases), *unseen]) if self.groupwise else ()
        scores = []
        for case, row in zip(cases, rows, strict=True):
            mine = [next(results) for _ in row]
            if case.sample.group in mixed:
                error = f"the samples of group {case.sample.group!r} answer different prompts"
                scores.append(Score.failed("bad_sample", error=error))
            else:
                scores.append(self.scored(mine, forfeits[case.sample.group]))
        return scores


def _mixed_groups(samples: Sequence[Sample]) -> set[str]:
    prompts: dict[str, Any] = {}
    return {sample.group for sample in samples if prompts.setdefault(sample.group, sample.prompt) != sample.prompt}
