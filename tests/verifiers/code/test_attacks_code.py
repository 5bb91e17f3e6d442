"""The attacks of `verifiers/code/attacks.json` score 0, and the honest programs near them score 1."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.verifier import CodeVerifier

ROOT = Path(__file__).parents[3]
DATA = json.loads((ROOT / "verifiers" / "code" / "attacks.json").read_text(encoding="utf-8"))


LONG = (
    "channel-flood decode-decimals decode-equal-hashes decode-fraction decode-named-tuples decode-table-of-objects "
    "endless endless-import flood fork-bomb huge-integer unhashable-flood"
).split()
"""Attacks that use up their limits: those against asserts and pytest files are longer cases of those against calls."""


def judged(case: dict[str, Any], task: str, seconds: float = 2.0) -> Score:
    response = case["source"] if case.get("raw") else f"```python\n{case['source']}\n```"
    total = 5.0 if case["id"] == "infinite-iterator" else 60.0  # it takes all there is
    verifier = CodeVerifier(seconds=case.get("seconds", seconds), total_seconds=total, memory_mb=256)
    return verifier.verify(Sample(prompt="", response=response, reference=DATA["tasks"][task]))


def pairs(kind: str) -> list[Any]:
    """Each case with its tasks; HumanEval's tests are asserts in a function, so where both are tried, one is enough."""
    return [
        pytest.param(
            case,
            task,
            id=f"{case['id']}-{task}",
            marks=[pytest.mark.full]
            if (task == "humaneval" and "asserts" in case["tasks"])
            or (task in ("asserts", "pytest") and case["id"] in LONG and (task, case["id"]) != ("pytest", "endless"))
            else [],
        )
        for case in DATA[kind]
        for task in case["tasks"]
    ]


@pytest.mark.parametrize(("case", "task"), pairs("attacks"))
def test_an_attack_scores_nothing(case: dict[str, Any], task: str) -> None:
    started = time.monotonic()
    # Many of those that may end as they like use all of their time.
    score = judged(case, task, 2.0 if "reasons" in case else 1.0)
    assert (score.status, score.value) == ("scored", 0.0), score
    assert score.reason in case.get("reasons", [score.reason]), score
    assert score.reason, score
    assert time.monotonic() - started < 300


@pytest.mark.parametrize(("case", "task"), pairs("honest"))
def test_an_honest_program_near_an_attack_passes(case: dict[str, Any], task: str) -> None:
    score = judged(case, task)
    assert (score.status, score.value) == ("scored", 1.0), score


def test_there_are_enough_attacks() -> None:
    assert len(DATA["attacks"]) >= 60
    assert len({case["id"] for kind in ("attacks", "honest") for case in DATA[kind]}) == len(
        DATA["attacks"] + DATA["honest"]
    )
