"""A scorer that asks the policy: how likely it finds the reference behind what it wrote, whatever that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.engines.interface import TextLogprobs
from adjudge.prompts.scorer import Case, EngineScorer
from adjudge.protocol import Sample, Score

asked: list[str] = []
"""The engine's fingerprint at each call."""


@dataclass(frozen=True, kw_only=True)
class Belief(EngineScorer):
    name: ClassVar[str] = "belief"

    def case(self, sample: Sample) -> Case | Score:
        return Case(sample=sample, response=str(sample.response))

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        asked.append(self.resolved().fingerprint)
        results = await self.resolved().reference_logprobs(
            [
                [{"role": "user", "content": str(case.sample.prompt)}, {"role": "assistant", "content": case.response}]
                for case in cases
            ],
            [str(case.sample.reference) for case in cases],
        )
        assert all(isinstance(one, TextLogprobs) for one in results), results
        return [Score.scored(math.exp(sum(one.logprobs))) for one in results if isinstance(one, TextLogprobs)]


BELIEF: Final[dict[str, Any]] = {"tests.rl_integration.trainer.believing:Belief": {"engine": "policy"}}
