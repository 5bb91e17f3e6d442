"""Numbers in digits, in words and as arithmetic, against Python's own."""

from __future__ import annotations

import random
from fractions import Fraction
from operator import add, mul, sub, truediv

import pytest

from adjudge.evals.attacks.guard import numbers, terms, whole_term


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", "18"),
        ("-1,800.5", "-3601/2"),
        (".5", "1/2"),
        ("1.8e1", "18"),
        ("50\\%", "1/2"),
        ("½", "1/2"),
        ("2½", "5/2"),
        ("2\\frac{1}{3}", "7/3"),
        ("\\dfrac12", "1/2"),
        ("\\frac{-6}{\\sqrt{4}}", "-3"),
        ("3²", "9"),
        ("2^3^2", "512"),
        ("2**-1", "1/2"),
        ("-2^2", "-4"),
        ("(3+3)(1+2)", "18"),
        ("2 × 9 − 0 ÷ 5", "18"),
        ("3 \\cdot 6", "18"),
        ("\\left(1+1\\right)*9", "18"),
        ("eighteen", "18"),
        ("Minus one hundred and twenty-three", "-123"),
        ("two thousand and five", "2005"),
        ("three hundred thousand", "300000"),
    ],
)
def test_one_piece_of_arithmetic_has_its_value(text: str, value: str) -> None:
    assert whole_term(text) == Fraction(value)
    assert list(terms(f"It is: {text}")) == [Fraction(value)]


@pytest.mark.parametrize(
    "text", ["", "x", "18!", "2x", "1/0", "9^999999", "\\sqrt{2}", "\\sqrt{-4}", "(1", "1 2", "0^-1"]
)
def test_what_is_none_has_no_value(text: str) -> None:
    assert whole_term(text) is None


def test_terms_are_as_long_as_they_go_and_numbers_are_all() -> None:
    assert list(map(int, terms("9 + 9 = 18, and 7 or (2)"))) == [18, 18, 7, 2]
    assert list(map(int, numbers("9 + 9 = 18, and 7 or (2)"))) == [9, 9, 18, 7, 2]
    assert list(terms("no one knows")) == []


def drawn(depth: int, rng: random.Random) -> tuple[str, Fraction | None]:
    """Return arithmetic in brackets, and its value; None where it divides by zero."""
    if depth == 0 or rng.random() < 0.2:
        number = rng.randint(0, 99)
        return str(number), Fraction(number)
    (left, first), (right, second) = drawn(depth - 1, rng), drawn(depth - 1, rng)
    sign = rng.choice("+-*/")
    text = f"({left} {sign} {right})"
    if first is None or second is None or (sign == "/" and not second):
        return text, None
    return text, {"+": add, "-": sub, "*": mul, "/": truediv}[sign](first, second)


def test_random_arithmetic_has_pythons_value() -> None:
    rng = random.Random(0)
    pairs = [drawn(4, rng) for _ in range(500)]
    assert [whole_term(text) for text, _ in pairs] == [value for _, value in pairs]
    assert sum(value is None for _, value in pairs) > 5


def test_products_come_before_sums_and_both_go_from_left_to_right() -> None:
    assert whole_term("1 + 2 * 3 - 8 / 4 / 2 - 1") == 1 + 6 - 1 - 1
