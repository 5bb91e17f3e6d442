"""Are an expected value and the one that came back the same, and an expected output and the one that was printed?

Values are compared type by type in this process; what came back was decoded into built-in types, so no code of the
candidate's can take part.  As in Python, 2 equals 2.0 and True equals 1; unlike in Python, a list equals a tuple of
the same items (JSON has no tuples) and NaN equals NaN.  The tolerance is for what is expected as a float, or printed
with a decimal point: an expected integer is exact, and every other printed word is a word.

Not covered: the candidate's own classes; they are equal to nothing.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

Output = Literal["lines", "tokens", "exact"]

_TINY = 1e-12  # absolute difference that still counts as none, for values around zero
_NOISE = 1e-11  # relative difference between two ways to add up the same floats
_ULPS = 1e-14  # the same where a number has more digits than a float keeps
_CLOSE = 1e-9  # relative difference, beyond the tolerance as an absolute one, of numbers computed by approximation
_FULL = 9  # decimals, or significant digits, that are enough for a number with more
_LONG = 400  # characters beyond which a word is not read as a number
_DECIMAL = re.compile(r"-?(?:(?:0|[1-9]\d*)?\.(\d+)(?:[eE][+-]\d+)?|\d[eE][+-]\d+)", re.ASCII)
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_FREE = 6  # decimals, those of C's %f, from which on the last ones come from the format and not from the task
_BLANK = " \t\r\f\v\n"
_BLANK_LINES = re.compile(r"\A(?:[ \t\r\f\v]*\n)+")
_GAPS = re.compile(r"([ \t\r\f\v]+)")
_MAX_UNORDERED = 2000  # items, none equal to another, beyond which they are not all compared with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as equal.

    Attributes:
        tolerance: relative difference that a number may have from an expected float; 0 for none.
        unordered: whether the order of a list's items matters not, at the top level.
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
    expected, actual = _plain(expected), _plain(actual)
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


def _plain(value: Any) -> Any:
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


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
        wanted, number = float(expected), float(actual)
    except OverflowError:
        return False
    close = math.isclose(wanted, number, rel_tol=tolerance, abs_tol=_TINY if tolerance else 0.0)
    return close and math.isfinite(wanted)


def _same_bag(expected: list[Any], actual: list[Any], tolerance: float) -> bool:
    """Compare without order: what is equal is paired first, and the rest, which only the tolerance can pair, after."""
    if len(expected) != len(actual):
        return False
    known: defaultdict[Any, list[Any]] = defaultdict(list)
    left: list[Any] = []
    for other in actual:
        (left if (key := _exact(other)) is None else known[key]).append(other)
    unpaired = []
    for item in expected:
        key = _exact(item)
        if key is not None and known.get(key):
            known[key].pop()
        else:
            unpaired.append(item)
    left += itertools.chain.from_iterable(known.values())
    if len(left) > _MAX_UNORDERED:
        return all(map(_same, sorted(unpaired, key=_rank), sorted(left, key=_rank), itertools.repeat(tolerance)))
    for item in unpaired:
        at = next((at for at, other in enumerate(left) if _same(item, other, tolerance)), None)
        if at is None:
            return False
        del left[at]
    return True


def _exact(value: Any) -> Any:
    """Return what two values have in common exactly when they are the same without a tolerance; None for nothing."""
    value = _plain(value)
    key: Any
    try:
        match value:
            case int() | float() | complex() | Decimal() | Fraction():
                key = ("number", value) if value == value else ("nan",)
            case list() | tuple():
                parts = tuple(map(_exact, value))
                key = None if None in parts else ("list", parts)
            case Mapping():
                items = frozenset((name, _exact(item)) for name, item in value.items())
                key = None if any(part is None for _, part in items) else ("mapping", items)
            case set() | frozenset():
                key = ("set", frozenset(value))
            case _:
                key = (type(value), value)
        hash(key)
        return key
    except (ArithmeticError, TypeError):  # what cannot be hashed, or compared with itself
        return None


def _rank(value: Any) -> Any:
    """Return where a value stands in an order in which numbers that are close are neighbours."""
    value = _plain(value)
    if isinstance(value, list | tuple):
        return (2, tuple(map(_rank, value)))
    try:
        return (0, float(value)) if isinstance(value, int | float | Decimal | Fraction) else (1, repr(value))
    except OverflowError:
        return (0, math.inf if value > 0 else -math.inf)


def same_output(expected: str, actual: str, rules: Rules) -> bool:
    r"""Return whether a printed text is the expected one.

    "exact" compares characters, but for white space at the very end; "tokens" compares all words and ignores how they
    are laid out; "lines" compares line by line, and ignores white space at the ends of lines and blank lines at the
    beginning and the end.  Between words "lines" counts white space where the expected text has any beyond single
    spaces (indentation, columns), or is a drawing, without a letter or a digit; where the lines after the first are
    indented, the first may have lost its indentation to whoever stripped the text, and where the first alone is, that
    counts only in a drawing.  Elsewhere all lines may be indented alike, and by one space
    more than the first, as `print(a, "\n", b)` writes them.  White space is that of ASCII.  How words are compared is
    told at `_same_word`.
    """
    if expected.rstrip(_BLANK) == actual.rstrip(_BLANK):
        return True
    if rules.output == "exact":
        return False
    if rules.output == "tokens":
        return _same_words(_words(expected), _words(actual), rules.tolerance)
    left, right = (
        [line.rstrip(_BLANK) for line in _BLANK_LINES.sub("", text).rstrip(_BLANK).split("\n")]
        for text in (expected, actual)
    )
    if len(left) != len(right) or not any(left):
        return False
    drawing = not any(map(str.isalnum, expected))
    if _indentation(left[0]) and not drawing and not any(map(_indentation, left[1:])):
        left[0], right[0] = left[0].lstrip(_BLANK), right[0].lstrip(_BLANK)
    if drawing or any(line != " ".join(_words(line)) for line in left):
        split: Callable[[str], list[Any]] = _GAPS.split
        if not _indentation(left[0]) and any(map(_indentation, left)):
            right[0] = right[0].lstrip(_BLANK)
    else:
        split = _words
        indented = [_indentation(line) for line in right if line]
        if len(set(indented[1:])) > 1 or (indented[1:] and indented[1] - indented[0] not in (0, 1)):
            return False
    return all(_same_words(split(one), split(other), rules.tolerance) for one, other in zip(left, right, strict=True))


def _words(text: str) -> list[str]:
    return [word for word in re.split(rf"[{_BLANK}]+", text) if word]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(_BLANK))


def _same_words(expected: list[str], actual: list[str], tolerance: float) -> bool:
    return len(expected) == len(actual) and all(
        _same_word(one, other, tolerance) for one, other in zip(expected, actual, strict=True)
    )


def _same_word(expected: str, actual: str, tolerance: float) -> bool:
    """Return whether a word is the expected one; where that has a decimal point, whether it is that number.

    What is left open is what the shown digits leave open.  Fewer than six decimals are the task's own, an amount or a
    rounded number: a difference must be the noise of floats, but that six digits with three decimals or more, as C++
    writes a number, may be another one rounded.  From six decimals on they are a format, and the tolerance counts, as
    an absolute difference too (large numbers: a relative one of 1e-9), where the other word shows as many decimals, or
    nine digits; fewer would be an estimate.

    Zeros at the end tell a format that the task asks for, such as two decimals of a price, so there must be as many
    decimals.  They tell nothing in `1.0`, as Python writes a float, and where there are six decimals or more.
    """
    if expected == actual:
        return True
    if max(len(expected), len(actual)) > _LONG:
        return False
    match = _DECIMAL.fullmatch(expected)
    if match is None or not _NUMBER.fullmatch(actual):
        return False
    digits = match[1] or ""
    if digits.endswith("0") and 1 < len(digits) < _FREE and len(actual.partition(".")[2]) < len(digits):
        return False
    wanted, number = Decimal(expected), Decimal(actual)
    if wanted == number:
        return True
    size, distance = abs(float(wanted)), abs(float(wanted) - float(number))
    if not (tolerance and math.isfinite(distance)):
        return False
    shown, decimals = _decimals(expected), _decimals(actual)
    noise = max(_TINY, min(_NOISE * size, max(10.0 ** -min(shown + 3, 300), _ULPS * size)))
    if distance <= min(noise, max(_TINY, tolerance * size)):
        return True
    precise = decimals >= min(shown, _FULL) or len(number.as_tuple().digits) >= _FULL
    if shown < _FREE and (shown < 3 or len(wanted.as_tuple().digits) < _FREE):
        return False
    near = min(tolerance * size, max(tolerance, _CLOSE * size)) if shown >= _FREE else 0.0
    return precise and distance <= max(near, 0.500001 * 10.0 ** -min(shown, 300))


def _decimals(word: str) -> int:
    """Return how many decimals a number shows, of those before its exponent or after it is applied."""
    exponent = Decimal(word).as_tuple().exponent
    before = re.split("[eE]", word)[0].partition(".")[2]
    return max(len(before), -exponent if isinstance(exponent, int) else 0)
