"""What released graders of answers get wrong: Math-Verify, Qwen2.5-Math, open-instruct, reasoning-gym, MulDimIF."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Literal

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.instructions.verifier import InstructionVerifier
from adjudge.verifiers.math.verifier import MathVerifier
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.numeric import NumericVerifier

GOLD_AND_OTHER = {
    "a power of two next to it": (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"),
    "another factorial": (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    "a sum behind the part that is read": (r"1-\frac{1}{\mathrm{e}}", r"1+\frac{1}{\mathrm{e}}"),
    "another list of that length": (r"1,2,\ldots,n", r"1,3,5,\ldots,2n-1"),
    "another line": ("3*x-1*y+13=0", "3x+4y+14=0"),
    "a chain that is false": ("3", "x=5=3"),
    "other units": (r"5\text{ cm}", r"5\text{ m}"),
    "per cent": ("10", r"10\%"),
}


def math(response: str, gold: str) -> Score:
    return MathVerifier().verify(Sample(prompt="", response=response, reference=gold))


@pytest.mark.parametrize(("gold", "other"), GOLD_AND_OTHER.values(), ids=GOLD_AND_OTHER)
def test_math_verify_takes_these_for_equal(gold: str, other: str) -> None:
    assert math(f"\\boxed{{{gold}}}", gold).value == 1.0
    assert math(f"\\boxed{{{other}}}", gold).value == 0.0


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("The answer is pi/2", r"\frac{\pi}{2}"),
        (r"\boxed{½}", r"\frac12"),
        (r"\boxed{−5}", "-5"),
        ("答案是12。", "12"),
        (r"\fbox{42}", "42"),
        (r"\boxed{1.5e3}", "1500"),
        (r"\boxed{e^{i\pi}}", "-1"),
    ],
)
def test_math_verify_misses_these(response: str, gold: str) -> None:
    assert math(response, gold).value == 1.0


def test_an_answer_inside_unfinished_thinking_is_none() -> None:
    assert math("<think>it is 42", "42").value == 0.0


def test_math_verify_cancels_the_alarm_of_its_caller_and_ours_does_not() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        signal.alarm(1000)
        assert math(r"\boxed{x+1}", "1+x").value == 1.0
        assert signal.alarm(0) > 900
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_math_verify_raises_outside_the_main_thread_and_ours_does_not() -> None:
    found: list[float | None] = []
    thread = threading.Thread(target=lambda: found.append(math(r"\boxed{x+1}", "1+x").value))
    thread.start()
    thread.join(timeout=1200)
    assert found == [1.0]


@pytest.mark.parametrize(
    ("gold", "other"), [("100", "1"), ("1", "100"), ("12345", "12346"), ("(1,2)", "[1,2]"), ("0.5", "50")]
)
def test_qwens_grader_takes_per_cent_near_numbers_and_other_brackets(gold: str, other: str) -> None:
    assert math(f"\\boxed{{{other}}}", gold).value == 0.0


def test_qwens_grader_evaluates_the_answer_and_ours_does_not(tmp_path: Path) -> None:
    target = tmp_path / "made"
    score = math(f"\\boxed{{__import__('pathlib').Path('{target}').touch()}}", "1")
    assert (score.status, score.value) == ("scored", 0.0)
    assert not target.exists()


def test_qwens_reader_of_choices_takes_the_article_for_an_option() -> None:
    for response in ("A nice question, and B it is not.", "This needs A lot of thought.", "I think A is tempting"):
        sample = Sample(prompt="", response=response, reference={"choices": ["x", "y"], "answer": "A"})
        assert ChoiceVerifier().verify(sample).value == 0.0, response


def test_any_of_several_answers_is_enough_for_open_instruct() -> None:
    assert math(r"\boxed{41} or \boxed{42}", "42").value == 0.0
    assert math("Final Answer: 41. I hope it is correct. $42$", "42").value == 0.0


def test_a_number_near_the_gold_or_around_it_earns_a_share_in_reasoning_gym() -> None:
    for response in ("3.145", "3.14 or 2.71", "13.14"):
        assert NumericVerifier().verify(Sample(prompt="", response=response, reference="3.14")).value == 0.0, response


@pytest.mark.parametrize(("credit", "value"), [("count", 2.0), ("all", 0.0), ("fraction", 2 / 3)])
def test_muldimif_trains_on_a_count_and_tests_on_all_of_it(
    credit: Literal["count", "all", "fraction"], value: float
) -> None:
    asked = [{"kind": "no_commas"}, {"kind": "words", "args": {"min": 1}}, {"kind": "json"}]
    sample = Sample(prompt="", response="two words", reference=asked)
    assert InstructionVerifier(credit=credit).verify(sample).value == pytest.approx(value)
    assert InstructionVerifier().credit == "all"
