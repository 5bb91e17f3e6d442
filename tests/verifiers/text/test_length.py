from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.length import LengthPenalty, cosine_schedule, linear_schedule, soft_overlong


def verdict(response: str, extra: dict[str, Any] | None = None, **options: Any) -> float | None:
    return LengthPenalty(**options).verify(Sample(prompt="", response=response, extra=extra or {})).value


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 0.0),
        (16_384, 0.0),  # 20480 - 4096: the last length without punishment
        (16_385, -1 / 4_096),
        (18_432, -0.5),  # (16384 - 18432) / 4096
        (20_480, -1.0),
        (20_481, -1.0),
        (10**9, -1.0),
    ],
)
def test_soft_overlong_punishment(length: int, expected: float) -> None:
    assert soft_overlong(length, 20_480, 4_096) == expected
    assert verdict("", {"completion_tokens": length}) == expected


def test_soft_overlong_example_of_trl() -> None:
    assert soft_overlong(90, 100, 20) == -0.5  # (80 - 90) / 20


def test_a_buffer_of_zero_is_a_step() -> None:
    assert soft_overlong(100, 100, 0) == 0.0
    assert soft_overlong(101, 100, 0) == -1.0


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 1.0),  # cos 0 = 1: at_max + (at_zero - at_max)
        (250, 0.5 + 0.5 * (1 + math.sqrt(0.5)) / 2),  # cos(pi/4) = sqrt(1/2): 0.92677...
        (500, 0.75),  # cos(pi/2) = 0: the middle
        (750, 0.5 + 0.5 * (1 - math.sqrt(0.5)) / 2),  # 0.57322...
        (1_000, 0.5),  # cos(pi) = -1
    ],
)
def test_cosine_of_right_answers(length: int, expected: float) -> None:
    assert cosine_schedule(length, 1_000, 1.0, 0.5) == pytest.approx(expected, abs=1e-15)


def test_cosine_of_wrong_answers_rises() -> None:
    options: dict[str, Any] = {"kind": "cosine", "unit": "characters", "max_length": 1_000, "correct_key": "right"}
    # -0.5 + (-1 + 0.5) * (1 + cos(pi/2)) / 2 = -0.75
    assert verdict("x" * 500, {"right": False}, **options) == pytest.approx(-0.75)
    assert verdict("x" * 500, {"right": 1}, **options) == pytest.approx(0.75)
    assert verdict("", {"right": 0}, **options) == pytest.approx(-1.0)
    assert verdict("x" * 1_000, {"right": 1}, **options) == -1.0  # at the limit it is too long
    assert verdict("x" * 2_000, {"right": 1}, **options) == -1.0  # a bare cosine would be back at 1 here


def test_linear() -> None:
    assert linear_schedule(25, 100, 1.0, 0.0) == 0.75  # 1 - L / M
    options: dict[str, Any] = {"kind": "linear", "unit": "words", "max_length": 4, "at_zero": 1.0, "at_max": 0.0}
    assert [verdict("w " * count, **options) for count in range(6)] == [1.0, 0.75, 0.5, 0.25, 0.0, -1.0]


@given(st.integers(0, 300), st.integers(1, 200), st.data())
def test_longer_is_never_better(length: int, limit: int, data: st.DataObject) -> None:
    buffer = data.draw(st.integers(0, limit))
    for kind in ("overlong", "cosine", "linear"):
        options: dict[str, Any] = {"kind": kind, "unit": "characters", "max_length": limit, "buffer": buffer}
        shorter, longer = verdict("x" * length, **options), verdict("x" * (length + 1), **options)
        assert shorter is not None
        assert longer is not None
        assert shorter >= longer >= -1.0


def test_units() -> None:
    text = "zwölf Wörter\n\tsind  es nicht"
    for unit, length in (("words", 5), ("characters", len(text))):
        chosen: Any = unit
        score = LengthPenalty(unit=chosen).verify(Sample(prompt="", response=text))
        assert score.evidence["length"] == length
    reasoned = Sample(prompt="", response="<think>one two</think> three")
    assert LengthPenalty(unit="words", reasoning="strip").verify(reasoned).evidence["length"] == 1
    assert LengthPenalty(unit="words").verify(reasoned).evidence["length"] == 3


def test_validate_names_the_column() -> None:
    with pytest.raises(ValueError, match="'completion_tokens' is None; give the number"):
        LengthPenalty().validate(Sample(prompt="", response=""))
    with pytest.raises(ValueError, match="'right' is 'yes'"):
        LengthPenalty(kind="cosine", unit="words", correct_key="right").validate(
            Sample(prompt="", response="", extra={"right": "yes"})
        )
    LengthPenalty(unit="words").validate(Sample(prompt="", response=""))


def test_a_killed_measurement_is_no_bargain() -> None:
    verifier = LengthPenalty(unit="words", outside=-2.0)
    assert verifier.killed(Sample(prompt="", response=""), "candidate_timeout").value == -2.0


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "quadratic"},
        {"unit": "bytes"},
        {"max_length": 0},
        {"min_length": -1},
        {"min_length": 11, "max_length": 10, "buffer": 5},
        {"buffer": -1},
        {"buffer": 101, "max_length": 100},
        {"reasoning": "strip"},
        {"outside": 0.0},
        {"outside": float("nan")},
        {"kind": "cosine", "at_zero": float("inf")},
        {"kind": "cosine", "outside": 0.6},
        {"kind": "cosine", "outside": -0.9, "correct_key": "right"},
        {"correct_key": "right"},
    ],
)
def test_options_that_would_pay_for_breaking_the_limit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="length"):
        LengthPenalty(**options)
