"""The measures: first the headline, with bounds and with what trivial scorers get; then bars of the parts and the rest.

Not covered: figures that an evaluation draws itself (`page`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adjudge.evals.reports.bar import bar_drawing, bars_table, marks_legend
from adjudge.evals.reports.markup import NOTHING, Markup, Place, element, joined
from adjudge.evals.reports.scale import bar_scale, drawable
from adjudge.evals.reports.wording import best_trivial, bounds, finite, number
from adjudge.evals.results.figures import Bar, Bars
from adjudge.evals.results.measure import Measure
from adjudge.evals.results.result import Result

_CARDS = 4  # more are a table


def whole_measures(result: Result) -> tuple[list[Measure], list[Measure]]:
    """Return the measures of no part: those that stand in cards, and the others.

    Cards are for what the benchmark's authors define; where they define nothing, for the first ones.
    """
    whole = [measure for measure in result.measures if not measure.part]
    cards = [measure for measure in whole if measure.published][:_CARDS] or whole[:_CARDS]
    return cards, [measure for measure in whole if not any(measure is card for card in cards)]


def coverage(result: Result) -> str:
    """Return the coverage of bounds in words: "95 % bounds"."""
    level = result.options.get("level")
    if isinstance(level, float) and 0 < level < 1:
        return f"{100 * level:.4g}\N{NO-BREAK SPACE}% bounds"
    return "bounds"


def headline(result: Result) -> Markup:
    """Return cards of the first measures, the first one larger, and the notes."""
    measures, _ = whole_measures(result)
    cards = [_card(measure, coverage(result), first=not at) for at, measure in enumerate(measures)]
    said = element("div", {"class": "cards"}, *cards) if cards else NOTHING
    return joined(said, _notes(result.notes))


def about(result: Result) -> Markup:
    """Return the line under the title: what was evaluated, and on what."""
    scorer, source = result.scorer, result.source
    facts = [
        ("Scorer", scorer.get("name"), ""),
        ("Fingerprint", scorer.get("fingerprint"), "code"),
        ("Input", source.get("name"), ""),
        ("Digest", source.get("digest"), "code"),
        ("Date", source.get("date") or result.options.get("date") or scorer.get("date"), ""),
    ]
    pairs = [
        element("div", None, element("dt", None, name), element("dd", {"class": kind or None}, str(value)))
        for name, value, kind in facts
        if value not in (None, "")
    ]
    return element("dl", {"class": "about"}, *pairs) if pairs else NOTHING


def _card(measure: Measure, level: str, *, first: bool) -> Markup:
    interval = measure.interval
    value, reach = finite(interval.value), bounds(interval)
    parts = [
        element("p", {"class": "what"}, measure.name, _badge(measure)),
        element("p", {"class": "large"}, number(value)),
        _strip(measure),
        element("p", {"class": "aside"}, _said(reach, level, interval.n)),
        _against(measure),
    ]
    return element("div", {"class": "card first" if first else "card"}, *parts)


def _badge(measure: Measure) -> Markup:
    if not measure.published:
        return NOTHING
    why = "as the benchmark's authors define it; comparable with published numbers"
    return element("span", {"class": "badge", "title": why}, "published metric")


def _strip(measure: Measure) -> Markup:
    """The number on its axis."""
    interval = measure.interval
    known = [value for one in (interval.value, interval.low, interval.high) if (value := drawable(one)) is not None]
    if not known or min(known) < -1 or max(known) > 1:
        return NOTHING
    known += [value for one in measure.baselines.values() if (value := drawable(one)) is not None]
    bar = Bar(name=measure.name, interval=interval, baselines=measure.baselines)
    return bar_drawing(bar, bar_scale(known), measure.better)


def _said(reach: str, level: str, n: int) -> str:
    return " · ".join(
        filter(
            None,
            (
                f"{reach} ({level})" if reach else "no bounds",
                f"n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{n:,}" if n else "",
            ),
        )
    )


def _against(measure: Measure) -> Markup:
    """What the best trivial scorer gets, and whether that is as good."""
    best = best_trivial(measure.baselines, measure.better)
    if best is None:
        return NOTHING
    said = f"Best trivial scorer: {best[0]}, {number(best[1])}."
    ends = [finite(measure.interval.low), finite(measure.interval.high)]
    near, far = ends if measure.better == "high" else reversed(ends)
    told = measure.better == "high" or measure.published  # a share without a verdict is 0 for trivial scorers too
    if near is None or far is None or not told:
        return element("p", {"class": "aside"}, said)
    sign = 1 if measure.better == "high" else -1
    if sign * best[1] < sign * near:
        return element("p", {"class": "aside"}, said)
    why = "That is better." if sign * best[1] > sign * far else "The bounds do not tell it apart."
    return element("p", {"class": "near"}, f"{said} {why}")


def _notes(notes: Sequence[Any]) -> Markup:
    if not notes:
        return NOTHING
    return element("ul", {"class": "notes", "aria-label": "Notes"}, *(element("li", None, str(note)) for note in notes))


_ENDS = {"high": "higher is better", "low": "lower is better", "none": "neither end is better"}


def measures_section(result: Result, place: Place) -> Markup:
    """Return a section with bars of what the cards do not hold; nothing where they hold all."""
    parts = [measure for measure in result.measures if measure.part]
    _, rest = whole_measures(result)
    tables = list(_tables(parts, rest, coverage(result), place))
    marked = any(value is not None for measure in (*parts, *rest) for value in measure.baselines.values())
    return place.section("measures", "Measures", *tables, marks_legend() if tables and marked else NOTHING)


def _tables(parts: Sequence[Measure], rest: Sequence[Measure], level: str, place: Place) -> Iterator[Markup]:
    """A table for each measure by part, or, where that makes fewer of them, for each part."""
    if len({measure.part for measure in parts}) < len({measure.name for measure in parts}):
        for (part, better), found in _grouped(parts, by_part=True).items():
            bars = Bars(title=f"{part}, {_ENDS[better]}", unit="", bars=_bars(found, [one.name for one in found]))
            yield _titled(bars, found, better, level, "measure", place)
    else:
        for (name, better), found in _grouped(parts, by_part=False).items():
            bars = Bars(title=f"{name} by part", unit=name, bars=_bars(found, [one.part for one in found]))
            yield _titled(bars, found, better, level, "part", place)
    for better, end in _ENDS.items():
        if found := [measure for measure in rest if measure.better == better]:
            bars = Bars(title=f"Of the whole, {end}", unit="", bars=_bars(found, [one.name for one in found]))
            yield _titled(bars, found, better, level, "measure", place)


def _grouped(measures: Sequence[Measure], *, by_part: bool) -> dict[tuple[str, str], list[Measure]]:
    """Measures by part or name, and by which end is good."""
    groups: dict[tuple[str, str], list[Measure]] = {}
    for measure in measures:
        groups.setdefault((measure.part if by_part else measure.name, measure.better), []).append(measure)
    return groups


def _titled(bars: Bars, found: Sequence[Measure], better: str, level: str, heading: str, place: Place) -> Markup:
    """A table under its title; numbers of several measures are drawn where all are shares or correlations."""
    drawn = heading == "part" or all(map(_unit_sized, found))
    table = bars_table(bars, better=better, level=level, heading=heading, drawn=drawn)
    return joined(element(f"h{place.level + 1}", None, bars.title), table)


def _bars(measures: Sequence[Measure], names: Sequence[str]) -> tuple[Bar, ...]:
    return tuple(
        Bar(name=name, interval=measure.interval, baselines=measure.baselines)
        for measure, name in zip(measures, names, strict=True)
    )


def _unit_sized(measure: Measure) -> bool:
    """Whether all its numbers lie where shares and correlations do."""
    found = (measure.interval.value, measure.interval.low, measure.interval.high, *measure.baselines.values())
    return all(abs(value) <= 1 for one in found if (value := drawable(one)) is not None)
