"""How likely a language model finds each step of a response: the mean log-probability of the step's tokens.

Less 0.693 is a perplexity of more than 2: perplexity = exp(-value).  The sum over steps is what provers search by
(BFS-Prover-V2, zeyu-zheng/BFS-Prover-V2 at 6118f5f: the sum of the tactics' means, `prover_manager.py`).

What this score cannot tell is whether anything is right: a common phrase, written again and again, is likely.  As a
reward it pays for that; as a guide it belongs where something else says which ends are right.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.engines.interface import Fault, TextLogprobs
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.protocol import Provenance
from adjudge.responses.aggregate import Aggregate
from adjudge.reward_models.process.implicit_scorer import Case, case_of
from adjudge.reward_models.process.rows import Unfit, tokens_of
from adjudge.reward_models.process.step_format import Reading
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer, doubt


@dataclass(frozen=True, kw_only=True)
class LikelihoodScorer(StepScorer):
    """The mean log-probability of each step's tokens by a language model, behind the problem and the steps before.

    Values have no lowest one, so `floor` must be given.  The end token is not part of a response.

    Attributes:
        engine: the model: "transformers:MODEL", a mapping, or an engine.
        aggregate: "sum" over steps, "mean", or another one.
        threshold: a step below it counts as bad; -0.693 is a perplexity of 2.
        chat: show the problem through the chat template; else as a text with a line break behind it.
        tokenizer: the folder or name of the model's tokenizer; "" for its own.
    """

    name: ClassVar[str] = "likelihood"

    engine: Any
    aggregate: Aggregate = "sum"
    threshold: float = -0.693
    chat: bool = True
    tokenizer: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bind_engines(self, "engine")
        self.lowest  # noqa: B018 raises if there is no floor

    @property
    def bounded(self) -> bool:
        """A log-probability is not a probability."""
        return False

    def identity(self) -> list[Any]:
        """Return the options of this class and the engine's fingerprint."""
        return [self.chat, self.tokenizer, engine_of(self.engine).fingerprint]

    def provenance(self) -> Provenance:
        """Return who gives the scores."""
        engine = engine_of(self.engine)
        return Provenance(scorer=self.name, fingerprint=self.fingerprint, engine=engine.name, revision=engine.model)

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return the means of each solution's steps, in order."""
        engine = engine_of(self.engine)
        tokens = await asyncio.to_thread(tokens_of, engine, self.tokenizer)
        cases = await asyncio.to_thread(lambda: [case_of(tokens, solution, chat=self.chat) for solution in solutions])
        results = await engine.reference_logprobs([case.prompt for case in cases], [case.text for case in cases])
        return [_judged(case, result) for case, result in zip(cases, results, strict=True)]


def _judged(case: Case, result: TextLogprobs | Fault) -> Judged | Fault:
    if isinstance(result, Fault):
        return doubt(result)
    if len(result.logprobs) != len(case.owners):
        return Fault(reason="engine_error", detail="the engine reads other tokens than the tokenizer writes")
    steps: list[list[float]] = [[] for _ in range(case.steps)]
    for owner, logprob in zip(case.owners, result.logprobs, strict=True):
        steps[owner].append(logprob)
    if not all(steps):  # one token, whose first character is the step's before
        return Unfit(reason="engine_error", detail="a step has no token of its own; split at fewer places")
    values = tuple(math.fsum(step) / len(step) for step in steps)
    return Judged(reading=Reading(values=values, cost=result.cost), changed=case.changed)
