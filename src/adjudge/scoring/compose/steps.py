"""The steps of a `Transform`: what is done to the numbers, one after the other.

`Affine` and `Clip` look at one value.  `Rank` and `ZScore` look at the scored members of one group, that is, at the
samples which share `Sample.group`; they need at least two.

Not covered: statistics over a whole batch or over time; a score must not depend on who else was in the batch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Options, Range, options_of, suggestion


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
        """Check the bounds, and reject an empty or a boundless interval."""
        super().__post_init__()
        if self.low is None and self.high is None:
            raise ValueError("Clip needs `low`, `high` or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"Clip.low is {self.low} and Clip.high is {self.high}; low must not be above high")

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the values moved into the interval."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return [min(max(value, low), high) for value in values]


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


STEPS: dict[str, type[Step]] = {"affine": Affine, "clip": Clip, "rank": Rank, "zscore": ZScore}


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
        raise ValueError(f"{entry!r} is no step of a transform; the steps are {', '.join(STEPS)}{near}")
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(**options_of({} if options is None else options, known, inside=f"the step {name!r}"))
