"""The measures: the headline with bounds and trivial scorers; bars of the parts; rules, tests and results side by side.

Lengths of bars are per cent of the drawing, so that the same markup fits a desk and a phone without any script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.evals.reports.result import Check, Comparison, Measure, Result
from adjudge.pages.figures import Bar, Bars
from adjudge.pages.markup import (
    NOTHING,
    Attributes,
    Markup,
    Place,
    cell,
    element,
    heading,
    joined,
    row,
    table,
    wide,
)
from adjudge.pages.scale import (
    UNKNOWN,
    Scale,
    bar_scale,
    best_trivial,
    bounds,
    chance,
    drawable,
    finite,
    number,
    trivial,
)
from adjudge.statistics.intervals import Interval

_HEIGHT = 24  # pixels; the bar is its middle half
_DIAMOND = "M0-5L5 0L0 5L-5 0Z"


def bar_drawing(bar: Bar, scale: Scale, better: str) -> Markup:
    """Return a bar from 0 on, with its bounds as a line across its end."""
    said = _in_words(bar)
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
    best = best_trivial(bar.baselines, better)
    for name, baseline in bar.baselines.items():
        value = drawable(baseline)
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


def _in_words(bar: Bar) -> str:
    known = [f"{name} {number(value)}" for name, value in bar.baselines.items() if finite(value) is not None]
    parts = [number(bar.interval.value), bounds(bar.interval) and f"bounds {bounds(bar.interval)}"]
    return "; ".join(filter(None, [*parts, f"trivial scorers: {', '.join(known)}" if known else ""]))


def _part(place: float) -> str:
    return f"{place:.3f}".rstrip("0").rstrip(".") + "%"


_SHOWN = 40  # rows that are shown before a button shows the others


def bars_table(
    bars: Bars, *, better: str = "none", level: str = "bounds", name: str = "name", drawn: bool = True
) -> Markup:
    """Return bars as a table, sortable where there are several, with a heading for names and one for bounds (`level`).

    Numbers of different units have no common axis, and are not `drawn`.
    """
    columns = _Columns(
        scale=bar_scale(one for bar in bars.bars for one in _drawn(bar.interval, *bar.baselines.values()))
        if drawn
        else None,
        better=better,
        bounded=any(bounds(bar.interval) for bar in bars.bars),
        counted=any(bar.interval.n for bar in bars.bars),
        marked=any(finite(value) is not None for bar in bars.bars for value in bar.baselines.values()),
    )
    attributes: Attributes = {"class": "bars", "data-sortable": len(bars.bars) > 1, "data-limit": _SHOWN}
    rows = (row(bar.name, *columns.cells(bar), kind="name", sort=bar.name) for bar in bars.bars)
    return wide(bars.title, table(attributes, columns.heads(name, bars.unit or "value", level), rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Which columns there are: those that no row fills are left out."""

    scale: Scale | None
    better: str
    bounded: bool
    counted: bool
    marked: bool

    def heads(self, first: str, unit: str, level: str) -> Iterator[Markup]:
        yield heading(first, "name", sort="text")
        if self.scale is not None:
            yield element("th", {"scope": "col", "class": "plot"}, axis(self.scale))
        yield heading(unit, "number", sort="number")
        if self.bounded:
            yield heading(level, "bounds number")
        if self.counted:
            yield heading("n", "n number", sort="number")
        if self.marked:
            title, sort = ("trivial", "") if self.better == "none" else ("best trivial", "number")
            yield heading(title, "trivial", sort=sort)

    def cells(self, bar: Bar) -> Iterator[Markup]:
        interval = bar.interval
        if self.scale is not None:
            yield cell(bar_drawing(bar, self.scale, self.better), "plot")
        value = finite(interval.value)
        yield cell(number(value), "number value", sort=value)
        if self.bounded:
            yield cell(bounds(interval), "number bounds")
        if self.counted:
            yield cell(f"{interval.n:,}", "number n", sort=interval.n)
        if self.marked:
            best = best_trivial(bar.baselines, self.better)
            yield cell(trivial(bar.baselines, self.better), "trivial", sort=best[1] if best else None)


def _drawn(interval: Interval, *beside: float | None) -> list[float]:
    """The numbers that a drawing holds."""
    numbers = (interval.value, interval.low, interval.high, *beside)
    return [value for one in numbers if (value := drawable(one)) is not None]


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
    notes = (element("li", None, str(note)) for note in result.notes)
    listed = element("ul", {"class": "notes", "aria-label": "Notes"}, *notes) if result.notes else NOTHING
    return joined(said, listed)


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
    said = f"{bounds(interval)} ({level})" if bounds(interval) else "no bounds"
    count = f" · n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{interval.n:,}" if interval.n else ""
    why = "as the benchmark's authors define it; comparable with published numbers"
    badge = element("span", {"class": "badge", "title": why}, "published metric")
    parts = [
        element("p", {"class": "what"}, measure.name, badge if measure.published else NOTHING),
        element("p", {"class": "large"}, number(finite(interval.value))),
        _strip(measure),
        element("p", {"class": "aside"}, said + count),
        _against(measure),
    ]
    return element("div", {"class": "card first" if first else "card"}, *parts)


def _strip(measure: Measure) -> Markup:
    known = _drawn(measure.interval)
    if not known or min(known) < -1 or max(known) > 1:
        return NOTHING
    bar = Bar(name=measure.name, interval=measure.interval, baselines=measure.baselines)
    return bar_drawing(bar, bar_scale(_drawn(measure.interval, *measure.baselines.values())), measure.better)


def _against(measure: Measure) -> Markup:
    """What the best trivial scorer gets, and whether that is as good."""
    best = best_trivial(measure.baselines, measure.better)
    if best is None:
        return NOTHING
    said = f"Best trivial scorer: {best[0]}, {number(best[1])}."
    ends = [finite(measure.interval.low), finite(measure.interval.high)]
    near, far = ends if measure.better == "high" else reversed(ends)
    tells = measure.better == "high" or measure.published  # a share without a verdict is 0 for trivial scorers too
    sign = 1 if measure.better == "high" else -1
    if near is None or far is None or not tells or sign * best[1] < sign * near:
        return element("p", {"class": "aside"}, said)
    why = "That is better." if sign * best[1] > sign * far else "The bounds do not tell it apart."
    return element("p", {"class": "near"}, f"{said} {why}")


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
    by_part = len({measure.part for measure in parts}) < len({measure.name for measure in parts})
    groups: dict[tuple[str, str], list[Measure]] = {}
    for measure in parts:
        groups.setdefault((measure.part if by_part else measure.name, measure.better), []).append(measure)
    for (name, better), members in groups.items():
        title = f"{name}, {_ENDS[better]}" if by_part else f"{name} by part"
        yield _titled(title, members, level, place, by_name=by_part)
    for better, end in _ENDS.items():
        if members := [measure for measure in rest if measure.better == better]:
            yield _titled(f"Of the whole, {end}", members, level, place, by_name=True)


def _titled(title: str, measures: Sequence[Measure], level: str, place: Place, *, by_name: bool) -> Markup:
    """A table under its title; numbers of several measures are drawn where all are shares or correlations."""
    bars = tuple(
        Bar(name=one.name if by_name else one.part, interval=one.interval, baselines=one.baselines) for one in measures
    )
    table = bars_table(
        Bars(title=title, unit="" if by_name else measures[0].name, bars=bars),
        better=measures[0].better,
        level=level,
        name="measure" if by_name else "part",
        drawn=not by_name
        or all(abs(value) <= 1 for one in measures for value in _drawn(one.interval, *one.baselines.values())),
    )
    return joined(element(f"h{place.level + 1}", None, title), table)


_WORDS = {False: ("broken", "✗"), None: ("not tried", "–"), True: ("holds", "✓")}
_ORDER = (False, None, True)


def checks_said(checks: Sequence[Check]) -> str:
    """Return how many rules hold: "1 broken, 2 not tried, 30 hold"."""
    counted = [(sum(check.passed is state for check in checks), word) for state, (word, _) in _WORDS.items()]
    return ", ".join(
        f"{count} {'hold' if word == 'holds' and count != 1 else word}" for count, word in counted if count
    )


def checks_table(checks: Sequence[Check]) -> Markup:
    """Return the rules, broken ones first; nothing where none was tried."""
    if not checks:
        return NOTHING
    rows = []
    for check in sorted(checks, key=lambda one: _ORDER.index(one.passed)):
        word, icon = _WORDS[check.passed]
        mark = element("span", {"class": "icon", "aria-hidden": "true"}, icon)
        state = element("td", {"class": "state", "data-sort": word}, mark, f" {word}")
        name = element("th", {"scope": "row", "data-sort": check.name}, check.name)
        rows.append(element("tr", {"class": word.replace(" ", "-")}, state, name, cell(check.detail, "detail")))
    heads = [heading("state", sort="text"), heading("check", sort="text"), heading("what was seen")]
    return _table("checks", heads, rows)


def comparisons_table(comparisons: Sequence[Comparison], level: str) -> Markup:
    """Return the tests; nothing where there are none."""
    if not comparisons:
        return NOTHING
    heads = [
        *(heading(name, sort="text") for name in ("measure", "against")),
        *(heading(name, "number", sort="number") for name in ("this", "other", "difference")),
        heading(level, "number"),
        *(heading(name, "number", sort="number") for name in ("n", "p", "p, Holm")),
        heading("test", sort="text"),
    ]
    return wide("Comparisons", _table("comparisons", heads, [_comparison(one) for one in comparisons]))


def _comparison(one: Comparison) -> Markup:
    name = f"{one.name}, {one.part}" if one.part else one.name
    difference = finite(one.difference.value)
    sign = "+" if difference is not None and difference > 0 else ""
    adjusted = finite(one.p_adjusted)
    return row(
        name,
        cell(one.other, sort=one.other),
        *(cell(number(value), "number", sort=finite(value)) for value in (one.first, one.second)),
        cell(sign + number(difference), "number value", sort=difference),
        cell(bounds(one.difference), "number bounds"),
        cell(f"{one.difference.n:,}", "number", sort=one.difference.n),
        cell(chance(one.p), "number", sort=finite(one.p)),
        cell(chance(adjusted), "number value", sort=adjusted),
        cell(one.test, sort=one.test),
        sort=name,
    )


def _table(name: str, heads: Sequence[Markup], rows: Sequence[Markup]) -> Markup:
    return table({"class": name, "data-sortable": len(rows) > 1, "data-limit": _SHOWN}, heads, rows)


def links(results: Sequence[Result]) -> Markup:
    """Return the navigation: a link to each result."""
    items = [
        element("li", None, element("a", {"href": f"#r{at}"}, titled(result))) for at, result in enumerate(results)
    ]
    return element("nav", {"aria-label": "Results"}, element("ol", None, *items))


def titled(result: Result) -> str:
    """Return a title that tells a result from others of its kind."""
    name = str(result.scorer.get("name") or "")
    return f"{result.title}: {name}" if name else result.title


def comparing_table(results: Sequence[Result]) -> Markup:
    """Return a row for each scorer and a column for each number; the best of a column is marked.

    Columns are measures of the whole: all where every result is of one kind and input, else the first of each.
    """
    inputs = list(dict.fromkeys(_input(result) for result in results))
    columns: dict[tuple[tuple[str, ...], str], tuple[str, str]] = {}
    cells: dict[tuple[tuple[str, str], tuple[tuple[str, ...], str]], list[Measure]] = {}
    for result in results:
        cards, others = whole_measures(result)
        for measure in (*cards, *others) if len(inputs) == 1 else cards[:1]:
            column = (_input(result), measure.name)
            of = [] if len(inputs) == 1 else [result.title, str(result.source.get("name", ""))]
            columns.setdefault(column, (", ".join(filter(None, [*of, measure.name])), measure.better))
            cells.setdefault((_scorer(result), column), []).append(measure)
    best = {column: _best(cells, column, better) for column, (_, better) in columns.items()}
    heads = [
        heading("scorer", sort="text"),
        *(heading(title, "number", sort="number") for title, _ in columns.values()),
    ]
    rows = []
    for scorer in dict.fromkeys(_scorer(result) for result in results):
        numbers = [_number_cell(cells.get((scorer, column), []), best[column]) for column in columns]
        rows.append(row(scorer[0] or "no name", *numbers, sort=scorer[0], inside=_small(scorer[1])))
    made = table({"class": "comparing", "data-sortable": len(rows) > 1}, heads, rows)
    said = "◆ the best of a column. A paired test tells two scorers apart; their bounds do not."
    return joined(wide("Side by side", made), element("p", {"class": "aside"}, said))


def _input(result: Result) -> tuple[str, ...]:
    source = result.source
    return (result.kind, *(str(source.get(name, "")) for name in ("name", "subset", "split", "digest", "rows")))


def _scorer(result: Result) -> tuple[str, str]:
    return str(result.scorer.get("name", "")), str(result.scorer.get("fingerprint", ""))


def _best(
    cells: dict[tuple[tuple[str, str], tuple[tuple[str, ...], str]], list[Measure]],
    column: tuple[tuple[str, ...], str],
    better: str,
) -> float | None:
    """The best number of a column of at least two; None where no end is better."""
    known = [
        value
        for (_, place), measures in cells.items()
        if place == column
        for measure in measures
        if (value := finite(measure.interval.value)) is not None
    ]
    if len(known) < 2 or better == "none":
        return None
    return max(known) if better == "high" else min(known)


def _number_cell(measures: Sequence[Measure], best: float | None) -> Markup:
    """A number with its bounds; all of them where one scorer was evaluated more than once."""
    values = [finite(measure.interval.value) for measure in measures]
    shown = []
    for measure, value in zip(measures, values, strict=True):
        first = value is not None and value == best
        text = f"◆ {number(value)}" if first else number(value)
        shown.append(element("div", {"class": "best" if first else None}, text, _small(bounds(measure.interval))))
    return cell(joined(*shown) or UNKNOWN, "number", sort=values[0] if values else None)


def _small(text: str) -> Markup:
    return element("small", None, text) if text else NOTHING
