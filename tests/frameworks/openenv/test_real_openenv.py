"""OpenEnv itself: an environment with our rubric."""

from __future__ import annotations

from pathlib import Path

from tests.frameworks.environment import run_in


def test_a_rubric_rewards_actions_alone_and_among_others() -> None:
    ran = run_in("openenv", Path(__file__).parent / "real_openenv.py")
    assert ran["version"] == "0.3.0"
    assert ran["rewards"] == [1.0, 0.0]
    assert ran["together"] == 0.5, "repetition's reward is 0 where nothing repeats itself"
    assert ran["broken"].startswith("NotScored: a sample failed (gold_unparsable)")
    assert ran["fallback"] == -1.0
    assert "no 'action.mesage' with the response" in ran["lacking"]
