from __future__ import annotations

import pytest
from experiments.judging.verdict_rewards import deepseek_grm_reward

from adjudge.judges.pointwise import general_reasoner_reward


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        (deepseek_grm_reward((3, 9, 4), 1), 1.0),
        (deepseek_grm_reward((9, 9, 4), 1), -1.0),
        (deepseek_grm_reward(None, 1), -1.0),
        (general_reasoner_reward(True, 5, 5), 1.0),
        (general_reasoner_reward(True, 9, 5), 0.8),
        (general_reasoner_reward(True, 500, 5), 0.5),
        (general_reasoner_reward(False, 5, 5), 0.0),
        (general_reasoner_reward(True, 5, 5, extracted=False), -0.5),
    ],
)
def test_rewards(reward: float, expected: float) -> None:
    assert reward == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("scores", "best"), [((5.0,), 0), ((5.0, 6.0), 2), ((5.0, 6.0), -1)])
def test_a_label_that_names_no_response(scores: tuple[float, ...], best: int) -> None:
    with pytest.raises(ValueError, match="a place among them"):
        deepseek_grm_reward(scores, best)
