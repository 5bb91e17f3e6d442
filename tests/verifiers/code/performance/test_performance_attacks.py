"""The shipped attacks and other programs, really run and timed in the sandbox."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.code.performance.verifier import PerformanceVerifier

VERIFIER = PerformanceVerifier(max_waiting=1.0)
CASES = shipped_cases(VERIFIER, Path())
SMALL = {"min_seconds": 0.0, "repeats": 3, "max_repeats": 3, "max_waiting": 1.0}


def score_of(response: str, reference: Any, **options: Any) -> Score:
    verifier = dataclasses.replace(VERIFIER, **{**SMALL, **options})
    return verifier.verify(Sample(prompt="", response=response, reference=reference))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_attack_is_worth_nothing_and_real_speed_is(case: AttackCase) -> None:
    score = dataclasses.replace(VERIFIER, **case.options).verify(case.sample)
    assert (score.status, score.value) == ("scored", 1.0 if case.honest else 0.0), score
    assert not case.reason or score.reason == case.reason, score


def test_the_suite_is_large_enough_and_its_names_are_its_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert [case.honest for case in CASES].count(False) >= 25


def test_work_on_import_is_free_where_it_shall_be() -> None:
    """By default it is not: see the attack `import_time`."""
    reference = {
        "entry_point": "f",
        "baseline": "def f(n):\n    return sum(k * k for k in range(300_000)) + n",
        "inputs": [[1]],
    }
    program = "TABLE = sum(k * k for k in range(300_000))\ndef f(n):\n    return TABLE + n"
    options = {"loading": False, "scale": "raw", "fastest": 4.0, "grain": 2.0}
    assert any(
        score_of(program, reference, seed=seed, **options).value == 4.0 for seed in range(1, 6)
    )  # one undisturbed


FORESEES = """
import hashlib, sys
texts = ["1", {baseline!r}, {generator!r}, sys._getframe(1).f_locals["source"]]
whole = "".join(f"{{len(text)}}:{{text}}" for text in texts)
seed = int.from_bytes(hashlib.sha256(whole.encode("utf-8")).digest()[:7])
names = {{}}
exec(texts[2], names)
(known,) = names["inputs"](seed)
RESULT = pairs(*known)
slowly = pairs
def pairs(*case):
    return RESULT if list(case) == known else slowly(*case)
"""


@pytest.mark.parametrize(("seed", "value"), [(1, 1.0), (2, 0.0)])
def test_who_knows_the_seed_can_work_ahead_where_loading_is_free_and_nobody_else(seed: int, value: float) -> None:
    """So 0, which everybody knows, is refused there."""
    case = next(case for case in CASES if case.honest)
    baseline, generator = case.sample.reference["baseline"], case.sample.reference["inputs"]
    program = f"{baseline}\n{FORESEES.format(baseline=baseline, generator=generator)}"
    options = {**case.options, "loading": False, "seed": seed}
    assert score_of(program, case.sample.reference, **options).value == value
    with pytest.raises(ValueError, match="a seed of your own"):
        dataclasses.replace(VERIFIER, loading=False)


def test_the_case_is_not_there_while_a_program_loads_for_free() -> None:
    peeping = "import sys\nseen = sys._getframe(1).f_locals.get('case')\ndef f(n):\n    return seen is None"
    reference = {"entry_point": "f", "baseline": "def f(n):\n    return True", "inputs": [[1]]}
    assert score_of(peeping, reference, loading=False, seed=1).reason == ""
    assert score_of(peeping, reference, loading=True).reason == "wrong"


@pytest.mark.parametrize(
    ("program", "reason", "stage"),
    [("def f(n): return n + 1", "", "timed"), ("def f(n): return n + 1 if n < 50 else 0", "wrong", "tests")],
)
def test_the_tests_come_first(program: str, reason: str, stage: str) -> None:
    reference = {
        "entry_point": "f",
        "baseline": "def f(n): return 1 + n",
        "inputs": [[1]],
        "tests": ["assert f(1) == 2", "assert f(99) == 100"],
    }
    score = score_of(program, reference)
    assert (score.reason, score.evidence["stage"]) == (reason, stage)


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        ("def inputs(seed): return 1 / 0", "ZeroDivisionError"),
        ("def inputs(seed): return 3", "gave something else"),
        ("cases = [[1]]", "does not define"),
    ],
)
def test_a_generator_that_fails_is_the_references_fault(inputs: str, complaint: str) -> None:
    score = score_of("def f(n): return n", {"entry_point": "f", "baseline": "def f(n): return n", "inputs": inputs})
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert complaint in score.evidence["error"]


def test_data_of_all_kinds_crosses_over_as_it_is() -> None:
    made = "[bytearray(b'xy'), (1, {2: {3}}), 1 << 80, None]"
    reference = {
        "entry_point": "f",
        "baseline": "def f(*xs, **more):\n    return [type(x).__name__ for x in xs], str(xs), more",
        "inputs": f"def inputs(seed):\n    return [{{'args': {made}, 'kwargs': {{'x2': {{6}}}}}}]",
    }
    same = f"XS = tuple({made})\ndef f(*xs, **more):\n    return [type(x).__name__ for x in XS], str(XS), more"
    assert score_of(same, reference).reason == ""


def test_it_keeps_the_rules() -> None:
    """On values alone: that noise reaches over a step is told in the evidence, and not in every run."""
    reference = {"entry_point": "f", "baseline": "def f(n): return n", "inputs": [[1]]}
    options: dict[str, Any] = {**SMALL, "scale": "raw", "slowest": 0.5, "fastest": 1.5, "grain": 4.0}
    verifier = dataclasses.replace(VERIFIER, **options)
    samples = [
        Sample(prompt="Write f.", response=text, reference=reference)
        for text in ("def f(n): return n + 0", "def f(n): return n + 1")
    ]
    check_scorer(verifier, samples, tolerance=1e-9).raise_for_failures()
