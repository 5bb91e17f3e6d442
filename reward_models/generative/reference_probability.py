r"""How likely the right answer is after a response's reasoning, less how likely it is without (RLPR, `OpenBMB/RLPR`).

    score = clip(pool(p(reference | prompt, reasoning)) - pool(p(reference | prompt)), 0, 1)

The response's own answer is taken out, and the reference is forced in its place; what the response answered does not
count.  `Score.evidence` has both probabilities, and which reference is the best of several.

What this score cannot tell: whether reasoning leads to the reference or merely names it.  A response that lists many
answers makes each of them likelier to be copied, and one that hits the reference is paid for it.  The subtracted part
takes out what the prompt alone gives away, and does not depend on the response, so nobody can lower it.  Put a verifier
of the answer or `repetition` beside it, as docs/process_rewards.md shows.

Where a response's answer stands, so that another text can be put in its place.

| place | what is kept of the response | what must hold |
|---|---|---|
| `answer_tag` | all up to `<answer>` | one `<answer>..</answer>` behind the thinking, and nothing behind it (RLPR) |
| `after_thinking` | all up to the last `</think>` | something is answered behind it |
| `boxed` | all up to the last `\boxed{` | |

What is kept ends where the other text begins: at `<answer>`, behind the thinking block, at `\boxed{`.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from adjudge import wire
from adjudge.engines.interface import Fault, TextLogprobs
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count
from adjudge.prompts.scorer import Case, EngineScorer, lack_of
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, response_text, split_reasoning
from adjudge.responses.aggregate import Pooling, pooled
from adjudge.reward_models.generative.assistant_turn import CLOSE, EMPTY_BLOCK, OPEN, policy_turn

_LONGEST_REFERENCE = 4_000  # characters; an answer, not an essay


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """A text that is forced upon a model, behind chat turns; the last may be the assistant's, which it continues."""

    turns: tuple[Message, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """How likely a forced text is: the pooled probability of its tokens, in [0, 1], and what it took to know."""

    value: float
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about one response.

    Attributes:
        forced: the texts whose probabilities make its score.
        plain: the same prompt without the response.
        shaped: the same prompt with a response of its shape that says nothing.
        scored: makes its score of the probabilities, and of another scorer's score, if there is one.
    """

    forced: Sequence[Forced]
    plain: Forced
    shaped: Forced
    scored: Callable[[Sequence[Probability], Score | None], Score]


@dataclass(frozen=True, kw_only=True)
class ForcedScorer(EngineScorer):
    """Base of the scorers that read how likely the reference is: after a prompt, and after what a response adds.

    The engine is the policy (`policy` in a run), or a frozen model of its kind, and is asked as the policy was: with
    the sample's own prompt, through the chat template.  No word of a judge comes in.

    Whose fault a refused prompt is, is found out by asking again, with the response and without.  If the prompt alone
    fits and the response makes it too long, the response scores 0 (`too_complex`); if the engine takes a plain turn in
    the same place and refuses the response's twice, it scores 0 (`bad_format`); whatever else goes wrong is a failed
    score.

    Not covered: base models without a chat template.

    Attributes:
        engine: the model: in a run "policy", the one that learns; "transformers:MODEL", "vllm:MODEL",
            `{"openai": {..}}` of a vLLM server, or an engine.
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

    def own_turn(self, text: str) -> str:
        """Return what a policy wrote as its turn begins, for the engine to go on with."""
        as_written = getattr(self.resolved(), "as_written", False)
        return policy_turn(text, special=self.special_tokens, as_written=as_written)

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
        pooled_by_key = dict(zip(distinct, map(self._pooled, results), strict=True))
        answered: list[Probability | Fault] = []
        for key in keys:
            one = pooled_by_key[key]
            answered.append(one)
            if isinstance(one, Probability):
                pooled_by_key[key] = replace(one, cost=NO_COST)
        return answered

    def _pooled(self, result: TextLogprobs | Fault) -> Probability | Fault:
        if isinstance(result, Fault):
            return result
        if not result.logprobs:
            return Fault(reason="engine_error", detail="the reference has no token in this model's vocabulary")
        if any(map(math.isnan, result.logprobs)):
            return Fault(reason="engine_error", detail="the model gave log-probabilities that are not numbers")
        return Probability(value=pooled(result.logprobs, self.pooling), cost=result.cost)

    @abstractmethod
    def asked(self, sample: Sample) -> Asked | Score:
        """Return what is asked about a response, or the score of one that nothing is asked about."""

    async def ends(self, samples: Sequence[Sample]) -> Sequence[Score | None]:
        """Return the scores that another scorer gives; here there is none."""
        return [None] * len(samples)

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        asked = [self.asked(case.sample) for case in cases]
        ready = [one for one in asked if isinstance(one, Asked)]
        probabilities = iter(await self.probabilities([text for one in ready for text in one.forced]))
        rows = [[next(probabilities) for _ in one.forced] for one in ready]
        ends = await self.ends([case.sample for case, one in zip(cases, asked, strict=True) if isinstance(one, Asked)])
        bad = await self._blamed(ready, rows)
        judged = iter(
            [
                bad.get(at) or one.scored([each for each in row if isinstance(each, Probability)], end)
                for at, (one, row, end) in enumerate(zip(ready, rows, ends, strict=True))
            ]
        )
        return [one if isinstance(one, Score) else next(judged) for one in asked]

    async def _blamed(self, asked: Sequence[Asked], rows: Sequence[Sequence[Probability | Fault]]) -> dict[int, Score]:
        """The scores of the responses for which there was a fault: 0 where that is their own doing."""
        scores: dict[int, Score] = {}
        again: list[tuple[int, Forced, Fault]] = []
        for at, row in enumerate(rows):
            for prompt, fault in zip(asked[at].forced, row, strict=True):
                if isinstance(fault, Fault):
                    scores[at] = Score.failed(fault.reason, fault=fault.detail)
                    if fault.reason == "engine_error":
                        again.append((at, prompt, fault))
                    break
        if not again:
            return scores
        others = [asked[at].plain if fault.too_long else asked[at].shaped for at, _, fault in again]
        answers = await self.probabilities([*(prompt for _, prompt, _ in again), *others])
        for (at, _, fault), second, without in zip(again, answers[: len(again)], answers[len(again) :], strict=True):
            if isinstance(second, Fault) and second.reason == fault.reason and isinstance(without, Probability):
                reason = "too_complex" if fault.too_long else "bad_format"
                scores[at] = Score.scored(0.0, reason, fault=fault.detail)
        return scores


def references_of(reference: Any) -> list[str]:
    """Return the accepted texts of a reference: a text or a number, or a list of them.

    Raises:
        ValueError: it is neither, or a text is empty or longer than 4,000 characters.
    """
    several = reference if isinstance(reference, list | tuple) else [reference]
    known = [one for one in several if isinstance(one, str | int | float) and not isinstance(one, bool)]
    texts = [str(one).strip() for one in known if not isinstance(one, float) or math.isfinite(one)]
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


Place: TypeAlias = Literal["answer_tag", "after_thinking", "boxed"]
PLACES: tuple[Place, ...] = get_args(Place)

OPENINGS: Mapping[Place, str] = {"answer_tag": "<answer>", "after_thinking": EMPTY_BLOCK, "boxed": r"\boxed{"}
"""For each place, a response that goes to it at once, without a word of reasoning."""

_TAG = re.compile(r"</?answer>", re.IGNORECASE)


def before_answer(response: str, place: Place) -> tuple[str, str]:
    """Return what of a response is kept, and "" or the reason why it has no such place.

    The reasons are `unfinished_reasoning`, `no_answer`, `several_answers` and `bad_format` of `adjudge.reasons`.
    """
    thought, answer, unfinished = split_reasoning(response)
    if unfinished:
        return "", "unfinished_reasoning"
    if place == "after_thinking":
        if CLOSE not in thought:  # another tag is not a block that templates know, and none that the baseline has
            return "", "bad_format"
        return (thought, "") if answer.strip() else ("", "no_answer")
    if place == "boxed":
        at = answer.rfind(r"\boxed{")
        return ("", "no_answer") if at < 0 else (thought + answer[:at] + r"\boxed{", "")
    tags = [match[0].casefold() for match in _TAG.finditer(answer)]
    if not tags:
        return "", "no_answer"
    if tags != ["<answer>", "</answer>"]:
        return "", "several_answers" if tags.count("<answer>") > 1 else "bad_format"
    opening, closing = _TAG.finditer(answer)
    if answer[closing.end() :].strip():
        return "", "bad_format"
    if not answer[opening.end() : closing.start()].strip():
        return "", "no_answer"
    return thought + answer[: opening.start()] + "<answer>", ""


_WORDS = "Let me see."  # what a plain response thinks, to find out whether an engine takes one


@dataclass(frozen=True, kw_only=True)
class ReferenceProbability(ForcedScorer):
    """How much likelier a response's reasoning makes the right answer, in [0, 1].

    The reference is the right answer as a text or a number, or a list of accepted ones, of which the best counts.

    Attributes:
        place: where the answer stands, and the reference is put: "answer_tag", "after_thinking" or "boxed", as
            `adjudge.reward_models.generative.reference_probability` says.  A response without such a place scores 0.
        lead: a text that comes before the reference, such as "The answer is "; also without the reasoning.
        debias: whether the probability without reasoning is subtracted.
    """

    name: ClassVar[str] = "reference_probability"

    place: Place = "answer_tag"
    lead: str = ""
    debias: bool = True

    def asked(self, sample: Sample) -> Asked | Score:
        """Return the references behind the response's reasoning, and behind none."""
        if sample.finish_reason == "length":
            return Score.scored(0.0, "truncated")
        try:
            response = response_text(sample)
        except ValueError as error:
            return Score.scored(0.0, "no_answer", error=str(error))
        if len(response) > self.max_characters:
            lack = lack_of(response, "too_complex", min_words=1, max_characters=self.max_characters)
            return Score.scored(0.0, "too_complex", error=lack)
        begun, reason = before_answer(response, self.place)
        if reason:
            return Score.scored(0.0, reason, place=self.place)
        prompt, texts = turns_of(sample.prompt), references_of(sample.reference)

        def forced(begun: str, text: str) -> Forced:
            return Forced(turns=(*prompt, {"role": "assistant", "content": begun + self.lead}), text=text)

        own, at_once = self.own_turn(begun), OPENINGS[self.place]
        thought = f"{OPEN}\n{_WORDS}\n{CLOSE}\n\n" if CLOSE in own else f"{_WORDS} "
        shape = thought + ("" if self.place == "after_thinking" else at_once)
        openings = (own, at_once) if self.debias else (own,)
        return Asked(
            forced=[forced(opening, text) for opening in openings for text in texts],
            plain=forced(at_once, texts[0]),
            shaped=forced(shape, texts[0]),
            scored=partial(self._scored, texts),
        )

    def _scored(self, references: Sequence[str], row: Sequence[Probability], end: Score | None) -> Score:
        count = len(references)
        values = [one.value for one in row[:count]]
        without = [one.value for one in row[count:]] or [0.0] * count
        gains = [value - before for value, before in zip(values, without, strict=True)]
        best = max(range(count), key=lambda at: gains[at])
        evidence: dict[str, object] = {"probability": values[best], "gain": gains[best]}
        if self.debias:
            evidence["without_reasoning"] = without[best]
        if len(gains) > 1:
            evidence["reference"] = references[best]
        cost = sum((one.cost for one in row), NO_COST)
        return Score(value=min(max(gains[best], 0.0), 1.0), evidence=evidence, cost=cost)
