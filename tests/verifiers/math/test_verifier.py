"""The math verifier as a whole: options, references, the meaning of every status, and one score by every way in."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import re
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

import adjudge
from adjudge.protocol import Limits, Sample, Score
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.math.verifier import MathVerifier, gold_texts

MATH = MathVerifier()


def judge(reference: Any, response: Any, verifier: MathVerifier = MATH, finish_reason: str | None = None) -> Score:
    return verifier.verify(
        Sample(prompt="?", response=response, reference=reference, finish_reason=finish_reason),
    )


def box(text: str) -> str:
    return f"So $\\boxed{{{text}}}$."


# -- options ----------------------------------------------------------------------------------------------------

INVALID: list[dict[str, Any]] = [
    {"undecided": "one"}, {"undecided": None}, {"reasoning": "drop"}, {"unfinished": "zero"}, {"truncated": True},
    {"boxed": "first"}, {"units": "strict"}, {"units": ["optional"]}, {"percent": "ignore"}, {"precision": 0},
    {"precision": 51}, {"precision": "6"}, {"precision": 6.5}, {"precision": True}, {"precision": None},
    {"rel_tol": -0.1}, {"rel_tol": float("nan")}, {"rel_tol": float("inf")}, {"rel_tol": "0.1"}, {"rel_tol": None},
    {"rel_tol": True}, {"abs_tol": -1}, {"abs_tol": 1e6}, {"abs_tol": "small"}, {"abs_tol": 10**400},
    {"ordered": "no"}, {"ordered": None},
]  # fmt: skip


@pytest.mark.parametrize("options", INVALID, ids=str)
def test_invalid_options(options: dict[str, Any]) -> None:
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        MathVerifier(**options)


def test_unknown_options_and_positions_are_refused() -> None:
    made: Any = MathVerifier
    for arguments, options in (((), {"tolerance": 1}), (("zero",), {})):
        with pytest.raises(TypeError):
            made(*arguments, **options)


THINKING = "<think>maybe \\boxed{4}</think> So \\boxed{5}."
OPEN = "<think>maybe \\boxed{5}"
UNOPENED = "maybe \\boxed{5}</think>"
HUGE = box("9^{9^{9^9}}")
TWO = "It could be \\boxed{4}. Later it turns out to be \\boxed{5}."
OPTIONS: list[tuple[dict[str, Any], str, str, tuple[float | None, str]]] = [
    ({}, r"\ln|x|", box(r"\ln x"), (0.0, "undecided")),
    ({"undecided": "failed"}, r"\ln|x|", box(r"\ln x"), (None, "undecided")),
    ({"undecided": "failed"}, r"\ln|x|", box(r"\ln(2x)"), (0.0, "wrong")),
    ({}, "9", HUGE, (0.0, "undecided")),
    ({"undecided": "failed"}, "9", HUGE, (None, "undecided")),
    ({}, "5", THINKING, (1.0, "")),
    ({}, "4", "<think>\\boxed{4}</think> I do not know", (0.0, "")),
    ({"reasoning": "keep"}, "5", "<think>so \\boxed{5}</think>", (1.0, "")),
    ({"reasoning": "keep"}, "5", THINKING, (1.0, "")),
    ({}, "5", UNOPENED, (0.0, "no_answer")),
    ({"reasoning": "keep"}, "5", UNOPENED, (1.0, "")),
    ({}, "5", OPEN, (0.0, "unfinished_reasoning")),
    ({"unfinished": "accept"}, "5", OPEN, (1.0, "")),
    ({"unfinished": "accept"}, "6", OPEN, (0.0, "wrong")),
    ({"reasoning": "keep"}, "5", OPEN, (1.0, "")),
    ({}, "5", TWO, (1.0, "")),
    ({"boxed": "same"}, "5", TWO, (0.0, "several_answers")),
    ({"boxed": "same"}, "5", "It is \\boxed{5}, as said.\n\nAgain, the result is \\boxed{5}.", (1.0, "")),
    ({}, "1/3", box("0.333"), (0.0, "wrong")),
    ({"precision": 3}, "1/3", box("0.333"), (1.0, "")),
    ({"precision": 3}, "1/3", box("0.33"), (0.0, "wrong")),
    ({}, "100", box("101"), (0.0, "wrong")),
    ({"rel_tol": 0.01}, "100", box("101"), (1.0, "")),
    ({"rel_tol": 0.01}, "100", box("102"), (0.0, "wrong")),
    ({"abs_tol": 0.5}, "100", box("100.5"), (1.0, "")),
    ({"abs_tol": 0.5}, "100", box("100.6"), (0.0, "wrong")),
    ({"rel_tol": 0.5}, "0", box("0.001"), (0.0, "wrong")),
    ({"rel_tol": 0.01}, r"5\text{ m/s}", box(r"5.02\text{ m/s}"), (1.0, "")),
    ({"rel_tol": 0.01}, "5 m/s", box("5.02 m/s"), (1.0, "")),
    ({"rel_tol": 0.01}, "5 cm", box(r"50.2\text{ mm}"), (1.0, "")),
    ({"rel_tol": 0.01}, r"\$5", box(r"\$5.02"), (1.0, "")),
    ({"rel_tol": 0.01}, "5 cm", box(r"52\text{ mm}"), (0.0, "wrong")),
    ({"rel_tol": 0.01}, r"5\text{ m}^2", box(r"5.02\text{ m}"), (0.0, "wrong")),
    ({"rel_tol": 0.01}, r"5\text{ m/s}", box(r"5.02\text{ m}"), (0.0, "wrong")),
    ({"rel_tol": 0.01}, "3m+2", box("3.01m+2"), (0.0, "wrong")),
    ({"abs_tol": 0.01}, "0", box("0.001"), (1.0, "")),
    ({}, r"5\text{ m}", box("5"), (1.0, "")),
    ({}, r"5\text{ m}", box(r"5\text{ kg}"), (0.0, "wrong")),
    ({"units": "required"}, r"5\text{ m}", box("5"), (0.0, "wrong")),
    ({"units": "required"}, "5 cm", box("5"), (0.0, "wrong")),
    ({"units": "required"}, r"5\text{ m}", box(r"500\text{ cm}"), (1.0, "")),
    ({"units": "required"}, "5", box("5"), (1.0, "")),
    ({"units": "ignore"}, r"5\text{ m}", box(r"5\text{ kg}"), (1.0, "")),
    ({}, r"10\%", box("10"), (0.0, "wrong")),
    ({"percent": "lenient"}, r"10\%", box("10"), (1.0, "")),
    ({"percent": "lenient"}, r"10\%", box("0.1"), (1.0, "")),
    ({}, "1, 2", box("2, 1"), (1.0, "")),
    ({"ordered": True}, "1, 2", box("2, 1"), (0.0, "wrong")),
]  # fmt: skip


@pytest.mark.parametrize(("options", "gold", "response", "expected"), OPTIONS)
def test_options(options: dict[str, Any], gold: str, response: str, expected: tuple[float | None, str]) -> None:
    score = judge(gold, response, MathVerifier(**options))
    assert score.value == expected[0]
    assert score.reason == expected[1] or not expected[1]


def test_truncated_responses() -> None:
    assert judge("5", box("5"), finish_reason="length").reason == "truncated"
    assert judge("5", box("5"), finish_reason="length").value == 0.0
    assert judge("5", box("5"), finish_reason="stop").value == 1.0
    assert judge("5", box("5"), MathVerifier(truncated="grade"), "length").value == 1.0
    assert judge("5", box("6"), MathVerifier(truncated="grade"), "length").value == 0.0


# -- references -------------------------------------------------------------------------------------------------

GOLDS: list[tuple[Any, str, float]] = [
    (27, "27", 1.0), (27.0, "27", 1.0), (27.0, "27.5", 0.0), (0.1, r"\frac{1}{10}", 1.0), (-0.5, r"-\frac12", 1.0),
    (10**20 + 1, str(10**20 + 1), 1.0), (10**20 + 1, str(10**20), 0.0), (10**400, "1" + "0" * 400, 1.0),
    (-3, "-3", 1.0), (1e300, "10", 0.0), (["3", "4"], "4", 1.0), (["3", "4"], "5", 0.0), (["3", 4.0], "4", 1.0),
    (("1/2", "0.5"), r"\frac12", 1.0), ([["3"], "4"], "3", 1.0), (r"$\frac{1}{2}$", "0.5", 1.0),
    (r"So the answer is \boxed{\frac{1}{2}}.", "0.5", 1.0), ("6*7=42\n#### 42", "42", 1.0), ("x=3", "3", 1.0),
    (r"\boxed{3} and \boxed{4}", "3, 4", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "answer", "expected"), GOLDS)
def test_references(reference: Any, answer: str, expected: float) -> None:
    sample = Sample(prompt="?", response=box(answer), reference=reference)
    MATH.validate(sample)
    assert MATH.verify(sample).value == expected


@pytest.mark.parametrize(
    "reference",
    [None, True, float("nan"), float("inf"), [], {}, [None], ["3", True], b"5", {"gold": 5}, {"5"}, object()],
)
def test_what_is_no_reference(reference: Any) -> None:
    sample = Sample(prompt="?", response=box("5"), reference=reference)
    with pytest.raises(ValueError, match="reference"):
        MATH.validate(sample)
    score = MATH.verify(sample)
    assert (score.value, score.status, score.reason) == (None, "failed", "gold_unparsable")


def test_gold_texts() -> None:
    assert gold_texts([1, 2.5, "x", ["y"]]) == ["1", "2.5", "x", "y"]
    assert gold_texts(0.1 + 0.2) == ["0.30000000000000004", "0.3"]
    assert gold_texts("[1, 2]") == ["[1, 2]"]
    assert gold_texts(['["a", "b"]']) == ['["a", "b"]']
    assert gold_texts('["Paris", "City of Paris"]') == ["Paris", "City of Paris"]
    assert [judge(gold, box("420")).value for gold in ('["420"]', "[0, 420]")] == [1.0, 0.0]
    for response, value in (("0.3", 1.0), ("0.30000000000000004", 1.0), ("0.3000000000001", 0.0), ("0.31", 0.0)):
        assert judge(0.1 + 0.2, box(response)).value == value
    assert judge("0.30000000000000004", box("0.3")).value == 0.0, "a text is what it says"


UNREAD = r"\def\x{5}\x"


@pytest.mark.parametrize("reference", ["", "   ", "$ $", [""], ["5", ""], UNREAD, [UNREAD, UNREAD], r"\frac{1}{"])
@pytest.mark.parametrize("response", ["", box("5"), "no idea", "<think>x"])
def test_a_bad_gold_fails_whatever_the_response(reference: Any, response: str) -> None:
    score = judge(reference, response)
    assert (score.value, score.status, score.reason) == (None, "failed", "gold_unparsable")
    assert score.evidence["error"]


def test_of_several_golds_one_that_is_read_is_enough_to_accept() -> None:
    assert judge([UNREAD, "5"], box("5")).value == 1.0
    assert judge(["5", UNREAD], box("5")).value == 1.0
    assert judge(["5", UNREAD], box("6")).reason == "gold_unparsable"  # the unread one may be 6
    assert judge(["5", r"\ln|x|"], box(r"\ln x")).reason == "undecided"


# -- responses --------------------------------------------------------------------------------------------------

REASONS = [
    ("", "no_answer"), ("\\boxed{}", "no_answer"),
    ("I do not know how this could be done at all.\nSorry.", "no_answer"), ("\\boxed{6}", "wrong"),
    (f"\\boxed{{{UNREAD}}}", "unparsable_answer"), ("\\boxed{5_፩}", "unparsable_answer"),
    ("\\boxed{" + "{}" * 1500 + "5}", "unparsable_answer"), ("\\boxed{" + "€" * 1000 + "}", "unparsable_answer"),
    ("<answer>5</answer> <answer>6</answer>", "several_answers"), ("<think>\\boxed{5}", "unfinished_reasoning"),
    ("\\boxed{5} or \\boxed{6}", "wrong"), ("\\boxed{5, 6}", "wrong"), ("So \\boxed{5", "no_answer"),
    ("\\boxed{" + "x" * 5000 + "}", "unparsable_answer"),
]  # fmt: skip


@pytest.mark.parametrize(("response", "reason"), REASONS, ids=[response[:40] for response, _ in REASONS])
def test_a_response_that_does_not_answer_is_worth_zero(response: str, reason: str) -> None:
    score = judge("5", response)
    assert (score.value, score.status, score.reason) == (0.0, "scored", reason)
    json.dumps(score.to_dict())


TURNS: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Let me compute. \\boxed{4}"},
    {"role": "tool", "content": "\\boxed{7}"},
    {"role": "user", "content": "\\boxed{8}"},
]


def test_only_the_assistant_is_graded() -> None:
    assert judge("4", TURNS).value == 1.0
    assert judge("7", TURNS).value == 0.0
    assert judge("8", TURNS).value == 0.0
    parts = [
        *TURNS,
        {"role": "assistant", "content": [{"type": "text", "text": "So "}, {"type": "text", "text": "\\boxed{5}"}]},
    ]
    assert judge("5", parts).value == 1.0
    assert judge("7", [TURNS[1]]).reason == "no_answer"


@pytest.mark.parametrize(
    ("gold", "answer", "tier"),
    [("x^2", "x^2", "literal"), (r"\frac{1}{2}", "0.5", "rational"), ("2+2", "4", "exact"),
     (r"\sqrt8", r"2\sqrt2", "ball"), ("(x+1)^2", "x^2+2x+1", "points"), ("x=5", "5", "structure"),
     ("Paris", "London", "words")],
)  # fmt: skip
def test_the_deciding_tier_is_in_the_evidence(gold: str, answer: str, tier: str) -> None:
    score = judge(gold, box(answer))
    assert score.evidence["tier"] == tier
    assert (score.evidence["gold"], score.evidence["answer"], score.evidence["marker"]) == (gold, answer, "boxed")


SYMMETRIC = [
    ("1/2", "0.5"), ("x=5", "5"), ("(x+1)^2", "x^2+2x+1"), ("1,-2", "-2,1"), ("[0,1)", r"0\le x<1"), (r"\pi", "3.14"),
    ("5", "6"), ("Paris", "London"), (r"\ln|x|", r"\ln x"), ("x<2", "x>2"), (r"50\%", "0.5"),
    (r"5\text{ m}", r"500\text{ cm}"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SYMMETRIC)
def test_the_sides_can_be_exchanged(one: str, other: str) -> None:
    assert judge(one, box(other)).value == judge(other, box(one)).value


# -- the verifier as a scorer -----------------------------------------------------------------------------------


def test_every_way_in_gives_the_same_score() -> None:
    pairs = [
        ("1/2", "0.5"),
        ("1/2", "0.6"),
        (r"\ln|x|", r"\ln x"),
        (UNREAD, "5"),
        ("5", UNREAD),
        (r"\sqrt8", r"2\sqrt2"),
    ]
    samples = [Sample(prompt="?", response=box(answer), reference=gold) for gold, answer in pairs]
    with Pool(workers=1) as pool:
        pooled = asyncio.run(VerifierScorer(MATH, pool).score(samples))
    for sample, score in zip(samples, pooled, strict=True):
        ways = (MATH.verify(sample), adjudge.score("?", sample.response, sample.reference, scorer="math"))
        for way in ways:
            assert (way.value, way.status, way.reason) == (score.value, score.status, score.reason)
            assert dict(way.evidence) == dict(score.evidence)
        assert score.provenance.fingerprint == MATH.fingerprint


def test_threads_do_not_disturb_each_other() -> None:
    pairs = [("e^{i\\pi}", "-1"), (r"\sqrt{8}", r"2\sqrt{2}"), ("x^2-1", "(x-1)(x+1)"), ("1/2^{99}", "1/2^{98}")] * 20
    expected = [judge(gold, box(answer)).value for gold, answer in pairs]
    found: list[list[float | None]] = []
    threads = [
        threading.Thread(target=lambda: found.append([judge(gold, box(answer)).value for gold, answer in pairs]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert expected == [1.0, 1.0, 1.0, 0.0] * 20
    assert found == [expected] * 4


def test_the_fingerprint_names_options_and_version() -> None:
    class Newer(MathVerifier):
        version: ClassVar[str] = "2"

    every = {repr(options): options for options, *_ in OPTIONS}
    assert {name for options in every.values() for name in options} >= {
        item.name for item in dataclasses.fields(MathVerifier)
    } - {"truncated"}
    variants: Sequence[MathVerifier] = [*(MathVerifier(**options) for options in every.values()), Newer()]
    assert len({verifier.fingerprint for verifier in variants}) == len(every) + 1
    assert MATH.fingerprint == MathVerifier(precision=6).fingerprint


def test_pickling_keeps_the_options() -> None:
    verifier = MathVerifier(rel_tol=0.1, units="ignore")
    assert verifier.rules.rel_tol == 0.1
    assert pickle.loads(pickle.dumps(verifier)) == verifier
    assert judge("100", box("109"), pickle.loads(pickle.dumps(verifier))).value == 1.0


@pytest.mark.parametrize("reason", ["candidate_timeout", "candidate_memory", "candidate_crash"])
def test_a_killed_call_is_a_doubt(reason: str) -> None:
    sample = Sample(prompt="?", response="", reference="5")
    assert MATH.killed(sample, reason) == Score.scored(0.0, reason)
    failed = MathVerifier(undecided="failed").killed(sample, reason)
    assert (failed.value, failed.reason) == (None, "undecided")
    assert MathVerifier.limits == Limits(seconds=5.0, memory_mb=1024)
