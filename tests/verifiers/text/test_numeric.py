from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.responses.number_text import NumberError, read_quantity
from adjudge.verifiers.text.numeric import NumericVerifier

INTEGERS = st.integers(min_value=-(10**30), max_value=10**30)


def verdict(response: str, reference: Any, **options: Any) -> float | None:
    return NumericVerifier(**options).verify(Sample(prompt="", response=response, reference=reference)).value


@given(INTEGERS)
def test_an_integer_is_read_in_every_notation(number: int) -> None:
    for text in (
        f"{number}",
        f"{number:,}",
        f"{number:_}",
        f"{number:,}".replace(",", "\u202f"),
        f"{number:,}".replace(",", "{,}"),
        f"{number}.000",
        f"{number}e0",
        f"{number}0e-1",
        f"${number}$",
        f"**{number}**",
        f"{number}".replace("-", "\u2212"),
        f"{number} apples",
        f"x = {number}",
        f"\\text{{about {number} km}}",
    ):
        assert read_quantity(text).number == number, text


@given(INTEGERS, st.integers(min_value=1, max_value=10**12))
def test_a_fraction_is_read_in_every_notation(top: int, bottom: int) -> None:
    sign, size = ("-" if top < 0 else ""), abs(top)
    for text in (f"{top}/{bottom}", f"{sign}\\frac{{{size}}}{{{bottom}}}", f"$ {sign}\\dfrac{{{size}}}{{{bottom}}} $"):
        assert read_quantity(text).number == Fraction(top, bottom), text


@given(st.integers(min_value=0, max_value=999), st.integers(min_value=2, max_value=99), st.booleans())
def test_a_mixed_number_takes_its_sign_as_a_whole(whole: int, bottom: int, negative: bool) -> None:
    sign = "-" if negative else ""
    expected = Fraction(whole) + Fraction(bottom - 1, bottom)
    for text in (f"{sign}{whole} {bottom - 1}/{bottom}", f"{sign}{whole}\\frac{{{bottom - 1}}}{{{bottom}}}"):
        assert read_quantity(text).number == (-expected if negative else expected), text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6))
def test_a_decimal_is_exact(number: Decimal) -> None:
    text = f"{number:f}"
    assert read_quantity(text).number == Fraction(text)
    assert read_quantity(f"{number:e}").number == Fraction(number)
    assert read_quantity(f"{number:,f}").number == Fraction(text)
    assert read_quantity(text.replace(".", ","), decimal=",").number == Fraction(text)


@given(INTEGERS, INTEGERS)
def test_two_numbers_are_one_answer_only_when_equal(one: int, other: int) -> None:
    assume(one != other)
    for joiner in ("{} or {}", "{}, {}", "{} = {}", "{} and {}", "{} ({})", "{}\n{}"):
        with pytest.raises(NumberError) as caught:
            read_quantity(joiner.format(one, other))
        assert caught.value.reason in ("several_answers", "unparsable_answer")


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_a_number_error(text: str) -> None:
    try:
        quantity = read_quantity(text)
    except NumberError as error:
        assert error.reason in ("no_answer", "several_answers", "unparsable_answer", "too_complex")  # noqa: PT017
    else:
        assert isinstance(quantity.value, Fraction)


@given(st.text(alphabet="0123456789.,-+/*^%$ eE()\\{}=x", max_size=40))
def test_a_number_that_is_read_is_written_there(text: str) -> None:
    try:
        quantity = read_quantity(text)
    except NumberError:
        return
    # Reading back what was read gives the same number: no part of it came from nowhere.
    number = quantity.number
    assert read_quantity(f"{number.numerator}/{number.denominator}").number == number


@given(st.text(max_size=80), st.sampled_from([5, "5", 5.0, Fraction(5), Decimal(5), ["6", 5]]))
def test_any_response_scores_zero_or_one(response: str, reference: Any) -> None:
    assert verdict(response, reference) in (0.0, 1.0)


def test_a_float_reference_is_read_as_it_prints() -> None:
    assert verdict("0.1", 0.1) == 1.0
    assert verdict("0.1000000000000000055511151231257827", 0.1) == 0.0
    assert verdict("3602879701896397/36028797018963968", 0.1) == 0.0  # the binary value behind 0.1


def test_tolerances_are_exact() -> None:
    # 0.1 * 3 is 0.30000000000000004 in floats; as fractions |1.3 - 1| <= 3/10 holds exactly.
    assert verdict("1.3", 1, abs_tol=0.3) == 1.0
    assert verdict("1.30000000000000000001", 1, abs_tol=0.3) == 0.0
    assert verdict("-101", -100, rel_tol=0.01) == 1.0
    assert verdict("1e-9", 0, rel_tol=0.5) == 0.0  # a share of zero is zero
    assert verdict("99.5", [10, 100], rel_tol=0.01) == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"rel_tol": -0.1},
        {"rel_tol": 1.0},
        {"rel_tol": float("nan")},
        {"abs_tol": float("inf")},
        {"abs_tol": float("nan")},
        {"abs_tol": -1},
        {"percent": "either"},
        {"units": "convert"},
        {"decimal": ";"},
    ],
)
def test_options_that_accept_everything_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="numeric"):
        NumericVerifier(**options)


def test_validate_tells_mistakes_from_bad_values() -> None:
    verifier = NumericVerifier()
    for mistake in (None, True, [], {"gold": 5}, [1, None]):
        with pytest.raises(ValueError, match="numeric"):
            verifier.validate(Sample(prompt="", response="", reference=mistake))
    for value in ("five", "1e99999", float("nan"), Decimal("Infinity"), Decimal("1e99999")):
        verifier.validate(Sample(prompt="", response="", reference=value))
        assert verdict("5", value) is None


def test_long_integers_are_compared_exactly() -> None:
    number = 10**999 + 7
    digits = "1" + "0" * 998 + "7"
    assert verdict(digits, number) == 1.0
    assert verdict(digits[:-1] + "8", number) == 0.0
    assert verdict("5", 10**20_000) == 0.0


@pytest.mark.parametrize(
    "unit", ["1", "5 ", "9,", "(", "1/", "1=", "$1", "\\text{", "hundred ", "-", ".", "²", "½", "answer is 5. "]
)
def test_a_quarter_million_characters_score_at_once(unit: str) -> None:
    for response in (unit * (250_000 // len(unit)), "\\boxed{" + unit * (1_900 // len(unit)) + "}"):
        assert verdict(response, "123456") == 0.0


@pytest.mark.parametrize("percent", [r"\boxed{40\%}", "40%", "The answer is 40%.", "40 percent", "40", r"\boxed{40}\%"])
def test_where_a_percentage_is_asked_for_the_sign_may_be_there(percent: str) -> None:
    asked = Sample(prompt="What percentage of them passed?", response=percent, reference="40")
    assert NumericVerifier().verify(asked).value == 1.0
    assert verdict(percent, "40") == float(percent == "40")
    for wrong in ("0.4", r"\boxed{0.4\%}", "4000%", "41%"):
        asked = Sample(prompt="What percentage of them passed?", response=wrong, reference=40)
        assert NumericVerifier().verify(asked).value == 0.0
    for gold in ("0.4", "40%"):
        asked = Sample(prompt="What percentage of them passed?", response="40%", reference=gold)
        assert NumericVerifier().verify(asked).value == 1.0


SOLUTION = "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nShe sold 48+24 = <<48+24=72>>72 clips.\n#### 72"


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ("So, 12 pens with a 25% discount would cost $27.", "27", 1.0),
        ("So, 12 pens with a 25% discount would not cost $27.", "27", 0.0),
        ("He has 3 cats and the dogs are 4.", "4", 0.0),
        ("***42***", "42", 1.0),
        ("2***3***7", "3", 0.0),
        ("42<|im_end|>", "42", 1.0),
        ("#### 42</s>", "42", 1.0),
        ("<s>42</s>\nNo, 43<end_of_turn>", "42", 0.0),
        (r"\boxed{m+n=73}", "73", 1.0),
        (r"\boxed{m+73}", "73", 0.0),
        (r"\boxed{2m+n=73}", "73", 0.0),
        (r"\boxed{12\text{ m}^2}", "12", 1.0),
        (r"\boxed{12^2}", "12", 0.0),
        ("72", SOLUTION, 1.0),
        ("24", SOLUTION, 0.0),
    ],
)
def test_answers_as_models_and_data_sets_write_them(response: str, reference: str, value: float) -> None:
    assert verdict(response, reference) == value


@pytest.mark.parametrize("sign", [">", "<", r"\ne", r"\geq", r"\le", "≠", "≥", r"\gt", "!="])
def test_a_box_behind_a_relation_is_no_value(sign: str) -> None:
    for space in ("", " "):
        assert verdict(rf"$x{space}{sign} \boxed{{7}}$", "7") == 0.0


def test_a_box_in_a_question_is_no_answer() -> None:
    assert verdict(r"Is it \boxed{7}?", "7") == 0.0
    assert verdict(r"Is it $\boxed{7}$?", "7") == 0.0


@pytest.mark.parametrize(
    "before",
    ["x =", r"x \approx", "What is 3+4?", r"\Rightarrow", "->", "=>", ">", "Work:\n>", "<b>", "</p><div>", "As x > 3,"],
)
def test_what_looks_like_a_relation_before_a_box(before: str) -> None:
    assert verdict(rf"{before} \boxed{{7}}", "7") == 1.0
