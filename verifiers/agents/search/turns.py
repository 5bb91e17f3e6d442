"""Rewards of single search turns against gold evidence: StepSearch and InForage.

The answer must stand, once, at the end.  An agent that gives different answers, or goes on after the answer, has given
none: nothing is earned then, and searches cost what they cost, or falling silent would be the way out of a bad
trajectory.  Only what tools returned is evidence, and only queries that a tool answered are asked.

StepSearch (arXiv 2505.15107; `Zillwang/StepSearch`; docs/agents.md says where its released code differs):

    turn  = gain - repeat_weight * repeat               (`adjudge.verifiers.agents.search.signals`), on the search
    value = answer F1 + key_weight * key-word score + the turns' values

InForage (`qhjqhj00/InForage`): a run pays the best search alone, and the later an answer comes, the less it is worth:

    value = (F1 + gain * share of gold evidence that the best search covers) * decay^(searches - 1), from the third on

That is the preset `in_forage`.  The defaults, with coefficients of ours, pay all searches for what is new:

    turn  = gain * share of gold evidence newly covered - cost, the cost from search `free` + 1 on
    value = outcome * answer + the turns' values

LeReT (arXiv 2410.23214; sher222/LeReT at ab4ce03): `measure: average_precision` pays the average precision of the
documents of each search, so that evidence at the top of a list pays more.  Evidence that was found before pays nothing
(ours).

The answer is right by exact match, unless `metric: f1`.  Evidence is covered, once, where the words of it stand in a
row in a document.

Not covered: evidence that a page has in other words.  The turns' values reach tokens by `Score.steps`:
docs/objectives.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Count, Range
from adjudge.protocol import Sample, Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.trajectories.searches import Search, SeveralAnswers, final_answer, goes_on, searches_of
from adjudge.responses.trajectories.trajectory import Trajectory, steps_at
from adjudge.verifiers.agents.scoring import TrajectoryVerifier, Value, Weight
from adjudge.verifiers.agents.search.signals import (
    SearchReference,
    average_precisions,
    best_similarities,
    evidence_gains,
    holds,
    identity,
    keyword_score,
    prompt_text,
    read_reference,
    repeats,
    words,
)


@dataclass(frozen=True, kw_only=True)
class SearchTurnsVerifier(TrajectoryVerifier[SearchReference]):
    """Base of the verifiers that give each search a value.

    Attributes:
        malformed: the value of a trajectory without one answer at its end, less what its searches cost.
        turns: whether the value takes the "sum" of the turns' values or "none" of them; `Score.steps` has them anyway.
        several: "none": different answers are malformed; "last": the last one counts, as in released code.
        max_characters: most characters that the agent may write; more is malformed (`too_complex`).
    """

    malformed: Value = 0.0
    turns: Literal["sum", "none"] = "sum"
    several: SeveralAnswers = "none"
    max_characters: Count = 200_000

    @abstractmethod
    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return what each search earns and what it costs, both from 0; its value is the difference."""

    @abstractmethod
    def whole(self, sample: Sample, answer: str, searches: Sequence[Search], gold: SearchReference) -> Score:
        """Return the score of a trajectory with an answer, without the turns."""

    def judge_trajectory(self, sample: Sample, trajectory: Trajectory, gold: SearchReference) -> Score:
        """Return the value of a trajectory; `Score.steps` has a value for each search."""
        if trajectory.written > self.max_characters:
            return Score.scored(self.malformed, "too_complex")
        answer = final_answer(trajectory, self.shape, several=self.several)
        searches = searches_of(trajectory, self.shape)
        gains, costs = self.gains_and_costs(searches, gold)
        fault = answer.reason or ("bad_format" if goes_on(trajectory, answer, searches) else "")
        if fault and self.wants_answer:
            gains = [0.0] * len(gains)
            score = Score.scored(self.malformed, fault, answers=answer.blocks)
        else:
            score = self.whole(sample, answer.text, searches, gold)
        values = [gain - cost for gain, cost in zip(gains, costs, strict=True)]
        labels = [
            "unanswered" if not search.answered else "new" if gain else "nothing_new"
            for search, gain in zip(searches, gains, strict=True)
        ]
        return replace(
            score,
            value=(score.value or 0.0) + (math.fsum(values) if self.turns == "sum" else 0.0),
            steps=steps_at(searches, values, labels),
            evidence={**score.evidence, "gains": gains, "costs": costs, "forged": len(trajectory.forged())},
        )

    @property
    def wants_answer(self) -> bool:
        """Whether a trajectory without one answer at its end is malformed."""
        return True

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the value of a trajectory that could not be judged within the limits."""
        return Score.scored(self.malformed, reason)


@dataclass(frozen=True, kw_only=True)
class SearchStepsVerifier(SearchTurnsVerifier):
    """StepSearch: answer F1, key words, and for each search new gold evidence less repeated documents.

    The reference is `{"answer": .., "documents": [gold texts], "keywords": [[ways to ask sub-question 1], ..]}`;
    without `keywords` the key-word score is left out.

    Attributes:
        key_weight: weight of the key-word score.
        repeat_weight: weight of the share of documents that were there before.
        prompt_words: "count" compares queries with key words as released; "ignore" leaves out the words that the
            prompt gives away.
    """

    name: ClassVar[str] = "search_steps"
    version: ClassVar[str] = "3"

    malformed: Value = -1.0
    key_weight: Weight = 0.618
    repeat_weight: Weight = 1.0
    prompt_words: Literal["count", "ignore"] = "count"

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the answers, the gold documents and the key words."""
        return read_reference(reference, lists="documents", keywords=True)

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's new evidence, and its share of repeated documents times their weight."""
        again = repeats([[identity(document) for document in search.documents()] for search in searches])
        similar = best_similarities([search.documents() for search in searches], gold.documents)
        return evidence_gains(similar), [self.repeat_weight * share for share in again]

    def whole(self, sample: Sample, answer: str, searches: Sequence[Search], gold: SearchReference) -> Score:
        """Return answer and key words."""
        queries = [line for search in searches if search.answered for line in search.query.splitlines()]
        ignored = frozenset(words(prompt_text(sample.prompt))) if self.prompt_words == "ignore" else frozenset()
        key_score = keyword_score(queries, gold.keywords, ignored)
        f1 = gold.answer_f1(answer)
        value, reason = f1 + self.key_weight * key_score, "" if f1 else "wrong"
        return Score.scored(value, reason, answer=shorten(answer), answer_f1=f1, key_score=key_score)


@dataclass(frozen=True, kw_only=True)
class SearchGainVerifier(SearchTurnsVerifier):
    """InForage: outcome, plus the share of gold evidence that searches find, less for many searches.

    The reference is `{"answer": .., "evidence": [texts that must be found]}`.

    Attributes:
        measure: "coverage" pays a search for the share of gold evidence that it finds first, at any rank;
            "best_coverage" for the share that it finds beyond the most that a search found before;
            "average_precision" for the average precision of its documents.
        metric: whether an answer is worth exact match, or its token F1.
        outcome: weight of the answer (ours); 0 with "average_precision" wants no answer, for a policy that only
            searches.
        gain: weight of the evidence (ours).
        cost: what each search beyond `free` costs (ours); attempts count, whether answered or not.
        free: how many searches cost nothing (ours).
        decay: with n searches, more than `free`, answer and evidence are worth decay^(n - 1) of what they were.
    """

    name: ClassVar[str] = "search_gain"
    version: ClassVar[str] = "3"

    measure: Literal["coverage", "best_coverage", "average_precision"] = "coverage"
    metric: Literal["exact", "f1"] = "exact"
    outcome: Weight = 1.0
    gain: Weight = 0.5
    cost: Weight = 0.05
    free: Annotated[int, Range(ge=0)] = 1
    decay: Annotated[float, Range(ge=0, le=1)] = 1.0

    @property
    def wants_answer(self) -> bool:
        """Whether a trajectory without one answer at its end is malformed."""
        return self.outcome > 0 or self.measure != "average_precision"

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the answers and the evidence."""
        return read_reference(reference, lists="evidence")

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's share of new evidence times its weight, and the cost of searches beyond `free`."""
        returned = [[f"{one.title}\n{one.text}" for one in search.documents()] for search in searches]
        held = [
            [[at for at, text in enumerate(gold.documents) if holds(one, [text])] for one in texts]
            for texts in returned
        ]
        if self.measure == "average_precision":
            shares = average_precisions(held, len(gold.documents))
        else:
            covered = [{at for holding in rows for at in holding} for rows in held]
            shown = [[float(at in found) for at in range(len(gold.documents))] for found in covered]
            best = self.measure == "best_coverage"
            shares = evidence_gains([[sum(row) / len(row)] for row in shown] if best else shown)
        gains = [self.gain * share * self.kept(len(searches)) for share in shares]
        return gains, [self.cost * (number >= self.free) for number in range(len(searches))]

    def whole(self, sample: Sample, answer: str, searches: Sequence[Search], gold: SearchReference) -> Score:
        """Return what the answer is worth."""
        if not self.wants_answer:
            return Score.scored(0.0, searches=len(searches))
        right = gold.answer_f1(answer) if self.metric == "f1" else float(gold.is_answer(answer))
        evidence: dict[str, Any] = {"answer": shorten(answer), "answer_value": right, "searches": len(searches)}
        return Score.scored(self.outcome * right * self.kept(len(searches)), "" if right else "wrong", **evidence)

    def kept(self, searches: int) -> float:
        """Return the share that answer and evidence are worth after so many searches."""
        return self.decay ** (searches - 1) if searches > self.free else 1.0
