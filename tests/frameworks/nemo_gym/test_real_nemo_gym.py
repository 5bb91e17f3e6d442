"""NeMo Gym itself: its resources server with our reward, and its models against our server's `/verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in

PROGRAM = Path(__file__).parent / "real_nemo_gym.py"


@pytest.fixture(scope="module")
def ran() -> Any:
    return run_in("nemo_gym", PROGRAM)


def test_it_is_the_version_that_the_documents_name(ran: Any) -> None:
    assert ran["version"] == "0.4.0"


@pytest.mark.parametrize(("case", "reward"), [("right", 1.0), ("wrong", 0.0)])
def test_a_score_is_the_reward_and_the_row_comes_back(ran: Any, case: str, reward: float) -> None:
    assert ran[case]["reward"] == reward
    assert ran[case]["mask_sample"] is False
    assert ran[case]["uuid"] in ("u1", "u2")
    assert ran[case]["expected_answer"] == "2"


def test_a_response_that_a_model_of_gyms_cut_off_is_wrong_and_not_masked(ran: Any) -> None:
    assert (ran["cut off"]["reward"], ran["cut off"]["mask_sample"]) == (0.0, False)


def test_a_failed_one_is_masked_and_put_aside(ran: Any) -> None:
    assert (ran["broken"]["reward"], ran["broken"]["mask_sample"]) == (0.0, True)
    assert ran["broken"]["instance_config"] == {"mask_sample": True}, "where NeMo RL reads it"
    assert ran["broken"]["_ng_failure_class"] == "verifier_error"
    assert ran["broken"]["failure_reason"].startswith("failed (gold_unparsable)")


def test_one_that_was_declined_is_masked_and_kept(ran: Any) -> None:
    assert (ran["declined"]["reward"], ran["declined"]["mask_sample"]) == (0.0, True)
    assert "_ng_failure_class" not in ran["declined"]


def test_a_row_without_the_field_is_an_error_and_no_zero(ran: Any) -> None:
    assert ran["no field"] == {"status": 500}


def test_the_reference_may_be_any_field(ran: Any) -> None:
    assert ran["its own field"]["reward"] == 1.0


def test_gyms_own_metrics_take_the_answers(ran: Any) -> None:
    assert ran["verified again"] == [1.0, False, None, None], "an earlier failure leaves nothing behind"
    assert ran["shown"], "what the page shows"
    assert ran["mean"] == 0.5


def test_our_servers_route_says_the_same(ran: Any) -> None:
    for case in ("right", "wrong", "broken", "cut off"):
        here, there = ran[case], ran["our server"][case]
        for name in ("reward", "mask_sample", "instance_config"):
            assert here.get(name) == there.get(name)
        assert ("_ng_failure_class" in here) == ("_ng_failure_class" in there)
