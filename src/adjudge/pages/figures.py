"""What a report draws, as data: bars, grids and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from adjudge.statistics.arrays import np
from adjudge.statistics.confusion import NO_VERDICT, cells
from adjudge.statistics.intervals import Interval


class Record:
    """A dataclass that is written as JSON field by field, in their order.

    Attributes:
        figure: "bars", "grid" or "curves", where it is something to draw.
    """

    __slots__ = ()
    figure: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        kind = {"kind": self.figure} if self.figure else {}
        return kind | {item.name: _plain(getattr(self, item.name)) for item in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: item.to_dict() if hasattr(item, "to_dict") else item for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar.

    Attributes:
        interval: its length, with bounds if there are any.
        baselines: marks on it, by their names.
    """

    name: str
    interval: Interval
    baselines: Mapping[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"name": self.name, **self.interval.to_dict(), "baselines": dict(self.baselines)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Record):
    """Horizontal bars with error bars.

    Attributes:
        unit: of the numbers: "share", "rank correlation", ...
    """

    figure: ClassVar[str] = "bars"
    title: str
    unit: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(Record):
    """A table of numbers as a heat map: a confusion matrix, probes by scorers.

    Attributes:
        values: one tuple for each row; None where there is no number.
        row_axis: what rows are: "gold".
        column_axis: what columns are: "verdict".
        better: which end is good: "high", "low", or "none" for counts.
    """

    figure: ClassVar[str] = "grid"
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    row_axis: str = ""
    column_axis: str = ""
    better: str = "none"

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(
                f"the grid {self.title!r} has {len(self.rows)} rows of {len(self.columns)}; values do not fit"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series(Record):
    """One line.

    Attributes:
        x: places along the axis, ascending.
        y: as many numbers; None is a gap.
        low: lower bounds, as many, or () for none.
        high: upper bounds.
        points: whether only points are drawn, for what was measured, beside a line that was fitted.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    points: bool = False

    def __post_init__(self) -> None:
        if len(self.y) != len(self.x) or any(side and len(side) != len(self.x) for side in (self.low, self.high)):
            raise ValueError(f"the series {self.name!r} has {len(self.x)} places; give as many numbers and bounds")

    @classmethod
    def of(cls, name: str, x: Sequence[float], means: Sequence[Interval], *, points: bool = False) -> Series:
        """Return a line through numbers, with their bounds where there are any."""
        low, high = (tuple(one.low for one in means), tuple(one.high for one in means))
        bounded = any(bound is not None for bound in low)
        return cls(
            name=name,
            x=tuple(map(float, x)),
            y=tuple(one.value for one in means),
            low=low if bounded else (),
            high=high if bounded else (),
            points=points,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(Record):
    """Lines in one drawing.

    Attributes:
        log_x: whether the axis is logarithmic.
        diagonal: whether the line y = x is drawn, as reliability diagrams have it.
    """

    figure: ClassVar[str] = "curves"
    title: str
    x_axis: str
    y_axis: str
    series: tuple[Series, ...]
    log_x: bool = False
    diagonal: bool = False


Figure: TypeAlias = Bars | Grid | Curves


def confusion_grid(
    gold: Sequence[str], verdicts: Sequence[str | None], classes: Sequence[str], *, title: str = "Confusion"
) -> Grid:
    """Return the table of counts as a figure."""
    size = len(classes)
    table = np.bincount(cells(gold, verdicts, classes), minlength=size * (size + 1)).reshape(size, -1).astype(float)
    return Grid(
        title=title,
        rows=tuple(classes),
        columns=(*classes, NO_VERDICT),
        values=tuple(tuple(row) for row in table.tolist()),
        row_axis="gold",
        column_axis="verdict",
    )
