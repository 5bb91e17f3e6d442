"""Rules that were tried, and tests against other scorers, as tables.

Not covered: what a rule means; its name and its sentence are the evaluation's.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evals.reports.markup import NOTHING, Attributes, Markup, element, wide
from adjudge.evals.reports.wording import bounds, chance, finite, number
from adjudge.evals.results.result import Check, Comparison

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
        kind = word.replace(" ", "-")
        state = element(
            "td",
            {"class": "state", "data-sort": word},
            element("span", {"class": "icon", "aria-hidden": "true"}, icon),
            f" {word}",
        )
        name = element("th", {"scope": "row", "data-sort": check.name}, check.name)
        rows.append(element("tr", {"class": kind}, state, name, element("td", {"class": "detail"}, check.detail)))
    heads = [_head("state", "text"), _head("check", "text"), _head("what was seen", "")]
    return _table("checks", heads, rows)


def comparisons_table(comparisons: Sequence[Comparison], level: str) -> Markup:
    """Return the tests; nothing where there are none.

    Args:
        comparisons: of the result.
        level: coverage of the bounds, in words.
    """
    if not comparisons:
        return NOTHING
    heads = [
        _head("measure", "text"),
        _head("against", "text"),
        *(_head(name, "number") for name in ("this", "other", "difference")),
        element("th", {"scope": "col", "class": "number"}, level),
        *(_head(name, "number") for name in ("n", "p", "p, Holm")),
        _head("test", "text"),
    ]
    return wide("Comparisons", _table("comparisons", heads, [_comparison(one) for one in comparisons]))


def _comparison(one: Comparison) -> Markup:
    name = f"{one.name}, {one.part}" if one.part else one.name
    difference = finite(one.difference.value)
    sign = "+" if difference is not None and difference > 0 else ""
    adjusted = finite(one.p_adjusted)
    return element(
        "tr",
        None,
        element("th", {"scope": "row", "data-sort": name}, name),
        element("td", {"data-sort": one.other}, one.other),
        *(
            element("td", {"class": "number", "data-sort": finite(value)}, number(value))
            for value in (one.first, one.second)
        ),
        element("td", {"class": "number value", "data-sort": difference}, sign + number(difference)),
        element("td", {"class": "number bounds"}, bounds(one.difference)),
        element("td", {"class": "number", "data-sort": one.difference.n}, f"{one.difference.n:,}"),
        element("td", {"class": "number", "data-sort": finite(one.p)}, chance(one.p)),
        element("td", {"class": "number value", "data-sort": adjusted}, chance(adjusted)),
        element("td", {"data-sort": one.test}, one.test),
    )


def _head(text: str, sort: str) -> Markup:
    kind = "number" if sort == "number" else None
    return element("th", {"scope": "col", "class": kind, "data-kind": sort or None}, text)


def _table(name: str, heads: Sequence[Markup], rows: Sequence[Markup]) -> Markup:
    attributes: Attributes = {"class": name, "data-sortable": len(rows) > 1, "data-limit": _SHOWN}
    head = element("thead", None, element("tr", None, *heads))
    return element("table", attributes, head, element("tbody", None, *rows))
