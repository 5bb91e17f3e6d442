"""AReaL itself, with our reward: its rollout executor, its RLVR workflow, and its pool for plain functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in

PROGRAM = Path(__file__).parent / "real_areal.py"


@pytest.fixture(scope="module")
def ran() -> Any:
    return run_in("areal", PROGRAM)


def test_it_is_the_version_that_the_documents_name(ran: Any) -> None:
    assert ran["version"] == "1.0.4"


def test_the_class_is_a_workflow_of_areals(ran: Any) -> None:
    assert ran["is a workflow"]
    assert ran["shown"], "what the page shows is one"


def test_scores_arrive_in_the_tensors_that_areal_trains_on(ran: Any) -> None:
    assert ran["right"]["rewards"] == [1.0]
    assert ran["wrong"]["rewards"] == [0.0]
    assert set(ran["right"]) == {"input_ids", "loss_mask", "logprobs", "versions", "attention_mask", "rewards"}


def test_a_trajectory_without_a_score_is_rejected(ran: Any) -> None:
    assert ran["broken"] is None


def test_a_misspelt_column_ends_the_run_instead_of_rejecting_for_ever(ran: Any) -> None:
    assert ran["no reference"][0].startswith("RuntimeError")
    assert "exiting" in " ".join(ran["no reference"])


def test_the_plain_function_works_in_areals_pool(ran: Any) -> None:
    assert ran["pool"] == [1.0, 0.0]


def test_areals_pool_makes_a_late_score_a_zero_and_the_workflow_waits_for_it(ran: Any) -> None:
    assert ran["late in the pool"] == 0, "the trap that the documents warn of; gone if this fails"
    assert ran["late in the workflow"] == [1.0]
    assert ran["waited"] >= 0.6
