"""The `Rubric` of verifiers before version 1 itself, with our reward functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in

PROGRAM = Path(__file__).parent / "real_rubric.py"


@pytest.fixture(scope="module")
def ran() -> Any:
    return run_in("verifiers_legacy", PROGRAM)


def test_it_is_the_version_that_the_documents_name(ran: Any) -> None:
    assert ran["version"] == "0.3.1"


def test_a_rollout_is_scored(ran: Any) -> None:
    assert (ran["shown"]["metrics"], ran["shown"]["error"]) == ({"math": 1.0, "transform": 0.5}, None), (
        "what the page shows"
    )
    assert (ran["right"]["reward"], ran["right"]["metrics"], ran["right"]["error"]) == (1.0, {"math": 1.0}, None)
    assert (ran["wrong"]["reward"], ran["wrong"]["error"]) == (0.0, None)
    assert ran["nested"]["metrics"] == {"nested": 1.0}


def test_only_the_last_turn_decides_whether_the_answer_was_cut_off(ran: Any) -> None:
    assert ran["cut"] == [1.0, 0.0]


def test_the_example_is_a_rubric(ran: Any) -> None:
    assert ran["example"]["metrics"] == {"math": 1.0, "repeats": 0.0}
    assert ran["example"]["reward"] == 1.0


def test_a_rollout_without_a_score_is_a_zero_with_an_error(ran: Any) -> None:
    assert ran["broken"]["reward"] == 0.0, "the rubric makes a zero of every exception, as the documents say"
    assert ran["broken"]["error"].startswith("Error: adjudge: the rollout failed (gold_unparsable)")


def test_an_error_from_before_is_kept(ran: Any) -> None:
    assert ran["broken before"]["error"] == "ToolError: before"


def test_a_mistake_is_no_silent_zero(ran: Any) -> None:
    assert "a row of Rubric has no 'info.gold' with the reference" in ran["not there"]["error"]
    assert all("no 'info.gold'" in one["error"] for one in ran["mistaken group"])


def test_a_group_is_scored_together_and_one_member_may_fail(ran: Any) -> None:
    assert [one["metrics"] for one in ran["group"]] == [
        {"math": 1.0, "longest": 0.0},
        {"math": 0.0, "longest": 1.0},
        {"math": 0.0, "longest": 0.0},
    ]
    assert [one["reward"] for one in ran["group"]] == [1.0, 0.5, 0.0]
    assert [one["error"] is None for one in ran["group"]] == [True, True, False]
    assert "engine_timeout" in ran["group"][2]["error"]


def test_the_zero_of_a_member_that_failed_counts_for_its_siblings(ran: Any) -> None:
    advantages = [one["advantage"] for one in ran["group"]]
    assert advantages == pytest.approx([0.5, 0.0, -0.5]), "the trap that the documents warn of; gone if this fails"
