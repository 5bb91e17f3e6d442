"""Comments in predictions: a remark says nothing, another value is another answer."""

from __future__ import annotations

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.logic.code_prediction import CodePredictionVerifier

CODE = "def f(x, y=1):\n    return [i * y for i in range(x)]"


def judge(answer: str) -> Score:
    reference = {"code": CODE, "predict": "output", "input": "3, 2", "output": "[0, 2, 4]"}
    return CodePredictionVerifier(where="response").verify(Sample(prompt="", response=answer, reference=reference))


@pytest.mark.parametrize("answer", ["[0, 2, 4]", "[0, 2, 4]  # twice each", "`[0, 2, 4]`", "[0,\n 2, 4]  # all even"])
def test_a_remark_says_nothing(answer: str) -> None:
    assert judge(answer).value == 1.0


@pytest.mark.parametrize(
    "answer",
    ["[0, 2, 4] # or [0, 1, 2]", "[0, 2, 4] # or None", "[0, # 1\n 2, 4]", "[0, 2, 4] # 5", "[0, 2, 4] # 'or' so"],
)
def test_another_value_is_another_answer(answer: str) -> None:
    score = judge(answer)
    assert (score.value, score.reason) == (0.0, "several_answers")


def test_a_sign_inside_a_text_is_no_comment() -> None:
    reference = {"code": "def f(x):\n    return x + ' # 1'", "predict": "output", "input": "'a'", "output": "'a # 1'"}
    sample = Sample(prompt="", response="'a # 1'", reference=reference)
    assert CodePredictionVerifier(where="response").verify(sample).value == 1.0


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("0, 3", 1.0),
        ("f(0, 3)", 1.0),
        ("f(b=3, a=0)", 1.0),
        ("assert f(0, 3) == 3", 1.0),
        ("`assert f(5, -2) == 3`", 1.0),
        ("f(0, 3) == 3", 1.0),
        ("f(0, 3) == 3.0", 1.0),
        ("assert f(0, 3)", 0.0),
        ("assert f(0, 3) == 4", 0.0),
        ("assert f(0, 4) == 3", 0.0),
        ("assert f(0, 3) == f(0, 3)", 0.0),
        ("assert f(0, 3) == 3 == 3", 0.0),
        ("assert f(0, 3) == 3 or f(1, 2) == 3", 0.0),
        ("assert g(0, 3) == 3", 0.0),
    ],
)
def test_an_input_may_stand_in_an_assert(answer: str, value: float) -> None:
    reference = {"code": "def f(a, b):\n    return a + b", "predict": "input", "input": "1, 2", "output": "3"}
    sample = Sample(prompt="", response=answer, reference=reference)
    assert CodePredictionVerifier(where="response").verify(sample).value == value
