"""lm-evaluation-harness itself: a task whose answers our scorer judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.frameworks.environment import run_in


def test_what_has_no_score_is_no_zero_in_the_mean(tmp_path: Path) -> None:
    ran = run_in("lm_eval", Path(__file__).parent / "real_lm_eval.py", str(tmp_path), without="sklearn,scipy,trio")
    assert ran["version"] == "0.4.13"
    assert ran["score"] == 0.5, "a right answer, a wrong one, and one whose reference is broken"
    assert ran["unscored"] == pytest.approx(1 / 3)
