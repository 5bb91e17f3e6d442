"""Lines in one drawing that fits any width, with a legend, a place to read numbers at, and all numbers as a table.

Not covered: two vertical axes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from adjudge.evals.reports.lines import Frame, Line
from adjudge.evals.reports.markup import NOTHING, Attributes, Markup, element, joined, visible, wide
from adjudge.evals.reports.scale import drawable, linear_scale, log_scale
from adjudge.evals.reports.wording import UNKNOWN, finite, number, plural, short
from adjudge.evals.results.figures import Curves, Series

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
        _numbers(curves) if listed else element("p", {"class": "aside"}, "The numbers stand in result.json."),
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
    """Sentences on what the drawing does not show."""
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
    found: dict[float, list[str]] = {}
    for series in curves.series:
        for at, x in enumerate(series.x):
            if frame.holds(x):
                found.setdefault(x, []).append(f"{visible(series.name)} {_bounded(series, at)}")
    places = [[round(frame.across.place(x), 2), f"{short(x)}: {'; '.join(found[x])}"] for x in sorted(found)]
    return json.dumps(places) if places else None


def _bounded(series: Series, at: int) -> str:
    """A number with its bounds."""
    low, high = (finite(column[at]) if column else None for column in (series.low, series.high))
    reach = "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
    return number(series.y[at]) + reach


def _numbers(curves: Curves) -> Markup:
    """All numbers as a table, for those who do not see the drawing, and for copying."""
    columns = [{x: _bounded(series, at) for at, x in enumerate(series.x)} for series in curves.series]
    heads = [element("th", {"scope": "col"}, name) for name in (curves.x_axis, *(one.name for one in curves.series))]
    rows = []
    for x in sorted({x for column in columns for x in column}):
        cells = (element("td", {"class": "number"}, column.get(x, UNKNOWN)) for column in columns)
        rows.append(element("tr", None, element("th", {"scope": "row"}, short(x)), *cells))
    table = element("table", None, element("thead", None, element("tr", None, *heads)), element("tbody", None, *rows))
    return element("details", None, element("summary", None, "Numbers"), wide(f"Numbers of {curves.title}", table))
