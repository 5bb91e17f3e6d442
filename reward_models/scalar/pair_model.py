"""A pair model: a language model trained to say which of two responses is better, read by its probabilities.

The prompt is RLHFlow's (pair-preference-model-LLaMA3-8B, arXiv 2405.07863):

    [CONTEXT] {turns} [RESPONSE A] {response} [RESPONSE B] {other}

as one user turn, and P(A) = softmax over the tokens "A" and "B".  Each pair is asked in both orders, and the chance
that the response wins is the mean of P(A) when it is A and of P(B) when it is B.

Not covered: other prompts, and ranking large groups with fewer than N * (N - 1) games (a `tournament` of this scorer).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.interface import Fault, LabelLogprobs
from adjudge.options import Range, Share
from adjudge.prompts.escaping import escape
from adjudge.prompts.pairs import Pair, PairScorer
from adjudge.prompts.scorer import Unsure
from adjudge.prompts.template import Rendered
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, content_text
from adjudge.reward_models.scalar.reward_scorer import reference_answer
from adjudge.statistics.logistic import sigmoid

_MARKS = (r"\[\s?(?:CONTEXT|RESPONSE\s{1,3}[AB])\s?\]",)
_LABELS = {"A": ("A",), "B": ("B",)}
_SMALLEST = 1e-9  # in place of a chance of 0, whose logarithm is not a number


@dataclass(frozen=True, kw_only=True)
class PairModel(PairScorer["_Game | Fault"]):
    """The chance that a trained pair model gives the response to be the better of two.

    The reference is the other response: a text, or `{"response": text}`.  With `against: group` there is none: each
    response meets every other one of its group, and its score is the mean.

    Attributes:
        output: "unit", the chance from 0 to 1; "log_odds", its log-odds.
        temperature: by which log-probabilities are divided.
        min_mass: how likely A and B together must be; below, there is no chance (`low_confidence`).
    """

    name: ClassVar[str] = "pair_model"

    output: Literal["unit", "log_odds"] = "unit"
    temperature: Annotated[float, Range(gt=0)] = 1.0
    min_mass: Share = 0.5
    min_words: int = 1

    @property
    def lowest(self) -> float:
        """The value of a certain loss."""
        return self._value(0.0)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless there is another response to compare with."""
        if not self.groupwise and not self.shown(self.other_of(sample.reference)):
            raise ValueError("the other response holds nothing behind its reasoning; give one that does")

    def other_of(self, reference: Any) -> str:
        """Return the other response that a reference holds."""
        return reference_answer(reference)

    async def compared(self, pairs: Sequence[Pair]) -> list[_Game | Fault]:
        """Return the chance in each pair, asked in both orders; equal responses need not be asked about."""
        asked = [replace(pair, response_first=first) for pair in pairs if _differ(pair) for first in (True, False)]
        answers = iter(await self.label_shares(asked, self._rendered, _LABELS) if asked else ())
        return [self._game(next(answers), next(answers)) if _differ(pair) else _EVEN for pair in pairs]

    def _game(self, as_a: LabelLogprobs | Fault, as_b: LabelLogprobs | Fault) -> _Game | Fault:
        if isinstance(as_a, Fault) or isinstance(as_b, Fault):
            fault = as_a if isinstance(as_a, Fault) else as_b
            assert isinstance(fault, Fault)
            return replace(fault, cost=as_a.cost + as_b.cost)
        if (mass := min(as_a.mass, as_b.mass)) < self.min_mass or mass <= 0:
            detail = f"A and B together have the probability {mass:.3g}, and {self.min_mass:g} is asked for"
            return Unsure(reason="low_confidence", detail=detail, mass=mass, cost=as_a.cost + as_b.cost)
        orders = (self._share(as_a, "A"), self._share(as_b, "B"))
        return _Game(orders=orders, masses=(as_a.mass, as_b.mass), cost=as_a.cost + as_b.cost)

    def _share(self, answer: LabelLogprobs, label: str) -> float:
        other = "B" if label == "A" else "A"
        return sigmoid((answer.logprobs[label] - answer.logprobs[other]) / self.temperature)

    def scored(self, results: Sequence[_Game | Fault], forfeits: int) -> Score:
        """Return the score of a response; a game that it makes too long is lost, one that the other does is none."""
        played = [game for game in results if isinstance(game, _Game)]
        faults = [game for game in results if isinstance(game, Fault)]
        lost = [fault for fault in faults if fault.reason == "too_complex"]
        cost = sum((game.cost for game in results), NO_COST)
        unknown = [fault for fault in faults if fault not in lost and not (fault.too_long and self.groupwise)]
        known = len(played) + len(lost) + forfeits
        if (unknown and known < len(unknown)) or (faults and not known):
            return replace(self.unanswered((unknown or faults)[0]), cost=cost)
        if not known:
            return Score.failed("group_too_small", error="the group has no other response to compare with")
        value = (math.fsum(sum(game.orders) / 2 for game in played) + forfeits) / known
        evidence: dict[str, Any] = {"chance": value, "games": len(played), "lost": len(lost), "forfeits": forfeits}
        if lost:
            evidence["fault"] = lost[0].detail
        if len(played) == 1:
            evidence |= {"orders": list(played[0].orders), "mass": list(played[0].masses)}
        return Score(value=self._value(value), reason="too_complex" if lost else "", evidence=evidence, cost=cost)

    def _value(self, chance: float) -> float:
        if self.output == "unit":
            return chance
        return math.log(max(chance, _SMALLEST)) - math.log(max(1 - chance, _SMALLEST))

    def _rendered(self, pair: Pair) -> Rendered:
        one, two = (pair.response, pair.other) if pair.response_first else (pair.other, pair.response)
        context = self._context(pair.sample.prompt)
        text = f"[CONTEXT] {context} [RESPONSE A] {self._escaped(one)} [RESPONSE B] {self._escaped(two)} \n"
        return Rendered(messages=({"role": "user", "content": text},))

    def _context(self, prompt: str | Sequence[Message]) -> str:
        """The turns before the responses, as the model's training wrote them."""
        turns: Sequence[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        written = []
        for turn in turns:
            role = "assistant" if turn.get("role") == "assistant" else "user"
            written.append(f"\n\n<turn> {role}\n {self._escaped(content_text(turn.get('content')))}")
        return "\n" + "".join(written) + "\n\n\n"

    def _escaped(self, text: str) -> str:
        special = tuple(getattr(self.resolved(), "special_tokens", ()))
        return escape(text, special=special, marks=_MARKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Game:
    """One pair in both orders: the response's chance and the labels' mass, as A and as B."""

    orders: tuple[float, float]
    masses: tuple[float, float] = (1.0, 1.0)
    cost: Cost = NO_COST


_EVEN = _Game(orders=(0.5, 0.5))


def _differ(pair: Pair) -> bool:
    return pair.response != pair.other
