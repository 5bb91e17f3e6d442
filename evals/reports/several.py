"""Several results on one page: links to each, and a table of their numbers, scorers below each other.

Not covered: tests between them; `adjudge eval KIND --against` makes those, on the same cases.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evals.reports.markup import Markup, element, joined, wide
from adjudge.evals.reports.measures import whole_measures
from adjudge.evals.reports.wording import UNKNOWN, bounds, finite, number
from adjudge.evals.results.measure import Measure
from adjudge.evals.results.result import Result


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
        element("th", {"scope": "col", "data-kind": "text"}, "scorer"),
        *(
            element("th", {"scope": "col", "class": "number", "data-kind": "number"}, title)
            for title, _ in columns.values()
        ),
    ]
    rows = []
    for scorer in dict.fromkeys(_scorer(result) for result in results):
        found = [_cell(cells.get((scorer, column), []), best[column]) for column in columns]
        name = element("th", {"scope": "row", "data-sort": scorer[0]}, scorer[0] or "no name", _small(scorer[1]))
        rows.append(element("tr", None, name, *found))
    head = element("thead", None, element("tr", None, *heads))
    table = element(
        "table", {"class": "comparing", "data-sortable": len(rows) > 1}, head, element("tbody", None, *rows)
    )
    legend = element(
        "p",
        {"class": "aside"},
        "◆ the best of a column. A paired test tells two scorers apart; their bounds do not.",
    )
    return joined(wide("Side by side", table), legend)


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


def _cell(measures: Sequence[Measure], best: float | None) -> Markup:
    """A number with its bounds; all of them where one scorer was evaluated more than once."""
    said = []
    for measure in measures:
        value = finite(measure.interval.value)
        first = value is not None and value == best
        text = f"◆ {number(value)}" if first else number(value)
        said.append(element("div", {"class": "best" if first else None}, text, _small(bounds(measure.interval))))
    value = finite(measures[0].interval.value) if measures else None
    return element("td", {"class": "number", "data-sort": value}, joined(*said) or UNKNOWN)


def _small(text: str) -> Markup | str:
    return element("small", None, text) if text else ""
