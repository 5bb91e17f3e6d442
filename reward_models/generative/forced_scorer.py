"""What scorers have in common that read how likely the reference is: after a prompt, and after what a response adds.

The engine is the policy, or a frozen model of its kind, and is asked as the policy was: with the sample's own prompt,
through the chat template.  No word of a judge comes in.

Whose fault a refused prompt is, is found out by asking again, with the response and without.  If the prompt alone fits
and the response makes it too long, the response scores 0 (`too_complex`); if the engine takes a plain turn in the same
place and refuses the response's twice, it scores 0 (`bad_format`); whatever else goes wrong is a failed score.

Not covered: base models without a chat template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from adjudge import wire
from adjudge.engines.interface import Fault, TextLogprobs
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count
from adjudge.prompts.scorer import EngineScorer
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score
from adjudge.responses.aggregate import Pooling, pooled

_LONGEST_REFERENCE = 4_000  # characters; an answer, not an essay


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """A text that is forced upon a model.

    Attributes:
        turns: the chat turns before it; the last one may be the assistant's, which it then continues.
        text: the text.
    """

    turns: tuple[Message, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """How likely a forced text is: the pooled probability of its tokens, in [0, 1], and what it took to know."""

    value: float
    cost: Cost = NO_COST


@dataclass(frozen=True, kw_only=True)
class ForcedScorer(EngineScorer):
    """Base of the scorers by the probability of the reference.

    Attributes:
        engine: the model: "transformers:MODEL", "vllm:MODEL", `{"openai": {..}}` of a vLLM server, or an engine.
        pooling: how the tokens' probabilities become one number, as `adjudge.responses.aggregate` says.
        max_characters: a response of more characters scores 0 (`too_complex`).
    """

    needs_reference: ClassVar[bool | None] = True

    pooling: Pooling = "mean_p"
    max_characters: Count = 200_000

    @property
    def fingerprint(self) -> str:
        """Name, version, options and engine; there are no templates."""
        return fingerprint_of(self, self.resolved(), without=("engine",))

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference holds the right answer."""
        references_of(sample.reference)

    async def probabilities(self, asked: Sequence[Forced]) -> list[Probability | Fault]:
        """Return how likely each forced text is; equal ones are asked once, and a copy costs nothing."""
        keys = [wire.dumps([list(one.turns), one.text]) for one in asked]
        distinct = dict(zip(keys, asked, strict=True))
        engine = self.resolved()
        results = await engine.reference_logprobs(
            [one.turns for one in distinct.values()], [one.text for one in distinct.values()]
        )
        if len(results) != len(distinct):
            raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(distinct)} prompts")
        found = dict(zip(distinct, map(self._pooled, results), strict=True))
        answered: list[Probability | Fault] = []
        for key in keys:
            one = found[key]
            answered.append(one)
            if isinstance(one, Probability):
                found[key] = replace(one, cost=NO_COST)
        return answered

    def _pooled(self, result: TextLogprobs | Fault) -> Probability | Fault:
        if isinstance(result, Fault):
            return result
        if not result.logprobs:
            return Fault(reason="engine_error", detail="the reference has no token in this model's vocabulary")
        if any(map(math.isnan, result.logprobs)):
            return Fault(reason="engine_error", detail="the model gave log-probabilities that are no numbers")
        return Probability(value=pooled(result.logprobs, self.pooling), cost=result.cost)

    async def rows(self, asked: Sequence[Sequence[Forced]]) -> list[list[Probability | Fault]]:
        """Return how likely each forced text of each response is."""
        found = iter(await self.probabilities([one for row in asked for one in row]))
        return [[next(found) for _ in row] for row in asked]

    async def blamed(
        self,
        asked: Sequence[Sequence[Forced]],
        rows: Sequence[Sequence[Probability | Fault]],
        plain: Sequence[Forced],
        shaped: Sequence[Forced],
    ) -> dict[int, Score]:
        """Return the scores of the responses for which there was a fault: 0 where that is their own doing.

        Args:
            asked: for each response, its prompts.
            rows: what came of them.
            plain: for each response, the same prompt without it.
            shaped: for each response, the same prompt with one of its shape that says nothing.
        """
        scores: dict[int, Score] = {}
        again: list[tuple[int, Forced, Fault]] = []
        for at, row in enumerate(rows):
            for prompt, fault in zip(asked[at], row, strict=True):
                if isinstance(fault, Fault):
                    scores[at] = Score.failed(fault.reason, fault=fault.detail)
                    if fault.reason == "engine_error":
                        again.append((at, prompt, fault))
                    break
        if not again:
            return scores
        others = [plain[at] if fault.too_long else shaped[at] for at, _, fault in again]
        found = await self.probabilities([*(prompt for _, prompt, _ in again), *others])
        for (at, _, fault), second, without in zip(again, found[: len(again)], found[len(again) :], strict=True):
            if isinstance(second, Fault) and second.reason == fault.reason and isinstance(without, Probability):
                reason = "too_complex" if fault.too_long else "bad_format"
                scores[at] = Score.scored(0.0, reason, fault=fault.detail)
        return scores


def known(row: Sequence[Probability | Fault]) -> list[Probability]:
    """Return the probabilities of a row, which is all of it where there is no fault."""
    return [one for one in row if isinstance(one, Probability)]


def references_of(reference: Any) -> list[str]:
    """Return the accepted texts of a reference: a text or a number, or a list of them.

    Raises:
        ValueError: it is neither, or a text is empty or longer than 4,000 characters.
    """
    several = reference if isinstance(reference, list | tuple) else [reference]
    known = [one for one in several if isinstance(one, str | int | float) and not isinstance(one, bool)]
    texts = [str(one).strip() for one in known]
    if not texts or len(texts) < len(several) or not all(texts):
        raise ValueError(
            f"the reference is {reference!r}; it must be the right answer as a text or a number, or a list of them"
        )
    longest = max(map(len, texts))
    if longest > _LONGEST_REFERENCE:
        raise ValueError(
            f"the reference has {longest} characters, and at most {_LONGEST_REFERENCE} are forced; give the answer"
        )
    return list(dict.fromkeys(texts))


def turns_of(prompt: str | Sequence[Message]) -> tuple[Message, ...]:
    """Return a prompt as chat turns; a text is what the user said."""
    return ({"role": "user", "content": prompt},) if isinstance(prompt, str) else tuple(prompt)
