"""What the scorers of agents share: options, the form of trajectories, and a scorer's way from samples to scores.

`TrajectoryVerifier` is for rules, `NestedScorer` for scorers that ask other scorers, and `TrajectoryModelScorer` for
those that show a trajectory to a language model.  A subclass says what its reference is and what a trajectory is worth.

Not covered: mixing scores of the same sample (`adjudge.scoring.compose`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    TypeVar,
)

from adjudge.engines.interface import Fault
from adjudge.engines.loading import engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Declared, Range, check_options
from adjudge.prompts.asking import Answer, Reader
from adjudge.prompts.scorer import Case, ModelScorer
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import MissingReferenceError, Provenance, Sample, Score, Verifier
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, plain_form
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import options_of, part_of

T = TypeVar("T")

LARGEST = 1e6
"""The largest number that an option takes."""

Value: TypeAlias = Annotated[float, Range(ge=-LARGEST, le=LARGEST)]
Weight: TypeAlias = Annotated[float, Range(ge=0, le=LARGEST)]


def check_number(value: Any, within: Range, called: str) -> None:
    """Raise `ValueError` unless a value is a finite number within bounds."""
    number = Declared(kind=float, range=within)
    if not number.allows(value):
        raise ValueError(f"{called} is {value!r}; it must be {number}")


def case_values(scorer: str, values: Any, known: Mapping[str, float]) -> dict[str, float]:
    """Return the values of an option that takes the place of some of a table.

    Args:
        scorer: whose option it is.
        values: what was given.
        known: the table.

    Raises:
        ValueError: it is no mapping of the table's cases to numbers.
    """
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

    form: Mapping[str, Any] = field(default_factory=dict)

    @property
    def more_tags(self) -> tuple[str, ...]:
        """Tags that other options name."""
        return ()

    def __post_init__(self) -> None:
        """Check the options, and fill in the form."""
        check_options(self, f"{self.name} option")
        given: Any = self.form
        form = plain_form({"result": self.result_tag, **given} if isinstance(given, Mapping) else given, self.name)
        tags = TrajectoryForm.of(form).tags
        more = (*form["more"], *(tag for tag in self.more_tags if tag not in tags))
        object.__setattr__(self, "form", plain_form({**form, "more": more}, self.name))

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    def gold(self, sample: Sample) -> Any:
        """Return what a sample is compared with; `BadReferenceError` if it cannot be used."""
        return sample.reference


@dataclass(frozen=True, kw_only=True)
class TrajectoryVerifier(ReadsTrajectories, Verifier):
    """Base of the verifiers of trajectories: the reference is looked at first, then the trajectory."""

    @abstractmethod
    def judged(self, sample: Sample, trajectory: Trajectory, gold: Any) -> Score:
        """Return the score of a trajectory."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or of a wrong type, or the turns are malformed."""
        super().validate(sample)
        which = f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}"
        try:
            self.gold(sample)
            check_trajectory(sample, self.shape)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"{which}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{which}: {error}") from error

    def verify(self, sample: Sample) -> Score:
        """Return the score of a trajectory."""
        try:
            gold = self.gold(sample)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        try:
            trajectory = read_trajectory(sample, self.shape)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        return self.judged(sample, trajectory, gold)


@dataclass(frozen=True, kw_only=True)
class NestedScorer(ReadsTrajectories, ABC):
    """Base of the scorers of trajectories that ask other scorers."""

    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True
    inner: ClassVar[tuple[str, ...]] = ()
    """The options that hold scorers."""

    def __post_init__(self) -> None:
        """Check the options, and make the parts scorers; an engine is not loaded yet."""
        super().__post_init__()
        for option in self.inner:
            object.__setattr__(self, option, part_of(getattr(self, option), f"{self.name} option {option}"))
        self._engine()

    @classmethod
    def from_spec(cls, body: Any, loader: Any) -> Self:
        """Read the options of a spec; those that hold scorers may be specs themselves."""
        return cls(**options_of(cls, body, loader, cls.inner))

    @abstractmethod
    def read(self, sample: Sample) -> Any:
        """Return what is judged of a sample whose trajectory and reference are fine, or its score."""

    @abstractmethod
    async def judge(self, read: Sequence[Any]) -> list[Score]:
        """Return one score for each of what `read` returned that is none yet, in order."""

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

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        ready = [self._ready(sample) for sample in samples]
        work = [one for one in ready if not isinstance(one, Score)]
        judged = iter(await self.judge(work) if work else [])
        scores = [one if isinstance(one, Score) else next(judged) for one in ready]
        if not scores:
            return []
        who = self._provenance()
        return [replace(score, provenance=who) for score in scores]

    def _ready(self, sample: Sample) -> Any:
        try:
            self.validate(sample)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        return self.read(sample)

    def _provenance(self) -> Provenance:
        engine = self._engine()
        asked = {"engine": engine.name, "revision": str(engine.model)} if engine else {}
        return Provenance(scorer=self.name, fingerprint=self.fingerprint, **asked)


@dataclass(frozen=True, kw_only=True)
class TrajectoryModelScorer(ReadsTrajectories, ModelScorer):
    """Base of the scorers that show a trajectory to a language model."""

    template: ClassVar[str]
    """The name of the one prompt."""

    def __post_init__(self) -> None:
        """Check the options, and fill in the form."""
        ModelScorer.__post_init__(self)
        super().__post_init__()

    def templates(self) -> tuple[Template, ...]:
        """Return the one prompt there is."""
        return (load_template(self.template),)

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

    async def each_asked(
        self, cases: Sequence[Any], prompt: Callable[[Any], Rendered], reader: Callable[[Any], Reader[T]]
    ) -> list[Answer[T] | Fault]:
        """Ask one prompt for each case, those with the same reader of answers together."""
        alike: defaultdict[Reader[T], list[int]] = defaultdict(list)
        for place, case in enumerate(cases):
            alike[reader(case)].append(place)
        said: dict[int, Answer[T] | Fault] = {}
        for read, places in alike.items():
            said.update(zip(places, await self.asked([cases[place] for place in places], prompt, read), strict=True))
        return [said[place] for place in range(len(cases))]
