"""The preset of SWE-RL loads, and its values are those of the formula."""

from __future__ import annotations

import pytest
from tests.verifiers.code.patches.responses import written

import adjudge
from adjudge.scoring import registry

GOLD = {"files": {"a.py": "a\nb\nc\n"}, "edits": [{"path": "a.py", "search": "b", "replace": "x"}]}


@pytest.mark.parametrize(("replace", "value"), [("x", 1.0), ("y", 26 / 27), ("b", -1.0)])
def test_swe_rl_is_the_mean_likeness_or_minus_one(replace: str, value: float) -> None:
    scorer = registry.load("swe_rl")
    got = adjudge.score("Fix it.", written([("a.py", "b", replace)], "I think."), GOLD, scorer=scorer).value
    assert got == pytest.approx(value)
