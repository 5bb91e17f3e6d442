from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.probes.planted import (
    gold_texts,
    hostile_responses,
    perturbed,
    right_answers,
    spelling,
    wrong_answers,
)


@pytest.mark.parametrize(
    ("reference", "texts"),
    [
        ("1/2", ["1/2"]),
        (["1/2", "0.5"], ["1/2", "0.5"]),
        (3, ["3"]),
        (0.5, ["0.5"]),
        ({"choices": ["x", "y"], "answer": "B"}, ["B"]),
        ({"tests": ["assert f(1)"], "solution": "def f(x): ..."}, ["def f(x): ..."]),
        ({"tests": ["assert f(1)"]}, []),
        (None, []),
        (True, []),
    ],
)
def test_golds_as_texts(reference: object, texts: list[str]) -> None:
    assert gold_texts(reference) == texts


@pytest.mark.parametrize(
    ("gold", "changed"),
    [
        ("5", "6"),
        ("9", "8"),
        ("19", "18"),
        ("1,000", "2,000"),
        ("0.50", "1.50"),
        ("-7", "-8"),
        (r"\frac{3}{4}", r"\frac{4}{4}"),
        (r"\sqrt{2}", r"\sqrt{3}"),
        ("x_1 = 5", "x_1 = 6"),
        ("5 m^2", "6 m^2"),
        ("m^2", ""),
        ("2^{0}", ""),
        ("Paris", ""),
    ],
)
def test_a_changed_number_is_another_answer(gold: str, changed: str) -> None:
    assert perturbed(gold) == changed


@given(st.fractions(), st.fractions())
def test_plain_numbers_are_told_apart_by_value(one: Fraction, other: Fraction) -> None:
    assert (spelling(str(one)) == spelling(str(other))) == (one == other)
    assert spelling(str(one)) == one


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.5", "1/2"), (r"\dfrac{1}{2}", "$0.50$"), ("1,000", "1000"), ("x = 3 y", "3y"), (r"\text{Yes}", "yes.")],
)
def test_spellings_of_one_answer(one: str, other: str) -> None:
    assert spelling(one) == spelling(other)


@given(st.text())
def test_no_text_breaks_the_planting(text: str) -> None:
    spelling(text)
    assert perturbed(text) != text or text == ""
    list(wrong_answers("math", text, [text, "another"]))


def test_right_answers_are_wrapped_for_math_alone() -> None:
    assert [answer.text for answer in right_answers("math", "1/2")] == ["1/2", r"\boxed{1/2}"]
    assert [answer.text for answer in right_answers("exact", "1/2")] == ["1/2"]
    for solution in (r"As 6/2=3, \boxed{3}", "6/2=<<6/2=3>>3\n#### 3"):
        assert [answer.text for answer in right_answers("math", solution)] == ["3", r"\boxed{3}"]
    assert [answer.text for answer in right_answers("grid", "1 2")] == ["<answer>1 2</answer>"]
    assert [answer.text for answer in right_answers("theorem_variants", "proved")] == [r"So it is \boxed{proved}"]


@pytest.mark.parametrize(
    ("scorer", "reference"),
    [
        ("coq", "forall n, n = n"),
        ("ordering", ["a", "b"]),
        ("grid", [[1, 2]]),
        ("math", None),
        ("code", ["assert f(1) == 2"]),
        ("code", "def test_f():\n    assert f(1) == 2"),
    ],
)
def test_a_task_or_a_list_that_is_one_answer_is_no_text_to_try(scorer: str, reference: object) -> None:
    assert not list(right_answers(scorer, reference))
    assert not list(wrong_answers(scorer, reference, ["other"]))


def test_wrong_answers_stand_where_right_ones_do() -> None:
    planted = [answer.text for answer in wrong_answers("grid", "1 2", ["3 4"])]
    tagged = [f"<answer>{text}</answer>" for text in ("2 2", "3 4")]
    assert planted == [*tagged, "<answer>1 2</answer> or <answer>3 4</answer>"]


def test_wrong_answers_are_not_the_gold() -> None:
    planted = [(answer.how, answer.text) for answer in wrong_answers("exact", "1/2", ["0.5", "x = 1/2", "3", "4", "5"])]
    assert planted == [
        ("a number changed", "2/2"),
        ("the gold of another row", "x = 1/2"),
        ("the gold of another row", "3"),
        ("two answers", "1/2 or x = 1/2"),
    ]


def test_hostile_responses_are_many_bounded_and_named_apart() -> None:
    found = list(hostile_responses())
    assert len(found) >= 30
    assert len({name for name, _ in found}) == len(found)
    assert max(len(text) for _, text in found) <= 500_000
