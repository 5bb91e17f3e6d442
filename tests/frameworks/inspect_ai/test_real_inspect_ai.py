"""Inspect itself: its evaluation with our scorer, and its scorer as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("inspect")
    return run_in("inspect_ai", Path(__file__).parent / "real_inspect_ai.py", str(folder))


def test_a_score_is_inspects_and_one_without_a_number_is_unscored(ran: Any) -> None:
    assert ran["version"] == "0.3.285"
    assert ran["ours"] == {
        "status": "success",
        "name": "math",
        "mean": 0.5,
        "unscored": 1,
        "rows": {
            "0": [1.0, None, "scored", ""],
            "1": [0.0, None, "scored wrong", "wrong"],
            "2": [None, "scoring_failed", "failed gold_unparsable", "gold_unparsable"],
        },
    }


def test_a_fallback_is_a_number_that_says_what_it_is(ran: Any) -> None:
    found = ran["with a fallback"]
    assert (found["name"], found["unscored"], found["mean"]) == ("strict", 0, pytest.approx(1 / 3))
    assert found["rows"]["2"][:2] == [0.0, "scoring_failed"]


def test_only_what_was_generated_is_graded_and_the_last_of_it(ran: Any) -> None:
    assert ran["with examples"] == [0.0, 1.0]


def test_what_an_agent_submits_is_graded_and_its_run_only_by_choice(ran: Any) -> None:
    assert ran["basic agent"] == [1.0, 0.0]
    assert ran["react"] == [1.0, 0.0]
    assert ran["its messages"] == [0.0, 1.0]
    assert ran["wrong option"] == "response='turns'; it must be one of completion, messages"


def test_inspects_scorers_score_here(ran: Any) -> None:
    assert ran["theirs"] == [[1.0, "match"], [0.0, "match"]]
    assert ran["fingerprints differ"]
    assert ran["zero"] == [["scored", 0.0], ["scored", 0.0], ["abstained", None], ["abstained", None]]
    status, reason, evidence = ran["unscored"]
    assert (status, reason) == ("failed", "verifier_error")
    assert "grader_failed" in evidence


def test_a_prompt_may_have_any_form_and_a_broken_one_fails_alone(ran: Any) -> None:
    assert ran["prompts"] == [
        ["", "max_tokens", ""],
        ["", "stop", ""],
        ["", "stop", "1+1?"],
        ["bad_sample", None, None],
    ]


def test_a_reference_is_read_as_other_scorers_read_it(ran: Any) -> None:
    assert ran["references"] == [1.0, 1.0, 1.0, None]
