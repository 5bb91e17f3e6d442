"""The base of the verifiers that judge a search agent's trajectory against gold evidence.

The reference is looked at first, then the trajectory; then the answer must stand, once, at the end.  Whoever gives
different answers, or goes on after the answer, has given none: nothing is earned then, and searches cost what they
cost, or falling silent would be the way out of a bad trajectory.

Not covered: what evidence is worth; the verifiers say that.

StepSearch's reward (arXiv 2505.15107; `Zillwang/StepSearch`): new evidence in each turn, and the answer at the end.

    turn  = gain - repeat_weight * repeat               (`adjudge.verifiers.agents.search.signals`), on the search
    value = answer F1 + key_weight * key-word score + the turns' values

Only what tools returned is evidence, and only queries that a tool answered are asked.

Where the released code differs: it reads results that the model wrote itself; it lets a later query take the place of
a better one for a sub-question; a document counts as another one if a blank or the document after it differs; text
after the answer spares what repeats cost; it rounds each F1 to four digits.  Its reward for single tags is left out;
the scorer `format` says whether a response has its form.

Not covered: PPO; the turns' values reach tokens by `Score.steps` (docs/credit.md).

InForage's reward: the outcome, the gold evidence that each turn finds first, and what turns cost.

    turn  = gain * share of gold evidence newly covered - cost, the cost from search `free` + 1 on
    value = outcome * answer + the turns' values

The coefficients were not found in public text; the defaults are ours.  Evidence is covered where what a tool returned
holds it (`how`), and it is covered once: no sum of gains passes 1.

Not covered: evidence that a page has in other words.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, StepScore, Verifier, content_text
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.searches import (
    FinalAnswer,
    Search,
    SeveralAnswers,
    final_answer,
    goes_on,
    searches_of,
)
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, plain_form
from adjudge.verifiers.agents.search.reference import SearchReference, read_reference
from adjudge.verifiers.agents.search.signals import (
    evidence_gains,
    holds,
    identity,
    keyword_score,
    repeats,
    similarities,
    words,
)
from adjudge.verifiers.nested.number import check_count, check_number
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.text.answer_verifier import require_choice

Turns = Literal["sum", "mean", "none"]

_LARGEST = 1e6  # the largest number that an option takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A trajectory with its answer and its searches.

    Attributes:
        sample: where it comes from.
        trajectory: all of it.
        answer: the one answer.
        searches: every search that was tried.
    """

    sample: Sample
    trajectory: Trajectory
    answer: FinalAnswer
    searches: tuple[Search, ...]


@dataclass(frozen=True, kw_only=True)
class TrajectoryVerifier(Verifier):
    """Base of the verifiers of search agents.

    Attributes:
        malformed: the value of a trajectory without one answer at its end, less what its searches cost.
        turns: what the value takes of the turns' values: their "sum", their "mean", or "none"; `Score.steps` has them
            all the same.
        several: "none": different answers are malformed; "last": the last one counts, as in released code.
        longest: most characters that the agent may write; more is malformed (`too_complex`).
        form: names of tags and tools, as `TrajectoryForm` has them.
    """

    malformed: float = 0.0
    turns: Turns = "sum"
    several: SeveralAnswers = "none"
    longest: int = 200_000
    form: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject options out of range."""
        require_choice(self, "turns", get_args(Turns))
        require_choice(self, "several", get_args(SeveralAnswers))
        self.require_number("malformed", -_LARGEST)
        check_count(self.longest, 1, f"{self.name}: longest")
        object.__setattr__(self, "form", plain_form(self.form, self.name))

    def require_number(self, option: str, low: float = 0.0, high: float = _LARGEST) -> None:
        """Raise `ValueError` unless the option is a number within the range."""
        check_number(getattr(self, option), low, high, f"{self.name}: {option}")

    @abstractmethod
    def read_reference(self, reference: Any) -> SearchReference:
        """Return what the trajectory is compared with.

        Raises:
            BadReferenceError: the reference cannot be read.
        """

    @abstractmethod
    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return what each search earns and what it costs, both from 0; its value is the difference."""

    @abstractmethod
    def judge(self, episode: Episode, gold: SearchReference) -> Score:
        """Return the score of a trajectory with an answer, without the turns."""

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or of a wrong type, or the turns are malformed."""
        super().validate(sample)
        which = f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}"
        try:
            self.read_reference(sample.reference)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"{which}: {error}") from error
        try:
            check_trajectory(sample, self.shape)
        except ValueError as error:
            raise ValueError(f"{which}: {error}") from error

    def verify(self, sample: Sample) -> Score:
        """Return the value of a trajectory; `Score.steps` has a value for each search."""
        try:
            gold = self.read_reference(sample.reference)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        try:
            trajectory = read_trajectory(sample, self.shape)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        if sum(len(turn.text) for turn in trajectory.turns) > self.longest:
            return Score.scored(self.malformed, "too_complex")
        answer = final_answer(trajectory, self.shape, several=self.several)
        searches = searches_of(trajectory, self.shape)
        gains, costs = self.gains_and_costs(searches, gold)
        if fault := answer.reason or ("bad_format" if goes_on(trajectory, answer, searches) else ""):
            gains = [0.0] * len(gains)
            score = Score.scored(self.malformed, fault, answers=answer.blocks)
        else:
            episode = Episode(sample=sample, trajectory=trajectory, answer=answer, searches=searches)
            score = self.judge(episode, gold)
        values = [gain - cost for gain, cost in zip(gains, costs, strict=True)]
        return replace(
            score,
            value=(score.value or 0.0) + self._mixed(values),
            steps=tuple(
                StepScore(value=value, label=_label(search, gain), start=search.start, end=search.end)
                for value, search, gain in zip(values, searches, gains, strict=True)
            ),
            evidence={**score.evidence, "gains": gains, "costs": costs, "forged": len(trajectory.forged())},
        )

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the value of a trajectory that could not be judged within the limits."""
        del sample
        return Score.scored(self.malformed, reason)

    def _mixed(self, values: Sequence[float]) -> float:
        """What the value takes of the turns' values."""
        if self.turns == "none" or not values:
            return 0.0
        return math.fsum(values) / (len(values) if self.turns == "mean" else 1)


def _label(search: Search, gain: float) -> str:
    if not search.answered:
        return "unanswered"
    return "new" if gain else "nothing_new"


@dataclass(frozen=True, kw_only=True)
class SearchStepsVerifier(TrajectoryVerifier):
    """StepSearch: answer F1, key words, and for each search new gold evidence less repeated documents.

    The reference is `{"answer": .., "documents": [gold texts], "keywords": [[ways to ask sub-question 1], ..]}`;
    without `keywords` the key-word score is left out.

    Attributes:
        malformed: the value of a trajectory without one answer at its end, less what its repeats cost.
        key_weight: weight of the key-word score.
        repeat_weight: weight of the share of documents that were there before.
        prompt_words: "count" compares queries with key words as released; "ignore" leaves out the words that the
            prompt gives away.
    """

    name: ClassVar[str] = "search_steps"
    version: ClassVar[str] = "1"

    malformed: float = -1.0
    key_weight: float = 0.618
    repeat_weight: float = 1.0
    prompt_words: Literal["count", "ignore"] = "count"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        require_choice(self, "prompt_words", ("count", "ignore"))
        self.require_number("key_weight")
        self.require_number("repeat_weight")

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.turn_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases("search_steps")

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the reference; `BadReferenceError` if it cannot be read."""
        return read_reference(reference, lists="documents", keywords=True)

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's new evidence, and its share of repeated documents times their weight."""
        again = repeats([[identity(document) for document in search.documents()] for search in searches])
        return evidence_gains(_similarities(searches, gold.documents)), [self.repeat_weight * share for share in again]

    def judge(self, episode: Episode, gold: SearchReference) -> Score:
        """Return answer and key words."""
        queries = [line for search in episode.searches if search.answered for line in search.query.splitlines()]
        ignored = frozenset(words(_prompt_text(episode.sample))) if self.prompt_words == "ignore" else frozenset()
        key_score = keyword_score(queries, gold.keywords, ignored)
        f1 = gold.answer_f1(episode.answer.text)
        return Score.scored(
            f1 + self.key_weight * key_score,
            "" if f1 else "wrong",
            answer=shorten(episode.answer.text),
            answer_f1=f1,
            key_score=key_score,
        )


def _similarities(searches: Sequence[Search], golds: tuple[str, ...]) -> list[list[float]]:
    """For each search, the best similarity of its documents to each gold text; a document is compared once."""
    known: dict[tuple[str, str], list[float]] = {}
    rows = []
    for search in searches:
        best = [0.0] * len(golds)
        for document in search.documents():
            key = identity(document)
            if key not in known:
                known[key] = similarities(document.text, golds)
            best = [max(pair) for pair in zip(best, known[key], strict=True)]
        rows.append(best)
    return rows


def _prompt_text(sample: Sample) -> str:
    if isinstance(sample.prompt, str):
        return sample.prompt
    return "\n".join(content_text(turn.get("content")) for turn in sample.prompt)


@dataclass(frozen=True, kw_only=True)
class SearchGainVerifier(TrajectoryVerifier):
    """InForage: outcome, plus the share of gold evidence that each search finds first, less a cost for turns.

    The reference is `{"answer": .., "evidence": [texts that must be found]}`.

    Attributes:
        metric: what an answer is worth: "exact_match" 0 or 1, "f1" between them.
        outcome: weight of the answer (ours).
        gain: weight of the evidence (ours).
        cost: what each search beyond `free` costs (ours); attempts count, whether answered or not.
        free: how many searches cost nothing (ours).
        how: "phrase": a result holds the evidence in its own words, in a row; "words": it holds at least `least` of the
            evidence's different words.
        least: the share of words that is enough for "words" (ours).
    """

    name: ClassVar[str] = "search_gain"
    version: ClassVar[str] = "1"

    metric: Literal["exact_match", "f1"] = "exact_match"
    outcome: float = 1.0
    gain: float = 0.5
    cost: float = 0.05
    free: int = 1
    how: Literal["phrase", "words"] = "phrase"
    least: float = 0.8

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        require_choice(self, "metric", ("exact_match", "f1"))
        require_choice(self, "how", ("phrase", "words"))
        for option in ("outcome", "gain", "cost"):
            self.require_number(option)
        self.require_number("least", 0.0, 1.0)
        if not self.least:
            raise ValueError(f"{self.name}: least is 0, so that every result would hold everything; give a share above")
        check_count(self.free, 0, f"{self.name}: free")

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.turn_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases("search_gain")

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the reference; `BadReferenceError` if it cannot be read."""
        return read_reference(reference, lists="evidence")

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's share of new evidence times its weight, and the cost of searches beyond `free`."""
        found = [[float(self._covers(search, text)) for text in gold.documents] for search in searches]
        gains = [self.gain * share for share in evidence_gains(found)]
        return gains, [self.cost * (number >= self.free) for number in range(len(searches))]

    def judge(self, episode: Episode, gold: SearchReference) -> Score:
        """Return what the answer is worth."""
        text = episode.answer.text
        right = gold.answer_f1(text) if self.metric == "f1" else float(gold.is_answer(text))
        return Score.scored(
            self.outcome * right,
            "" if right else "wrong",
            answer=shorten(text),
            answer_value=right,
            searches=len(episode.searches),
        )

    def _covers(self, search: Search, evidence: str) -> bool:
        texts = [f"{document.title}\n{document.text}" for document in search.documents()]
        if self.how == "phrase":
            return any(holds(text, [evidence]) for text in texts)
        wanted = set(words(evidence))
        enough = self.least * len(wanted) - 1e-9  # 0.56 * 25 is a little more than 14
        return any(len(wanted & set(words(text))) >= enough for text in texts)
