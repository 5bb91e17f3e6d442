"""The value of sets of facts, measured: how likely a model finds the right answer when it is told these facts.

Nothing of the response reaches the model, so one measurement serves all responses to a case; within a call it is made
once.  For training, measure each case once and keep the result: `{"shapley": Score.evidence["shapley"]}` in the
reference.

Not covered: models without a chat template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge import wire
from adjudge.engines.interface import Engine, Fault, Prompt, TextLogprobs
from adjudge.prompts.template import Rendered, load_template
from adjudge.protocol import NO_COST, Cost, Message
from adjudge.solutions.pooling import Pooling, pooled
from adjudge.verifiers.agents.search.facts_reference import FactCase
from adjudge.verifiers.agents.search.facts_shapley import orders_of, sets_of, shapley

TEMPLATE = "verifiers/agents/search/facts_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The Shapley values of a case's facts, and what it took to know."""

    shapley: tuple[float, ...]
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Measures values by an engine's probability of the answer.

    Attributes:
        engine: the model.
        lead: how the assistant begins its answer; "" for no such turn.
        pooling: how the answer's tokens become one probability, as `adjudge.solutions.pooling` says.
        permutations: random orders where there are more than 10 facts.
        seed: of those orders.
    """

    engine: Engine
    lead: str
    pooling: Pooling
    permutations: int
    seed: int

    async def measure(self, cases: Sequence[tuple[str | Sequence[Message], FactCase]]) -> list[Measured | Fault]:
        """Return the Shapley values of each question's facts; equal questions are measured once."""
        keys = [wire.dumps([prompt, case.answer_text, [one.text for one in case.facts]]) for prompt, case in cases]
        first = {key: at for at, key in reversed(list(enumerate(keys)))}
        prompts: list[Rendered] = []
        places: dict[str, dict[int, int]] = {}
        for key, at in first.items():
            prompt, case = cases[at]
            chosen = sets_of(len(case.facts), self._orders(case))
            places[key] = {made: len(prompts) + number for number, made in enumerate(chosen)}
            prompts += [self._prompt(prompt, case, made) for made in chosen]
        texts = [cases[at][1].answer_text for key, at in first.items() for _ in places[key]]
        results = await self._logprobs(prompts, texts)
        found = {
            key: self._of_case(cases[at][1], {made: results[place] for made, place in places[key].items()})
            for key, at in first.items()
        }
        return [_once(found[key], first[key] == at) for at, key in enumerate(keys)]

    def _prompt(self, prompt: str | Sequence[Message], case: FactCase, chosen: int) -> Rendered:
        known = "\n".join(f"- {fact.text}" for at, fact in enumerate(case.facts) if chosen >> at & 1)
        special = tuple(getattr(self.engine, "special_tokens", ()))
        return load_template(TEMPLATE).render({"question": prompt, "facts": known or None}, special=special)

    async def _logprobs(self, prompts: Sequence[Rendered], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        lead = ({"role": "assistant", "content": self.lead},) if self.lead else ()
        turns: list[Prompt] = [(*one.messages, *lead) for one in prompts]
        results = await self.engine.reference_logprobs(turns, texts)
        if len(results) != len(turns):
            raise RuntimeError(f"the engine {self.engine.name!r} gave {len(results)} results for {len(turns)} prompts")
        return results

    def _of_case(self, case: FactCase, rows: dict[int, TextLogprobs | Fault]) -> Measured | Fault:
        values: dict[int, float] = {}
        cost = NO_COST
        for chosen, one in rows.items():
            if isinstance(one, Fault):
                return one
            if not one.logprobs or any(map(math.isnan, one.logprobs)):
                return Fault(reason="engine_error", detail="the model gave no log-probabilities of the answer")
            values[chosen] = pooled(one.logprobs, self.pooling)
            cost += one.cost
        return Measured(shapley=tuple(shapley(len(case.facts), values, self._orders(case))), cost=cost)

    def _orders(self, case: FactCase) -> list[tuple[int, ...]] | None:
        return orders_of(len(case.facts), self.permutations, self.seed)


def _once(found: Measured | Fault, first: bool) -> Measured | Fault:
    """A measurement that was made before costs nothing."""
    return found if first or isinstance(found, Fault) else Measured(shapley=found.shapley)
