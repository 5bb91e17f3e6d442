"""PrimeIntellect's verifiers itself, with our reward in a task's config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in

PROGRAM = Path(__file__).parent / "real_verifiers.py"


@pytest.fixture(scope="module")
def ran() -> Any:
    return run_in("verifiers", PROGRAM)


def test_it_is_the_version_that_the_documents_name(ran: Any) -> None:
    assert ran["version"] == "0.4.0"


def test_a_plugged_reward_is_weighed_and_added_to_the_tasks_own(ran: Any) -> None:
    assert ran["right"]["rewards"] == {
        "short": {"score": 0.5, "weight": 0.5},
        "correct": {"score": 1.0, "weight": 2.0},
    }
    assert ran["shown"]["rewards"] == ran["right"]["rewards"], "what the page shows"
    assert ran["right"]["reward"] == 0.25 + 2.0
    assert ran["wrong"]["rewards"]["correct"]["score"] == 0.0
    assert not ran["right"]["has error"]
    assert not ran["wrong"]["has error"]


def test_what_a_tool_says_is_not_graded(ran: Any) -> None:
    assert ran["by the tool alone"]["rewards"]["correct"]["score"] == 0.0


@pytest.mark.parametrize(("case", "why"), [("broken", "failed (gold_unparsable)"), ("declined", "abstained")])
def test_a_trace_without_a_score_gets_an_error_and_no_number(ran: Any, case: str, why: str) -> None:
    assert ran[case]["rewards"] == {"short": None, "correct": None}
    assert ran[case]["has error"], "what prime-rl leaves out"
    assert ran[case]["errors"][0].startswith("TaskError: ")
    assert why in ran[case]["errors"][0]


def test_the_trace_keeps_what_was_found(ran: Any) -> None:
    assert ran["wrong"]["info"]["adjudge"]["math"]["reason"] == "wrong"
    assert ran["broken"]["info"]["adjudge"]["math"]["status"] == "failed"
    assert ran["right"]["info"]["adjudge"]["math"]["fingerprint"].startswith("math:")


def test_a_missing_field_is_named(ran: Any) -> None:
    assert "a row of verifiers has no 'gold' with the reference; it has" in ran["no field"]["errors"][0]


def test_a_sample_is_the_final_branch(ran: Any) -> None:
    assert ran["sample"]["prompt"] == [{"role": "user", "content": "1+1?"}]
    assert ran["sample"]["response"] == [{"role": "assistant", "content": "I"}]
    assert ran["sample"]["reference"] == "2"
    assert ran["sample"]["finish_reason"] == "length"
    assert ran["sample"]["id"] is True, "the trace's"
    assert ran["sample"]["group"] is True, "the task's key, which its rollouts share"


def test_a_trace_in_which_nothing_was_said_has_an_empty_response(ran: Any) -> None:
    assert (ran["nothing said"]["prompt"], ran["nothing said"]["response"]) == ("1+1?", [])


def test_of_an_agent_that_has_helpers_its_own_reply_is_scored(ran: Any) -> None:
    assert ran["with a helper"]["prompt"] == [{"role": "user", "content": "1+1?"}]
    assert ran["with a helper"]["response"] == [{"role": "assistant", "content": "2"}]
