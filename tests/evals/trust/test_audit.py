"""The audit against SciPy and by hand, and published numbers of Math-Shepherd and ReasonEval."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from adjudge.evals.trust.audit import audit_groups, audit_pairs
from adjudge.responses.aggregate import Aggregate

DATA = os.environ.get("ADJUDGE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")


def test_an_audit_by_hand() -> None:
    groups = [
        ([0.9], [0.8, 0.7], [0.9, 0.1]),  # right, and the shortest
        ([0.5, 0.6], [0.9]),  # wrong, and longer
        ([0.9, 0.9], [0.3], [0.8, 0.2]),  # right, and longer
        ([0.7], [0.7]),  # a tie in both
    ]
    audit = audit_groups(groups, "min")
    assert (audit.cases, audit.accuracy) == (4, 0.5)
    assert audit.fewer_steps == pytest.approx((1 + 0 + 0 + 0.5) / 4)
    assert audit.fewer_steps_strict == 0.25
    assert (audit.harder, audit.accuracy_harder) == (2, 0.5)
    assert (audit.steps_better, audit.steps_other) == (1.5, 1.5)
    assert "fewer steps wins: 37.5%" in str(audit)
    flat = audit_pairs([([0.5], [0.4])], "mean")
    assert (flat.correlation, flat.accuracy_harder) == (None, None)
    assert "none" in str(flat)


def test_avoiding_the_break_is_seen() -> None:
    """A policy that writes everything in one step, whose one judgement is kind: the count alone explains its wins."""
    groups = [([0.8], [0.9, 0.7, 0.6]), ([0.75], [0.9, 0.9, 0.5]), ([0.9], [0.95, 0.85])]
    audit = audit_pairs(groups, "min")
    assert audit.accuracy == audit.fewer_steps == 1.0
    assert audit.harder == 0
    assert audit.correlation is not None
    assert audit.correlation < -0.6


@pytest.mark.parametrize("groups", [[], [[[0.5]]], [[[0.5], []]]], ids=str)
def test_an_audit_of_nothing_is_refused(groups: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"at least two|no step"):
        audit_groups(groups, "min")


def lines(name: str) -> list[Any]:
    with gzip.open(Path(DATA or "") / "rewardmath" / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def rewardbench(name: str) -> list[tuple[list[float], list[float]]]:
    """The 447 pairs of RewardBench's mathematics part, with a model's step scores."""
    rows: dict[int, dict[str, list[float]]] = {}
    for row in lines(f"rewardbench_{name}.jsonl.gz"):
        rows.setdefault(row["problem_id"], {})[row["solution_type"]] = row["output"]["step_scores"]
    return [(row["chosen"], row["rejected"]) for row in rows.values()]


@needs_data
@pytest.mark.parametrize(
    ("name", "how", "percent"),
    [
        ("Math_Shepherd", "product", 94.41),
        ("Math_Shepherd", "sum_log", 94.41),
        ("Math_Shepherd", "min", 83.00),
        ("Math_Shepherd", "mean", 81.21),
        ("Math_Shepherd", "max", 68.68),
        ("Math_Shepherd", "last", 65.77),
        ("ReasonEval_34B", "product", 83.45),
        ("ReasonEval_34B", "mean", 18.34),
    ],
)
def test_published_aggregates_on_rewardbench(name: str, how: Aggregate, percent: float) -> None:
    audit = audit_pairs(rewardbench(name), how)
    assert round(100 * audit.accuracy, 2) == percent


@needs_data
def test_fewer_steps_win_rewardbench_without_a_model() -> None:
    audit = audit_pairs(rewardbench("Math_Shepherd"), "product")
    assert round(100 * audit.fewer_steps_strict, 2) == 92.84
    assert (audit.cases, round(audit.steps_better, 1), round(audit.steps_other, 1)) == (447, 4.0, 12.2)
    assert (audit.harder, audit.accuracy_harder) == (20, 0.45)
    assert audit_pairs(rewardbench("Math_Shepherd"), "min").accuracy_harder == 0.8
    assert audit.correlation is not None
    assert audit.correlation < -0.8


@needs_data
@pytest.mark.parametrize(("how", "percent"), [("product", 17.18), ("last", 18.22), ("min", 15.32), ("mean", 15.11)])
def test_published_aggregates_on_rewardmath(how: Aggregate, percent: float) -> None:
    audit = audit_groups([row["score"] for row in lines("Math_Shepherd_reward.jsonl.gz")], how)
    assert (audit.cases, round(100 * audit.accuracy, 2)) == (483, percent)
    assert audit.fewer_steps < 0.1  # about as many steps on both sides: nothing to be had from counting
