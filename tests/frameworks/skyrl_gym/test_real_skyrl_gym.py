"""SkyRL-Gym itself, with our environment: registered by name, stepped in its threads, its metrics averaged by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in

PROGRAM = Path(__file__).parent / "real_skyrl_gym.py"


@pytest.fixture(scope="module")
def ran() -> Any:
    return run_in("skyrl_gym", PROGRAM)


def test_it_is_the_version_that_the_documents_name(ran: Any) -> None:
    assert ran["version"] == "0.4.0"


def test_steps_have_the_fields_that_skyrl_reads(ran: Any) -> None:
    assert {tuple(step) for step in ran["steps"]} == {("observations", "reward", "done", "metadata")}
    assert all(step["done"] and step["observations"] == [] for step in ran["steps"])
    assert [step["metadata"]["status"] for step in ran["steps"]] == ["scored", "scored", "failed", "scored"]


def test_what_the_page_shows_is_an_environment(ran: Any) -> None:
    assert ran["shown"] == 1.0


def test_thirty_two_threads_get_their_own_rewards(ran: Any) -> None:
    assert ran["rewards"] == [1.0, 0.0, 0.0, 1.0] * 8


def test_its_metrics_tell_scores_from_fallbacks(ran: Any) -> None:
    assert ran["metrics"] == {"valid": 0.75, "failed": 0.25, "abstained": 0.0}


def test_without_a_fallback_the_step_raises_our_reason(ran: Any) -> None:
    assert ran["strict"].startswith("NotScored: a sample failed (gold_unparsable)")


def test_a_row_without_a_reference_is_refused_when_the_environment_is_made(ran: Any) -> None:
    assert ran["no reference"].startswith("ValueError: a row of SkyRL has no 'reward_spec.ground_truth'")
