"""tinker-cookbook itself: its group builder and renderer with our environment."""

from __future__ import annotations

from pathlib import Path

from tests.engines.tiny_models import write_model
from tests.frameworks.environment import run_in


def test_an_environment_rewards_its_answer(tmp_path: Path) -> None:
    ran = run_in("tinker", Path(__file__).parent / "real_tinker.py", str(write_model(tmp_path / "model")))
    assert ran["version"] == "0.6.1"
    assert ran["rewards"] == [1.0, 0.0, 0.0], "the last was cut off, and `math` gives such an answer nothing"
    assert ran["done"] == [True] * 3
    assert ran["broken"].startswith("NotScored: a sample failed (gold_unparsable)")
    assert ran["fallback"] == [0.25, {"scored": 0.0, "failed": 1.0, "abstained": 0.0}]
    assert ran["lacking"] == (
        "a row of tinker-cookbook has no 'question' with the prompt; it has prompt, answer. "
        "Name the right one: prompt=COLUMN"
    )
