"""Lines in one drawing that fits any width, with a legend, a place to read numbers at, and all numbers as a table.

Lines stretch with the drawing, in a nested one of 1000 by 1000; marks stand at places in per cent and keep their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.pages.figures import Curves, Series
from adjudge.pages.markup import (
    NOTHING,
    Attributes,
    Markup,
    cell,
    element,
    heading,
    joined,
    row,
    table,
    visible,
    wide,
)
from adjudge.pages.scale import UNKNOWN, Scale, drawable, finite, linear_scale, log_scale, number, plural, short

_DRAWN = 2_000  # marks of one line; a browser takes more only slowly
_COLOURS = 6  # and dashes, in the style sheet
_DOT = "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z"
_SHAPES = (_DOT, "M-4-4H4V4H-4Z", "M0-5.5L5.5 0L0 5.5L-5.5 0Z", "M0-5L5 4H-5Z", "M0 5L5-4H-5Z", "M-4-4L4 4M-4 4L4-4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Two axes: from left to right, and from the bottom."""

    across: Scale
    up: Scale

    def holds(self, x: float) -> bool:
        """Whether a place can be drawn: it is finite, and above 0 on a logarithmic axis."""
        return drawable(x) is not None and not (self.across.log and x <= 0)

    def spot(self, x: float, y: float) -> str:
        """Return a point in thousandths of the drawing."""
        return f"{10 * self.across.place(x):.1f} {1000 - 10 * self.up.place(y):.1f}"

    def left(self, x: float) -> str:
        """Return a place from the left in per cent."""
        return f"{self.across.place(x):.2f}%"

    def down(self, y: float) -> str:
        """Return a height in per cent from the top."""
        return f"{100 - self.up.place(y):.2f}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series in a drawing.

    Attributes:
        place: of the series among all; it gives the colour, the dash and the shape.
        marked: whether its points have marks.
    """

    series: Series
    place: int
    marked: bool

    @property
    def kind(self) -> str:
        """The class that the style sheet knows its colour by."""
        return f"kind{self.place % _COLOURS}"

    def path(self, frame: Frame) -> Markup:
        """Return the line, with gaps where there is no number."""
        if self.series.points:
            return NOTHING
        runs = ("L".join(frame.spot(x, y) for x, y in run) for run in self._runs(self.series.y, frame))
        return element("path", {"class": f"line {self.kind}", "d": "".join(f"M{run}" for run in runs)})

    def band(self, frame: Frame) -> Markup:
        """Return the area between the bounds; those of points are drawn with the marks."""
        series = self.series
        if series.points or not series.low or not series.high:
            return NOTHING
        sides = [
            (low, high) if drawable(low) is not None and drawable(high) is not None else (None, None)
            for low, high in zip(series.low, series.high, strict=True)
        ]
        lows = self._runs([low for low, _ in sides], frame)
        highs = self._runs([high for _, high in sides], frame)
        areas = (
            "M" + "L".join(frame.spot(x, y) for x, y in (*low, *reversed(high))) + "Z"
            for low, high in zip(lows, highs, strict=True)
        )
        return element("path", {"class": f"band {self.kind}", "d": "".join(areas)})

    def marks(self, frame: Frame) -> Iterator[Markup]:
        """Return a mark for each point, those of points without a line with their bounds."""
        if not self.marked:
            return
        series = self.series
        for at in self.drawn():
            x, y = series.x[at], drawable(series.y[at])
            if y is None or not frame.holds(x):
                continue
            low, high = (drawable(column[at]) if column else None for column in (series.low, series.high))
            if series.points and low is not None and high is not None:
                ends = {"x1": frame.left(x), "x2": frame.left(x), "y1": frame.down(low), "y2": frame.down(high)}
                yield element("line", {"class": f"reach {self.kind}", **ends})
            said = element("title", None, f"{series.name}: {number(y)} at {short(x)}")
            yield self._mark(frame.left(x), frame.down(y), said)

    def drawn(self) -> range:
        """Return the places of the points that get marks; not all where there are thousands."""
        count = len(self.series.x)
        return range(0, count, max(1, -(-count // _DRAWN)))

    def key(self) -> Markup:
        """Return the line in small, for a legend."""
        line = element("line", {"class": f"line {self.kind}", "x1": 0, "x2": 26, "y1": 7, "y2": 7})
        mark = self._mark("13", "7")
        parts = (NOTHING if self.series.points else line, mark if self.marked else NOTHING)
        return element("svg", {"class": "key long", "aria-hidden": "true"}, *parts)

    def _mark(self, x: str, y: str, *inside: Markup) -> Markup:
        """A shape at a place; a nested drawing can be put at one in per cent, a path cannot."""
        shape = _SHAPES[(self.place + self.place // _COLOURS) % len(_SHAPES)]
        path = element("path", {"class": f"dot {self.kind}", "d": shape}, *inside)
        return element("svg", {"x": x, "y": y, "overflow": "visible"}, path)

    def _runs(self, column: Sequence[float | None], frame: Frame) -> Iterator[list[tuple[float, float]]]:
        run: list[tuple[float, float]] = []
        for x, one in zip(self.series.x, column, strict=True):
            value = drawable(one)
            if value is not None and frame.holds(x):
                run.append((x, value))
            elif run:
                yield run
                run = []
        if run:
            yield run


_MARKED = 40  # lines of fewer points have them marked, unless they are beside points
_LISTED = 400  # so many points of a line are told as a table and under the pointer


def curves_drawing(curves: Curves) -> Markup:
    """Return the drawing with all that belongs to it."""
    frame = _frame(curves)
    measured = any(series.points for series in curves.series)
    lines = [
        Line(series=series, place=place, marked=series.points or (not measured and len(series.x) < _MARKED))
        for place, series in enumerate(curves.series)
    ]
    listed = all(len(series.x) <= _LISTED for series in curves.series)
    plot: Attributes = {
        "class": "plot",
        "tabindex": 0,
        "role": "group",
        "aria-label": f"{curves.y_axis} over {curves.x_axis}: {', '.join(series.name for series in curves.series)}",
        "data-points": _told(curves, frame) if listed else None,
    }
    return joined(
        _legend(lines, curves),
        element("p", {"class": "up"}, curves.y_axis),
        element("div", plot, _drawing(lines, frame, diagonal=curves.diagonal)),
        element("p", {"class": "across"}, curves.x_axis + (", logarithmic" if curves.log_x else "")),
        element("p", {"class": "readout", "role": "status"}),
        *_left_out(lines, frame),
        _numbers(curves) if listed else element("p", {"class": "aside"}, "The numbers stand in the file beside it."),
    )


def _frame(curves: Curves) -> Frame:
    """Axes that hold all numbers that can be drawn; both are from 0 to 1 where a diagonal stands in shares."""
    xs = [x for series in curves.series for x in series.x if drawable(x) is not None and not (curves.log_x and x <= 0)]
    ys = [
        value
        for series in curves.series
        for column in (series.y, series.low, series.high)
        for one in column
        if (value := drawable(one)) is not None
    ]
    if curves.diagonal and all(0 <= value <= 1 for value in (*xs, *ys)):
        xs, ys = [*xs, *([] if curves.log_x else [0.0]), 1.0], [*ys, 0.0, 1.0]
    return Frame(across=log_scale(xs) if curves.log_x else linear_scale(xs), up=linear_scale(ys))


def _drawing(lines: Sequence[Line], frame: Frame, *, diagonal: bool) -> Markup:
    stretched: Attributes = {"class": "stretched", "viewBox": "0 0 1000 1000", "preserveAspectRatio": "none"}
    return element(
        "svg",
        {"class": "curves", "aria-hidden": "true"},
        *_axes(frame),
        element(
            "svg",
            stretched,
            *(line.band(frame) for line in lines),
            _diagonal(frame) if diagonal else NOTHING,
            *(line.path(frame) for line in lines),
        ),
        *(mark for line in lines for mark in line.marks(frame)),
        element("line", {"class": "pointer", "y1": "0", "y2": "100%", "visibility": "hidden"}),
    )


def _axes(frame: Frame) -> Iterator[Markup]:
    for tick in frame.up.ticks:
        down = frame.down(tick)
        yield element("line", {"class": "rule", "x1": "0", "x2": "100%", "y1": down, "y2": down})
        yield element("text", {"class": "last", "x": "0", "y": down, "dx": -8, "dy": "0.35em"}, frame.up.said(tick))
    for tick in frame.across.ticks:
        left = frame.left(tick)
        yield element("line", {"class": "rule", "x1": left, "x2": left, "y1": "0", "y2": "100%"})
        yield element("text", {"class": "between", "x": left, "y": "100%", "dy": "1.4em"}, frame.across.said(tick))


def _diagonal(frame: Frame) -> Markup:
    """The line y = x, in short pieces, since it bends on a logarithmic axis."""
    low, high = max(frame.across.low, frame.up.low), min(frame.across.high, frame.up.high)
    if low >= high:
        return NOTHING
    steps = (low + (high - low) * at / 60 for at in range(61))
    return element("path", {"class": "diagonal", "d": "M" + "L".join(frame.spot(one, one) for one in steps)})


def _legend(lines: Sequence[Line], curves: Curves) -> Markup:
    items = [element("li", None, line.key(), line.series.name) for line in lines]
    if curves.diagonal:
        rule = element("line", {"class": "diagonal", "x1": 0, "x2": 26, "y1": 7, "y2": 7})
        items.append(element("li", None, element("svg", {"class": "key long", "aria-hidden": "true"}, rule), "y = x"))
    return element("ul", {"class": "legend"}, *items)


def _left_out(lines: Sequence[Line], frame: Frame) -> Iterator[Markup]:
    outside = sum(not frame.holds(x) for line in lines for x in line.series.x)
    if outside:
        why = "at or below 0, or not finite" if frame.across.log else "not finite"
        yield element("p", {"class": "aside"}, f"Not drawn: {plural(outside, 'place')} {why}.")
    for line in lines:
        count = len(line.series.x)
        if line.series.points and len(line.drawn()) < count:
            said = f"Of {plural(count, 'point')} of {line.series.name}, {len(line.drawn()):,} are drawn."
            yield element("p", {"class": "aside"}, said)


def _told(curves: Curves, frame: Frame) -> str | None:
    """What the page's script reads out: [place in per cent, what stands there] as JSON."""
    numbers: dict[float, list[str]] = {}
    for series in curves.series:
        for at, x in enumerate(series.x):
            if frame.holds(x):
                numbers.setdefault(x, []).append(f"{visible(series.name)} {_bounded(series, at)}")
    places = [[round(frame.across.place(x), 2), f"{short(x)}: {'; '.join(numbers[x])}"] for x in sorted(numbers)]
    return json.dumps(places) if places else None


def _bounded(series: Series, at: int) -> str:
    low, high = (finite(column[at]) if column else None for column in (series.low, series.high))
    reach = "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
    return number(series.y[at]) + reach


def _numbers(curves: Curves) -> Markup:
    """All numbers as a table, for those who do not see the drawing, and for copying."""
    columns = [{x: _bounded(series, at) for at, x in enumerate(series.x)} for series in curves.series]
    heads = map(heading, (curves.x_axis, *(one.name for one in curves.series)))
    rows = [
        row(short(x), *(cell(column.get(x, UNKNOWN), "number") for column in columns))
        for x in sorted({x for column in columns for x in column})
    ]
    numbers = wide(f"Numbers of {curves.title}", table(None, heads, rows))
    return element("details", None, element("summary", None, "Numbers"), numbers)
