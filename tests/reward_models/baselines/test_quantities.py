"""Numbers and equations are read as written, and what is not understood counts neither way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.reward_models.baselines.features import values_in
from adjudge.reward_models.baselines.quantities import equations, numbers
from adjudge.scoring.conformance import hostile_responses

READ = {
    "plain": ("3 * 4 = 12", [("*", 12, True)]),
    "wrong": ("5 - 3 = 1", [("-", 1, False)]),
    "units": ("6 eggs + 3 eggs = 9 eggs", [("+", 9, True)]),
    "money": ("$1.50 x 2 = $3", [("*", 3, True)]),
    "thousands": ("1,200 + 300 = 1,500", [("+", 1500, True)]),
    "per cent": ("20% * 50 = 10", [("*", 10, True)]),
    "calculator": ("16 - 3 = <<16-3=13>>13", [("-", 13, True)]),
    "LaTeX": (r"\(1/3 \times 18 = 6\)", [("/*", 6, True)]),
    "fraction": (r"\frac{1}{2} + 1 = 1.5", [("+", 1.5, True)]),
    "units in LaTeX": (r"6\text{ eggs} \times 2 = 12", [("*", 12, True)]),
    "rounded": ("10 / 3 = 3.33", [("/", 3.33, True)]),
    "rounded too far": ("10 / 3 = 3.3", [("/", 3.3, True)]),
    "not rounded": ("10 / 3 = 3.35", [("/", 3.35, False)]),
    "precedence": ("2 + 3 * 4 = 14", [("+*", 14, True)]),
    "left to right": ("8 - 3 - 2 = 3", [("--", 3, True)]),
    "brackets": ("(2 + 3) * 4 = 20", [("+*", 20, True)]),
    "bracketed whole": ("he has (3 + 4 = 7) cats", [("+", 7, True)]),
    "minus sign": ("-3 + 5 = 2", [("+", 2, True)]),
    "chain": ("3 + 4 = 7 = 14 / 2", [("+", 7, True)]),
    "running total": ("12 - 5 = 7 - 2 = 5", [("-", 5, False), ("-", 5, True)]),
    "an article": ("3 + 4 = 7 a day", [("+", 7, True)]),
}

UNKNOWN = {
    "letters": "5p + 3 = 13",
    "letter behind": "3 + 4 = 7a",
    "product without a sign": "5(0.29) + 0.37 = 1.82",
    "power": "x^2 + 3 = 4",
    "root": r"\sqrt{4} + 1 = 3",
    "letters in a fraction": r"\frac{x}{2} + 3 = 3 / 1",
    "of": "20% of 50 = 10",
    "division by zero": "1 / 0 = 3",
    "open bracket inside": "2 * (3 + = 7",
    "hyphen": "a 3-year plan for 5 = 3",
    "no result": "3 + 4 =",
    "long number": "9999999999999999 + 1 = 2",
    "sentences": "He has 3. + 4 = 4",
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_equations_are_read(text: str, expected: list[tuple[str, float, bool]]) -> None:
    assert [(found.operators, found.result, found.holds) for found in equations(text)] == expected


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_understood_is_no_equation(text: str) -> None:
    assert equations(text) == []


@given(st.integers(0, 999), st.integers(1, 999), st.sampled_from("+-*"))
def test_true_equations_hold_and_false_ones_do_not(one: int, other: int, sign: str) -> None:
    result = {"+": one + other, "-": one - other, "*": one * other}[sign]
    (true,) = equations(f"{one} {sign} {other} = {result}")
    (false,) = equations(f"{one} {sign} {other} = {result + 1}")
    assert (true.operands, true.result, true.holds) == ((one, other), result, True)
    assert not false.holds


def test_number_words_count_where_asked_for() -> None:
    text = "Three boxes hold half a dozen eggs, 1,250.5 in all"
    assert numbers(text) == [1250.5]
    assert numbers(text, words=True) == [3, 2, 12, 1250.5]


@given(st.text(alphabet="0123456789+-*/=()%.,$x \\{}frac\n<>", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for found in equations(text):
        assert len(found.operands) >= 2


HONEST = "He buys 3 * 4 = 12 eggs.\nHe eats 5, so 12 - 5 = 7 are left.\nThe answer is 7."
PROBLEM = "Tom buys 3 boxes of four eggs and eats 5. How many are left?"


def seen(response: str) -> dict[str, float]:
    values = values_in(PROBLEM, response)
    return {**values["arithmetic"], **values["quantities"]}


def test_the_statistics_of_a_solution() -> None:
    found = seen(HONEST)
    assert found["wrong equations"] == 0
    assert found["numbers asked used"] == 1  # 3, 4 (a word) and 5
    assert found["operands from nowhere"] == 0  # 12 is a result
    assert found["answer is the last result"] == 1
    assert found["results unused"] == 0


@pytest.mark.parametrize(
    ("name", "response"),
    {
        "wrong equations": HONEST.replace("= 7", "= 8"),
        "operands from nowhere": HONEST.replace("12 - 5", "17 - 5").replace("= 7", "= 12"),
        "results unused": HONEST.replace("12 - 5", "9 - 5"),
        "results negative": HONEST.replace("12 - 5 = 7", "5 - 12 = -7"),
        "repeated equations": HONEST + "\n" + HONEST,
    }.items(),
)
def test_a_flaw_shows_in_its_statistic(name: str, response: str) -> None:
    assert seen(HONEST)[name] == 0
    assert seen(response)[name] > 0


@pytest.mark.parametrize("name", [name for name, text in hostile_responses().items() if isinstance(text, str)])
def test_hostile_texts_have_finite_statistics(name: str) -> None:
    text = hostile_responses()[name]
    assert isinstance(text, str)
    found = seen(text)
    assert list(found) == list(seen(""))
    assert all(abs(value) < 1e3 for value in found.values())
