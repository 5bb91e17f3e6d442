"""References that are none, with what their errors say."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.sandbox.codec import CodecError
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.code.performance import timed_run
from adjudge.verifiers.code.performance.task import given_cases, read_task
from adjudge.verifiers.code.performance.timed_run import _told, packed
from adjudge.verifiers.code.performance.verifier import PerformanceVerifier

GOOD = {"entry_point": "f", "baseline": "def f(x): return x", "inputs": [[1]]}


def test_the_forms_of_cases() -> None:
    task = read_task({**GOOD, "inputs": [[1, "a"], {"args": [2], "kwargs": {"y": [3]}}, {"kwargs": {}}]})
    assert len(task.cases) == 3
    assert task.generator is None
    made = read_task({**GOOD, "inputs": "def inputs(seed): return [[seed]]"})
    assert made.generator is not None
    assert made.cases == ()
    assert made.truth is made.baseline


@pytest.mark.parametrize(
    ("change", "mistake", "complaint"),
    [
        ({"inputs": []}, True, "1 to 100 cases"),
        ({"inputs": [[1]] * 101}, True, "1 to 100 cases"),
        ({"inputs": [3]}, True, "a case is 3"),
        ({"inputs": [{"arguments": [3]}]}, True, "a case is"),
        ({"inputs": [{"args": [], "kwargs": {1: 2}}]}, True, "a case is"),
        ({"inputs": [[object()]]}, False, "not plain data"),
        ({"inputs": "def inputs(seed) return"}, False, "inputs is not Python"),
        ({"baseline": "def f(x) return"}, False, "baseline is not Python"),
        ({"baseline": "(" * 5000}, False, "baseline is not Python"),
        ({"baseline": ""}, True, "baseline is ''"),
        ({"entry_point": "f()"}, True, "entry_point"),
        ({"memory_mb": 1}, True, "memory_mb"),
        ({"memory_mb": True}, True, "memory_mb"),
        ({"recall": 0.9}, True, "recall is 0.9"),
        ({"recall": {"least": 2}}, True, "least recall"),
        ({"recall": {"least": float("nan")}}, True, "least recall"),
        ({"recall": {"least": 0.9, "most": 0.9}}, True, "from 0.9 to 0.9"),
        ({"recall": {"least": 0.9, "truth": "def"}}, False, "truth is not Python"),
        ({"tests": []}, True, "tests"),
        ({"speed": 3}, True, "the reference is"),
    ],
)
def test_a_field_that_means_nothing_is_named(change: dict[str, Any], mistake: bool, complaint: str) -> None:
    reference = {**GOOD, **change}
    with pytest.raises(BadReferenceError, match=complaint) as caught:
        read_task(reference)
    assert caught.value.mistake is mistake
    for response in ("", "def f(x): return x"):
        score = PerformanceVerifier().verify(Sample(prompt="", response=response, reference=reference))
        assert (score.status, score.reason) == ("failed", "gold_unparsable")
    sample = Sample(prompt="", response="", reference=reference, id="s")
    if mistake:
        with pytest.raises(ValueError, match="sample 's'"):
            PerformanceVerifier().validate(sample)
    else:
        PerformanceVerifier().validate(sample)


@pytest.mark.parametrize("reference", [None, 3, "def f(): pass", [], {}, {"entry_point": "f"}])
def test_a_reference_of_another_shape_is_refused(reference: Any) -> None:
    with pytest.raises(ValueError, match=r"performance"):
        PerformanceVerifier().validate(Sample(prompt="", response="", reference=reference))


def test_what_a_generator_makes_is_looked_at_as_strictly() -> None:
    with pytest.raises(BadReferenceError, match="gave something else") as caught:
        given_cases({"args": [1]})
    assert not caught.value.mistake


@settings(max_examples=40)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode), st.sampled_from(
    [b'{"t":["done",1]}', b'{"t":["done"]}', b'{"t":["done",{"h":[1,"x"]}]}', b'{"t":["raised",1,2]}', b"[" * 9999]
)))  # fmt: skip
def test_whatever_a_process_writes_is_a_result_or_a_reason(text: bytes) -> None:
    told = _told(text, 0.5)
    assert told.seconds == 0.5
    assert told.reason in ("", "tampering", "candidate_error")
    assert not told.reason or told.value is None


def test_a_case_that_contains_itself_or_is_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_run, "_MAX_ITEMS", 10_000)
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for case in (loop, [deep]):
        with pytest.raises(BadReferenceError, match="levels deep"):
            given_cases([case])


@pytest.mark.parametrize(
    "value", [bytearray(b"x"), np.arange(3), array("i", [1]), memoryview(b"x")], ids=lambda value: type(value).__name__
)
def test_what_marshal_would_make_bytes_of_does_not_go_through_it(value: Any) -> None:
    """What would arrive as its bytes crosses as it is or not at all; the baseline would be right about another task."""
    assert packed([[1, "a"]], {"x": {2}})[:1] == b"m"
    if isinstance(value, memoryview):
        with pytest.raises(CodecError):
            packed([[value]], {})
    else:
        assert packed([[value]], {})[:1] == b"c"


def test_long_cases_are_refused() -> None:
    with pytest.raises(BadReferenceError, match="33554432 are the most"):
        given_cases([["x" * (17 << 20)], ["y" * (17 << 20)]])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"slowest": 2.0, "fastest": 1.0}, "they are a range"),
        ({"slowest": 0.0}, "slowest"),
        ({"fastest": float("inf")}, "fastest"),
        ({"grain": 0}, "grain"),
        ({"repeats": 2}, "repeats"),
        ({"repeats": 9, "max_repeats": 5}, "max_repeats"),
        ({"undecided": "zero"}, "undecided"),
        ({"scale": "log"}, "scale"),
        ({"loading": 1}, "loading"),
        ({"seed": -1}, "seed"),
        ({"seconds": True}, "seconds"),
        ({"memory_mb": 3.5}, "memory_mb"),
        ({"isolation": "docker"}, "isolation"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        PerformanceVerifier(**options)
