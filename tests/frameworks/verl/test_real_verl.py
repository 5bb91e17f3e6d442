"""verl itself, with our reward: its loaders, its reward workers as Ray actors, its agent loop, its batch assembly."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def ran(under_ray: Any) -> Any:
    return under_ray


@pytest.mark.parametrize("path", ["colocated", "streaming"])
def test_the_function_scores_a_batch_also_where_a_sample_fails(ran: Any, path: str) -> None:
    """Right, wrong, broken gold with a fallback, and a data source with a scorer of its own."""
    found = ran["functions"][path]
    assert found["scores"] == [1.0, 0.0, -0.5, 0.0]
    assert [len(places) for places in found["places"]] == [1, 0, 1, 0], "on one token: the last"
    assert found["extra"] == {
        "score": [1.0, 0.0, -0.5, 0.0],
        "acc": [1.0, 0.0, -0.5, 0.0],
        "reward_valid": [1.0, 1.0, 0.0, 1.0],
        "reward_failed": [0.0, 0.0, 1.0, 0.0],
        "reward_abstained": [0.0] * 4,
    }


def test_without_a_fallback_the_run_hears_why(ran: Any) -> None:
    assert "a sample failed (gold_unparsable)" in ran["functions"]["no_fallback"]
    assert "fallback=NUMBER" in ran["functions"]["no_fallback"]
    through_ray = ran["managers"]["no_fallback"]
    assert through_ray.startswith("RayTaskError(NotScored)")
    assert "a sample failed (gold_unparsable): {'gold': 'broken'}" in through_ray


def test_what_the_page_shows_is_a_reward(ran: Any) -> None:
    assert ran["functions"]["shown"]["reward_score"] == 1.0


def test_it_loads_as_a_file_and_in_the_old_batch_manager(ran: Any) -> None:
    assert ran["functions"]["by_file"]["reward_score"] == 1.0
    assert ran["functions"]["batch"] == {"scores": [1.0, 0.0, -0.5, 0.0], "valid": [1.0, 1.0, 0.0, 1.0]}


@pytest.mark.parametrize("name", ["dapo", "gdpo"])
def test_verls_other_managers_take_it_too(ran: Any, name: str) -> None:
    right, broken = ran["functions"]["others"][name]
    assert right == 1.0
    assert broken.startswith("NotScored: a sample failed")


def test_one_of_verls_managers_hides_failures_as_the_documents_warn(ran: Any) -> None:
    right, broken = ran["functions"]["others"]["rate_limited"]
    assert right == 1.0
    assert broken.startswith("returned {'reward_score': 0.0")


def test_the_manager_tells_the_scorer_prompt_group_and_truncation(ran: Any) -> None:
    found = ran["managers"]["streaming"]
    assert found["scores"] == [2.0, 24.0]
    assert found["places"] == [[2], [23]], "the last of 'yes', ' yes', the end; and of 24 tokens"
    extra = found["extra"]
    assert extra["part_prompt_turns"] == [1.0, 1.0], "messages, not a text"
    assert extra["part_group"] == [7.0, 8.0]
    assert extra["part_cut"] == [0.0, 1.0], "the second was cut off at the longest response"
    assert extra["part_level"] == [5.0, 6.0]


def test_of_several_sequences_the_last_one_counts_without_its_padding(ran: Any) -> None:
    assert ran["managers"]["several"] == [None, 2.0]


def test_a_tools_text_is_told_apart_or_refused(ran: Any) -> None:
    assert ran["managers"]["turns_masked"]["reward_score"] == 1.0, "the second 'yes' was the tool's"
    assert "4 turns" in ran["managers"]["turns_unmasked"]
    assert "tool_text=grade" in ran["managers"]["turns_unmasked"]
