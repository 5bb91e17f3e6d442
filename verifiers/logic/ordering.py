"""Does the answer name the right things in the right order?

    value = 1     if it is the reference's list, item by item
            0     else

A list is written as a literal, or apart by commas, ">", arrows, "|", semicolons or line breaks, with "and" or "then"
before the last items; numbers or bullets at the beginning of lines are taken off.  Items are compared without regard
to case, white space, quotes around them and a stop behind them; 2.0 is 2.

Not covered: partial credit, and ties; for tasks with several right orders list them all in the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Final

from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import unwrap, without_tex
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import wrong_form
from adjudge.verifiers.logic.literal import LiteralError, read_literal
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier

MAX_ITEMS: Final = 1_000

BULLET: Final = re.compile(r"\A\s{0,8}(?:\d{1,4}[.)]|\d{1,3}(?:st|nd|rd|th):|[-*•])\s+")
# An arrow begins where its dashes begin: tried from each of them, a line of dashes took seconds.
_SEPARATORS: Final = tuple(map(re.compile, (r"[\r\n]+", r"(?<![-=])[-=]*>|[→⇒⟶]", r"\|", r";", r",")))
_AND: Final = re.compile(r"\s(?:(?:and\s)?then|and|&)\s")
_MAX_PLACES: Final = 8
_WHOLE: Final = re.compile(r"([+-]?\d+)\.0+")


@dataclass(frozen=True, kw_only=True)
class OrderingVerifier(MarkedAnswerVerifier[frozenset[tuple[str, ...]]]):
    """1 when a list has the reference's items in the reference's order, else 0.

    The reference is a list of texts or numbers, or `{"orders": [...]}` with several lists of which each is right.
    """

    name: ClassVar[str] = "ordering"
    version: ClassVar[str] = "6"

    def read_reference(self, reference: Any) -> frozenset[tuple[str, ...]]:
        """Return the accepted orders."""
        given = reference.get("orders") if isinstance(reference, dict) and set(reference) == {"orders"} else [reference]
        if not isinstance(given, list | tuple) or not given:
            raise wrong_form(reference, "a list")
        orders = set()
        for order in given:
            if not isinstance(order, list | tuple) or not all(map(is_item, order)):
                raise wrong_form(order, "a list of texts or numbers")
            items = tuple(normal_item(str(item)) for item in order)
            if not items or not all(items):
                raise BadReferenceError("the reference's list is empty, or an item of it is")
            if len(set(items)) < len(set(map(str, order))):
                raise BadReferenceError("two of the reference's items differ only in case or quotes")
            orders.add(items)
        return frozenset(orders)

    def judge_text(self, answer: str, gold: frozenset[tuple[str, ...]]) -> Score:
        """Return 1 for one of the orders."""
        offered = list(readings(read_items(answer)))
        if any(tuple(items) in gold for items in offered):
            return Score.scored(1.0, answer=shorten(answer))
        return Score.scored(0.0, "wrong", answer=shorten(answer), items=len(offered[0]))


def readings(items: list[str]) -> Iterator[list[str]]:
    """Yield what a list may hold: its items, and with "and" or "then" between the last ones, or between all.

    An item may hold "and" itself ("salt and pepper"), so every place is tried, up to eight.
    """
    yield items
    bare = [_AND.sub("", f" {item}", count=1) if _AND.match(f" {item}") else item for item in items]
    if bare != items:
        yield bare
    places = list(_AND.finditer(bare[-1] if bare else ""))[:_MAX_PLACES]
    for place in places:
        yield [*bare[:-1], bare[-1][: place.start()], bare[-1][place.end() :]]
    if len(places) > 1:
        yield [*bare[:-1], *_AND.split(bare[-1])]


def read_items(text: str) -> list[str]:
    """Return the items of a list, normalised; `LiteralError` for more than 1,000, or one that is not text or number."""
    text = text.strip()
    if text[:1] == "{" and text[-1:] == "}":
        text = f"[{text[1:-1]}]"
    if text[:1] in ("[", "("):
        try:
            value = read_literal(text)
        except LiteralError:
            value = _split(text[1:-1]) if text[-1:] in ("]", ")") else None
        if not isinstance(value, list | tuple) or not all(map(is_item, value)):
            raise LiteralError("unparsable_answer", "it is not a list of texts or numbers")
        items = [str(item) for item in value]
    else:
        items = _split(text)
    if len(items) > MAX_ITEMS:
        raise LiteralError("too_complex", f"more than {MAX_ITEMS} items")
    return [normal_item(item) for item in items]


def normal_item(text: str) -> str:
    """Return the form of an item that is compared."""
    text = without_tex(unwrap(text.strip()))
    item = " ".join((text.rstrip(". ") or text).casefold().split())
    whole = _WHOLE.fullmatch(item) if item.endswith("0") else None
    return whole[1] if whole else item


def _split(text: str) -> list[str]:
    separator = next((one for one in _SEPARATORS if one.search(text.strip())), None)
    pieces = separator.split(text.strip()) if separator else [text]
    return [item for piece in pieces if (item := BULLET.sub("", piece, count=1).strip())]


def is_item(value: Any) -> bool:
    """Return whether a value is a text or a finite number."""
    return isfinite(value) if isinstance(value, float) else isinstance(value, str | int) and not isinstance(value, bool)
