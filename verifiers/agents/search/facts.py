"""ProMed's reward for asking: a question is worth the facts that its reply makes known, by their Shapley values.

    question: (weights of new facts) * (2 + outcome)      answer: 3 * outcome + 1 * form      value: the sum of these

Without an outcome the gains are alone: a question is worth the weights of its new facts, and the value is their sum.
Only what a user or a tool said makes facts known; what the agent writes, or quotes, does not.  A fact becomes known and
pays once, also where nobody asked: in the prompt, before the agent's first words, and after a turn without any.

What a fact is worth, where sets of facts have a value v, is its Shapley value:

    phi_i = mean over all orders of the facts of  v(those before i, and i) - v(those before i)

The reference has phi; else v is the mean log-probability that a model gives the right answer's tokens when it is told
these facts.  Up to 10 facts
all 2^n sets are valued and phi is exact; beyond, the mean is over seeded random orders.  Nothing of the response is
shown to the model, so one measurement serves all responses to a case; within a call it is made once.  For training,
measure each case once and keep the result: `{"shapley": Score.evidence["shapley"]}` in the reference.

| weights | w_i |
|---|---|
| `softmax` | exp(phi_i / T) / sum of those, T = 2 |
| `share` | the positive part of phi_i over the sum of those; 0 where no fact helps |
| `none` | the positive part of phi_i |

Source: ProMed (huangbaixiang100/ProMed at aa62c4e, `doctor_reward.py` and `train_with_shapley.sh`): alpha 2, beta 1,
gamma 3, form 1, temperature 2, 50 orders at most, which there end early where nothing changes any more.  There a model
is asked whether the doctor's own turn tells a fact, each time anew; and what begins with `question:` has a form, too.
Ours: a reply pays for 3 facts at most, so that asking everything at once is worth less than asking.

Not covered: the model that plays the patient, splitting a case into facts, and models without a chat template.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge import wire
from adjudge.engines.interface import Engine, Fault, Prompt, TextLogprobs
from adjudge.engines.loading import engine_of
from adjudge.options import Count, Range
from adjudge.prompts.template import Rendered, load_template
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, StepScore
from adjudge.responses.phrases import affirmed_in, plain
from adjudge.responses.trajectories.searches import final_answer
from adjudge.responses.trajectories.trajectory import Trajectory, Turn
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import asked, asked_each, cost_of, without_number
from adjudge.scoring.reference_fields import entries_of, entry_of, reject_unknown, shown, text_of
from adjudge.verifiers.agents.scoring import LARGEST, TrajectoryNestedScorer, Value, Weight
from adjudge.verifiers.agents.search.signals import prompt_text

_KEYS = ("facts", "answer", "shapley")
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
    """A case: one fact at least, the answer as it was given, and each fact's Shapley value, if they are given."""

    facts: tuple[Fact, ...]
    answer: Any = None
    shapley: tuple[float, ...] = ()

    @property
    def answer_text(self) -> str:
        """The answer as one text, the first of a list; "" without one."""
        first = self.answer[0] if isinstance(self.answer, list | tuple) and self.answer else self.answer
        return str(first).strip() if isinstance(first, str | int | float) and not isinstance(first, bool) else ""


def read_case(reference: Any) -> FactCase:
    """Return the case of `{"facts": [..], "answer": .., "shapley": [..]}`; a fact is a text, or has `keys` beside."""
    if not isinstance(reference, Mapping):
        raise BadReferenceError(f'the reference is {shown(reference)}; give {{"facts": [..], "answer": ..}}')
    reject_unknown(reference, _KEYS, where="the reference")
    entries = entries_of(reference, "facts", inside="fact_gain")
    if len(entries) > _MAX_FACTS:
        raise BadReferenceError(f"the reference has {len(entries)} facts; at most {_MAX_FACTS} are valued")
    facts = tuple(_fact(entry, f"fact {at}") for at, entry in enumerate(entries))
    given = reference.get("shapley")
    return FactCase(
        facts=facts,
        answer=reference.get("answer"),
        shapley=() if given is None else _shapley(given, len(facts)),
    )


def _fact(entry: Any, where: str) -> Fact:
    made = entry_of(entry, ("text", "keys"), where=where, give='give a text, or {"text": .., "keys": [..]}')
    text = text_of(made, ("text",), where=where)
    keys = made.get("keys") or [text]
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise BadReferenceError(f"{where} has the keys {shown(keys)}; give a list of phrases")
    for key in keys:
        if not isinstance(key, str) or not any(map(str.isalnum, plain(key))):
            raise BadReferenceError(f"{where} has the key {shown(key)}; a key must be a text with a letter or a digit")
    return Fact(text=text, keys=tuple(keys))


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
    sets = {at: sets_of(len(cases[at][1].facts), orders_for(cases[at][1])) for at in first.values()}
    special = tuple(getattr(engine, "special_tokens", ()))
    prompts: list[Prompt] = [_prompt(*cases[at], made, special).messages for at, row in sets.items() for made in row]
    results = await engine.reference_logprobs(
        prompts, [cases[at][1].answer_text for at, row in sets.items() for _ in row]
    )
    if len(results) != len(prompts):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(prompts)} prompts")
    given = iter(results)
    measured = {
        at: _of_case(cases[at][1], {made: next(given) for made in row}, orders_for(cases[at][1]))
        for at, row in sets.items()
    }
    # a measurement that was made before costs nothing
    return [
        one if isinstance(one := measured[first[key]], Fault) or first[key] == at else Measured(shapley=one.shapley)
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
        if not one.logprobs or not all(map(math.isfinite, one.logprobs)):
            return Fault(reason="engine_error", detail="the model gave no log-probabilities of the answer")
        values[chosen] = math.fsum(one.logprobs) / len(one.logprobs)
        cost += one.cost
    return Measured(shapley=tuple(shapley(len(case.facts), values, orders)), cost=cost)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One consultation on its way to its score.

    `texts` are the prompt and the reply to each turn; `known` says of each which facts it tells; `formed` whether one
    answer stands at the end.
    """

    sample: Sample
    case: FactCase
    turns: tuple[Turn, ...]
    texts: list[str]
    formed: bool
    known: list[list[bool]] = field(default_factory=list)
    asked: list[Score] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class FactGainScorer(TrajectoryNestedScorer):
    """What an agent's questions bring to light, by the Shapley values of the facts that replies make known (ProMed).

    The reference is `{"facts": [..], "answer": ..}`, with `"shapley": [..]` unless there is an engine.  A fact is a
    text or `{"text": .., "keys": [phrases]}`; the outcome gets the answer.

    Attributes:
        engine: a model whose log-probability of the answer values facts where the reference does not; or none.
        permutations, seed: how many random orders of more than 10 facts, and of which seed.
        normalize: "softmax" with `temperature`, "share" or "none"; see the module.
        temperature: of the softmax.
        checker: a scorer of a reply (the response) beside a fact (the reference); None for phrases.
        threshold: the checker's least value that makes a fact known.
        max_facts: most facts that one reply pays for; 0 for all.
        outcome: a scorer of the whole response beside the answer; None for the gains alone.
        gain_weight, answer_weight: alpha, beside which the outcome is beta; and gamma, the outcome's on the answer.
        form_weight: what one answer at the end, with no forged reply, is worth.
        max_turns, max_characters: more turns, or more characters of the agent, score 0 (`too_complex`).
    """

    name: ClassVar[str] = "fact_gain"
    version: ClassVar[str] = "4"
    inner: ClassVar[tuple[str, ...]] = ("checker", "outcome")

    engine: Any = None
    permutations: Count = 50
    seed: Annotated[int, Range(ge=0)] = 0
    normalize: Normalize = "softmax"
    temperature: Annotated[float, Range(ge=1e-6, le=LARGEST)] = 2.0
    checker: Any = None
    threshold: Value = 0.5
    max_facts: Annotated[int, Range(ge=0)] = 3
    outcome: Any = None
    gain_weight: Weight = 2.0
    answer_weight: Weight = 3.0
    form_weight: Weight = 1.0
    max_turns: Count = 64
    max_characters: Count = 200_000

    def gold(self, sample: Sample) -> FactCase:
        """Return the case; `BadReferenceError` if it cannot be read, or nobody says what its facts are worth."""
        prompt_text(sample.prompt)
        case = read_case(sample.reference)
        if self.outcome is not None and case.answer is None:
            raise BadReferenceError("the reference has no answer, and the outcome needs one")
        if case.shapley:
            return case
        if self.engine is None:
            raise BadReferenceError("nothing says what the facts are worth: give shapley, or an engine")
        if not case.answer_text:
            raise BadReferenceError(f"the answer is {shown(case.answer)}; its probability needs a text or a number")
        return case

    def _orders(self, case: FactCase) -> list[tuple[int, ...]] | None:
        return orders_of(len(case.facts), self.permutations, self.seed)

    async def judge(self, read: Sequence[_Work]) -> list[Score]:
        """Return one score per consultation, in order."""
        await self._check(read)
        worth = await self._worth(read)
        outcomes = await self._outcomes(read)
        return [self._scored(*both) for both in zip(read, worth, outcomes, strict=True)]

    def read(self, sample: Sample, trajectory: Trajectory) -> _Work | Score:
        """Return what is judged of a sample, or its score."""
        turns = trajectory.turns
        if not any(turn.acted for turn in turns):
            return Score.scored(0.0, "no_answer")
        if len(turns) > self.max_turns or trajectory.written > self.max_characters:
            return Score.scored(0.0, "too_complex", turns=len(turns))
        answer = final_answer(trajectory, self.shape)
        texts = [prompt_text(sample.prompt)[:MAX_REPLY]]
        texts += ["\n".join(turn.heard)[:MAX_REPLY].strip() for turn in turns]
        whole = sample.finish_reason != "length" and not answer.reason and not trajectory.forged()
        formed = whole and turns[-1].start < answer.end and not texts[-1]
        return _Work(sample=sample, case=read_case(sample.reference), turns=turns, texts=texts, formed=formed)

    async def _check(self, works: Sequence[_Work]) -> None:
        if self.checker is None:
            for work in works:
                work.known = [[fact.told_by(text) for fact in work.case.facts] for text in work.texts]
            return
        rows = [
            (work, [Sample(prompt=asking, response=text, reference=fact.text) for fact in work.case.facts if text])
            for work in works
            for asking, text in zip(["", *(turn.text for turn in work.turns)], work.texts, strict=True)
        ]
        scores = await asked_each(self.checker, [row for _, row in rows], called=f"the checker of {self.name!r}")
        for (work, _), given in zip(rows, scores, strict=True):
            work.asked += given
            row = [one.value is not None and one.value >= self.threshold for one in given]
            work.known.append(row or [False] * len(work.case.facts))

    async def _worth(self, works: Sequence[_Work]) -> list[Measured | Fault]:
        cases = [(work.sample.prompt, work.case) for work in works if not work.case.shapley]
        measured = iter(await measure(engine_of(self.engine), cases, self._orders) if cases else [])
        return [Measured(shapley=one.case.shapley) if one.case.shapley else next(measured) for one in works]

    async def _outcomes(self, works: Sequence[_Work]) -> list[Score] | list[None]:
        if self.outcome is None:
            return [None] * len(works)
        samples = [replace(work.sample, reference=work.case.answer) for work in works]
        return await asked(self.outcome, samples, called=f"the outcome of {self.name!r}")

    def _scored(self, work: _Work, worth: Measured | Fault, outcome: Score | None) -> Score:
        unknown = next((one for one in work.asked if one.value is None), None)
        parts = {
            **({} if unknown is None else {"checker": unknown}),
            **({} if outcome is None else {"outcome": outcome}),
        }
        cost = cost_of([*work.asked, *([] if outcome is None else [outcome])])
        if isinstance(worth, Fault):
            return replace(Score.failed(worth.reason, fault=worth.detail), parts=parts, cost=cost)
        cost += worth.cost
        if missing := without_number(parts):
            return replace(missing, cost=cost)
        weights = weights_of(worth.shapley, self.normalize, self.temperature)
        fresh = newly_known(work.known[1:], work.known[0])
        pays = [
            paid(one, weights, self.max_facts) if turn.acted else []
            for turn, one in zip(work.turns, fresh, strict=True)
        ]
        gains = [math.fsum(weights[at] for at in one) for one in pays]
        evidence = {
            "shapley": list(worth.shapley),
            "weights": weights,
            "known_before": [at for at, one in enumerate(work.known[0]) if one],
            "new_facts": fresh,
            "gain": math.fsum(gains),
        }
        value = math.fsum(gains)
        if outcome is not None:
            right = outcome.value or 0.0
            value = value * (self.gain_weight + right) + self.answer_weight * right + self.form_weight * work.formed
        return Score(
            value=value,
            reason="" if outcome is None else outcome.reason,
            steps=tuple(self._steps(work, gains, outcome)),
            parts=parts,
            evidence=evidence,
            cost=cost,
        )

    def _steps(self, work: _Work, gains: Sequence[float], outcome: Score | None) -> Iterator[StepScore]:
        """The worth of each question and of the answer; without an outcome, of the questions alone."""
        right = 0.0 if outcome is None else outcome.value or 0.0
        for number, (turn, gain) in enumerate(zip(work.turns, gains, strict=True), start=1):
            value, label = gain, "gain" if gain else "idle"
            if not turn.acted:
                continue
            if number == len(gains) and not work.texts[-1]:
                if outcome is None:
                    continue
                value, label = self.answer_weight * right + self.form_weight * work.formed, "answer"
            elif outcome is not None:
                value = gain * (self.gain_weight + right)
            yield StepScore(value=value, label=label, start=turn.start, end=turn.end)
