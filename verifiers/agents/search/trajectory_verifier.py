"""The base of the verifiers that judge a search agent's trajectory against gold evidence.

The reference is looked at first, then the trajectory; then the answer must stand, once, at the end.  Whoever gives
different answers, or goes on after the answer, has given none: nothing is earned then, and searches cost what they
cost, or falling silent would be the way out of a bad trajectory.

Not covered: what evidence is worth; the verifiers say that.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, StepScore, Verifier
from adjudge.responses.trajectories.answers import FinalAnswer, SeveralAnswers, final_answer, goes_on
from adjudge.responses.trajectories.form import TrajectoryForm, plain_form
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.searches import Search, searches_of
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.verifiers.agents.search.reference import SearchReference
from adjudge.verifiers.nested.number import check_count, check_number
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
