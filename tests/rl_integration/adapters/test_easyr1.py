"""EasyR1's calls, on inputs of the shape its source declares (commit b44b311)."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest
from tests.frameworks.pages import pasted
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.easyr1 import EasyR1Reward
from adjudge.rl_integration.adapters.failures import NotScored


def inputs(*rows: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"response": text, "response_length": 3, "ground_truth": gold} for text, gold in rows]


def test_a_batch_and_one_answer_get_the_same_keys_for_each() -> None:
    reward = partial(EasyR1Reward("math", fallback=-1.0))  # as EasyR1 holds it
    right, wrong, broken = reward(inputs(("\\boxed{2}", "2"), ("\\boxed{3}", "2"), ("\\boxed{2}", "\\frac{1}{")))
    assert right == {"overall": 1.0, "accuracy": 1.0, "valid": 1.0, "failed": 0.0, "abstained": 0.0}
    assert (wrong["overall"], wrong["valid"]) == (0.0, 1.0)
    assert (broken["overall"], broken["valid"], broken["failed"]) == (-1.0, 0.0, 1.0)
    assert reward(inputs(("\\boxed{2}", "2"))[0]) == right


def test_without_a_fallback_the_run_hears_why() -> None:
    with pytest.raises(NotScored, match="EasyR1 wants a number for it"):
        EasyR1Reward(Scripted())(inputs(("fail", "2")))
    with pytest.raises(ValueError, match="a row of EasyR1 has no 'ground_truth'"):
        EasyR1Reward("math")([{"response": "x"}])
    with pytest.raises(ValueError, match="EasyR1 gives them one by one"):
        EasyR1Reward(Scripted(groupwise=True))


def test_it_can_be_sent_to_another_process_and_is_what_the_page_shows() -> None:
    again = pickle.loads(pickle.dumps(EasyR1Reward("math")))
    for reward in (again, pasted("EasyR1")["compute_score"]):
        assert reward(inputs(("\\boxed{2}", "2")))[0]["overall"] == 1.0
