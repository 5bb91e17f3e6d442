"""On real solutions, the process model without a network beats length and place, as docs/training.md says.

Half of the problems and one strength, so that it takes seconds; `benchmarks/step_models.py` measures the whole.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.step_models import areas, model_steps

from adjudge.reward_models.baselines.baseline_table import fold_of
from adjudge.reward_models.baselines.step_model import chances, fit_steps
from adjudge.training.data_files import families, read_steps


@pytest.mark.skipif(not os.environ.get("ADJUDGE_DATA"), reason="ADJUDGE_DATA is not set")
def test_the_step_model_beats_rules_on_models_own_solutions(tmp_path: Path) -> None:
    solved = read_steps(model_steps(Path(os.environ["ADJUDGE_DATA"]), tmp_path)).examples
    homes = [fold_of(family, 2, 0) for family in families(solved)]
    known, examples = ([one for one, home in zip(solved, homes, strict=True) if home == half] for half in (0, 1))
    model = fit_steps(known, strength=0.1, by_solution=False)
    said = [chances(model, one.prompt, one.steps) for one in examples]
    rules = {
        "shorter is right": [[1 / (1 + len(step)) for step in one.steps] for one in examples],
        "later is right": [[1 - 1 / (2 + at) for at in range(len(one.steps))] for one in examples],
        "all are right": [[1.0] * len(one.steps) for one in examples],
    }
    mine, _ = areas(examples, said, said, rounds=100)
    for name, rule in rules.items():
        theirs, ahead = areas(examples, said, rule, rounds=100)
        assert mine.low is not None
        assert theirs.high is not None
        assert ahead.low is not None
        assert mine.low > theirs.high, f"{name}: {mine} against {theirs}"
        assert ahead.low > 0
