"""A scorer with its numbers changed: scaled, clipped, ranked or standardised in the group.

Where the transform stands decides when the change happens.  Around a part of a `Weighted` it normalises *before*
mixing; around the whole `Weighted` it normalises *after*.

`Rank` and `ZScore` look at the scored members of the samples that share a group in one call, the others at one value:
a transform with one of the two says `groupwise = True` and must be given whole groups.  Failed and abstained members
keep their status: they neither vote nor get a number.

Not covered: statistics across groups or batches, which would make a score depend on the batch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Options, Range, options_of, suggestion
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import grouped, require_group
from adjudge.scoring.compose.composite import Composite, Loader


class Step(ABC):
    """One step: values in, values out, in order.

    Attributes:
        groupwise: whether `apply` must be given exactly the scored members of one group.
    """

    groupwise: ClassVar[bool] = False

    @abstractmethod
    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the new values; a groupwise step gets at least two."""

    def spread(self, uncertainty: float | None) -> float | None:
        """Return what becomes of a value's uncertainty; by default it is no longer known."""
        return None


@dataclass(frozen=True)
class Affine(Options, Step, what="Affine option"):
    """`scale * value + shift`."""

    scale: float = 1.0
    shift: float = 0.0

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the scaled and shifted values."""
        return [self.scale * value + self.shift for value in values]

    def spread(self, uncertainty: float | None) -> float | None:
        """Return the scaled uncertainty."""
        return None if uncertainty is None else abs(self.scale) * uncertainty


@dataclass(frozen=True)
class Clip(Options, Step, what="Clip option"):
    """Values below `low` become `low`, those above `high` become `high`; None leaves that side open."""

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low is None and self.high is None:
            raise ValueError("Clip needs `low`, `high` or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"Clip option low={self.low} and high={self.high}; low must not be above high")

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the values moved into the interval."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return [min(max(value, low), high) for value in values]


@dataclass(frozen=True)
class Threshold(Options, Step, what="Threshold option"):
    """`high` for a value above `above`, else `low`.

    HuatuoGPT-o1 pays 1 for a chance above 0.4 and 0.1 otherwise: `{above: 0.4, high: 1.0, low: 0.1}`.
    """

    above: float = 0.5
    high: float = 1.0
    low: float = 0.0

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return `high` or `low` for each value."""
        return [self.high if value > self.above else self.low for value in values]


@dataclass(frozen=True)
class Reciprocal(Options, Step, what="Reciprocal option"):
    """`1 / max(value, least)`, of numbers such as losses."""

    least: Annotated[float, Range(gt=0)] = 1e-3

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the reciprocals."""
        return [1 / max(value, self.least) for value in values]


@dataclass(frozen=True)
class Gaussian(Options, Step, what="Gaussian option"):
    """`exp(-((value - center) / width)^2)`, in [0, 1]: 1 at the centre, 1 / e at the distance `width`."""

    center: float = 0.0
    width: Annotated[float, Range(gt=0)] = 1.0

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return how near each value is to the centre."""
        distances = [(value - self.center) / self.width for value in values]
        return [math.exp(-distance * distance) for distance in distances]


@dataclass(frozen=True)
class Rank(Step):
    """The rank in the group, from 0 (lowest) to 1 (highest); equal values share the mean of their ranks.

    With n members and ranks 1..n: `(rank - 1) / (n - 1)`.
    """

    groupwise: ClassVar[bool] = True

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the ranks of a group of at least two."""
        order = sorted(values)
        first = {value: index for index, value in reversed(list(enumerate(order)))}
        last = {value: index for index, value in enumerate(order)}
        return [(first[value] + last[value]) / 2 / (len(order) - 1) for value in values]


@dataclass(frozen=True)
class ZScore(Options, Step, what="ZScore option"):
    """`(value - mean) / (std + eps)` within the group, the advantage of GRPO.

    The defaults give what verl and TRL compute: the sample standard deviation (divisor n - 1) and a small `eps`,
    which also keeps rounding noise between equal scores from being blown up to +-1.  If all members are equal,
    every one gets 0.0.

    Attributes:
        ddof: 1 divides the squared deviations by n - 1, 0 by n.
        eps: added to the standard deviation, >= 0.
    """

    groupwise: ClassVar[bool] = True

    ddof: Literal[0, 1] = 1
    eps: Annotated[float, Range(ge=0)] = 1e-6

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the z-scores of a group of at least two."""
        if min(values) == max(values):  # the computed deviation of equal values need not be exactly 0
            return [0.0] * len(values)
        mean = math.fsum(values) / len(values)
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - self.ddof))
        if spread + self.eps == 0.0:  # deviations so small that their squares vanish
            return [0.0] * len(values)
        return [(value - mean) / (spread + self.eps) for value in values]


STEPS: dict[str, type[Step]] = {
    "affine": Affine,
    "clip": Clip,
    "threshold": Threshold,
    "reciprocal": Reciprocal,
    "gaussian": Gaussian,
    "rank": Rank,
    "zscore": ZScore,
}


def step_of(entry: Any) -> Step:
    """Return a step from its spec: a name, or `{name: {option: value}}`.

    Raises:
        ValueError: the step or one of its options is unknown or out of range.
    """
    name, options = entry, None
    if isinstance(entry, dict) and len(entry) == 1:
        ((name, options),) = entry.items()
    kind = STEPS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = suggestion(name, list(STEPS)) if isinstance(name, str) else ""
        raise ValueError(f"{entry!r} is not a step of a transform; the steps are {', '.join(STEPS)}{near}")
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(**options_of({} if options is None else options, known, inside=f"the step {name!r}"))


@dataclass(frozen=True, kw_only=True)
class Transform(Composite):
    """One scorer followed by steps on its values.

    A group with fewer than two scored members gives no statistic: its members fail with "group_too_small".
    Equal members get 0.0 from `ZScore` and 0.5 from `Rank`.  The uncertainty survives `Affine` only.

    Attributes:
        scorer: where the values come from.
        steps: what is done to them, in order.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{scorer: SPEC, steps: [STEP, ...], name: ...}`"
    example: ClassVar[str] = "{transform: {scorer: math, steps: [zscore, {clip: {low: -3, high: 3}}]}}"

    scorer: Scorer | Verifier
    steps: tuple[Step, ...]
    name: str = "transform"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", tuple(self.steps))
        if not self.steps:
            raise ValueError(f"{self.name!r} has no steps; try {self.example}")
        for step in self.steps:
            if not isinstance(step, Step):
                raise ValueError(
                    f"{self.name!r} has the step {step!r}; use Affine, Clip, Threshold, Reciprocal, Gaussian, Rank or "
                    "ZScore"
                )

    @classmethod
    def read(cls, given: dict[str, Any], loader: Loader) -> dict[str, Any]:
        """Return the options with steps in the place of their specs."""
        if not isinstance(given["steps"], list | tuple):
            raise ValueError(f"the steps of a transform are {given['steps']!r}; give a list, as in {cls.example}")
        return given | {"steps": tuple(step_of(entry) for entry in given["steps"])}

    @property
    def groupwise(self) -> bool:
        """Whether a step, or the scorer, compares the members of a group."""
        return super().groupwise or self._has_group_step

    @property
    def _has_group_step(self) -> bool:
        return any(step.groupwise for step in self.steps)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the scorer objects, or if a group step meets a sample without a group."""
        super().validate(sample)
        if self._has_group_step:
            require_group(self.name, sample)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score, then apply the steps."""
        (part,) = self.members()
        raw = await part.score(samples, inside=self.name)
        scores = [replace(score, steps=(), evidence={}, parts={part.name: score}) for score in raw]
        for step in self.steps:
            for members in _in_groups(samples, scores) if step.groupwise else [range(len(scores))]:
                _apply(step, [index for index in members if scores[index].value is not None], scores)
        return scores


def _in_groups(samples: Sequence[Sample], scores: list[Score]) -> list[list[int]]:
    """The scored members of each group; those without a group, or without company, are failed on the way."""
    groups = grouped({at: samples[at].group for at, score in enumerate(scores) if score.value is not None})
    for at in groups.pop("", []):
        scores[at] = _failed(scores[at], "bad_sample", "the sample has no group")
    for name, members in groups.items():
        if len(members) == 1:
            problem = f"group {name!r} has one scored member; two are needed"
            scores[members[0]] = _failed(scores[members[0]], "group_too_small", problem)
    return [members for members in groups.values() if len(members) > 1]


def _failed(score: Score, reason: str, error: str) -> Score:
    return Score(value=None, status="failed", reason=reason, parts=score.parts, evidence={"error": error})


def _apply(step: Step, indices: Sequence[int], scores: list[Score]) -> None:
    values = step.apply([value for index in indices if (value := scores[index].value) is not None])
    for index, value in zip(indices, values, strict=True):
        scores[index] = replace(scores[index], value=value, uncertainty=step.spread(scores[index].uncertainty))
