"""How the reward for TRL may be called by hand, and what its rewards can do that lists can."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import pytest

from adjudge.trl import TrlReward


def test_places_that_are_swapped_are_an_error_and_not_zeros() -> None:
    reward = TrlReward("math", reference="answer")
    with pytest.raises(TypeError, match="positional arguments"):
        reward(["q"], ["\\boxed{1}"], answer=["1"])  # type: ignore[call-arg]
    assert reward(["\\boxed{1}"], prompts=["q"], answer=["1"]) == [1.0]


@pytest.mark.parametrize("lost", [None, math.nan])
def test_a_completion_that_was_lost_has_no_number(lost: Any) -> None:
    reward = TrlReward("math", reference="answer")
    said = ["\\boxed{2}", lost, "", [{"role": "assistant", "content": None}]]
    assert reward(said, prompts=["q"] * 4, answer=["2"] * 4) == [1.0, None, 0.0, 0.0]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"answer": ["1"]}, "TRL gave 1 of 'answer' and 2 of 'completions'"),
        ({"answer": "ab"}, "TRL gave text as 'answer'; it must be a list"),
        ({"answer": ["1", "2"], "prompts": ["a"]}, "TRL gave 1 of 'prompts' and 2 of 'completions'"),
        ({"answer": ["1", "2"], "completion_ids": [[1]]}, "TRL gave 1 of 'completion_ids' and 2"),
        ({"answer": ["1", "2"], "completions": "xy"}, "TRL gave text as 'completions'"),
        ({"gold": ["1", "2"]}, "a row of TRL has no 'answer' with the reference; it has gold"),
    ],
)
def test_a_column_of_another_length_is_named(columns: dict[str, Any], told: str) -> None:
    reward = TrlReward("math", reference="answer")
    with pytest.raises(ValueError, match=told):
        reward(**{"completions": ["x", "y"], "prompts": ["a", "b"], **columns})


def test_columns_that_nobody_reads_may_have_any_length() -> None:
    reward = TrlReward("math", reference="answer|gold")
    ones: dict[str, Any] = {
        "prompts": ["a", "b"],
        "answer": ["1", None],
        "gold": [None, "2"],
        "other": [1],
        "state": "train",
    }
    assert reward(["\\boxed{1}", "\\boxed{2}"], **ones) == [1.0, 1.0]


def test_what_is_returned_is_added_copied_and_written_as_a_list_is() -> None:
    reward = TrlReward("math", reference="answer")
    one = reward(["\\boxed{1}"], prompts=["q"], answer=["1"])
    plain = list(one)
    assert one + one == plain + one == one + plain == [1.0, 1.0]
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == json.loads(json.dumps(plain)) == [1.0]
