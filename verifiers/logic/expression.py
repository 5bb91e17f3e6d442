"""Arithmetic and algebra as text: an exact value, or the assurance that a text is nothing but a formula.

`exact_value` works out whole numbers with + - * / and parentheses.  `require_formula` lets a formula of named variables
and functions pass to a library that would execute anything else that it is given (`sympy.parse_expr` does).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from adjudge.responses.markup import unwrap
from adjudge.verifiers.logic.literal import LiteralError, parse_python

MAX_FORMULA: Final = 2_000
_MAX_BITS: Final = 4_096  # of a power of numbers
_MAX_POWER: Final = 40
_SCALED: Final = re.compile(r"[\d.][eE][+-]?\d")
_SIGNS: Final = str.maketrans({"×": "*", "÷": "/", "−": "-", "·": "*", "–": "-", "[": "(", "]": ")"})
_TEX_SIGNS: Final = {"times": "*", "cdot": "*", "div": "/"}
_TEX_SIGN: Final = re.compile(r"\\(times|cdot|div|left|right|,|;|!|quad)(?![A-Za-z])")
_TEX_FRACTION: Final = re.compile(r"\\[dt]?frac\s{0,3}\{([^{}\\]*)\}\s{0,3}\{([^{}\\]*)\}")
_TIMES: Final = re.compile(r"(?<=[\d)])\s{0,3}[xX]\s{0,3}(?=[\d(])")
_EXACT: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_OPERATORS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)

FUNCTIONS: Final = frozenset(
    {
        *("sqrt", "exp", "log", "ln", "Abs"),
        *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "asec", "acsc"),
        *("sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh"),
    }
)
CONSTANTS: Final = frozenset({"pi", "E"})


def exact_value(text: str) -> tuple[Fraction, list[int]]:
    """Return what an expression of whole numbers is worth, and the numbers in it, sorted.

    Signs may be typographic ("×", "÷") or TeX's; what stands on either side of a "=" must be equal, and the numbers are
    those of the first side that is more than a number.  `LiteralError` if it is no such expression.
    """
    if len(text) > MAX_FORMULA:
        raise LiteralError("too_complex", f"{len(text)} characters; an expression may have {MAX_FORMULA}")
    if "#" in text:
        raise LiteralError("unparsable_answer", "an expression has no remarks")
    sides: list[tuple[Fraction, list[int]]] = []
    try:
        for side in _plain(text).split("="):
            used: list[int] = []
            sides.append((_exact(parse_python(side.strip()), used), used))
    except RecursionError as error:
        raise LiteralError("too_complex", "it is nested too deeply") from error
    if any(value != sides[0][0] for value, _ in sides):
        raise LiteralError("unparsable_answer", "the sides of the equation differ")
    value, used = next((side for side in sides if len(side[1]) > 1), sides[0])
    return value, sorted(used)


def require_formula(text: str, variables: frozenset[str]) -> None:
    """Raise `LiteralError` unless a text is numbers, variables and functions by name, + - * / ** and parentheses."""
    if len(text) > MAX_FORMULA:
        raise LiteralError("too_complex", f"{len(text)} characters; a formula may have {MAX_FORMULA}")
    if not text.isascii() or "#" in text or "\n" in text.strip():
        raise LiteralError("unparsable_answer", "a formula has one line and no remarks")
    if _SCALED.search(text):
        raise LiteralError("too_complex", "a number has an exponent")  # sympy would write out 1e999999999
    try:
        _size(parse_python(text.strip()), variables | CONSTANTS)
    except RecursionError as error:
        raise LiteralError("too_complex", "it is nested too deeply") from error


def _plain(text: str) -> str:
    """Return an expression without TeX's commands and the marks around it."""
    text = unwrap(text.strip().rstrip(".").strip())
    if "\\" in text:
        text = _TEX_SIGN.sub(lambda match: _TEX_SIGNS.get(match[1], ""), text)
        for _ in range(text.count("frac")):
            text = _TEX_FRACTION.sub(r"((\1)/(\2))", text, count=1)
    return _TIMES.sub("*", text.translate(_SIGNS))


def _exact(node: ast.expr, used: list[int]) -> Fraction:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            used.append(value)
            return Fraction(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_exact(inner, used)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _EXACT:
            try:
                return _EXACT[type(sign)](_exact(left, used), _exact(right, used))
            except ZeroDivisionError as error:
                raise LiteralError("unparsable_answer", "it divides by zero") from error
    raise LiteralError("unparsable_answer", f"a {type(node).__name__} is not arithmetic of whole numbers")


def _size(node: ast.expr, names: frozenset[str]) -> float | None:
    """Return a bound on the bits of a formula's number; None for one that holds a variable or a function."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return float(max(1, value.bit_length()))
        case ast.Constant(value=float()):
            return 64.0
        case ast.Name(id=name) if name in names:
            return None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return _size(inner, names)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in FUNCTIONS:
            _size(inner, names)
            return None
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_size(left, names), right, names)
        case ast.BinOp(left=left, op=sign, right=right) if isinstance(sign, _OPERATORS):
            sizes = (_size(left, names), _size(right, names))
            return None if None in sizes else sum(filter(None, sizes)) + 1
    raise LiteralError("unparsable_answer", f"a {type(node).__name__} has no place in a formula")


def _power(base: float | None, exponent: ast.expr, names: frozenset[str]) -> float | None:
    bits = _size(exponent, names)
    if bits is None:
        return None
    if isinstance(exponent, ast.Constant) and isinstance(exponent.value, float):
        value = Fraction(min(abs(exponent.value), 1e9))
    elif bits > 12:  # so that no exponent is a power itself: 9**9**9
        raise LiteralError("too_complex", "a power has a large exponent")
    else:
        value = abs(_exact(exponent, []))
    times = max(1.0, float(value))
    if times > _MAX_POWER or (base is not None and base * times > _MAX_BITS):
        raise LiteralError("too_complex", "a power is too large")
    return None if base is None else base * times
