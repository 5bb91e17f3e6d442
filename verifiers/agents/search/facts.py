"""ProMed's reward for asking: a question is worth the facts that its reply makes known, by their Shapley values.

    question: 2 * (weights of new facts) + 1 * outcome, within [0, 3]      answer: 3 * outcome + 1 * form
    value   : 2 * (weights of all facts that paid) + 3 * outcome + 1 * form

Without an outcome the gains are alone: a question is worth the weights of its new facts, and the value is their sum.
A fact pays once, and what the prompt tells is known before.  What a fact is worth comes from the reference (a table of
values, or Shapley values), or is measured by a model's probability of the answer.

Source: ProMed (README of hxxding/ProMed): alpha 2, beta 1, gamma 3, form 1, the caps.  The softmax with temperature 2
and the 30 orders are a re-implementation's.  Ours: a reply pays for 3 facts at most, so that asking everything at once
is worth less than asking; a question that brings nothing new gets nothing of the outcome; and the value of a
trajectory, which leaves out beta, since every further question would be paid by it.

Not covered: the model that plays the patient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.engines.loading import engine_of
from adjudge.options import Count, Range
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.trajectories.searches import final_answer
from adjudge.responses.trajectories.trajectory import Trajectory, Turn
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.entries import shown
from adjudge.scoring.nested import asked, asked_each, cost_of, without_number
from adjudge.verifiers.agents.scoring import LARGEST, TrajectoryNestedScorer, Value, Weight
from adjudge.verifiers.agents.search.facts_worth import (
    MAX_REPLY,
    FactCase,
    Measured,
    Normalize,
    measure,
    newly_known,
    orders_of,
    paid,
    read_case,
    sets_of,
    shapley,
    weights_of,
)
from adjudge.verifiers.agents.search.reference import prompt_text


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

    The reference is `{"facts": [..], "answer": ..}` with `"shapley": [..]`, or `"values": [[[numbers], value], ..]`, or
    an engine.  A fact is a text or `{"text": .., "keys": [phrases]}`; the outcome gets the answer.

    Attributes:
        engine: a model whose probability of the answer values facts where the reference does not; or none.
        permutations, seed: how many random orders of more than 10 facts, and of which seed.
        normalize: "softmax" with `temperature`, "share" or "none" (`adjudge.verifiers.agents.search.facts_worth`).
        checker: a scorer of a reply (the response) beside a fact (the reference); None for phrases.
        threshold: the checker's least value that makes a fact known.
        max_facts: most facts that one reply pays for; 0 for all.
        outcome: a scorer of the whole response beside the answer; None for the gains alone.
        gain_weight, shared_weight, answer_weight: alpha, and beta and gamma, the outcome's weights on questions and on
            the answer.
        form_weight: what one answer at the end, with no forged reply, is worth.
        idle: what of the outcome a question gets that brings nothing new: "zero", or "pay" as published.
        max_question: the most that a question is worth where there is an outcome.
        max_turns, max_characters: more turns, or more characters of the agent, score 0 (`too_complex`).
    """

    name: ClassVar[str] = "fact_gain"
    version: ClassVar[str] = "1"
    inner: ClassVar[tuple[str, ...]] = ("checker", "outcome")

    engine: Any = None
    permutations: Count = 30
    seed: Annotated[int, Range(ge=0)] = 0
    normalize: Normalize = "softmax"
    temperature: Annotated[float, Range(ge=1e-6, le=LARGEST)] = 2.0
    checker: Any = None
    threshold: Value = 0.5
    max_facts: Annotated[int, Range(ge=0)] = 3
    outcome: Any = None
    gain_weight: Weight = 2.0
    shared_weight: Weight = 1.0
    answer_weight: Weight = 3.0
    form_weight: Weight = 1.0
    idle: Literal["zero", "pay"] = "zero"
    max_question: Weight = 3.0
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
        if case.values:
            needed = sets_of(len(case.facts), self._orders(case))
            missing = next((made for made in needed if made not in case.values), None)
            if missing is not None:
                numbers = [at for at in range(len(case.facts)) if missing >> at & 1]
                raise BadReferenceError(f"the values have none for the facts {numbers}; {len(needed)} sets are needed")
        elif self.engine is None:
            raise BadReferenceError("nothing says what the facts are worth: give values, shapley, or an engine")
        elif not case.answer_text:
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
        worth: dict[int, Measured | Fault] = {}
        for at, work in enumerate(works):
            case = work.case
            if case.shapley:
                worth[at] = Measured(shapley=case.shapley)
            elif case.values:
                worth[at] = Measured(shapley=tuple(shapley(len(case.facts), case.values, self._orders(case))))
        rest = [at for at in range(len(works)) if at not in worth]
        if rest:
            cases = [(works[at].sample.prompt, works[at].case) for at in rest]
            worth.update(zip(rest, await measure(engine_of(self.engine), cases, self._orders), strict=True))
        return [worth[at] for at in range(len(works))]

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
            value = self.gain_weight * value + self.answer_weight * (outcome.value or 0.0)
            value += self.form_weight * work.formed
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
                shared = self.shared_weight * right if gain or self.idle == "pay" else 0.0
                value = min(max(self.gain_weight * gain + shared, 0.0), self.max_question)
            yield StepScore(value=value, label=label, start=turn.start, end=turn.end)
