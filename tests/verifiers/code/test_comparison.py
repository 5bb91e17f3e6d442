"""Values and printed texts that are the same, and those that are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from adjudge.sandbox.codec import Handle
from adjudge.verifiers.code.comparison import Output, Rules, same_output, same_value

NAN = float("nan")


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (2, 2.0, True), (2, 2 + 1e-9, False), (2.0, 2 + 1e-9, True), (450015000, 450014999.9, False), (True, 1, True),
        (2, 2 + 1e-9j, False), ([1, 0.5], [1, 0.5 + 1e-9], True), ([1, 0.5], [1 + 1e-9, 0.5], False),
        (0.3, 0.1 + 0.2, True), (1.0, 1.0 + 1e-5, False), (10**20, 10**20 + 1, False),
        (0.0, 1e-9, False), (NAN, NAN, True), (1, NAN, False), (float("inf"), 1e308, False), (10**400, 1.0, False),
        ([1, 2], (1, 2), True), ([1, [2.0]], [1, [2 + 1e-9]], True), ([1, 2], [2, 1], False), ([], (), True),
        ({1, 2}, {2, 1}, True), ({1}, [1], False), ({"a": 1.0}, {"a": 1 + 1e-9}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, False), (1, "1", False), ("a", "a", True), (b"a", "a", False), (None, None, True), (None, 0, False),
        (None, False, False), ([], None, False), (0, [], False), (1 + 2j, 1 + 2.0000000001j, True),
        (Decimal("0.5"), 0.5, True),
        (1.0, Decimal("sNaN"), False), (Decimal(1), Decimal("sNaN"), False), ([1j], [Decimal("sNaN")], False),
        (Fraction(1, 3), 1 / 3, True), (1, Handle(1, "int"), False), (int, int, True),
    ],
)  # fmt: skip
def test_values(expected: Any, actual: Any, same: bool) -> None:
    assert same_value(expected, actual, Rules()) == same


@pytest.mark.parametrize("more", [0, 3000])
@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (lambda n: n, lambda n: n, True),
        (lambda n: [n, n + 1], lambda n: (n, n + 1), True),
        (lambda n: n, lambda n: float(n), True),
        (lambda n: n + 0.5, lambda n: n + 0.5 + 1e-9, True),
        (lambda n: n, lambda n: n + 1e-9, False),
        (lambda n: n + 0.5, lambda n: n + 0.6, False),
        (lambda n: [n + 0.5, "x"], lambda n: (n + 0.5 + 1e-9, "x"), True),
        (lambda n: {"a": [n], 1: {n}}, lambda n: {1: {n}, "a": (n,)}, True),
        (lambda n: {"a": [n]}, lambda n: {"b": [n]}, False),
        (lambda n: str(n), lambda n: n, False),
        (lambda n: NAN, lambda n: NAN, True),
        (lambda n: NAN if n else 0.5, lambda n: 0.5 if n else NAN, False),
        (lambda n: n + 0.5, lambda n: Decimal("sNaN"), False),
        (lambda n: deque([n]), lambda n: deque([n]), True),
        (lambda n: n // 2, lambda n: (n + 1) // 2, False),
        (lambda n: Fraction(n + 1, 3), lambda n: Decimal(n), False),
        (lambda n: n * (2**61 - 1), lambda n: 0, False),
        (lambda n: 10**400 + n, lambda n: 10**400 + n + 1, False),
    ],
)
def test_an_unordered_list_is_a_bag(
    expected: Callable[[int], Any], actual: Callable[[int], Any], same: bool, more: int
) -> None:
    count = 4 + more
    values = [expected(n) for n in range(count)]
    assert same_value(values, [actual(n) for n in reversed(range(count))], Rules(unordered=True)) == same
    assert not same_value(values, [actual(n) for n in range(count + 1)], Rules(unordered=True))


def test_what_is_equal_is_paired_before_what_is_close() -> None:
    assert same_value([1.0 + 1e-7, 1.0], [1.0, 1.0 + 1e-6], Rules(unordered=True))


def test_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    rules = Rules()
    assert same_value([[1, 2], [3, 4]], numpy.array([[1, 2], [3, 4]]), rules)
    assert same_value(numpy.array([0.1 + 0.2]), [0.3], rules)
    assert same_value(3, numpy.int64(3), rules)
    assert same_value(3, numpy.array(3), rules)
    assert not same_value([1, 2], numpy.array([[1, 2]]), rules)
    assert not same_value([1, 2], numpy.array([1.0, 2 + 1e-9]), rules)
    assert same_value([1.0, 2.0], numpy.array([1.0, 2 + 1e-9]), rules)
    assert not same_value("a", numpy.array(["a", "a"]), rules)


@pytest.mark.parametrize(
    ("expected", "actual", "lines", "tokens", "exact"),
    [
        ("1 2\n", "1 2", True, True, True),
        ("1 2\n3", "1  2 \n3\n\n", True, True, False),
        ("1\n2", "1 2", False, True, False),
        ("1.0", "1", True, True, False),
        ("0.333333", "0.3333333", True, True, False),
        ("1000000007", "1000000008", False, False, False),
        ("0.5", "0.6", False, False, False),
        ("YES", "Yes", False, False, False),
        ("1e3", "1000", False, False, False),
        ("1e+3", "1000", True, True, False),
        ("7", "7.0", False, False, False),
        ("7", "7.000000e+00", False, False, False),
        ("007", "7", False, False, False),
        ("7", "+7", False, False, False),
        ("0x10", "16", False, False, False),
        ("12e4", "120000", False, False, False),
        ("1.10", "1.1", False, False, False),
        ("3.00", "3", False, False, False),
        ("3.00", "3.000", True, True, False),
        ("-0.00", "0.00", True, True, False),
        ("2.5", "2.50", True, True, False),
        ("0.500000000", "0.5", True, True, False),
        ("100.000000", "100", True, True, False),
        ("1.5", "1e999999999", False, False, False),
        ("a   b", "a b", False, True, False),
        ("a b", "a   b", True, True, False),
        ("a\tb", "a b", False, True, False),
        ("  a", "a", True, True, False),
        (" a", "  a", True, True, False),
        (" 5\n10", "5\n10", True, True, False),
        ("5\n10", " 5\n10", False, True, False),
        (" 1  2\n10 20", "1  2\n10 20", True, True, False),
        (" 1  2\n10 20", "1 2\n10 20", False, True, False),
        ("  1\n 2 2", "1\n 2 2", False, True, False),
        ("  *\n***", "*\n***", False, True, False),
        ("a", "  a", True, True, False),
        ("a\n  b", "a\nb", False, True, False),
        ("a\n  b  \n\n", "a \n  b\n", True, True, False),
        ("  *\n ***", "*\n***", False, True, False),
        ("*\n ***", "  *\n ***", True, True, False),
        ("*\n**", " *\n**", False, True, False),
        ("*\n**", "*\n **", False, True, False),
        ("x  0.5", "x  0.50", True, True, False),
        ("nan", "NaN", False, False, False),
        ("1_000", "1000", False, False, False),
        ("1", "\u0661", False, False, False),
        ("", "\n", True, True, True),
        ("", "0", False, False, False),
        ("1", "1e999999999", False, False, False),
        ("\n1", "1", True, True, False),
        ("1", " \n\n1", True, True, False),
        ("\n *\n***", " *\n***", True, True, False),
        ("\n *\n***", "*\n***", False, True, False),
        ("\n1\n2", "1\n\n2", False, True, False),
        ("\n", "0", False, False, False),
    ],
)
def test_outputs(expected: str, actual: str, lines: bool, tokens: bool, exact: bool) -> None:
    found: dict[Output, bool] = {"lines": lines, "tokens": tokens, "exact": exact}
    for output, same in found.items():
        assert same_output(expected, actual, Rules(output=output)) == same, output


@pytest.mark.parametrize(
    ("expected", "actual", "lines", "tokens", "exact"),
    [
        ("12345678.50", "12345678.99", False, False, False),
        ("12345678.50", "12345678.500000001", True, True, False),
        ("1234567.89", "1234567.891234", False, False, False),
        ("66.6667", "66.66666666666667", True, True, False),
        ("66.6667", "66.6668", False, False, False),
        ("1234.57", "1234.5678", False, False, False),
        ("0.54321", "0.5432100001", False, False, False),
        ("0.333333", "0.3333333333333333", True, True, False),
        ("0.333333", "0.3333341", False, False, False),
        ("0.3", "0.30000000000000004", True, True, False),
        ("0.30000000000000004", "0.3", True, True, False),
        ("10000.0", "10000.000000018848", True, True, False),
        ("1000000007.0", "1000000999.0", False, False, False),
        ("3.141592653589793", "3.14159", False, False, False),
        ("3.141592653589793", "3.141592654", True, True, False),
        ("0.3333333333", "0.33333333", False, False, False),
        ("0.3333333333", "0.333333333", True, True, False),
        ("0.333333333333", "0.333333333", True, True, False),
        ("0.666667", "0.6666666666", True, True, False),
        ("123456.789012", "123456.789", True, True, False),
        ("1234567.891235", "1234567.8912345", True, True, False),
        ("1234567.891235", "1234568.5", False, False, False),
        ("1.23456789e-05", "0.0000123456789", True, True, False),
        ("2.000000000", "1.999999972", True, True, False),
        ("0.0", "-1.7763568394002505e-15", True, True, False),
        ("3.5", "03.5", False, False, False),
        ("3.5", "+3.5", False, False, False),
        ("1\n1 2\n1 2 3", "    1\n  1 2\n1 2 3", False, True, False),
        ("1\n1 2\n1 2 3", "  1\n 1 2\n1 2 3", False, True, False),
        ("1 2 3\n1 2\n1", "1 2 3\n 1 2\n  1", False, True, False),
        ("1\n1 2\n1 2 3", " 1\n 1 2\n 1 2 3", True, True, False),
        ("1\n2\n3", "1 \n 2 \n 3", True, True, False),
        ("1\n2\n3", "1\n  2\n  3", False, True, False),
        ("1\n\n2", "1\n\n 2", True, True, False),
        ("+--+\n|  |\n+--+", "   +--+\n|  |\n+--+", False, True, False),
        ("a\nb", "a\u2028b", False, False, False),
        ("a\nb", "a\x0cb", False, True, False),
        ("a b", "a\u3000b", False, False, False),
        ("a\nb", "a\r\nb\r\n", True, True, False),
        ("a\nb", "\n\n", False, False, False),
    ],
)
def test_shown_digits_and_indentation(expected: str, actual: str, lines: bool, tokens: bool, exact: bool) -> None:
    test_outputs(expected, actual, lines, tokens, exact)


def test_without_tolerance_numbers_are_exact() -> None:
    rules = Rules(tolerance=0.0)
    assert not same_value(0.3, 0.1 + 0.2, rules)
    assert not same_output("0.30000001", "0.30000002", rules)
