r"""How likely language models find each step of a response: one model, or a policy beside the model it came from.

`likelihood` is the mean log-probability of the step's tokens; less 0.693 is a perplexity of more than 2: perplexity =
exp(-value). The sum over steps is what provers search by (BFS-Prover-V2, zeyu-zheng/BFS-Prover-V2 at 6118f5f: the sum
of the tactics' means, `prover_manager.py`).

What it cannot tell is whether anything is right: a common phrase, written again and again, is likely.  As a
reward it pays for that; as a guide it belongs where something else says which ends are right.

`implicit_reward` is r(step) = beta * sum over the step's tokens of log(p_policy / p_reference) (arXiv 2412.01981,
PRIME: arXiv 2502.01456); the sum over all steps is the implicit outcome reward.  Both models must have the same
tokenizer: the two texts are compared token by token, and a difference is a fault.

Line breaks between two steps belong to the step before them.  The response is made harmless first, so that no text in
it becomes a special token.  The end token is not part of it.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.engines.interface import Engine, Fault, Prompt, TextLogprobs
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.options import Range
from adjudge.prompts.escaping import escape
from adjudge.responses.aggregate import Aggregate
from adjudge.reward_models.process.rows import RowTokens, Unfit, tokens_of
from adjudge.reward_models.process.step_format import Reading, chat_before, problem_text
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer, doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What models are asked: the prompt, the text, and for each token of the text its step; and how many steps."""

    prompt: Prompt
    text: str
    owners: tuple[int, ...]
    steps: int
    changed: tuple[int, ...]


def case_of(tokens: RowTokens, solution: Solution, *, chat: bool) -> Case:
    """Return what models are asked about a solution, whose problem is shown as a chat or as a text."""
    problem = solution.sample.prompt
    prompt: Prompt = chat_before(tokens, problem)
    if not chat:
        prompt = f"{tokens.begin}{escape(problem_text(problem), special=tokens.special)}\n"
    # The text is cut where steps begin, so that it stays known where they begin in the harmless text.
    starts = [0, *(step.start for step in solution.steps[1:]), len(solution.text)]
    parts = [escape(solution.text[start:end], special=tokens.special) for start, end in itertools.pairwise(starts)]
    text = "".join(parts)
    begins = list(itertools.accumulate(map(len, parts[:-1]), initial=0))
    changed = tuple(
        number
        for number, (part, (start, end)) in enumerate(zip(parts, itertools.pairwise(starts), strict=True))
        if part != solution.text[start:end]
    )
    return Case(
        prompt=prompt,
        text=text,
        owners=tuple(bisect_right(begins, start) - 1 for start in _token_starts(tokens, text)),
        steps=len(parts),
        changed=changed,
    )


def _token_starts(tokens: RowTokens, text: str) -> list[int]:
    """The first character that can be seen of each token of a text that continues another.

    The text is tokenized as engines do it (`label_tokens.continuation_tokens`).  Most tokenizers put the blank before a
    word into the word's token, which then belongs to the step of the word.
    """
    anchor, _ = tokens.spans("\n")
    joined, spans = tokens.spans(f"\n{text}")
    if joined[: len(anchor)] == anchor:
        spans = tuple((max(start - 1, 0), end - 1) for start, end in spans[len(anchor) :])
    else:
        spans = tokens.spans(text)[1]
    return [
        start + len(part) - len(part.lstrip()) if (part := text[start:end]).strip() else start for start, end in spans
    ]


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
    asked: ClassVar[tuple[str, ...]] = ("engine",)  # the options that hold engines

    engine: Any
    aggregate: Aggregate = "sum"
    threshold: float = -0.693
    chat: bool = True
    tokenizer: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bind_engines(self, *self.asked)
        self.lowest  # noqa: B018 raises if there is no floor

    @property
    def bounded(self) -> bool:
        """Neither a log-probability nor a log-ratio is a probability."""
        return False

    @property
    def engines(self) -> list[Engine]:
        """The models that are asked."""
        return [engine_of(getattr(self, option)) for option in self.asked]

    def identity(self) -> list[Any]:
        """Return the options of this class and the engines' fingerprints."""
        return [self.chat, self.tokenizer, *(engine.fingerprint for engine in self.engines)]

    def origin(self) -> tuple[str, str]:
        """Return the first engine's name and the models'."""
        return self.engines[0].name, " / ".join(engine.model for engine in self.engines)

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return the values of each solution's steps, in order."""
        engines = self.engines
        tokens = await asyncio.to_thread(tokens_of, engines[0], self.tokenizer)
        cases = await asyncio.to_thread(lambda: [case_of(tokens, solution, chat=self.chat) for solution in solutions])
        prompts, texts = [case.prompt for case in cases], [case.text for case in cases]
        said = await asyncio.gather(*(engine.reference_logprobs(prompts, texts) for engine in engines))
        judged: list[Judged | Fault] = []
        for case, *results in zip(cases, *said, strict=True):
            fault = next((result for result in results if isinstance(result, Fault)), None)
            judged.append(doubt(fault) if fault else self.judged(case, *results))
        return judged

    def judged(self, case: Case, result: TextLogprobs, *others: TextLogprobs) -> Judged | Fault:
        """Return the values of a solution's steps by what the models say of its tokens."""
        if len(result.logprobs) != len(case.owners):
            return Fault(reason="engine_error", detail="the engine reads other tokens than the tokenizer writes")
        steps: list[list[float]] = [[] for _ in range(case.steps)]
        for owner, logprob in zip(case.owners, result.logprobs, strict=True):
            steps[owner].append(logprob)
        if not all(steps):  # one token, whose first character is the step's before
            return Unfit(reason="engine_error", detail="a step has no token of its own; split at fewer places")
        values = tuple(math.fsum(step) / len(step) for step in steps)
        return Judged(reading=Reading(values=values, cost=result.cost), changed=case.changed)


@dataclass(frozen=True, kw_only=True)
class ImplicitRewardScorer(LikelihoodScorer):
    """The log-ratio of two language models on each step of a response, times beta.

    Values have no lowest one, so `floor` must be given.  An answer that neither model finds likelier than the other has
    the value 0, and so has an empty one: the floor belongs well below.

    Attributes:
        engine: the policy: "transformers:MODEL", a mapping, or an engine.
        reference_engine: the model it was trained from.
        beta: the scale of the log-ratio.
        aggregate: "sum" is the implicit outcome reward; "min" and the others as for process rewards.
        threshold: a step below it counts as bad; 0 is where the policy finds it as likely as the reference does.
        tokenizer: the folder or name of the models' tokenizer; "" for the policy's own.
    """

    name: ClassVar[str] = "implicit_reward"
    asked: ClassVar[tuple[str, ...]] = ("engine", "reference_engine")

    reference_engine: Any
    beta: Annotated[float, Range(gt=0)] = 0.05
    threshold: float = 0.0

    def identity(self) -> list[Any]:
        """Return the options of this class and both engines' fingerprints."""
        return [self.beta, *super().identity()]

    def judged(self, case: Case, result: TextLogprobs, *others: TextLogprobs) -> Judged | Fault:
        """Return the log-ratios of a solution's steps."""
        (base,) = others
        if result.tokens != base.tokens or len(result.tokens) != len(case.owners):
            return Fault(  # whatever the response says: these models do not fit
                reason="engine_error",
                detail="the two models have different tokens for the response; the reference must be the model the "
                "policy came from",
            )
        sums = [0.0] * case.steps
        for owner, one, other in zip(case.owners, result.logprobs, base.logprobs, strict=True):
            sums[owner] += self.beta * (one - other)
        return Judged(reading=Reading(values=tuple(sums), cost=result.cost + base.cost), changed=case.changed)
