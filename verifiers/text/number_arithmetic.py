"""What a sum of plain numbers comes to: "40 + 2", "6 × 7", "(3 + 4)/2".

Not covered: powers, functions, percentages, and numbers with units among them.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import islice

from adjudge.verifiers.text.quantity import NumberError

_MOST = 100  # numbers and signs of one sum
_TOKEN = re.compile(r"\s*(?:(\d{1,30}(?:,\d{3})*(?:\.\d{1,30})?)|([-+*/()]|[xX](?=[ \d(])))")
_LEAD = re.compile(r"(?:[A-Za-z,:]+ )*(?=[\d(-])")


def sum_of(text: str) -> Fraction:
    """Return what arithmetic in plain notation comes to; words may stand before it.

    Raises:
        NumberError: it is none, divides by zero, or has more than 100 parts.
    """
    lead = _LEAD.match(text)
    rest = text[lead.end() if lead else 0 :].strip()
    parts, at = [], 0
    for found in islice(_TOKEN.finditer(rest), _MOST + 1):
        if found.start() != at:
            break
        parts.append(found[1] or found[2].replace("x", "*").replace("X", "*"))
        at = found.end()
    if at != len(rest) or not 2 < len(parts) <= _MOST:
        raise NumberError("several_answers", "several different numbers")
    value, end = _sum(parts, 0)
    if end != len(parts):
        raise NumberError("unparsable_answer", "a bracket that nothing opens")
    return value


def _sum(parts: list[str], at: int) -> tuple[Fraction, int]:
    value, at = _product(parts, at)
    while at < len(parts) and parts[at] in "+-":
        other, end = _product(parts, at + 1)
        value, at = (value + other if parts[at] == "+" else value - other), end
    return value, at


def _product(parts: list[str], at: int) -> tuple[Fraction, int]:
    value, at = _factor(parts, at)
    while at < len(parts) and parts[at] in "*/":
        other, end = _factor(parts, at + 1)
        if parts[at] == "/" and not other:
            raise NumberError("unparsable_answer", "division by zero")
        value, at = (value * other if parts[at] == "*" else value / other), end
    return value, at


def _factor(parts: list[str], at: int) -> tuple[Fraction, int]:
    part = parts[at] if at < len(parts) else ""
    if part == "-":
        value, at = _factor(parts, at + 1)
        return -value, at
    if part == "(":
        value, at = _sum(parts, at + 1)
        if parts[at : at + 1] == [")"]:
            return value, at + 1
    elif part[:1].isdigit():
        return Fraction(part.replace(",", "")), at + 1
    raise NumberError("unparsable_answer", "arithmetic that lacks a number")
