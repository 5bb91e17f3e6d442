"""Values: exact rationals against a slow reference, balls against mpmath, and the evidence bound of `zero_test`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import flint
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sympy import Integer, Rational

from adjudge.verifiers.math.nodes import Constant, Node, NotMathError, Number, Operation, Symbol
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.values import (
    MAX_BITS,
    MAX_FACTORIAL,
    Ball,
    Evaluation,
    NoValueError,
    exact,
    free_names,
    imaginary,
    is_complex,
    zero_test,
)

FUZZED = settings(deadline=None, max_examples=60, derandomize=True)
DIGITS = 50


def number(value: Fraction | int) -> Number:
    return Number(Fraction(value))


def pair(left: Node, right: Node) -> Callable[[Evaluation], tuple[Ball, Ball]]:
    return lambda run: (run.value(left), run.value(right))


def equal(left: str, right: str, point: dict[str, Fraction] | None = None, *, real: bool = True) -> bool | None:
    return zero_test(pair(parse(left), parse(right)), point or {}, real=real)


# -- exact ------------------------------------------------------------------------------------------------------


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    return Fraction(math.ceil(value) if up else math.floor(value))


def reference(node: Node) -> Fraction | None:
    """Evaluate with `fractions` alone; None for no value."""
    if isinstance(node, Number):
        return node.value
    assert isinstance(node, Operation)
    found = [reference(arg) for arg in node.args]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return None
    rules: dict[str, Callable[[], Fraction]] = {
        "add": lambda: sum(values, Fraction(0)),
        "mul": lambda: math.prod(values, start=Fraction(1)),
        "div": lambda: values[0] / values[1],
        "neg": lambda: -values[0],
        "pow": lambda: Fraction(values[0] ** int(values[1])),
        "abs": lambda: abs(values[0]),
        "percent": lambda: values[0] / 100,
        "floor": lambda: _rounded(values[0], up=False),
        "ceil": lambda: _rounded(values[0], up=True),
        "mod": lambda: values[0] % values[1],
        "min": lambda: min(values),
        "max": lambda: max(values),
    }
    try:
        return rules[node.name]()
    except ZeroDivisionError:
        return None


NUMBERS = st.fractions(min_value=-30, max_value=30, max_denominator=12).map(Number)


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def operation(name: str, count: int) -> st.SearchStrategy[Node]:
        return st.tuples(*[inner] * count).map(lambda args: Operation(name, args))

    names = {"add": 3, "mul": 2, "div": 2, "neg": 1, "abs": 1, "percent": 1, "floor": 1, "ceil": 1, "mod": 2, "min": 2}
    power = st.tuples(inner, st.integers(-4, 4).map(number)).map(lambda args: Operation("pow", args))
    return st.one_of(power, operation("max", 3), *[operation(name, count) for name, count in names.items()])


TREES = st.recursive(NUMBERS, _grown, max_leaves=12)


@FUZZED
@given(TREES)
def test_exact_agrees_with_fractions(tree: Node) -> None:
    expected = reference(tree)
    found = exact(tree)
    small = expected is not None and max(expected.numerator.bit_length(), expected.denominator.bit_length()) < 400
    assert found == expected or (found is None and not small)


@FUZZED
@given(TREES)
def test_balls_enclose_the_exact_value(tree: Node) -> None:
    value = reference(tree)
    assume(value is not None)
    assert value is not None
    try:
        found = zero_test(pair(tree, number(value)), {}, real=True)
    except NoValueError:  # a floor or a quotient of a ball that straddles a whole number
        return
    assert found is not False


EXACT_TABLE = [
    ("5!", 120), ("7!!", 105), ("0^0", 1),
    (r"\binom{10}{3}", 120), (r"\gcd(12, 18)", 6), ("lcm(4, 6)", 12), (r"\sqrt{144}", 12),
    (r"\sqrt[3]{-8}", -2), ("4^{1/2}", 2), ("8^{-2/3}", Fraction(1, 4)), (r"(-8)^{1/3}", -2),
    ("2^{-3}", Fraction(1, 8)),
    (r"\sqrt{\frac{9}{16}}", Fraction(3, 4)), (r"(-7) \bmod 3", 2), (r"\sqrt{2}", None),
    (r"\sqrt{-4}", None), ("1/0", None), ("0^{-1}", None), (r"\pi", None), ("x", None), ("(-1)!", None), ("2.5!", None),
    ("2^{2^{100}}", None), (f"{MAX_FACTORIAL + 1}!", None), (f"2^{{{MAX_BITS * 2}}}", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), EXACT_TABLE)
def test_exact_table(text: str, value: Fraction | int | None) -> None:
    assert exact(parse(text)) == value


# -- balls ------------------------------------------------------------------------------------------------------

BALL_TABLE: list[tuple[str, Any]] = [
    (r"\sqrt{2}+\sqrt{3}", lambda: sympy.sqrt(2) + sympy.sqrt(3)),
    (r"\sin 1", lambda: sympy.sin(1)),
    (r"\cos\frac{\pi}{7}", lambda: sympy.cos(sympy.pi / 7)),
    (r"\tan 2", lambda: sympy.tan(2)),
    (r"\cot 2", lambda: sympy.cot(2)),
    (r"\sec 2", lambda: sympy.sec(2)),
    (r"\csc 2", lambda: sympy.csc(2)),
    (r"\arcsin\frac13", lambda: sympy.asin(Rational(1, 3))),
    (r"\arccos\frac13", lambda: sympy.acos(Rational(1, 3))),
    (r"\arctan 5", lambda: sympy.atan(5)),
    (r"\sinh 1", lambda: sympy.sinh(1)),
    (r"\cosh 1", lambda: sympy.cosh(1)),
    (r"\tanh 1", lambda: sympy.tanh(1)),
    ("arcsinh(2)", lambda: sympy.asinh(2)),
    ("arccosh(2)", lambda: sympy.acosh(2)),
    ("arctanh(1/2)", lambda: sympy.atanh(Rational(1, 2))),
    ("arcsec(2)", lambda: sympy.asec(2)),
    ("arccsc(3)", lambda: sympy.acsc(3)),
    (r"\ln 7", lambda: sympy.log(7)),
    (r"\log_2 7", lambda: sympy.log(7) / sympy.log(2)),
    ("lg 7", lambda: sympy.log(7) / sympy.log(10)),
    (r"\exp(-3)", lambda: sympy.exp(-3)),
    ("e^{1.5}", lambda: sympy.exp(Rational(3, 2))),
    (r"2^{\sqrt2}", lambda: Integer(2) ** sympy.sqrt(2)),
    (r"\sqrt[5]{7}", lambda: Integer(7) ** Rational(1, 5)),
    (r"(-5)^{1/3}", lambda: -(Integer(5) ** Rational(1, 3))),
    (r"(-5)^{2/3}", lambda: Integer(5) ** Rational(2, 3)),
    (r"90^\circ", lambda: sympy.pi / 2),
    (r"|\pi - 4|", lambda: 4 - sympy.pi),
    (r"\frac12!", lambda: sympy.gamma(Rational(3, 2)) / 1),
    (r"\binom{1/2}{3}", lambda: Rational(1, 16)),
    (r"\lfloor 10\pi \rfloor", lambda: Integer(31)),
    (r"\lceil 10\pi \rceil", lambda: Integer(32)),
    (r"\max(\pi, 3)", lambda: sympy.pi),
    (r"erf(1)", lambda: sympy.erf(1)),
]


@pytest.mark.parametrize(("text", "expected"), BALL_TABLE, ids=[text for text, _ in BALL_TABLE])
def test_balls_enclose_what_mpmath_computes(text: str, expected: Callable[[], Any]) -> None:
    tree = parse(text.replace(r"\frac12!", r"(\frac12)!"))
    value = sympy.N(expected(), DIGITS + 10)
    middle = Fraction(int(sympy.floor(value * 10**DIGITS)), 10**DIGITS)
    low, high = middle - Fraction(2, 10**DIGITS), middle + Fraction(3, 10**DIGITS)
    before = flint.ctx.prec
    flint.ctx.prec = 400
    try:
        ball = Evaluation({}, real=True).value(tree)
        assert ball > flint.arb(flint.fmpq(low.numerator, low.denominator))
        assert ball < flint.arb(flint.fmpq(high.numerator, high.denominator))
    finally:
        flint.ctx.prec = before


@pytest.mark.parametrize(
    "text",
    ["1/0", r"\ln 0", r"\sqrt{-1}", r"\arcsin 2", r"\infty", "0^{-1}", r"\tan\frac{\pi}{2}", r"\frac{1}{\sin\pi}"],
)
def test_no_value_is_an_error_and_never_a_number(text: str) -> None:
    with pytest.raises(NoValueError):
        equal(text, text)


# -- zero_test --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 5, 16, 50, 100, 200, 300, 400])
def test_tiny_differences_are_never_equal(k: int) -> None:
    for base in ("1", "0", r"\frac{1}{3}", "10^{30}"):
        assert equal(base, f"{base}+10^{{-{k}}}") is not True
        assert equal(base, f"{base}+\\frac{{1}}{{10^{{{k}}}}}") is False
    for base in (r"\pi", r"\sqrt{2}", r"\sin 1", r"e^{20}"):
        assert equal(base, f"{base}+10^{{-{k}}}") is False
        assert equal(f"{base} x", f"({base}+10^{{-{k}}}) x", {"x": Fraction(7, 3)}) is False


@FUZZED
@given(st.fractions(max_denominator=10**6), st.integers(1, 400), st.sampled_from((1, -1)))
def test_rationals_that_differ_are_never_equal(value: Fraction, k: int, sign: int) -> None:
    other = value + Fraction(sign, 10**k)
    assert zero_test(pair(number(value), number(other)), {}, real=True) is False


IDENTITIES = [
    (r"\sqrt{8}", r"2\sqrt2"), (r"\frac{1}{\sqrt2}", r"\frac{\sqrt2}{2}"), (r"\sqrt{3+2\sqrt2}", r"1+\sqrt2"),
    (r"\sin\frac{\pi}{3}", r"\frac{\sqrt3}{2}"), (r"\ln 8", r"3\ln 2"), (r"\cos\frac{\pi}{5}", r"\frac{1+\sqrt5}{4}"),
    (r"\arctan 1", r"\frac{\pi}{4}"), (r"4\arctan\frac15-\arctan\frac1{239}", r"\frac{\pi}{4}"), ("e^{\\ln 3}", "3"),
    (r"\log_2 8", "3"), (r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}", "1"), (r"180^\circ", r"\pi"),
    (r"\binom{50}{25}", r"\frac{50!}{25!25!}"),
    (r"\sin 10^\circ", r"\cos 80^\circ"), (r"2^{0.5}", r"\sqrt2"), (r"\tan\frac{\pi}{12}", r"2-\sqrt3"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), IDENTITIES)
def test_identities_are_equal(left: str, right: str) -> None:
    assert equal(left, right) is True
    assert equal(right, left) is True
    assert equal(left, f"{right}+10^{{-60}}") is False


@FUZZED
@given(st.integers(1, 300), st.integers(1, 300), st.fractions(min_value=1, max_value=9, max_denominator=50))
def test_equal_expressions_are_never_refuted(a: int, b: int, x: Fraction) -> None:
    point = {"x": x}
    assert equal(f"\\sqrt{{{a}}}\\sqrt{{{b}}}", f"\\sqrt{{{a * b}}}") is True
    assert equal(f"(x+{a})(x-{b})", f"x^2+{a}x-{b}x-{a * b}", point) is True
    assert equal(f"\\ln({a}x)", f"\\ln {a}+\\ln x", point) is True
    assert equal(f"\\frac{{x^{{{a}}}}}{{x^{{{b}}}}}", f"x^{{{a}-{b}}}", point) is not False


def test_what_would_take_too_many_bits_is_undecided() -> None:
    assert equal(r"e^{e^{12}}+\pi-\pi", r"e^{e^{12}}") is None


def test_complex_values() -> None:
    assert equal(r"e^{i\pi}", "-1", real=False) is True
    assert equal("(1+i)^2", "2i", real=False) is True
    assert equal("(1+i)^2", "2i+10^{-50}", real=False) is False
    assert is_complex(parse("3+4i"))
    assert not is_complex(parse("3+4x"))


def test_names_that_a_point_must_hold() -> None:
    assert free_names(parse("x+y_1^2")) == {"x", "y_1"}
    assert free_names(parse(r"5\text{ cm}")) == {"unit:m"}
    assert free_names(Constant("pi")) == set()
    assert free_names(Operation("call", (Symbol("f"), Symbol("x")))) >= {"f", "x"}


# -- one precision for the whole process ------------------------------------------------------------------------


def test_the_working_precision_is_restored() -> None:
    before = flint.ctx.prec
    flint.ctx.prec = 77
    try:
        assert equal(r"\sqrt{2}^2", "2") is True
        with pytest.raises(NoValueError):
            equal(r"\ln 0", "1")
        with pytest.raises(NotMathError):
            zero_test(lambda _run: _raise(), {}, real=True)
        assert flint.ctx.prec == 77
    finally:
        flint.ctx.prec = before


def _raise() -> tuple[Ball, Ball]:
    raise NotMathError("from within")


def test_threads_take_turns() -> None:
    work = [(f"\\sqrt{{{n}}}^2", f"{n}", True) for n in range(2, 30)]
    work += [(f"\\sin {n}", f"\\sin {n}+10^{{-{n * 10}}}", False) for n in range(2, 30)]
    random.Random(0).shuffle(work)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda item: equal(item[0], item[1]), work))
    assert found == [expected for _, _, expected in work]


# -- one root, and functions that flatten out ---------------------------------------------------------------------

ROOTS = [
    (r"\sqrt[3]{-8}", "-2"), ("(-8)^{1/3}", "-2"), ("(-8)^{2/3}", "4"), ("(-8)^{-1/3}", r"-\frac12"),
    (r"\sqrt[3]{i^2}", "-1"), (r"\sqrt[4]{-4}", "1+i"), ("i^{1/3}", r"\frac{\sqrt3+i}{2}"),
    (r"\sqrt[3]{-8i}", r"\sqrt3-i"),
]  # fmt: skip


@pytest.mark.parametrize(("root", "value"), ROOTS)
def test_complex_numbers_keep_the_real_odd_roots_of_negative_numbers(root: str, value: str) -> None:
    assert equal(root, value, real=False) is True


def test_functions_near_their_limit_are_not_taken_for_it() -> None:
    for name in (r"\tanh", r"\coth", r"1+\operatorname{sech}", r"1+\operatorname{csch}", r"\operatorname{erf}"):
        assert equal(f"{name}(30)", "1") is False, name
        assert equal(f"{name}(10^9)", "1") is None, name


def test_a_complex_symbol_has_its_imaginary_part_beside_it() -> None:
    point = {"z": Fraction(3), imaginary("z"): Fraction(4)}
    assert equal("|z|", "5", point, real=False) is True
    assert equal(r"\operatorname{Im}(z)", "4", point, real=False) is True
    assert equal("z", "3", point) is True
