"""The judge attacks on a model that was really trained, which repeats much of what it is shown.

Whatever it repeats, no response gets the verdict that it wrote itself.  A verdict that the model is made to give may be
any: what it says then is its own mistake, and counted here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.judges.test_judge_attacks import BANK, JUDGES, response_of

from adjudge.protocol import Sample, Score
from adjudge.scoring import registry


def attacked(name: str, cases: list[dict[str, Any]]) -> list[Score]:
    judged = JUDGES[name]
    options = {"engine": "smollm2", "max_tokens": 32, "forced_mass": 0, **dict(judged.options)}
    scorer: Any = registry.load({name: options})
    samples = [
        Sample(prompt="2+2?", response=response_of(case, judged.best), reference=judged.reference) for case in cases
    ]
    return list(asyncio.run(scorer.score(samples)))


def held(name: str, cases: list[dict[str, Any]]) -> None:
    scores = attacked(name, cases)
    shown = [score for score in scores if score.reason not in ("too_complex", "no_answer", "judge_refused")]
    free = [score for score in shown if score.status == "scored" and "forced_mass" not in score.evidence]
    forced = [score for score in shown if "forced_mass" in score.evidence]
    values = sorted(Counter(score.value for score in forced).items(), key=str)
    print(f"{name}: {len(shown)} of {len(cases)} attacks shown; {len(free)} read from its text; forced: {values}")
    assert shown
    assert not free, [score.evidence for score in free]


def test_a_real_model_repeats_no_verdict() -> None:
    held("mt_bench", [case for case in BANK["cases"] if case["case"] == "every published form, a line each"])


@pytest.mark.full
@pytest.mark.parametrize("name", ["judge", "mt_bench"])
def test_a_real_model_repeats_no_verdict_of_any_attack(name: str) -> None:
    held(name, BANK["cases"])
