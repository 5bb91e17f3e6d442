"""Scorers of trajectories that are made of other scorers: a reward model for thoughts, a judge for findings.

Not covered: the parts (`adjudge.verifiers.nested.part`), and mixing scores of the same sample (`adjudge.compose`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from adjudge.bad_reference import BadReferenceError
from adjudge.engines.loading import engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import MissingReferenceError, Provenance, Sample, Score
from adjudge.responses.trajectories.reading import check_trajectory
from adjudge.responses.trajectories.trajectory import TrajectoryForm, plain_form
from adjudge.verifiers.nested.number import check_count, check_number
from adjudge.verifiers.nested.part import options_of, part_of


@dataclass(frozen=True, kw_only=True)
class NestedScorer(ABC):
    """Base of the scorers of trajectories that ask other scorers.

    Attributes:
        form: names of tags and tools, as `TrajectoryForm` has them.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True
    inner: ClassVar[tuple[str, ...]] = ()
    """The options that hold scorers."""

    form: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject a form that is none and parts that are no scorers."""
        object.__setattr__(self, "form", plain_form(self.form, self.name))
        for option in self.inner:
            object.__setattr__(self, option, part_of(getattr(self, option), f"{self.name}: {option}"))

    @classmethod
    def from_spec(cls, body: Any, loader: Any) -> Self:
        """Read the options of a spec; those that hold scorers may be specs themselves."""
        return cls(**options_of(cls, body, loader, cls.inner))

    @abstractmethod
    async def judge(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; samples and references are fine."""

    @abstractmethod
    def check_reference(self, sample: Sample) -> None:
        """Raise `BadReferenceError` if the reference cannot be used, `ValueError` if another field is at fault."""

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    def require(self, option: str, allowed: Sequence[Any]) -> None:
        """Raise `ValueError` unless the option has one of the allowed values."""
        value = getattr(self, option)
        if value not in allowed:
            raise ValueError(f"{self.name}: {option} is {value!r}; it must be one of {', '.join(map(str, allowed))}")

    def require_number(self, option: str, low: float, high: float) -> None:
        """Raise `ValueError` unless the option is a number within the range."""
        check_number(getattr(self, option), low, high, f"{self.name}: {option}")

    def require_count(self, option: str, low: int = 1) -> None:
        """Raise `ValueError` unless the option is a whole number from `low`."""
        check_count(getattr(self, option), low, f"{self.name}: {option}")

    def asked(self) -> Any:
        """Return whatever else is asked, with its fingerprint: the engine, or None."""
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
            self.check_reference(sample)
            check_trajectory(sample, self.shape)
        except BadReferenceError as error:
            raise BadReferenceError(f"{which}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{which}: {error}") from error

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        scores: dict[int, Score] = {}
        for place, sample in enumerate(samples):
            try:
                self.validate(sample)
            except BadReferenceError as error:
                scores[place] = Score.failed("gold_unparsable", error=str(error))
            except ValueError as error:
                scores[place] = Score.failed("bad_sample", error=str(error))
        fine = [place for place in range(len(samples)) if place not in scores]
        if fine:
            scores.update(zip(fine, await self.judge([samples[place] for place in fine]), strict=True))
        if not scores:
            return []
        who = self._provenance()
        return [replace(scores[place], provenance=who) for place in range(len(samples))]

    def _provenance(self) -> Provenance:
        given = getattr(self, "engine", None)
        if given is None:
            return Provenance(scorer=self.name, fingerprint=self.fingerprint)
        engine = engine_of(given)
        return Provenance(
            scorer=self.name, fingerprint=self.fingerprint, engine=engine.name, revision=str(engine.model)
        )
