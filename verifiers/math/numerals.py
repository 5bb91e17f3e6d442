"""Numerals: the text of one literal to its exact value, and the fast path for answers that are plain numbers."""

from __future__ import annotations

import re
from fractions import Fraction

from adjudge.verifiers.math.nodes import ZERO, NotMathError, Number

MAX_DIGITS = 2000  # more digits than any answer needs; conversions stay below a millisecond
MAX_EXPONENT = 2000


def numeral(text: str) -> Number:
    """Return the value of a numeral: "12", ".5", "1.50", "2e-3", or "0.1r6" for 0.1666...

    Raises:
        NotMathError: it has more than `MAX_DIGITS` digits or a decimal exponent beyond `MAX_EXPONENT`.
    """
    if len(text) > MAX_DIGITS:
        raise NotMathError(f"a number of more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Number(Fraction(int(text)))
    if "r" in text:
        return _repeating(text)
    text = text.removesuffix(".")
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise NotMathError(f"a number with the exponent {exponent[:20]}")
    places = len(mantissa.partition(".")[2])
    value = Fraction(int(mantissa.replace(".", "")), 10**places)
    shift = int(exponent) if exponent else 0
    value = value * 10**shift if shift >= 0 else value / 10**-shift
    if not places and not exponent:
        return Number(value)
    return Number(value, max(places - shift, 0), len(mantissa.replace(".", "").lstrip("0")))


def _repeating(text: str) -> Number:
    fixed, _, period = text.partition("r")
    whole, _, places = fixed.partition(".")
    scale = 10 ** len(places)
    value = Fraction(int(whole + places), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))
    return Number(value)


_DECIMAL_COMMA = re.compile(r"([+-]?)(\d{1,100}),(\d{1,100})")


def decimal_comma(text: str) -> Number | None:
    """Return the value of a number with a decimal comma, or None where the comma may group thousands or list digits."""
    match = _DECIMAL_COMMA.fullmatch(text)
    if match is None or len(match[3]) == 1 or (len(match[3]) == 3 and len(match[2]) <= 3 and match[2] != "0"):
        return None
    number = numeral(f"{match[2]}.{match[3]}")
    return Number(-number.value, number.places, number.digits) if match[1] == "-" else number


_MIN_LISTED = 9  # digits: `12,345,678` is one number


def is_list(grouped: str) -> bool:
    """Whether three-digit groups are numbers of a list: `108,135,189`, long and in rising order like no one number."""
    groups = grouped.split(",")
    return (
        all(map(str.isdigit, groups))
        and len(groups[0]) > 1
        and sum(map(len, groups)) >= _MIN_LISTED
        and not any(group.startswith("0") for group in groups)
        and groups == sorted(set(groups), key=int)
    )


def grouped_number(text: str) -> Number | None:
    """Return the one number that a list of three-digit groups may also be, or None for any other text."""
    return numeral(text.replace(",", "")) if _GROUPED.fullmatch(text) else None


_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){1,40}")
_INTEGER = re.compile(r"-?\d{1,300}")
_RATIONAL = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?:(?P<grouped>[1-9]\d{0,2}(?:(?:,|\{,\})\d{3})+)(?P<tail>\.\d+)?"
    r"|\\[dt]?frac\{(?P<minus>-?)(?P<above>\d+)\}\{(?P<below>\d+)\}"
    r"|(?P<number>\d+(?:\.\d*)?|\.\d+)(?:/(?P<over>\d+))?)"
    r"(?:(?<!\.)\.)?"
)


def rational(text: str) -> Number | None:
    """Return the value of an answer that is one plain number or fraction, or None for anything else.

    This reads what 97 % of the answers of grade-school and competition problems look like without the parser;
    on the texts it accepts, it agrees with the parser.
    """
    if len(text) > 300:
        return None
    if _INTEGER.fullmatch(text):
        return Number(Fraction(int(text)))
    match = _RATIONAL.fullmatch(text)
    if match is None:
        return None
    sign, grouped, tail, minus, above, below, number, over = match.groups()
    if grouped is not None:
        if is_list(grouped):
            return None
        value = numeral(grouped.replace("{,}", "").replace(",", "") + (tail or ""))
    elif above is not None:
        if not int(below):
            return None
        value = Number(Fraction(int(above), int(below)) * (-1 if minus else 1))
    elif over is not None:
        if "." in number or not int(over):
            return None
        value = Number(Fraction(int(number), int(over)))
    else:
        value = numeral(number.rstrip(".")) if number.rstrip(".") else ZERO
    return Number(-value.value, value.places, value.digits) if sign == "-" else value
