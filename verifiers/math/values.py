"""Values of expressions: exact rationals where possible, rigorous balls everywhere else.

A ball (python-flint's `arb`, `acb`) is a midpoint with an error radius that provably encloses the true value, so
two values whose balls do not meet are certainly different.  That equality of balls means equality of values
rests on the evidence bound in `zero_test`.

Every computation here has a bound that depends only on the expression, never on a clock: the same expression
gives the same result on a busy and on an idle machine.  Not covered: infinite sums, integrals, limits.
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any, Final, TypeAlias

import flint

from adjudge.verifiers.math.nodes import Constant, Node, NotMathError, Number, Operation, Symbol, Unit, is_op, walk
from adjudge.verifiers.math.units import factor

MAX_BITS: Final = 32_768  # of an exact numerator or denominator; beyond it balls take over
MAX_FACTORIAL: Final = 2500
MAX_PRECISION: Final = 40_000  # bits; one elementary function there costs about 10 ms
LOG2: Final = math.log(2)

# The extension types of python-flint carry no annotations.
Ball: TypeAlias = Any  # flint.arb or flint.acb
Rational: TypeAlias = Any  # flint.fmpq


class _PrecisionLock:
    """python-flint keeps one working precision per process, so evaluations take turns; renewed after a fork."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.RLock()


PRECISION = _PrecisionLock()


class NoValueError(ArithmeticError):
    """The expression has no value that can be computed here: undefined, infinite or not an expression."""


# -- exact ------------------------------------------------------------------------------------------------------


def exact(node: Node) -> Fraction | None:
    """Return the value of an expression of rational operations, or None when there is none within `MAX_BITS`."""
    if isinstance(node, Number):
        return node.value
    if not isinstance(node, Operation) or node.name not in _EXACT:
        return None
    value = _rational(node)
    return Fraction(int(value.p), int(value.q)) if value is not None else None


def _rational(node: Node) -> Rational | None:
    if isinstance(node, Number):
        return flint.fmpq(node.value.numerator, node.value.denominator)
    rule = _EXACT.get(node.name) if isinstance(node, Operation) else None
    if rule is None or not isinstance(node, Operation):
        return None
    values = []
    for arg in node.args:
        value = _rational(arg)
        if value is None:
            return None
        values.append(value)
    result = rule(values)
    return result if result is None or _bits(result) <= MAX_BITS else None


def _bits(value: Rational) -> int:
    return int(value.p).bit_length() + int(value.q).bit_length()


def _product(values: list[Rational]) -> Rational | None:
    if sum(map(_bits, values)) > MAX_BITS * 2:
        return None
    return reduce(operator.mul, values)


def _power(values: list[Rational]) -> Rational | None:
    base, exponent = values
    if _bits(exponent) > 64 or (base == 0 and exponent < 0):
        return None
    if abs(int(exponent.p)) * max(_bits(base) - 1, 1) > MAX_BITS:
        return None
    raised = base ** int(exponent.p)
    return raised if exponent.q == 1 else _exact_root([raised, flint.fmpq(exponent.q)])


def _exact_root(values: list[Rational]) -> Rational | None:
    base, index = values
    if index.q != 1 or not 1 <= index <= 64:
        return None
    n = int(index.p)
    if base < 0 and n % 2 == 0:
        return None
    above, below = abs(base.p), base.q
    root_above, root_below = above.root(n), below.root(n)
    if root_above**n != above or root_below**n != below:
        return None
    return flint.fmpq(-root_above if base < 0 else root_above, root_below)


def _whole(value: Rational, highest: int) -> int | None:
    return int(value.p) if value.q == 1 and 0 <= value <= highest else None


def _factorial(values: list[Rational]) -> Rational | None:
    n = _whole(values[0], MAX_FACTORIAL)
    return flint.fmpq(math.factorial(n)) if n is not None else None


def _double_factorial(values: list[Rational]) -> Rational | None:
    n = _whole(values[0], MAX_FACTORIAL)
    return flint.fmpq(math.prod(range(n, 0, -2))) if n is not None else None


def _exact_binomial(values: list[Rational]) -> Rational | None:
    n, k = _whole(values[0], MAX_FACTORIAL), _whole(values[1], 10**9)
    return flint.fmpq(math.comb(n, k)) if n is not None and k is not None else None


def _integers(rule: Callable[..., int]) -> Callable[[list[Rational]], Rational | None]:
    def apply(values: list[Rational]) -> Rational | None:
        return flint.fmpq(rule(*(int(value.p) for value in values))) if all(value.q == 1 for value in values) else None

    return apply


_EXACT: Final[dict[str, Callable[[list[Rational]], Rational | None]]] = {
    "add": lambda values: reduce(operator.add, values),
    "mul": _product,
    "div": lambda values: values[0] / values[1] if values[1] != 0 else None,
    "neg": lambda values: -values[0],
    "pow": _power,
    "root": _exact_root,
    "abs": lambda values: abs(values[0]),
    "percent": lambda values: values[0] / 100,
    "factorial": _factorial,
    "double_factorial": _double_factorial,
    "binomial": _exact_binomial,
    "floor": lambda values: flint.fmpq(values[0].floor()),
    "ceil": lambda values: flint.fmpq(values[0].ceil()),
    "mod": lambda values: values[0] - values[1] * (values[0] / values[1]).floor() if values[1] != 0 else None,
    "min": min,
    "max": max,
    "gcd": _integers(math.gcd),
    "lcm": _integers(math.lcm),
}


# -- balls ------------------------------------------------------------------------------------------------------


class Evaluation:
    """One evaluation of expressions at a point, in real or complex balls.

    Attributes:
        bits: sum of |log2| of the sizes that literals, powers, exponentials and factorials reach: how far from 1
            the numbers of the expression can be.  `zero_test` derives the needed precision from it.
    """

    def __init__(self, point: dict[str, Fraction], *, real: bool) -> None:
        """Fix the values of the free symbols; unit symbols are looked up as `unit:NAME`."""
        self.point = point
        self.ball = flint.arb if real else flint.acb
        self.real = real
        self.bits = 0.0

    def value(self, node: Node) -> Ball:
        """Return the ball of an expression at the current working precision.

        Raises:
            NoValueError: it has none.
        """
        if isinstance(node, Number):
            return self.rational(node.value)
        if isinstance(node, Symbol):
            return self.symbol(node.name)
        if isinstance(node, Constant):
            return self.constant(node.name)
        if isinstance(node, Unit):
            return self.unit(node.name)
        if not isinstance(node, Operation):
            raise NoValueError("a structure has no value")
        if node.name == "call":
            return self.rational(self.point[call_key(node)])
        if node.name == "pow":
            return self.sized(self.power(node.args[0], node.args[1]))
        args = [self.value(arg) for arg in node.args]
        rule = _BALL.get(node.name)
        if rule is None:
            raise NoValueError(f"no value for {node.name}")
        if node.name in _SATURATING:
            self.saturated(args[0], squared=node.name == "erf")
        result = rule(self, *args)
        return self.sized(result) if node.name in ("exp", "factorial", "binomial") else result

    def rational(self, value: Fraction) -> Ball:
        """Return the ball of a rational number and count its size."""
        self.bits += abs(value.numerator).bit_length() + value.denominator.bit_length() - 1
        if value.denominator == 1:
            return self.ball(value.numerator)
        return self.ball(flint.arb(flint.fmpq(value.numerator, value.denominator)))

    def symbol(self, name: str) -> Ball:
        """Return the value of a free symbol; that of a complex one has its imaginary part under `imaginary(name)`."""
        value = self.rational(self.point[name])
        if not self.real and (other := self.point.get(imaginary(name))) is not None:
            value = value + self.rational(other) * flint.acb(0, 1)
        return value

    def saturated(self, argument: Ball, *, squared: bool) -> None:
        """Count how close to its limit a function comes that gets there like exp(-2x), or like exp(-x^2)."""
        size = abs(argument).mid()
        exponent = size * size if squared else 2 * size
        self.bits += float(exponent) / LOG2 if exponent < 1e18 else 1e18

    def sized(self, value: Ball) -> Ball:
        """Count how far a value is from 1, in bits."""
        if not value.is_finite():
            raise NoValueError("not finite")
        size = abs(value).mid()
        if not size.is_zero():
            self.bits += min(abs(float(size.log())) / LOG2, 1e18)
        return value

    def constant(self, name: str) -> Ball:
        """Return the ball of a constant."""
        if name == "pi":
            return self.ball(flint.arb.pi())
        if name == "e":
            return self.ball(flint.arb.const_e())
        if name == "i" and not self.real:
            return flint.acb(0, 1)
        raise NoValueError(f"no value for the constant {name}")

    def unit(self, name: str) -> Ball:
        """Return a unit as its factor times the values of its base units."""
        scale, powers = factor(name)
        value = self.rational(scale)
        if name in ("degree", "degrees", "deg"):
            value = value * self.ball(flint.arb.pi()) / 180
        for base, power in powers.items():
            value = value * self.rational(self.point[f"unit:{base}"]) ** power
        return value

    def power(self, base: Node, exponent: Node) -> Ball:
        """Return a power; a negative base takes the real root where the exponent's denominator is odd.

        So it does among complex numbers: `(-8)^{1/3}` is -2 and never 1+i*sqrt(3).
        """
        rational = exact(exponent)
        below = self.value(base)
        if rational is None:
            return below ** self.value(exponent)
        self.bits += abs(rational.numerator).bit_length() + rational.denominator.bit_length()
        if rational.denominator == 1:
            if rational < 0 and below.contains(0):
                raise NoValueError("division by zero")
            return below ** int(rational)
        if rational.denominator % 2 and _negative(below):
            sign = -1 if rational.numerator % 2 else 1
            return sign * (-below) ** self.ball(flint.fmpq(rational.numerator, rational.denominator))
        return below ** self.ball(flint.arb(flint.fmpq(rational.numerator, rational.denominator)))


def imaginary(name: str) -> str:
    """Return the key under which a point holds the imaginary part of a complex symbol."""
    return f"{name} imaginary"


def _negative(value: Ball) -> bool:
    """Whether a ball, real or complex, holds negative real numbers only."""
    if isinstance(value, flint.acb):
        return bool(value.imag.is_zero() and value.real < 0)
    return bool(value < 0)


def call_key(node: Operation) -> str:
    """Return the key under which a point holds the value of an unknown function at its argument."""
    return f"call:{node!r}"


def _div(_: Evaluation, above: Ball, below: Ball) -> Ball:
    if below.contains(0):
        raise NoValueError("division by zero")
    return above / below


def _root(run: Evaluation, base: Ball, index: Ball) -> Ball:
    n = index.unique_fmpz() if run.real else index.real.unique_fmpz()
    if n is None or not 0 < int(n) <= 10_000:
        return base ** (1 / index)
    if int(n) % 2 and _negative(base):
        return -_root(run, -base, index)
    return base.root(int(n)) if run.real else base ** (flint.acb(1) / int(n))


def _log(_: Evaluation, value: Ball, base: Ball | None = None) -> Ball:
    return value.log() if base is None else value.log() / base.log()


def _floor(run: Evaluation, value: Ball) -> Ball:
    if not run.real:
        raise NoValueError("floor of a complex number")
    return value.floor()


def _mod(run: Evaluation, value: Ball, modulus: Ball) -> Ball:
    if run.point:
        raise NoValueError("a remainder with free variables, which are whole numbers then")
    return value - modulus * _floor(run, value / modulus)


def _binomial(_: Evaluation, n: Ball, k: Ball) -> Ball:
    return (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma()


def _degrees(run: Evaluation, value: Ball) -> Ball:
    return value * run.ball(flint.arb.pi()) / 180


def _sign(run: Evaluation, value: Ball) -> Ball:
    if run.real and value > 0:
        return run.ball(1)
    if run.real and value < 0:
        return run.ball(-1)
    raise NoValueError("the sign of a value that may be zero")


_SATURATING: Final = frozenset("tanh coth sech csch sinh cosh erf".split())

_BALL: Final[dict[str, Callable[..., Ball]]] = {
    "add": lambda _, *args: reduce(operator.add, args),
    "mul": lambda _, *args: reduce(operator.mul, args),
    "div": _div,
    "neg": lambda _, x: -x,
    "root": _root,
    "abs": lambda run, x: run.ball(abs(x)),
    "percent": lambda _, x: x / 100,
    "degree": _degrees,
    "factorial": lambda _, x: (x + 1).gamma(),
    "binomial": _binomial,
    "floor": _floor,
    "ceil": lambda run, x: -_floor(run, -x),
    "mod": _mod,
    "min": lambda run, *xs: _fold(run, "min", xs),
    "max": lambda run, *xs: _fold(run, "max", xs),
    "sgn": _sign,
    "exp": lambda _, x: x.exp(),
    "ln": _log,
    "log": _log,
    "erf": lambda _, x: x.erf(),
    "arccot": lambda run, x: run.ball(flint.arb.pi()) / 2 - x.atan(),
    "arcsec": lambda _, x: (1 / x).acos(),
    "arccsc": lambda _, x: (1 / x).asin(),
    "Re": lambda run, x: x if run.real else flint.acb(x.real),
    "Im": lambda run, x: x * 0 if run.real else flint.acb(x.imag),
    "arg": lambda run, x: run.ball((flint.acb(x)).arg()),
    **{name: (lambda _, x, name=name: getattr(x, name)()) for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch")},
    **{f"arc{name[1:]}": (lambda _, x, name=name: getattr(x, name)()) for name in (
        "asin", "acos", "atan", "asinh", "acosh", "atanh")},
}  # fmt: skip


def _fold(run: Evaluation, name: str, values: tuple[Ball, ...]) -> Ball:
    if not run.real:
        raise NoValueError(f"{name} of complex numbers")
    return reduce(lambda one, other: getattr(one, name)(other), values)


def free_names(node: Node) -> set[str]:
    """Return the keys that a point must hold to evaluate the node."""
    names: set[str] = set()
    for item in walk(node):
        if isinstance(item, Symbol):
            names.add(item.name)
        elif isinstance(item, Unit):
            names.update(f"unit:{base}" for base in factor(item.name)[1])
        elif is_op(item, "call"):
            names.add(call_key(item))
    return names


def is_complex(node: Node) -> bool:
    """Whether the imaginary unit occurs, or a function that only complex numbers need."""
    return any(
        (isinstance(item, Constant) and item.name == "i") or (is_op(item, "Re", "Im", "arg")) for item in walk(node)
    )


def both(left: Node, right: Node) -> Callable[[Evaluation], tuple[Ball, Ball]]:
    """Return what evaluates two expressions, as `zero_test` takes it."""
    return lambda run: (run.value(left), run.value(right))


def zero_test(
    difference: Callable[[Evaluation], tuple[Ball, Ball]],
    point: dict[str, Fraction],
    *,
    real: bool,
    highest: int = MAX_PRECISION,
) -> bool | None:
    """Decide whether two values at a point are equal.

    Args:
        difference: evaluates both values with the given evaluation.
        point: values of the free symbols.
        real: compute in real balls.
        highest: bits of working precision at most.

    Returns:
        False when the balls are disjoint, which is proof.  True when the values agree to `needed` bits after the
        point, where `needed` is 256 plus four times the bits that describe the sizes of all literals, powers
        and exponentials involved: an expression of that description that is not zero would have to cancel to a
        depth out of proportion to its size (the witness principle of Richardson, and the separation bounds of
        Burnikel et al. for radicals, in round numbers).  None when that takes more than `highest` bits.

    Raises:
        NoValueError: a value is undefined at the point.
    """
    with PRECISION.lock:
        before = flint.ctx.prec
        try:
            flint.ctx.prec = 96
            run = Evaluation(point, real=real)
            left, right = difference(run)
            if not (left.is_finite() and right.is_finite()):
                raise NoValueError("not finite")
            if not left.overlaps(right):
                return False
            needed = 256 + 4 * run.bits
            precision = needed + run.bits + 64
            while precision <= highest:
                flint.ctx.prec = int(precision)
                left, right = difference(Evaluation(point, real=real))
                if not left.overlaps(right):
                    return False
                if abs(left - right).abs_upper() < flint.arb(2) ** -int(needed):
                    return True
                precision *= 2
            return None
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            if isinstance(error, NotMathError):
                raise
            raise NoValueError(str(error)) from error
        finally:
            flint.ctx.prec = before
