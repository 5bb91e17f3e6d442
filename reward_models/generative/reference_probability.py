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

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

from adjudge.protocol import NO_COST, Sample, Score, response_text, split_reasoning
from adjudge.reward_models.generative.assistant_turn import CLOSE, EMPTY_BLOCK, OPEN
from adjudge.reward_models.generative.forced_scorer import (
    Asked,
    Forced,
    ForcedScorer,
    Probability,
    references_of,
    turns_of,
)

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
            return Score.scored(0.0, "too_complex")
        begun, reason = before_answer(response, self.place)
        if reason:
            return Score.scored(0.0, reason)
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
