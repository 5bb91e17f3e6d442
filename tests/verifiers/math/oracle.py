"""A second opinion on two mathematical answers: evaluate both at random points with 450 digits and compare.

Written for checking verdicts, so it shares no code with the verifier: a small recursive reader walks the LaTeX and
computes with mpmath as it goes.  It answers True (equal at every point tried), False (different at a point where both
sides are real and finite), or None (not read, or nothing could be compared).

Not covered: words, units, sums, integrals, limits, piecewise functions, and anything that needs a proof.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
from mpmath.libmp import NoConvergence  # type: ignore[import-untyped]

DIGITS = 450  # so that integers of 300 digits that differ in the last one are told apart
EQUAL = mpmath.mpf(10) ** -380
DIFFERENT = mpmath.mpf(10) ** -310
NOISE = mpmath.mpf(10) ** -400
TRIALS = 12

Value = Any  # an mpmath number, or a Shape


class Unread(Exception):
    """The text holds something this reader does not know."""


@dataclass(frozen=True)
class Shape:
    """A compound answer: `kind` is list, tuple, set, matrix, union, an interval's brackets, or a relation sign."""

    kind: str
    parts: tuple[Value, ...]


_DROP = re.compile(
    r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big|displaystyle|textstyle|limits|quad|qquad|[,;:! ])|~|\\\s|\$"
)
_TYPE = re.compile(r"\\(?:mathrm|mathbf|mathit|mathsf|rm|bf|operatorname\*?)\s*\{([A-Za-z]+)\}")
_SIGNS = str.maketrans({"−": "-", "×": "*", "·": "*", "÷": "/", "π": r"\pi ", "°": r"^\circ "})
_JOIN = re.compile(r"\\(?:text|textrm|mbox|mathrm)\s*\{\s*,?\s*(?:and|or)\s*\}")
_MATRIX = re.compile(r"\\begin\{([pb]?matrix|array)\}(?:\{[lcr|]*\})?(.*?)\\end\{\1\}", re.S)
_TOKEN = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?|\\[A-Za-z]+|\\[{}|%]|\S")
_NOT_READ = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}|\d-0\d|\d:\d|\d,\d{3}(?!\d)")  # words, dates, ratios, thousands
_OPERATORS = {r"\le": "<=", r"\leq": "<=", r"\leqslant": "<=", r"\lt": "<", r"\gt": ">"}
_OPERATORS |= {r"\ge": ">=", r"\geq": ">=", r"\geqslant": ">=", r"\ne": "!=", r"\neq": "!="}
_RELATIONS = ("=", "<", ">", "<=", ">=", "!=")
_GREEK = re.compile(
    "alpha|beta|[gG]amma|[dD]elta|(?:var)?epsilon|zeta|eta|(?:var)?theta|Theta|kappa|[lL]ambda|mu|nu|[xX]i|rho|[sS]igma"
    "|tau|(?:var)?phi|Phi|chi|[pP]si|[oO]mega|ell|hbar"
)
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "cot": mpmath.cot, "sec": mpmath.sec, "csc": mpmath.csc,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "ln": mpmath.log, "exp": mpmath.exp, "lg": mpmath.log10,
}  # fmt: skip
_INVERSE = {"sin": mpmath.asin, "cos": mpmath.acos, "tan": mpmath.atan}


def equal(first: str, second: str) -> bool | None:
    """Return whether two answers agree at random points, or None when that cannot be told."""
    with mpmath.workdps(DIGITS):
        agreed = 0
        ratios: list[Any] = []
        for trial in range(TRIALS):
            try:
                one, other = _read(first, trial), _read(second, trial)
                ratios += _ratio(one, other)
                verdict = _same(one, other)
            except (Unread, ZeroDivisionError, ValueError, OverflowError, RecursionError, NoConvergence):
                continue
            if verdict is False:
                return False
            agreed += verdict is True
        if len(ratios) > 1:
            steady = all(_same_number(ratio, ratios[0]) for ratio in ratios)
            return True if steady and mpmath.re(ratios[0]) != 0 else None
        return True if agreed > 1 else None


def _ratio(first: Value, second: Value) -> list[Any]:
    """Return (left - right of one) / (left - right of the other) for two relations with the same sign."""
    if not (isinstance(first, Shape) and isinstance(second, Shape) and first.kind == second.kind):
        return []
    if first.kind not in _RELATIONS or first.kind == "!=":
        return []
    one, other = (_number(shape.parts[0]) - _number(shape.parts[1]) for shape in (first, second))
    ratio = one / other
    return [ratio if first.kind == "=" or mpmath.re(ratio) > 0 else mpmath.mpf(0)]


def _same(first: Value, second: Value) -> bool | None:
    if not (isinstance(first, Shape) and isinstance(second, Shape)):
        return None if isinstance(first, Shape) or isinstance(second, Shape) else _same_number(first, second)
    bags = ("list", "set")
    if first.kind in bags and second.kind in bags:
        return _same_bag(_flat(first), _flat(second))
    if first.kind != second.kind:
        return False if first.kind[0] in "([" and second.kind[0] in "([" else None
    if first.kind[0] in "=<>!":
        return None  # relations are the business of `_ratio`
    if len(first.parts) != len(second.parts):
        return None if first.kind == "union" else False
    if first.kind == "union":
        return _same_bag(list(first.parts), list(second.parts)) or None
    verdicts = [_same(one, other) for one, other in zip(first.parts, second.parts, strict=True)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _flat(shape: Shape) -> list[Value]:
    members: list[Value] = []
    for part in shape.parts:
        inner = _flat(part) if isinstance(part, Shape) and part.kind == "list" else [part]
        members += [one for one in inner if shape.kind != "set" or True not in [_same(one, old) for old in members]]
    return members


def _same_bag(first: list[Value], second: list[Value]) -> bool | None:
    if len(first) != len(second):
        return False
    for one in first:
        verdicts = [_same(one, other) for other in second]
        if True not in verdicts:
            return None if None in verdicts else False
        second.pop(verdicts.index(True))
    return True


def _same_number(first: Any, second: Any) -> bool | None:
    one, other = mpmath.mpmathify(first), mpmath.mpmathify(second)
    if not (mpmath.isfinite(one) and mpmath.isfinite(other)):
        return True if one == other else None
    size = max(abs(one), abs(other))
    gap = abs(one - other)
    if gap <= EQUAL * size:
        return True
    if size < NOISE:
        return None  # sin(pi), say, comes out as 1e-450: perhaps a zero on both sides
    real = abs(mpmath.im(one)) <= EQUAL * size and abs(mpmath.im(other)) <= EQUAL * size
    return False if gap > DIFFERENT * size and real else None


def _read(text: str, trial: int) -> Value:
    text = re.sub(r"^(?:\s|\$|\\\[|\\\(|\\boxed\{(?=.*\}\s*\$?$))+|(?:\s|\$|\\\]|\\\)|\.)+$", "", text)
    text = _JOIN.sub(",", text.translate(_SIGNS))
    text = _DROP.sub(" ", _TYPE.sub(lambda found: _typed(found.group(1)), text))
    if _NOT_READ.search(re.sub(r"\\begin\{[a-z]+\}(\{[lcr|]*\})?|\\end\{[a-z]+\}", "", text)):
        raise Unread(text)
    return _Reader(text, trial).whole()


def _typed(name: str) -> str:
    if name in _FUNCTIONS or name in ("arg", "log"):
        return f"\\{name} "
    if name in ("e", "i"):
        return name
    raise Unread(name)


class _Reader:
    """Reads one answer and computes its value at one point."""

    def __init__(self, text: str, trial: int) -> None:
        self.trial = trial
        self.matrices: list[Shape] = []
        text = _MATRIX.sub(self._matrix, text)
        self.tokens: list[str] = [str(_OPERATORS.get(token, token)) for token in _TOKEN.findall(text)]
        self.at = 0

    def _matrix(self, found: re.Match[str]) -> str:
        rows = [row for row in found.group(2).split(r"\\") if row.strip()]
        cells = tuple(Shape("row", tuple(_Reader(cell, self.trial).whole() for cell in row.split("&"))) for row in rows)
        self.matrices.append(Shape("matrix", cells))
        return f" \\matrix {len(self.matrices) - 1} "

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unread(f"{token!r} where {expected or 'more'!r} is needed")
        self.at += 1
        return token

    def whole(self) -> Value:
        value = self.sequence()
        if self.peek():
            raise Unread(self.peek())
        return value

    def sequence(self) -> Value:
        parts = [self.relation()]
        while self.peek() in (",", ";"):
            self.take()
            parts.append(self.relation())
        return parts[0] if len(parts) == 1 else Shape("list", tuple(parts))

    def relation(self) -> Value:
        sides, signs = [self.union()], []
        while self.peek() in _RELATIONS:
            signs.append(self.take())
            sides.append(self.union())
        if signs and all(sign in (">", ">=") for sign in signs):
            signs = [sign.replace(">", "<") for sign in reversed(signs)]
            sides.reverse()
        return Shape(" ".join(signs), tuple(sides)) if signs else sides[0]

    def union(self) -> Value:
        parts = [self.sum()]
        while self.peek() == r"\cup":
            self.take()
            parts.append(self.sum())
        return parts[0] if len(parts) == 1 else Shape("union", tuple(parts))

    def sum(self) -> Value:
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("+", "-"):
            self.take()
        value = self.product()
        if sign < 0:
            value = -_number(value)
        while self.peek() in ("+", "-", r"\pm"):
            operator = self.take()
            term = _number(self.product())
            if operator == r"\pm":
                value = Shape("list", (_number(value) + term, _number(value) - term))
            else:
                value = _number(value) + term if operator == "+" else _number(value) - term
        return value

    def product(self) -> Value:
        value = self.power()
        while True:
            token = self.peek()
            if token in ("/", r"\div"):
                self.take()
                value = _number(value) / _number(self.power())
            elif token in ("*", r"\cdot", r"\times"):
                self.take()
                value = _number(value) * _number(self.power())
            elif self.starts_factor(token):
                if token[0].isdigit():
                    raise Unread("a number after a factor: a mixed number, or two numbers")
                mixed = self.tokens[self.at - 1].isdigit() and token in (r"\frac", r"\dfrac", r"\tfrac")
                factor = _number(self.power())
                if mixed and self.tokens[self.at - 1] == r"\%":
                    raise Unread("a mixed number of percent")
                value = _number(value) + factor if mixed else _number(value) * factor
            else:
                return value

    def starts_factor(self, token: str) -> bool:
        if not token or token in _RELATIONS or token in (r"\}", r"\pm", r"\cup", r"\div"):
            return False
        return token[0].isalnum() or token in ("(", "{", r"\{") or token.startswith("\\")

    def power(self) -> Value:
        value = self.atom()
        while self.peek() in ("!", "^", r"\%"):
            operator = self.take()
            if operator == "!":
                if self.peek() == "!":
                    raise Unread("double factorial")
                value = mpmath.gamma(_number(value) + 1)
            elif operator == r"\%":
                value = _number(value) / 100
            elif self.peek() in (r"\circ", r"\prime") or self.tokens[self.at : self.at + 3] == ["{", r"\circ", "}"]:
                raise Unread("degrees")
            else:
                value = _power(_number(value), _number(self.group()))
        return value

    def group(self) -> Value:
        """Read one TeX argument: a braced group, or a single character."""
        if self.peek() == "{":
            self.take()
            value = self.sequence()
            self.take("}")
            return value
        token = self.peek()
        if token[:1].isdigit() and len(token) > 1:
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        if self.peek() == "-":
            self.take()
            return -_number(self.group())
        return self.atom()

    def atom(self) -> Value:
        token = self.take()
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return mpmath.mpf(token)
        if token == "{":
            self.at -= 1
            return self.group()
        if token in ("(", "["):
            return self.bracketed(token)
        if token == r"\{":
            value = self.sequence()
            self.take(r"\}")
            return Shape("set", value.parts if isinstance(value, Shape) and value.kind == "list" else (value,))
        if token == "|":
            value = abs(_number(self.sequence()))
            self.take("|")
            return value
        if token.startswith("\\"):
            return self.command(token[1:])
        if token.isascii() and token.isalpha():
            return self.letter(token)
        raise Unread(token)

    def bracketed(self, opening: str) -> Value:
        value = self.sequence()
        closing = self.take()
        if closing not in (")", "]"):
            raise Unread(closing)
        if isinstance(value, Shape) and value.kind == "list":
            return Shape(opening + closing, value.parts)
        if opening + closing == "()" or (opening + closing == "[]" and not isinstance(value, Shape)):
            return value
        if opening + closing == "[]" and isinstance(value, Shape) and value.kind == "matrix":
            return value
        raise Unread(opening + closing)

    def letter(self, name: str) -> Value:
        if self.peek() == "_":
            self.take()
            name += "_" + "".join(self.raw_group())
        if self.peek() in ("'", r"\prime"):
            raise Unread("prime")
        if name == "e":
            return mpmath.e
        if name == "i":
            return mpmath.mpc(0, 1)
        if name in ("f", "g", "h") and self.peek() == "(":
            raise Unread("a function by name")
        name = "c" + name[1:] if name[0] == "C" else name
        return _point(name, self.trial)

    def raw_group(self) -> Iterator[str]:
        if self.peek() != "{":
            yield self.take()
            return
        self.take()
        while self.peek() != "}":
            yield self.take()
        self.take("}")

    def command(self, name: str) -> Value:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            top = _number(self.group())
            return top / _number(self.group())
        if name == "sqrt":
            return self.root()
        if name in ("binom", "dbinom", "tbinom"):
            top = _number(self.group())
            return mpmath.binomial(top, _number(self.group()))
        if name == "pi":
            return +mpmath.pi
        if name == "infty":
            return mpmath.inf
        if name == "matrix":
            return self.matrices[int(self.take())]
        if _GREEK.fullmatch(name):
            return self.letter(name) if self.peek() == "_" else _point(name, self.trial)
        if name == "pm":
            value = _number(self.product())
            return Shape("list", (value, -value))
        if name in _FUNCTIONS or name == "log":
            return self.function(name)
        raise Unread(name)

    def root(self) -> Value:
        degree = mpmath.mpf(2)
        if self.peek() == "[":
            self.take()
            degree = _number(self.sum())
            self.take("]")
        return _power(_number(self.group()), 1 / degree, odd_root=int(degree) % 2 == 1)

    def function(self, name: str) -> Value:
        base: Any = None
        function: Any = _FUNCTIONS.get(name, mpmath.log)
        exponent: Any = None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                base = _number(self.group())
            else:
                exponent = _number(self.group())
        if name == "log" and base is None:
            raise Unread("log without a base")
        if exponent == -1 and name in _INVERSE:
            function, exponent = _INVERSE[name], None
        value = function(_number(self.argument()))
        if self.peek() == "^":
            raise Unread("a power after an argument: of the argument or of the value")
        if base is not None:
            value /= mpmath.log(base)
        return value if exponent is None else _power(value, exponent)

    def argument(self) -> Value:
        """Read what a function name applies to: parentheses, or factors up to the next function or operator."""
        if self.peek() in ("(", "{", "|"):
            return self.atom()
        value = _number(self.power())
        stops = ("(", "{", "\\log", "\\cdot", "\\times", *(f"\\{name}" for name in _FUNCTIONS))
        while self.starts_factor(self.peek()) and self.peek() not in stops:
            value *= _number(self.power())
        if self.peek() == "/":
            self.take()
            value /= _number(self.power())
        return value


def _number(value: Value) -> Any:
    if isinstance(value, Shape):
        raise Unread(f"arithmetic with a {value.kind}")
    return value


def _power(base: Any, exponent: Any, *, odd_root: bool = False) -> Any:
    if odd_root and mpmath.im(base) == 0 and mpmath.re(base) < 0:
        return -((-base) ** exponent)
    if abs(mpmath.re(exponent)) > 10**7:
        raise Unread("an exponent beyond ten million")
    return mpmath.power(base, exponent)


def _point(name: str, trial: int) -> Any:
    """Return the value of a letter at one trial: first all positive, then mixed signs, at last all negative."""
    seed = zlib.crc32(f"{name}:{trial}".encode())
    size = mpmath.mpf(3 + seed % 9973) / 1069
    negative = trial >= TRIALS - 2 or (trial >= TRIALS // 3 and seed & 1)
    return -size if negative else size
