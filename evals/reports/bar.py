"""Bars: length, bounds, and marks for what trivial scorers get, each a row of a table with its number.

Lengths are per cent of the drawing, so that the same markup fits a desk and a phone without any script.

Not covered: bars of more than one unit; each table has one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.evals.reports.markup import Attributes, Markup, element, wide
from adjudge.evals.reports.scale import Scale, bar_scale, drawable
from adjudge.evals.reports.wording import best_trivial, bounds, finite, number, trivial
from adjudge.evals.results.figures import Bar, Bars

_HEIGHT = 24  # pixels; the bar is its middle half
_DIAMOND = "M0-5L5 0L0 5L-5 0Z"


def bar_drawing(bar: Bar, scale: Scale, better: str) -> Markup:
    """Return a bar from 0 on, with its bounds as a line across its end.

    Args:
        bar: what is drawn.
        scale: its axis.
        better: which end is good, as in `Measure.better`; the best trivial scorer is a diamond, others are ticks.
    """
    said = _said(bar)
    drawing: Attributes = {"class": "bar", "role": "img", "aria-label": f"{bar.name}: {said}"}
    rules = (_upright("rule", scale.place(tick), 0, _HEIGHT) for tick in scale.ticks)
    parts = (*rules, *_length(bar, scale), *_marks(bar, scale, better), *_whisker(bar, scale))
    return element("svg", drawing, element("title", None, said), *parts)


def axis(scale: Scale) -> Markup:
    """Return the numbers of an axis, for above a column of bars."""
    labels = []
    for tick in scale.ticks:
        place = scale.place(tick)
        side = "first" if place < 5 else "last" if place > 95 else "between"  # those at the ends stay inside
        labels.append(element("text", {"x": _part(place), "y": 12, "class": side}, scale.said(tick)))
    return element("svg", {"class": "axis", "aria-hidden": "true"}, *labels)


def marks_legend(*, best: bool = True) -> Markup:
    """Return what the marks mean; `best` is whether there are diamonds."""
    tick = _key(element("line", {"class": "mark", "x1": 6, "x2": 6, "y1": 0, "y2": 14}))
    if not best:
        return element("p", {"class": "legend"}, tick, "trivial scorers")
    diamond = element("svg", {"x": 6, "y": 7, "overflow": "visible"}, element("path", {"class": "best", "d": _DIAMOND}))
    return element("p", {"class": "legend"}, _key(diamond), "best trivial scorer", tick, "other trivial scorers")


def _length(bar: Bar, scale: Scale) -> Iterator[Markup]:
    value = drawable(bar.interval.value)
    if value is not None:
        start, end = sorted((scale.place(0.0), scale.place(value)))
        where: Attributes = {"x": _part(start), "width": _part(end - start), "y": 6, "height": 12}
        yield element("rect", {"class": "length", **where})


def _whisker(bar: Bar, scale: Scale) -> Iterator[Markup]:
    low, high = drawable(bar.interval.low), drawable(bar.interval.high)
    if low is None or high is None:
        return
    left, right = scale.place(low), scale.place(high)
    yield element("line", {"class": "whisker", "x1": _part(left), "x2": _part(right), "y1": 12, "y2": 12})
    yield from (_upright("whisker", end, 8, 16) for end in (left, right))


def _marks(bar: Bar, scale: Scale, better: str) -> Iterator[Markup]:
    """Ticks for trivial scorers, and a diamond for the best of them."""
    best = best_trivial(bar.baselines, better)
    for name, found in bar.baselines.items():
        value = drawable(found)
        if value is None:
            continue
        place, said = scale.place(value), element("title", None, f"{name}: {number(value)}")
        if best is not None and name == best[0]:
            # A nested drawing can be put at a place in per cent; a path cannot.
            where: Attributes = {"x": _part(place), "y": 12, "overflow": "visible"}
            yield element("svg", where, element("path", {"class": "best", "d": _DIAMOND}, said))
        else:
            yield _upright("mark", place, 4, 20, said)


def _upright(kind: str, place: float, top: float, bottom: float, *inside: Markup) -> Markup:
    where: Attributes = {"x1": _part(place), "x2": _part(place), "y1": top, "y2": bottom}
    return element("line", {"class": kind, **where}, *inside)


def _key(mark: Markup) -> Markup:
    return element("svg", {"class": "key", "aria-hidden": "true"}, mark)


def _said(bar: Bar) -> str:
    """The bar in words, with each trivial scorer."""
    known = [f"{name} {number(value)}" for name, value in bar.baselines.items() if finite(value) is not None]
    parts = [number(bar.interval.value), bounds(bar.interval) and f"bounds {bounds(bar.interval)}"]
    return "; ".join(filter(None, [*parts, f"trivial scorers: {', '.join(known)}" if known else ""]))


def _part(place: float) -> str:
    return f"{place:.3f}".rstrip("0").rstrip(".") + "%"


_SHOWN = 40  # rows that are shown before a button shows the others


def bars_table(
    bars: Bars, *, better: str = "none", level: str = "bounds", heading: str = "name", drawn: bool = True
) -> Markup:
    """Return bars as a table, sortable where there are several.

    Args:
        bars: what is shown.
        better: which end is good, as in `Measure.better`.
        level: coverage of the bounds, in words.
        heading: of the column of names.
        drawn: whether there are drawings beside the numbers; numbers of different units have no common axis.
    """
    columns = _Columns(
        scale=bar_scale(_numbers(bars.bars)) if drawn else None,
        better=better,
        bounded=any(bounds(bar.interval) for bar in bars.bars),
        counted=any(bar.interval.n for bar in bars.bars),
        marked=any(finite(value) is not None for bar in bars.bars for value in bar.baselines.values()),
    )
    table = element(
        "table",
        {"class": "bars", "data-sortable": len(bars.bars) > 1, "data-limit": _SHOWN},
        element("thead", None, element("tr", None, *columns.heads(heading, bars.unit or "value", level))),
        element("tbody", None, *(element("tr", None, *columns.cells(bar)) for bar in bars.bars)),
    )
    return wide(bars.title, table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Which columns there are: those that no row fills are left out."""

    scale: Scale | None
    better: str
    bounded: bool
    counted: bool
    marked: bool

    def heads(self, heading: str, unit: str, level: str) -> Iterator[Markup]:
        yield _head(heading, "name", sort="text")
        if self.scale is not None:
            yield element("th", {"scope": "col", "class": "plot"}, axis(self.scale))
        yield _head(unit, "number", sort="number")
        if self.bounded:
            yield _head(level, "bounds number")
        if self.counted:
            yield _head("n", "n number", sort="number")
        if self.marked:
            title, sort = ("trivial", "") if self.better == "none" else ("best trivial", "number")
            yield _head(title, "trivial", sort=sort)

    def cells(self, bar: Bar) -> Iterator[Markup]:
        interval = bar.interval
        yield element("th", {"scope": "row", "class": "name", "data-sort": bar.name}, bar.name)
        if self.scale is not None:
            yield element("td", {"class": "plot"}, bar_drawing(bar, self.scale, self.better))
        value = finite(interval.value)
        yield element("td", {"class": "number value", "data-sort": value}, number(value))
        if self.bounded:
            yield element("td", {"class": "number bounds"}, bounds(interval))
        if self.counted:
            yield element("td", {"class": "number n", "data-sort": interval.n}, f"{interval.n:,}")
        if self.marked:
            best = best_trivial(bar.baselines, self.better)
            said = trivial(bar.baselines, self.better)
            yield element("td", {"class": "trivial", "data-sort": best[1] if best else None}, said)


def _head(text: str, kind: str, *, sort: str = "") -> Markup:
    return element("th", {"scope": "col", "class": kind, "data-kind": sort or None}, text)


def _numbers(bars: Sequence[Bar]) -> Iterator[float]:
    """All numbers that an axis has to hold."""
    for bar in bars:
        for found in (bar.interval.value, bar.interval.low, bar.interval.high, *bar.baselines.values()):
            if (value := drawable(found)) is not None:
                yield value
