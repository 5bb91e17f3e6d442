"""What the scorers of agents share: options, the form of trajectories, and a scorer's way from samples to scores.

`TrajectoryVerifier` is for rules, `NestedScorer` for scorers that ask other scorers, and `TrajectoryModelScorer` for
those that show a trajectory to a language model.  A subclass says what its reference is and what a trajectory is worth.

Not covered: mixing scores of the same sample (`adjudge.scoring.compose`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, TypeAlias

from adjudge.engines.loading import bind_engines, engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Declared, Range, check_options
from adjudge.prompts.reading import Blank, keyed_lines
from adjudge.prompts.scorer import Case, ModelScorer
from adjudge.protocol import MissingReferenceError, Provenance, Sample, Score
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, plain_form
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import NestedScorer
from adjudge.scoring.verifier_base import Gold, ReferenceVerifier, refuse_mistakes

LARGEST = 1e6  # number that an option takes

Value: TypeAlias = Annotated[float, Range(ge=-LARGEST, le=LARGEST)]
Weight: TypeAlias = Annotated[float, Range(ge=0, le=LARGEST)]


def check_number(value: Any, within: Range, called: str) -> None:
    """Raise `ValueError` unless a value is a finite number within bounds."""
    number = Declared(kind=float, range=within)
    if not number.allows(value):
        raise ValueError(f"{called} is {value!r}; it must be {number}")


def case_values(scorer: str, values: Any, known: Mapping[str, float]) -> dict[str, float]:
    """Return the values of a scorer's option that take the place of some of a table; `ValueError` for other cases."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{scorer} option values={values!r}; give a mapping of cases to numbers")
    for case, value in values.items():
        if case not in known:
            raise ValueError(f"{scorer}: there is no case {case!r}; the cases are {', '.join(known)}")
        check_number(value, Range(ge=-LARGEST, le=LARGEST), f"{scorer}: values[{case!r}]")
    return dict(values)


@dataclass(frozen=True, kw_only=True)
class ReadsTrajectories:
    """Part of every scorer that reads trajectories.

    Attributes:
        form: names of tags and tools, as `adjudge.responses.trajectories.trajectory.TrajectoryForm` has them.
    """

    name: ClassVar[str]
    result_tag: ClassVar[str] = TrajectoryForm().result

    form: TrajectoryForm | Mapping[str, Any] = field(default_factory=dict)

    @property
    def more_tags(self) -> tuple[str, ...]:
        """Tags that other options name."""
        return ()

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")
        given: Any = self.form
        form = plain_form({"result": self.result_tag, **given} if isinstance(given, Mapping) else given, self.name)
        tags = TrajectoryForm.of(form).tags
        more = (*form["more"], *(tag for tag in self.more_tags if tag not in tags))
        object.__setattr__(self, "form", plain_form({**form, "more": more}, self.name))

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form."""
        return TrajectoryForm.of(self.form)


@dataclass(frozen=True, kw_only=True)
class TrajectoryVerifier(ReadsTrajectories, ReferenceVerifier[Gold, tuple[Sample, Trajectory]], Generic[Gold]):
    """Base of the verifiers of trajectories: the reference is looked at first, then the trajectory."""

    @abstractmethod
    def judge_trajectory(self, sample: Sample, trajectory: Trajectory, gold: Gold) -> Score:
        """Return the score of a trajectory."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or of a wrong type, or the turns are malformed."""
        super().validate(sample)
        refuse_mistakes(self.name, sample, lambda: check_trajectory(sample, self.shape))

    def find(self, sample: Sample, gold: Gold) -> tuple[Sample, Trajectory] | Score:
        """Return the trajectory of a sample."""
        try:
            return sample, read_trajectory(sample, self.shape)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))

    def judge(self, answer: tuple[Sample, Trajectory], gold: Gold) -> Score:
        """Return the score of a trajectory."""
        return self.judge_trajectory(*answer, gold)


@dataclass(frozen=True, kw_only=True)
class TrajectoryNestedScorer(ReadsTrajectories, NestedScorer):
    """Base of the scorers of trajectories that ask other scorers."""

    def __post_init__(self) -> None:
        NestedScorer.__post_init__(self)
        super().__post_init__()
        if self._engine():
            bind_engines(self, "engine")

    @abstractmethod
    def gold(self, sample: Sample) -> Any:
        """Return what a sample is compared with; `BadReferenceError` if it cannot be used."""

    @abstractmethod
    def read(self, sample: Sample, trajectory: Trajectory) -> Any:
        """Return what is judged of a sample whose trajectory and reference are fine, or its score."""

    def asked(self) -> Any:
        """Return whatever else is asked, with its fingerprint: the engine, or None."""
        return self._engine()

    def _engine(self) -> Any:
        given = getattr(self, "engine", None)
        return given and engine_of(given)

    @property
    def fingerprint(self) -> str:
        """Name, version, options, scorers and engine."""
        return fingerprint_of(self, self.asked(), without=("engine",))

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the field and the remedy if the sample cannot be judged as given."""
        which = f"the scorer {self.name!r}{f', sample {sample.id!r}' if sample.id else ''}"
        if sample.reference is None:
            raise MissingReferenceError(
                f"{which}: there is no reference; set Sample.reference (score: --reference, label: --reference-column)"
            )
        try:
            self.gold(sample)
            check_trajectory(sample, self.shape)
        except BadReferenceError as error:
            raise BadReferenceError(f"{which}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{which}: {error}") from error

    def read_sample(self, sample: Sample) -> Any:
        """Return what is judged of a sample, or its score."""
        self.validate(sample)
        return self.read(sample, read_trajectory(sample, self.shape))

    @property
    def origin(self) -> Provenance:
        """Who gives the scores, and the engine that is asked."""
        engine = self._engine()
        asked = {"engine": engine.name, "revision": str(engine.model)} if engine else {}
        return Provenance(scorer=self.name, fingerprint=self.fingerprint, **asked)


@dataclass(frozen=True, slots=True)
class KeyedLabels:
    """Reads one of the labels for each of the names; another count, another name or another word is not a verdict."""

    names: tuple[str, ...]
    labels: tuple[str, ...]

    def __call__(self, text: str, nonce: str = "", /) -> tuple[str, ...] | None:
        """Return the labels in the order of the names, or None."""
        read = keyed_lines(text, nonce, self.names, self.labels)
        return None if read is None else tuple(read.values())

    def blank(self, nonce: str) -> Blank:
        """Return the lines with a place for each label."""
        return Blank.of_lines(nonce, dict.fromkeys(self.names, self.labels))


@dataclass(frozen=True, kw_only=True)
class TrajectoryModelScorer(ReadsTrajectories, ModelScorer):
    """Base of the scorers that show a trajectory to a language model."""

    def __post_init__(self) -> None:
        ModelScorer.__post_init__(self)
        super().__post_init__()

    @property
    def fingerprint(self) -> str:
        """Name, version, options, scorers and engine, and whether it can be kept to the verdicts."""
        return f"{super().fingerprint}{self.forced_mark}"

    def gold(self, sample: Sample) -> Any:
        """Return what a sample is compared with; `BadReferenceError` if it cannot be used."""
        return sample.reference

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if there is nothing to compare with, or the trajectory is malformed."""
        self.gold(sample)
        check_trajectory(sample, self.shape)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is shown to the model, or the score of a sample that is not shown to it."""
        try:
            self.validate(sample)
        except ValueError as error:
            gold = isinstance(error.__cause__, BadReferenceError)
            return Score.failed("gold_unparsable" if gold else "bad_sample", error=str(error))
        return self.read(sample, read_trajectory(sample, self.shape))

    @abstractmethod
    def read(self, sample: Sample, trajectory: Trajectory) -> Case | Score:
        """Return what is shown of a trajectory, or its score."""
