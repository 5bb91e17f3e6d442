r"""Numbers and equations of a text, and whether its arithmetic holds.

Reads what solutions of word problems are made of: `3 * 4 = 12`, `6 eggs + 3 eggs = 9 eggs`, `$1.50 x 2 = $3`,
`20% * 50 = 10`, `<<16-3=13>>`, `3 \times 4 = 12`, `\frac{1}{2} + 1 = 1.5`.  Words between a number and an operator
are taken for units.  The text is read once from left to right (linear time).  A side is worked out as Python reads
it, from numbers and the four operations alone: nothing else of a text is ever evaluated.

Not covered: letters for numbers, products without a sign, powers, roots, and "20% of 50": such a side is unknown and
counts neither way.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_DIGITS = 15  # longer numbers are not amounts, and a float does not hold them
_TERMS = 32  # numbers and signs on one side of an equation; longer ones are left out
_EQUATIONS = 400  # of one text: the first ones
_ROUNDED = 0.51  # 3.333 = 3.33 holds: half a unit of the last place that is written

_AMOUNT = (
    r"(?P<fraction>\\[dt]?frac\{\s?\d{1,9}\s?\}\{\s?\d{1,9}\s?\})"
    r"|(?P<number>\d+(?:,\d{3}(?!\d))*(?:\.\d+)?)"
)
_NUMBER = re.compile(_AMOUNT)
_TOKEN = re.compile(
    _AMOUNT + r"|(?P<times>\\times(?![a-zA-Z])|\\cdot(?![a-zA-Z])|[*×·∙])"
    r"|(?P<over>\\div(?![a-zA-Z])|[/÷])"
    r"|(?P<sign>[-+−–()=%])"
    r"|(?P<unit>\\(?:text|mathrm|mbox)\{[^{}\n]{0,40}\}|\\(?:left|right)(?![a-zA-Z]))"
    r"|(?P<word>(?<!\\)[^\W\d_]+)"
    r"|(?P<stop>\\[()\[\]]|[.;:?!,<>\n{\[\]|])"
    r"|(?P<unknown>\\[a-zA-Z]+|[}^_])"
)
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred"
_SHARES = {
    2.0: "half twice double pair",
    3.0: "third thirds triple thrice",
    4.0: "quarter quarters fourth fourths",
    5.0: "fifth fifths",
    7.0: "week weeks",
    12.0: "dozen dozens",
    1000.0: "thousand",
}
_NAMES = {
    **{word: float(value) for value, word in enumerate(_COUNTED.split())},
    **{word: 10.0 * value for value, word in enumerate(_TENS.split(), start=3)},
    **{word: value for value, words in _SHARES.items() for word in words.split()},
}


@dataclass(frozen=True, slots=True)
class Equation:
    """A computation as written, the signs between its operands ("*-"), and whether it holds, up to rounding."""

    operands: tuple[float, ...]
    operators: str
    result: float
    holds: bool


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "number", the sign itself, "stop", or "?" for what makes its side unknown
    value: float
    places: int  # decimals written
    start: int
    end: int


def numbers(text: str, *, words: bool = False) -> list[float]:
    """Return the numbers of a text in order; with `words`, "three", "half" (2) and "dozen" (12) count too."""
    values = []
    for match in (_TOKEN if words else _NUMBER).finditer(text):
        if match.lastgroup == "number" and (value := _value(match[0])) is not None:
            values.append(value)
        elif match.lastgroup == "fraction":
            values += [float(part) for part in re.findall(r"\d+", match[0])]
        elif words and match.lastgroup == "word" and (named := _NAMES.get(match[0].lower())) is not None:
            values.append(named)
    return values


def equations(text: str) -> list[Equation]:
    """Return the equations of a text in order, at most 400: a side with an operator, "=", and a side beside it."""
    lines = (line for line in text.split("\n") if "=" in line)  # no equation goes on behind a line's end
    return list(itertools.islice(itertools.chain.from_iterable(map(_equations_of_line, lines)), _EQUATIONS))


def _equations_of_line(text: str) -> Iterator[Equation]:
    sides: list[list[_Token]] = [[]]
    for token in itertools.chain(_tokens(text), (None,)):
        if token is None or token.kind == "stop":
            yield from _read(sides)
            sides = [[]]
        elif token.kind == "=":
            sides.append([])
        else:
            side = sides[-1]
            if token.kind in ("number", "(") and side and side[-1].kind in ("number", ")", "%"):
                if token.start == side[-1].end:  # 5(0.29): a product without a sign
                    side.append(_Token("?", 0.0, 0, token.start, token.end))
                    continue
                yield from _read(sides)  # two numbers in a row: the second begins something else
                sides = [[]]
            sides[-1].append(token)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        group, written = match.lastgroup, match[0]
        if group == "number":
            value = _value(written)
            places = len(written.partition(".")[2])
            yield _Token("stop" if value is None else "number", value or 0.0, places, start, end)
        elif group == "fraction":
            above, below = (float(part) for part in re.findall(r"\d+", written))
            yield _Token("number", above / below, 12, start, end) if below else _Token("stop", 0.0, 0, start, end)
        elif group == "times" or written in ("x", "X"):
            yield _Token("*", 0.0, 0, start, end)
        elif group == "over":
            yield _Token("/", 0.0, 0, start, end)
        elif group == "unknown" or (group == "word" and _is_letter(text, start, end)):
            yield _Token("?", 0.0, 0, start, end)
        elif group == "stop":
            yield _Token("stop", 0.0, 0, start, end)
        elif group == "sign":
            kind = "-" if written in "-−–" else written
            if kind != "-" or not text[end : end + 1].isalpha():  # the hyphen of "3-year"
                yield _Token(kind, 0.0, 0, start, end)


def _is_letter(text: str, start: int, end: int) -> bool:
    """Whether a word is a letter that stands for a number; "a" in "7 a day" does not, in "7a" it does."""
    return end - start == 1 and (text[start] not in "aAI" or text[start - 1 : start].isdigit())


def _value(written: str) -> float | None:
    digits = written.replace(",", "")
    return float(digits) if len(digits) <= _DIGITS else None


def _read(sides: list[list[_Token]]) -> Iterator[Equation]:
    """The equations of a chain `a = b = c`: each side that computes, with the value of the side behind it."""
    if len(sides) < 2:
        return
    bare = [_without_open_brackets(side) for side in sides]
    known = [_evaluated(side) for side in bare]
    for (left, value), (right, result) in itertools.pairwise(zip(bare, known, strict=True)):
        operands = tuple(token.value for token in left if token.kind == "number")
        if value is None or result is None or len(operands) < 2:
            continue
        signs = "".join(
            token.kind
            for before, token in itertools.pairwise(left)
            if token.kind in _SIGNS and before.kind in ("number", ")", "%")
        )
        places = max((token.places for token in right if token.kind == "number"), default=0)
        near = _ROUNDED * 10.0**-places if places else 0.0
        holds = abs(value - result) <= max(near, 1e-6 * abs(result))
        yield Equation(operands, signs, result, holds)


def _without_open_brackets(side: list[_Token]) -> list[_Token]:
    """A side without the brackets around the whole equation, as in (3 + 4 = 7)."""
    opened = sum((token.kind == "(") - (token.kind == ")") for token in side)
    if opened > 0 and all(token.kind == "(" for token in side[:opened]):
        return side[opened:]
    if opened < 0 and all(token.kind == ")" for token in side[opened:]):
        return side[:opened]
    return side


def _evaluated(side: list[_Token]) -> float | None:
    """The value of a side; None if it is malformed, too long, or no finite number."""
    if not side or len(side) > _TERMS:
        return None
    written: list[str] = []
    for token in side:
        if token.kind == "%":
            if not written or not written[-1][0].isdigit():
                return None
            written[-1] = f"({written[-1]}/100.0)"
        else:
            written.append(repr(token.value) if token.kind == "number" else token.kind)
    try:
        value = _value_of(ast.parse("".join(written), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


_SIGNS = "+-*/"
_DO: Final[Mapping[type[ast.operator], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value_of(node: ast.expr) -> float:
    """The value of a sum, difference, product or quotient; another expression raises `KeyError`."""
    match node:
        case ast.Constant(value=float(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value_of(operand)
        case ast.BinOp(left=left, op=sign, right=right):
            return float(_DO[type(sign)](_value_of(left), _value_of(right)))
    raise KeyError(type(node).__name__)
