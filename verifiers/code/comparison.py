"""Are an expected value and the one that came back the same, and an expected output and the one that was printed?

Values are compared type by type in this process; what came back was decoded into built-in types, so no code of the
candidate's can take part.  As in Python, 2 equals 2.0 and True equals 1; unlike in Python, a list equals a tuple of
the same items (JSON has no tuples) and NaN equals NaN.  The tolerance is for what is expected as a float, or printed
with a decimal point: an expected integer is exact, and every other printed word is a word.

Not covered: the candidate's own classes; they are equal to nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

Output = Literal["lines", "tokens", "exact"]
OUTPUTS: tuple[Output, ...] = ("lines", "tokens", "exact")

_TINY = 1e-12  # absolute difference that still counts as none, for values around zero
_LONG = 400  # characters beyond which a word is not read as a number
_DECIMAL = re.compile(r"-?(?:(?:0|[1-9]\d*)?\.(\d+)(?:[eE][+-]\d+)?|\d[eE][+-]\d+)", re.ASCII)
_FREE = 6  # decimals, those of C's %f, from which on zeros at the end come from the format and not from the task
_GAPS = re.compile(r"(\s+)")
_MOST_UNORDERED = 2000  # items beyond which an unordered comparison, which is quadratic, compares sorted texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as equal.

    Attributes:
        tolerance: relative difference that a number may have from an expected float; 0 for none.
        unordered: whether the order of a list's items matters not, at the top level.
        output: how printed text is compared.
    """

    tolerance: float = 1e-6
    unordered: bool = False
    output: Output = "lines"


def same_value(expected: Any, actual: Any, rules: Rules) -> bool:
    """Return whether a returned value is the expected one."""
    try:
        if rules.unordered and isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
            return _same_bag(list(expected), list(actual), rules.tolerance)
        return _same(expected, actual, rules.tolerance)
    except (ArithmeticError, TypeError, ValueError):  # a signalling NaN equals nothing, and says so by raising
        return False


def _same(expected: Any, actual: Any, tolerance: float) -> bool:
    expected, actual = (
        value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value
        for value in (expected, actual)
    )
    if isinstance(expected, int | float | complex | Decimal | Fraction):
        return isinstance(actual, int | float | complex | Decimal | Fraction) and _close(expected, actual, tolerance)
    if isinstance(expected, list | tuple):
        return (
            isinstance(actual, list | tuple)
            and len(expected) == len(actual)
            and all(_same(one, other, tolerance) for one, other in zip(expected, actual, strict=True))
        )
    if isinstance(expected, Mapping):
        return (
            isinstance(actual, Mapping)
            and len(expected) == len(actual)
            and all(key in actual and _same(value, actual[key], tolerance) for key, value in expected.items())
        )
    if isinstance(expected, set | frozenset):
        return isinstance(actual, set | frozenset) and expected == actual
    return type(expected) is type(actual) and bool(expected == actual)


def _close(expected: Any, actual: Any, tolerance: float) -> bool:
    if expected == actual or (expected != expected and actual != actual):
        return True
    if isinstance(expected, int):
        return False
    if isinstance(expected, complex) or isinstance(actual, complex):
        left, right = complex(expected), complex(actual)
        return _close(left.real, right.real, tolerance) and _close(left.imag, right.imag, tolerance)
    if not (isinstance(expected, float) or isinstance(actual, float)):
        return False
    try:
        return _near(float(expected), float(actual), tolerance)
    except OverflowError:
        return False


def _near(expected: float, actual: float, tolerance: float) -> bool:
    close = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=_TINY if tolerance else 0.0)
    return close and math.isfinite(expected)


def _same_bag(expected: list[Any], actual: list[Any], tolerance: float) -> bool:
    if len(expected) != len(actual):
        return False
    if len(expected) > _MOST_UNORDERED:
        return sorted(map(repr, expected)) == sorted(map(repr, actual))
    left = list(actual)
    for item in expected:
        for at, other in enumerate(left):
            if _same(item, other, tolerance):
                del left[at]
                break
        else:
            return False
    return True


def same_output(expected: str, actual: str, rules: Rules) -> bool:
    """Return whether a printed text is the expected one.

    "exact" compares characters, but for white space at the very end; "tokens" compares all words and ignores how they
    are laid out; "lines" compares line by line, and ignores white space at the ends of lines and blank lines at the
    end.  Between words "lines" counts white space where the expected text has any beyond single spaces (indentation,
    columns), or is a drawing, without a letter or a digit; a first line may have lost its indentation to whoever
    stripped the text.  How words are compared is told at `_same_word`.
    """
    if expected.rstrip() == actual.rstrip():
        return True
    if rules.output == "exact":
        return False
    if rules.output == "tokens":
        return _same_words(expected.split(), actual.split(), rules.tolerance)
    left, right = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (expected, actual))
    if not left or len(left) != len(right):
        return False
    laid_out = any(line != " ".join(line.split()) for line in left) or not any(map(str.isalnum, expected))
    if laid_out and not left[0][:1].isspace():
        right[0] = right[0].lstrip()
    split = _GAPS.split if laid_out else str.split
    return all(_same_words(split(one), split(other), rules.tolerance) for one, other in zip(left, right, strict=True))


def _same_words(expected: list[str], actual: list[str], tolerance: float) -> bool:
    return len(expected) == len(actual) and all(
        _same_word(one, other, tolerance) for one, other in zip(expected, actual, strict=True)
    )


def _same_word(expected: str, actual: str, tolerance: float) -> bool:
    """Return whether a word is the expected one; where that has a decimal point, whether it is that number.

    Zeros at the end tell a format that the task asks for, such as two decimals of a price, so there must be as many
    decimals.  They tell nothing in `1.0`, as Python writes a float, and where there are six decimals or more.
    """
    if expected == actual:
        return True
    found = _DECIMAL.fullmatch(expected) if len(expected) <= _LONG else None
    number = _decimal(actual)
    if found is None or number is None:
        return False
    digits = found[1] or ""
    if digits.endswith("0") and 1 < len(digits) < _FREE and len(actual.partition(".")[2]) < len(digits):
        return False
    return Decimal(expected) == number or _near(float(expected), float(number), tolerance)


def _decimal(word: str) -> Decimal | None:
    """Return the number that a word of ASCII digits is; None for anything else, `nan` and `inf` too."""
    if len(word) > _LONG or not word.isascii() or "_" in word:
        return None
    try:
        number = Decimal(word)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
