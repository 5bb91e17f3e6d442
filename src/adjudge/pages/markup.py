"""Markup that cannot be broken by what stands in it: every text is escaped unless it was made here.

Sections of the page, and results as plain JSON data, are here too.
"""

from __future__ import annotations

import html
import json
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

# What a reader would not see, or what would move other text: controls, marks of direction, invisible spaces and tags,
# halves of surrogate pairs.  U+200C and U+200D stay: they join letters and emoji.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
# What ends a script or could be read as markup, and what would not survive as UTF-8.
_UNSAFE = re.compile("[<>&\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_VOID = frozenset(("br", "input", "link", "meta"))

Sortable: TypeAlias = str | float | None
Attributes: TypeAlias = Mapping[str, str | float | bool | None]


class Markup(str):
    """Text that is markup already; only this module and its callers' constants are."""

    __slots__ = ()


NOTHING = Markup("")


def visible(text: str) -> str:
    """Return text in which characters that nobody sees stand by their code: "⟨U+202E⟩"."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def escaped(text: str) -> Markup:
    """Return text as markup that shows it; markup stays."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text), quote=True))


def element(name: str, attributes: Attributes | None = None, *children: str) -> Markup:
    """Return an element.

    Args:
        name: its tag.
        attributes: by name; None and False leave one out, True gives it no value.
        children: in it; text is escaped, `Markup` is not.
    """
    parts = [f"<{name}"]
    for key, value in (attributes or {}).items():
        if value is None or value is False:
            continue
        parts.append(f" {key}" if value is True else f' {key}="{escaped(str(value))}"')
    parts.append(">")
    if name not in _VOID:
        parts.extend(escaped(child) for child in children)
        parts.append(f"</{name}>")
    return Markup("".join(parts))


def joined(*parts: str) -> Markup:
    """Return parts one after the other, each on a line of its own; empty ones are left out."""
    return Markup("\n".join(escaped(part) for part in parts if part))


def heading(text: str, kind: str = "", *, sort: str = "") -> Markup:
    """Return the heading of a column of class `kind`; `sort` is "text" or "number", or "" for one without order."""
    return element("th", {"scope": "col", "class": kind or None, "data-kind": sort or None}, text)


def cell(text: str, kind: str = "", *, sort: Sortable = None) -> Markup:
    """Return a cell of class `kind`; `sort` is what its column is sorted by."""
    return element("td", {"class": kind or None, "data-sort": sort}, text)


def row(name: str, *cells: Markup, kind: str = "", sort: Sortable = None, inside: Markup = NOTHING) -> Markup:
    """Return a row whose heading is a name of class `kind`, with more `inside` it."""
    head = element("th", {"scope": "row", "class": kind or None, "data-sort": sort}, name, inside)
    return element("tr", None, head, *cells)


def table(attributes: Attributes | None, heads: Iterable[Markup], rows: Iterable[Markup], *before: Markup) -> Markup:
    """Return a table of headings and rows, with a caption before them if there is one."""
    head = element("thead", None, element("tr", None, *heads))
    return element("table", attributes, *before, head, element("tbody", None, *rows))


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Return JSON that may stand in a script element and in a file of UTF-8, whatever its strings hold."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def plain(value: Any, lost: list[str], place: str = "") -> Any:
    """Return JSON data.  Numbers that are not finite become None, since JSON has none of them; others become text.

    Args:
        value: of any kind.
        lost: where the places of such numbers are put: "measures[0].high is nan".
        place: of the value in the whole.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return number
        lost.append(f"{place} is {number}")
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item, lost, f"{place}.{key}" if place else str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, lost, f"{place}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, Set):
        return [plain(item, lost, f"{place}[{at}]") for at, item in enumerate(sorted(value, key=str))]
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a result stands on the page.

    Attributes:
        prefix: of all its ids; unlike that of any other result.
        level: of the headings of its sections: 2 on a page of one result, 3 where each result has a heading itself.
    """

    prefix: str
    level: int = 2

    def section(self, name: str, title: str, *content: str, aside: str = "") -> Markup:
        """Return a section with its heading; nothing where there is no content."""
        if not any(content):
            return NOTHING
        key = f"{self.prefix}-{name}"
        said = (title, " ", element("small", None, aside)) if aside else (title,)
        heading = element(f"h{self.level}", {"id": key}, *said)
        return element("section", {"class": name, "aria-labelledby": key}, heading, joined(*content))


def wide(label: str, table: Markup) -> Markup:
    """Return a place in which a table is scrolled sideways, so that the page is not."""
    return element("div", {"class": "wide", "role": "group", "aria-label": label}, table)
