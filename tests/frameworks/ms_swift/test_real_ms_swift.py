"""ms-swift itself: its own calls of reward functions."""

from __future__ import annotations

from pathlib import Path

from tests.frameworks.environment import run_in


def test_its_trainers_function_takes_our_reward() -> None:
    ran = run_in("ms_swift", Path(__file__).parent / "real_ms_swift.py")
    assert ran["version"] == "4.6.0"
    assert ran["rewards"] == [[1.0, 0.0], [0.0, 0.0], [None, 0.0], [0.0, 0.0]], "the last was cut off"
