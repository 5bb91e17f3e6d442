"""verl's own agent loop, queue and sampler with answers that cannot be judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.pages import blocks

HERE = Path(__file__).parent


@pytest.fixture
def ran(under_ray: Any) -> Any:
    return under_ray["queue"]


def test_the_page_shows_the_sampler() -> None:
    (block,) = blocks("verl", "trainer.v1.sampler")
    program = (HERE / "real_queue.py").read_text(encoding="utf-8")
    assert all(f'"{setting}"' in program for setting in block.split())


def test_an_answer_without_a_score_is_left_out_and_its_step_goes_on(ran: Any) -> None:
    assert list(ran["few fail"]["scores"]) == ["0"], "the second question's reference is broken"
    assert sorted(ran["few fail"]["scores"]["0"]) == [0.0, 1.0]


def test_what_was_judged_is_kept_where_most_fails_and_nothing_ends_the_run(ran: Any) -> None:
    """verl catches `TooManyFailures` of a reward worker: it must not be raised for an answer that has a score."""
    assert {place: sorted(scores) for place, scores in ran["without the sampler"]["scores"].items()} == {"17": [0, 1]}


@pytest.mark.parametrize("case", ["most fail", "tools"])
def test_the_sampler_ends_a_run_of_which_most_has_no_reward(ran: Any, case: str) -> None:
    assert ran[case].startswith("TooManyFailures: 34 of the latest 64 answers have no reward; more than 50% may not")


def test_tools_text_is_graded_where_that_is_said(ran: Any) -> None:
    assert ran["tools graded"] == [1.0, 0.0]


def test_the_filter_of_dapo_reads_acc_and_keeps_its_place_beside_the_sampler(ran: Any) -> None:
    assert sorted(ran["filtered"]["scores"]["1"]) == [0.0, 1.0], "both answers to the other question are right"
    assert ran["filtered"]["metrics"]["training/filter_groups/evicted_samples"] == "1"
    assert ran["filtered"]["extra"]["1"]["acc"] == ran["filtered"]["extra"]["1"]["score"]


def test_mistakes_are_told_before_anything_is_generated(ran: Any) -> None:
    option, scorer = ran["misspelt"]
    assert "reward_kwargs has no option 'scorrer'" in option
    assert "did you mean 'scorer'?" in option
    assert "unknown scorer 'maths'" in scorer
    assert "max_failed=2; it must be a share from 0 to 1" in ran["sampler"]
