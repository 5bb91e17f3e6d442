r"""The implicit process reward: how much likelier a trained policy finds each step than the model it came from.

r(step) = beta * sum over the step's tokens of log(p_policy / p_reference) (arXiv 2412.01981, PRIME: arXiv 2502.01456).
The sum over all steps is the implicit outcome reward.  Line breaks between two steps belong to the step before them.

Both models must have the same tokenizer: the two texts are compared token by token, and a difference is a fault.  The
response is made harmless first, so that no text in it becomes a special token.  The end token is not part of it.
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.engines.interface import Fault, Prompt, TextLogprobs
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.options import Range
from adjudge.prompts.escaping import escape
from adjudge.protocol import Provenance
from adjudge.responses.aggregate import Aggregate
from adjudge.reward_models.process.rows import RowTokens, tokens_of
from adjudge.reward_models.process.step_format import Reading, chat_before, problem_text
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer, doubt

_UNLIKE = "the two models have different tokens for the response; the reference must be the model the policy came from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What models are asked: the prompt, the text, and for each token of the text its step; and how many steps."""

    prompt: Prompt
    text: str
    owners: tuple[int, ...]
    steps: int
    changed: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ImplicitRewardScorer(StepScorer):
    """The log-ratio of two language models on each step of a response, times beta.

    Values have no lowest one, so `floor` must be given.  An answer that neither model finds likelier than the other has
    the value 0, and so has an empty one: the floor belongs well below.

    Attributes:
        engine: the policy: "transformers:MODEL", a mapping, or an engine.
        reference_engine: the model it was trained from.
        beta: the scale of the log-ratio.
        aggregate: "sum" is the implicit outcome reward; "min" and the others as for process rewards.
        threshold: a step below it counts as bad; 0 is where the policy finds it as likely as the reference does.
        chat: show the problem through the chat template; else as a text with a line break behind it.
        tokenizer: the folder or name of the models' tokenizer; "" for the policy's own.
    """

    name: ClassVar[str] = "implicit_reward"
    version: ClassVar[str] = "1"

    engine: Any
    reference_engine: Any
    beta: Annotated[float, Range(gt=0)] = 0.05
    aggregate: Aggregate = "sum"
    threshold: float = 0.0
    chat: bool = True
    tokenizer: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bind_engines(self, "engine", "reference_engine")
        self.lowest  # noqa: B018 raises if there is no floor

    @property
    def bounded(self) -> bool:
        """A log-ratio is not a probability."""
        return False

    def identity(self) -> list[Any]:
        """Return the options of this class and both engines' fingerprints."""
        policy, reference = engine_of(self.engine), engine_of(self.reference_engine)
        return [self.beta, self.chat, self.tokenizer, policy.fingerprint, reference.fingerprint]

    def provenance(self) -> Provenance:
        """Return who gives the scores."""
        policy, reference = engine_of(self.engine), engine_of(self.reference_engine)
        return Provenance(
            scorer=self.name,
            fingerprint=self.fingerprint,
            engine=policy.name,
            revision=f"{policy.model} / {reference.model}",
        )

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return the log-ratios of each solution's steps, in order."""
        policy, reference = engine_of(self.engine), engine_of(self.reference_engine)
        tokens = await asyncio.to_thread(tokens_of, policy, self.tokenizer)
        cases = await asyncio.to_thread(lambda: [case_of(tokens, solution, chat=self.chat) for solution in solutions])
        prompts, texts = [case.prompt for case in cases], [case.text for case in cases]
        trained, base = await asyncio.gather(
            policy.reference_logprobs(prompts, texts), reference.reference_logprobs(prompts, texts)
        )
        return [self._judged_case(*each) for each in zip(cases, trained, base, strict=True)]

    def _judged_case(self, case: Case, trained: TextLogprobs | Fault, base: TextLogprobs | Fault) -> Judged | Fault:
        if isinstance(trained, Fault):
            return doubt(trained)
        if isinstance(base, Fault):
            return doubt(base)
        if trained.tokens != base.tokens or len(trained.tokens) != len(case.owners):
            return Fault(reason="engine_error", detail=_UNLIKE)  # whatever the response says: these models do not fit
        sums = [0.0] * case.steps
        for owner, one, other in zip(case.owners, trained.logprobs, base.logprobs, strict=True):
            sums[owner] += self.beta * (one - other)
        return Judged(reading=Reading(values=tuple(sums), cost=trained.cost + base.cost), changed=case.changed)


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
