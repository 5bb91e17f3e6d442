"""A case whose facts an agent has to ask for: what it holds, what replies tell, and what each fact is worth.

Only what a user or a tool said makes facts known; what the agent writes, or quotes, does not.  A fact becomes known
once, also where nobody asked: before the agent's first words, and after a turn without any.

What a fact is worth, for a value v that sets of facts have, is its Shapley value:

    phi_i = mean over all orders of the facts of  v(those before i, and i) - v(those before i)

Up to 10 facts all 2^n sets are valued and phi is exact; beyond, the mean is over seeded random orders (30 as in a
re-implementation of ProMed).  Either way the phi add up to v(all) - v(none).

| weights | w_i |
|---|---|
| `softmax` | exp(phi_i / T) / sum of those, T = 2; they differ little where values are probabilities |
| `share` | the positive part of phi_i over the sum of those; 0 where no fact helps |
| `none` | the positive part of phi_i |

The reference may have v, or phi; else v is how likely a model finds the right answer when it is told these facts.
Nothing of the response reaches the model, so one measurement serves all responses to a case; within a call it is made
once.  For training, measure each case once and keep the result: `{"shapley": Score.evidence["shapley"]}` in the
reference.

Not covered: splitting a case into facts, and models without a chat template.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adjudge import wire
from adjudge.engines.interface import Engine, Fault, Prompt, TextLogprobs
from adjudge.prompts.template import Rendered, load_template
from adjudge.protocol import NO_COST, Cost, Message
from adjudge.responses.phrases import affirmed_in, plain
from adjudge.responses.pooling import pooled
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.entries import entries_of, number_of, reject_unknown, shown, text_of

_KEYS = ("facts", "answer", "values", "shapley")
_MAX_FACTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One atomic fact of a case, and the phrases of which one makes it known; its own text if none are given."""

    text: str
    keys: tuple[str, ...]

    def told_by(self, text: str) -> bool:
        """Return whether a text says one of the phrases, without a denial right before it."""
        return any(affirmed_in(key, text) for key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCase:
    """A case: one fact at least, the answer as it was given, and what the reference says of the facts' worth.

    `values` are those of sets of facts, bit i for fact i; `shapley` each fact's Shapley value.  Either may be empty.
    """

    facts: tuple[Fact, ...]
    answer: Any = None
    values: Mapping[int, float]
    shapley: tuple[float, ...] = ()

    @property
    def answer_text(self) -> str:
        """The answer as one text, the first of a list; "" without one."""
        first = self.answer[0] if isinstance(self.answer, list | tuple) and self.answer else self.answer
        return str(first).strip() if isinstance(first, str | int | float) and not isinstance(first, bool) else ""


def read_case(reference: Any) -> FactCase:
    """Return the case of `{"facts": [..], "answer": .., "values": [[[0, 2], 0.7], ..], "shapley": [..]}`.

    A fact is a text, or `{"text": .., "keys": [..]}`.  `values` and `shapley` are optional, and only one is given.

    Raises:
        BadReferenceError: it is not of this form.
    """
    if not isinstance(reference, Mapping):
        raise BadReferenceError(f'the reference is {shown(reference)}; give {{"facts": [..], "answer": ..}}')
    reject_unknown(reference, _KEYS, where="the reference")
    entries = entries_of(reference, "facts", inside="fact_gain")
    if len(entries) > _MAX_FACTS:
        raise BadReferenceError(f"the reference has {len(entries)} facts; at most {_MAX_FACTS} are valued")
    facts = tuple(_fact(entry, f"fact {at}") for at, entry in enumerate(entries))
    given = [key for key in ("values", "shapley") if reference.get(key) is not None]
    if len(given) > 1:
        raise BadReferenceError("the reference has values and shapley; give one of them")
    return FactCase(
        facts=facts,
        answer=reference.get("answer"),
        values=_values(reference["values"], len(facts)) if given == ["values"] else {},
        shapley=_shapley(reference["shapley"], len(facts)) if given == ["shapley"] else (),
    )


def _fact(entry: Any, where: str) -> Fact:
    made = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(made, Mapping):
        raise BadReferenceError(f'{where} is {shown(entry)}; give a text, or {{"text": .., "keys": [..]}}')
    reject_unknown(made, ("text", "keys"), where=where)
    text = text_of(made, ("text",), where=where)
    keys = made.get("keys") or [text]
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise BadReferenceError(f"{where} has the keys {shown(keys)}; give a list of phrases")
    for key in keys:
        if not isinstance(key, str) or not any(map(str.isalnum, plain(key))):
            raise BadReferenceError(f"{where} has the key {shown(key)}; a key must be a text with a letter or a digit")
    return Fact(text=text, keys=tuple(keys))


def _values(given: Any, facts: int) -> dict[int, float]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise BadReferenceError(f"the values are {shown(given)}; give a list of [[numbers of facts], value]")
    made: dict[int, float] = {}
    for entry in given:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise BadReferenceError(f"the values hold {shown(entry)}; each must be [[numbers of facts], value]")
        listed, value = entry
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise BadReferenceError(f"the values hold the set {shown(listed)}; give a list of numbers of facts")
        made_of = 0
        for fact in listed:
            if type(fact) is not int or not 0 <= fact < facts:
                raise BadReferenceError(f"the values name the fact {shown(fact)}; there are 0 to {facts - 1}")
            made_of |= 1 << fact
        if made_of in made:
            raise BadReferenceError(f"the values hold the set {shown(listed)} twice")
        made[made_of] = number_of(value, where="the values", what="value")
    return made


def _shapley(given: Any, facts: int) -> tuple[float, ...]:
    numbers = isinstance(given, list | tuple) and [
        float(one) for one in given if isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)
    ]
    if not numbers or len(numbers) != facts or len(given) != facts:
        raise BadReferenceError(f"shapley is {shown(given)}; give one finite number for each of the {facts} facts")
    return tuple(numbers)


Normalize: TypeAlias = Literal["softmax", "share", "none"]

MAX_EXACT = 10  # facts up to which every set is valued


def orders_of(facts: int, permutations: int, seed: int) -> list[tuple[int, ...]] | None:
    """Return the random orders in which facts are added; None where every set is valued instead."""
    if facts <= MAX_EXACT:
        return None
    source = random.Random(seed)
    return [tuple(source.sample(range(facts), facts)) for _ in range(permutations)]


def sets_of(facts: int, orders: Sequence[Sequence[int]] | None) -> list[int]:
    """Return the sets whose value is needed, each once and in rising order; bit i of a set stands for fact i."""
    if orders is None:
        return list(range(1 << facts))
    return sorted({made for order in orders for made in _growing(order)})


def shapley(facts: int, values: Mapping[int, float], orders: Sequence[Sequence[int]] | None) -> list[float]:
    """Return the Shapley value of each fact from the values of the sets in `sets_of`; no orders stand for all."""
    if orders is not None:
        gains = [0.0] * facts
        for order in orders:
            for fact, (before, after) in zip(order, itertools.pairwise(_growing(order)), strict=True):
                gains[fact] += values[after] - values[before]
        return [gain / len(orders) for gain in gains]
    shares = [1.0 / (facts * math.comb(facts - 1, size)) for size in range(facts)]
    return [
        math.fsum(
            shares[made.bit_count()] * (values[made | 1 << fact] - values[made])
            for made in range(1 << facts)
            if not made >> fact & 1
        )
        for fact in range(facts)
    ]


def weights_of(phi: Sequence[float], how: Normalize, temperature: float) -> list[float]:
    """Return the weights of facts, none of them negative; see the module."""
    if how == "softmax":
        top = max(phi)
        raised = [math.exp((one - top) / temperature) for one in phi]
        return [one / math.fsum(raised) for one in raised]
    positive = [max(0.0, one) for one in phi]
    total = math.fsum(positive)
    return [one / total for one in positive] if how == "share" and total else positive


def _growing(order: Sequence[int]) -> Iterator[int]:
    """The sets that an order makes, from none to all."""
    made = 0
    yield made
    for fact in order:
        made |= 1 << fact
        yield made


MAX_REPLY = 20_000  # characters of one reply, or of the prompt, that are looked at


def newly_known(told_at: Sequence[Sequence[bool]], known: Sequence[bool]) -> list[list[int]]:
    """Return the facts that each reply makes known first, by what each tells and what was known before."""
    before = {at for at, one in enumerate(known) if one}
    fresh: list[list[int]] = []
    for row in told_at:
        fresh.append([at for at, one in enumerate(row) if one and at not in before])
        before.update(fresh[-1])
    return fresh


def paid(fresh: Sequence[int], weights: Sequence[float], most: int) -> list[int]:
    """Return the facts that pay of those that one reply made known: the heaviest `most`; 0 for all.

    The others are known, and will not pay again.
    """
    ranked = sorted(fresh, key=lambda at: (-weights[at], at))
    return sorted(ranked[:most] if most else ranked)


TEMPLATE = "verifiers/agents/search/facts_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The Shapley values of a case's facts, and what it took to know."""

    shapley: tuple[float, ...]
    cost: Cost = NO_COST


async def measure(
    engine: Engine,
    cases: Sequence[tuple[str | Sequence[Message], FactCase]],
    orders_for: Callable[[FactCase], list[tuple[int, ...]] | None],
) -> list[Measured | Fault]:
    """Return the Shapley values of each question's facts by an engine's probability of the whole answer.

    Equal questions are measured once.
    """
    keys = [wire.dumps([prompt, case.answer_text, [one.text for one in case.facts]]) for prompt, case in cases]
    first = {key: at for at, key in reversed(list(enumerate(keys)))}
    asked = [
        (key, at, made)
        for key, at in first.items()
        for made in sets_of(len(cases[at][1].facts), orders_for(cases[at][1]))
    ]
    special = tuple(getattr(engine, "special_tokens", ()))
    prompts: list[Prompt] = [_prompt(*cases[at], made, special).messages for _, at, made in asked]
    results = await engine.reference_logprobs(prompts, [cases[at][1].answer_text for _, at, _ in asked])
    if len(results) != len(prompts):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(prompts)} prompts")
    rows: dict[str, dict[int, TextLogprobs | Fault]] = {key: {} for key in first}
    for (key, _, made), result in zip(asked, results, strict=True):
        rows[key][made] = result
    measured = {key: _of_case(cases[at][1], rows[key], orders_for(cases[at][1])) for key, at in first.items()}
    # a measurement that was made before costs nothing
    return [
        one if isinstance(one := measured[key], Fault) or first[key] == at else Measured(shapley=one.shapley)
        for at, key in enumerate(keys)
    ]


def _prompt(prompt: str | Sequence[Message], case: FactCase, chosen: int, special: tuple[str, ...]) -> Rendered:
    known = "\n".join(f"- {fact.text}" for at, fact in enumerate(case.facts) if chosen >> at & 1)
    return load_template(TEMPLATE).render({"question": prompt, "facts": known or None}, special=special)


def _of_case(
    case: FactCase, rows: Mapping[int, TextLogprobs | Fault], orders: list[tuple[int, ...]] | None
) -> Measured | Fault:
    values: dict[int, float] = {}
    cost = NO_COST
    for chosen, one in rows.items():
        if isinstance(one, Fault):
            return one
        if not one.logprobs or any(map(math.isnan, one.logprobs)):
            return Fault(reason="engine_error", detail="the model gave no log-probabilities of the answer")
        values[chosen] = pooled(one.logprobs, "prod")
        cost += one.cost
    return Measured(shapley=tuple(shapley(len(case.facts), values, orders)), cost=cost)
