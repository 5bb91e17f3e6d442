"""The page of an evaluation: `report.html`, which needs nothing else, and `result.json` with the same numbers.

The same results give the same bytes: no clock, no machine and no random name goes into either file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.evals.reports.measures import (
    about,
    bars_table,
    checks_said,
    checks_table,
    comparing_table,
    comparisons_table,
    coverage,
    headline,
    links,
    marks_legend,
    measures_section,
    titled,
)
from adjudge.evals.reports.result import SCHEMA, Counts, Result
from adjudge.pages.curves import curves_drawing
from adjudge.pages.document import document
from adjudge.pages.figures import Bars, Curves, Figure, Grid
from adjudge.pages.markup import (
    NOTHING,
    Attributes,
    Markup,
    Place,
    cell,
    element,
    heading,
    joined,
    json_text,
    plain,
    row,
    table,
    wide,
)
from adjudge.pages.scale import UNKNOWN, drawable, finite, number, percent, plural

_COLUMNS = {"id": "case", **{name: name for name in ("part", "verdict", "weight", "scores", "prompt")}}


def cases_browser(result: Result, prefix: str) -> Markup:
    """Return the controls, an empty table and the data; nothing where there are no cases."""
    if not result.worst:
        return NOTHING
    data = json_text(plain([case.to_dict() for case in result.worst], []))
    heads = [
        element("th", {"scope": "col", "data-column": column}, element("button", {"type": "button"}, title))
        for column, title in _COLUMNS.items()
    ]
    caption = element("caption", {"class": "unseen"}, "Cases, the worst ones first; each opens")
    reading = table({"class": "reading"}, heads, (), caption)
    without = element("p", {"class": "aside"}, "Cases are read with JavaScript; they stand in result.json too.")
    return element(
        "div",
        {"class": "browser"},
        element("script", {"type": "application/json"}, Markup(data)),
        element("noscript", None, without),
        _controls(prefix),
        element("p", {"class": "told aside", "role": "status"}),
        reading,
        element("button", {"type": "button", "class": "more", "hidden": True}, "Show more"),
    )


def _controls(prefix: str) -> Markup:
    key = f"{prefix}-search"
    search = {"id": key, "type": "search", "class": "search", "autocomplete": "off", "spellcheck": "false"}
    choices = [(name, element("select", {"id": f"{prefix}-{name}", "class": name})) for name in ("part", "verdict")]
    labels = (element("label", {"for": f"{prefix}-{name}"}, name.capitalize(), one) for name, one in choices)
    field = element("label", {"for": key}, "Text", element("input", search))
    return element("div", {"class": "controls", "role": "search"}, field, *labels)


_LEGEND = "Weight says how bad a case is. A title sorts, a case opens; what nobody would see stands by its code."


def counts_table(counts: Counts) -> Markup:
    """Return the bar, its legend with numbers, and what is counted beside; nothing where nothing was counted."""
    if not (counts.cases or counts.samples or counts.unreadable):
        return NOTHING
    kinds = [("scored", counts.scored), ("abstained", counts.abstained), ("failed", counts.failed)]
    total = sum(count for _, count in kinds)
    if counts.samples > total:
        kinds.append(("not counted", counts.samples - total))
        total = counts.samples
    keys = []
    for kind, count in kinds:
        share = f" ({percent(count / total)})" if total and count else ""
        name = kind.replace(" ", "-")
        square = element("rect", {"class": f"part {name}", "width": "100%", "height": "100%"})
        key = element("svg", {"class": "key square", "aria-hidden": "true"}, square)
        keys.append(element("li", {"class": name}, key, f"{kind} ", element("b", None, f"{count:,}"), share))
    return joined(
        _bar(kinds, total) if total else NOTHING,
        element("ul", {"class": "legend"}, *keys),
        element("ul", {"class": "beside"}, *_beside(counts)),
        _reasons(counts),
    )


def _bar(kinds: Sequence[tuple[str, int]], total: int) -> Markup:
    parts, start = [], 0.0
    for kind, count in kinds:
        width = 100 * count / total
        where: Attributes = {"x": f"{start:.3f}%", "width": f"{width:.3f}%", "y": 0, "height": "100%"}
        title = element("title", None, f"{kind}: {count:,}")
        parts.append(element("rect", {"class": f"part {kind.replace(' ', '-')}", **where}, title))
        start += width
    said = ", ".join(f"{count:,} {kind}" for kind, count in kinds)
    return element("svg", {"class": "stack", "role": "img", "aria-label": f"Samples: {said}"}, *parts)


def _beside(counts: Counts) -> Iterator[Markup]:
    """What is counted beside, since it is of cases, or of samples that are in the bar already."""
    yield _fact(plural(counts.cases, "case"), f"of {plural(counts.samples, 'sample')}")
    yield _fact(f"{counts.tied:,} tied", "cases whose deciding values are equal")
    yield _fact(f"{counts.cut_off:,} cut off", "samples that were seen in part, or end at a limit; in the bar as well")
    if counts.unreadable:
        yield _fact(plural(counts.unreadable, "unreadable row"), "of the input, in no number here")


def _fact(count: str, what: str) -> Markup:
    return element("li", None, element("b", None, count), " ", element("span", None, what))


def _reasons(counts: Counts) -> Markup:
    if not counts.reasons:
        return NOTHING
    reasons = sorted(counts.reasons.items(), key=lambda item: (-item[1], item[0]))
    rows = [row(reason or "no reason given", cell(f"{count:,}", "number"), kind="code") for reason, count in reasons]
    heads = (heading("reason"), heading("samples", "number"))
    return table({"class": "reasons", "data-limit": 20}, heads, rows)


def facts_tables(result: Result) -> Markup:
    """Return a table for each kind of fact, side by side."""
    cost = result.cost
    effort = {
        "seconds, in all": number(result.seconds),
        "seconds of scoring": number(cost.seconds),
        "prompt tokens": f"{cost.prompt_tokens:,}",
        "completion tokens": f"{cost.completion_tokens:,}",
    }
    kinds = (("Scorer", result.scorer), ("Input", result.source), ("Options", result.options), ("Effort", effort))
    return element("div", {"class": "facts"}, *(_table(title, facts) for title, facts in kinds if facts))


def _table(title: str, facts: Mapping[str, Any]) -> Markup:
    rows = [row(str(name).replace("_", " "), cell(_said(value))) for name, value in facts.items()]
    return element("table", None, element("caption", None, title), element("tbody", None, *rows))


def _said(value: Any) -> str:
    """A fact in words; what has a structure stays JSON."""
    fact = plain(value, [])
    if fact is None or isinstance(fact, bool):
        return {None: "none", True: "yes", False: "no"}[fact]
    if isinstance(fact, str):
        return fact or UNKNOWN
    return json.dumps(fact, ensure_ascii=False)


_SHADES = 10
_SHOWN = 60  # rows that are shown before a button shows the others


def grid_table(grid: Grid) -> Markup:
    """Return a grid as a table; counts are shaded from none on, shares from 0 to 1, others between their ends."""
    known = [value for row in grid.values for one in row if (value := drawable(one)) is not None]
    whole = bool(known) and all(value == int(value) for value in known) and max(map(abs, known)) > 1
    low, high = _ends(known)
    corner = " \N{RIGHTWARDS ARROW} ".join(filter(None, (grid.row_axis, grid.column_axis)))
    heads = (heading(corner, "corner"), *map(heading, grid.columns))
    rows = [
        row(name, *(_cell(value, low, high, grid.better, whole=whole) for value in values))
        for name, values in zip(grid.rows, grid.values, strict=True)
    ]
    return wide(grid.title, table({"class": f"grid {grid.better}", "data-limit": _SHOWN}, heads, rows))


def _ends(known: Sequence[float]) -> tuple[float, float]:
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= -1 and high <= 1:
        return -1.0, 1.0
    return min(low, 0.0), max(high, 0.0)


def _cell(value: float | None, low: float, high: float, better: str, *, whole: bool) -> Markup:
    known = finite(value)
    if known is None:
        return element("td", {"class": "unknown", "title": "no number"}, UNKNOWN)
    place = drawable(known)
    share = 1.0 if place is None else (place - low) / (high - low)
    if better == "low":
        share = 1 - share
    shade = round(_SHADES * min(1.0, max(0.0, share)))
    return element("td", {"class": f"shade{shade}", "title": repr(known)}, number(known, whole=whole))


_NARROW = 7  # columns of a grid that fits half of a page


def figures_drawn(figures: Sequence[Figure], level: str) -> Markup:
    """Return all figures; narrow ones stand side by side."""
    if not figures:
        return NOTHING
    return element("div", {"class": "figures"}, *(_figure(figure, level) for figure in figures))


def _figure(figure: Figure, level: str) -> Markup:
    if isinstance(figure, Bars):
        marked = any(value is not None for bar in figure.bars for value in bar.baselines.values())
        legend = marks_legend(best=False) if marked else NOTHING
        kind, drawn = "full", joined(bars_table(figure, level=level), legend)
    elif isinstance(figure, Grid):
        kind, drawn = "half" if len(figure.columns) <= _NARROW else "full", grid_table(figure)
    elif isinstance(figure, Curves):
        kind, drawn = "half", curves_drawing(figure)
    else:
        raise TypeError(f"{type(figure).__name__} is not a figure; give Bars, Grid or Curves")
    return element("figure", {"class": kind}, element("figcaption", None, figure.title), drawn)


PAGE = "report.html"
DATA = "result.json"

_STATIC = Path(__file__).parent / "static"
_STYLE = _STATIC / "report.css"
_SCRIPTS = tuple(_STATIC / name for name in ("tables.js", "cases.js"))


def write_report(results: Result | Sequence[Result], folder: Path) -> Path:
    """Write the page and the data of results into a folder, and return the page's path.

    Either file is there whole or not at all; earlier ones are replaced.

    Raises:
        ValueError: there is no result, or the folder is a file.
        OSError: the folder cannot be written to.
    """
    shown = [results] if isinstance(results, Result) else list(results)
    if not shown:
        raise ValueError("there is no result to report; give at least one")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; a report needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    lost: list[list[str]] = [[] for _ in shown]
    data = [plain(result.to_dict(), places) for result, places in zip(shown, lost, strict=True)]
    for record, places in zip(data, lost, strict=True):
        record["notes"] += _lost_said(places)
    whole = data[0] if isinstance(results, Result) else {"schema": SCHEMA, "results": data}
    _write(folder / DATA, json_text(whole, indent=2) + "\n")
    _write(folder / PAGE, page(shown, [_lost_said(places) for places in lost]))
    return folder / PAGE


def page(results: Sequence[Result], remarks: Sequence[Sequence[str]] = ()) -> str:
    """Return the page of at least one result."""
    said = remarks or [()] * len(results)
    if len(results) == 1:
        result = results[0]
        title = result.title
        top = joined(element("h1", None, title), about(result))
        body = joined(*_sections(result, Place(prefix="r0"), said[0]))
    else:
        titles = list(dict.fromkeys(result.title for result in results))
        title = f"{titles[0]}: {len(results)} results" if len(titles) == 1 else f"{len(results)} evaluations"
        top = joined(element("h1", None, title), links(results))
        first = Place(prefix="all").section("several", "Side by side", comparing_table(results))
        body = joined(first, *(_article(result, at, said[at]) for at, result in enumerate(results)))
    return document(title, "adjudge eval", top, body, styles=(_STYLE,), scripts=_SCRIPTS)


def _article(result: Result, at: int, remarks: Sequence[str]) -> Markup:
    key = f"r{at}"
    heading = element("h2", {"id": f"{key}-title"}, titled(result))
    sections = _sections(result, Place(prefix=key, level=3), remarks)
    attributes = {"class": "result", "id": key, "aria-labelledby": f"{key}-title"}
    return element("article", attributes, heading, about(result), joined(*sections))


def _sections(result: Result, place: Place, remarks: Sequence[str]) -> list[Markup]:
    level = coverage(result)
    listed = [element("p", {"class": "near"}, remark) for remark in remarks]
    comparisons = comparisons_table(result.comparisons, level)
    reading = cases_browser(result, place.prefix)
    legend = element("p", {"class": "aside"}, _LEGEND) if reading else NOTHING
    count, cases = len(result.worst), result.counts.cases
    said = f"{count:,} of {plural(cases, 'case')}" if cases else plural(count, "case")
    return [
        place.section("headline", "Result", headline(result), *listed),
        measures_section(result, place),
        place.section("counts", "Counts", counts_table(result.counts)),
        place.section("checks-made", "Checks", checks_table(result.checks), aside=checks_said(result.checks)),
        place.section("against", "Comparisons", comparisons, aside="paired, on the same cases" if comparisons else ""),
        place.section("drawn", "Figures", figures_drawn(result.figures, level)),
        place.section("worst", "Cases to read", legend, reading, aside=said),
        place.section("made", "How it was made", facts_tables(result)),
    ]


def _lost_said(places: Sequence[str]) -> list[str]:
    """A sentence on numbers that JSON cannot hold."""
    if not places:
        return []
    named = ", ".join(places[:5]) + (f", and {len(places) - 5} more" if len(places) > 5 else "")
    return [f"Not finite, and shown as unknown: {named}."]


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(text.encode())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
