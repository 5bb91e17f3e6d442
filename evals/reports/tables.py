"""Rules that were tried, tests against other scorers, and several results side by side, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evals.reports.measures import whole_measures
from adjudge.evals.reports.result import Check, Comparison, Measure, Result
from adjudge.pages.markup import NOTHING, Markup, cell, element, heading, joined, row, table, wide
from adjudge.pages.scale import UNKNOWN, bounds, chance, finite, number

_SHOWN = 40  # rows that are shown before a button shows the others
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
            columns.setdefault(column, (_column_title(result, measure, alone=len(inputs) == 1), measure.better))
            cells.setdefault((_scorer(result), column), []).append(measure)
    best = {column: _best(cells, column, better) for column, (_, better) in columns.items()}
    heads = [
        heading("scorer", sort="text"),
        *(heading(title, "number", sort="number") for title, _ in columns.values()),
    ]
    rows = []
    for scorer in dict.fromkeys(_scorer(result) for result in results):
        numbers = [_numbers(cells.get((scorer, column), []), best[column]) for column in columns]
        rows.append(row(scorer[0] or "no name", *numbers, sort=scorer[0], inside=_small(scorer[1])))
    made = table({"class": "comparing", "data-sortable": len(rows) > 1}, heads, rows)
    said = "◆ the best of a column. A paired test tells two scorers apart; their bounds do not."
    return joined(wide("Side by side", made), element("p", {"class": "aside"}, said))


def _input(result: Result) -> tuple[str, ...]:
    source = result.source
    return (result.kind, *(str(source.get(name, "")) for name in ("name", "subset", "split", "digest", "rows")))


def _scorer(result: Result) -> tuple[str, str]:
    return str(result.scorer.get("name", "")), str(result.scorer.get("fingerprint", ""))


def _column_title(result: Result, measure: Measure, *, alone: bool) -> str:
    if alone:
        return measure.name
    name = str(result.source.get("name", ""))
    return ", ".join(filter(None, (result.title, name, measure.name)))


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


def _numbers(measures: Sequence[Measure], best: float | None) -> Markup:
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
