"""The two models that lessons of `adjudge demo train` learn from, made by `adjudge train`'s own trainers.

Not covered: reward models that anybody would use.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SHOWN = 200  # batches of right solutions
_SOLUTIONS = 40_000
_BETA = 0.5
_FLOOR = -20.0
_LOWEST = -10.0  # what is worse counts as this, and so does another form; half of the wrong answers are below -8
_FORM = r"(\d\+\d=\d\n){2}\\boxed\{\d\}"
"""Both lines, and an answer at the end.  Without it the policy stops after a line's first sign within 25 steps: nothing
that it wrote is wrong then, and a process model has no word on what is missing.  Where fewer lines pass, and each is
compared with the group's lines at its place, it learns to skip lines within 40."""

_PREFERENCES = 1_000


def process_model(folder: Path, *, seed: int) -> dict[str, Any]:
    """Train an implicit process model on solutions to sums, and return the scorer that it is.

    It begins as a small language model that was shown a few right solutions, and learns which solutions are right as a
    whole; how much likelier it finds a line than its beginning did is the line's value, and the worst line counts.
    What is above 0 counts as 0: likelier than right is no better than right.

    Args:
        folder: for the data and the model.
        seed: of both.
    """
    from adjudge.reward_models.training.process_config import ProcessTraining
    from adjudge.reward_models.training.process_training import train_process
    from adjudge.rl_integration.trainer.demo import last_digits
    from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
    from adjudge.training.config_file import config_of

    tasks, _ = last_digits.last_digits(held_out=last_digits.HELD_OUT, seed=seed)
    begun = tiny_policy(last_digits.CHARACTERS, words=last_digits.WORDS, seed=seed + 1)
    warm_up(
        begun,
        [dataclasses.replace(task, prompt=f"{task.prompt}\n") for task in tasks],  # as the scorer shows it
        ["\n".join(last_digits.solution(task)) for task in tasks],
        steps=_SHOWN,
        batch=64,
        rate=3e-3,
        seed=seed,
        enough=lambda: False,
    )
    start, end = str(folder / "process_model_start"), str(folder / "process_model")
    begun.save(Path(start))
    solutions = last_digits.labelled_solutions(tasks, _SOLUTIONS, seed=seed)
    described = {
        "model": start,
        "objective": "implicit",
        "beta": _BETA,
        "layout": {"marker": "", "separator": "\n", "chat": False},
        "data": {"path": _written(folder / "solutions.jsonl", solutions), "held_out": 0.05},
        "output": end,
        "schedule": {"learning_rate": 1e-3, "batch_size": 32},
        "seed": seed,
    }
    train_process(config_of(ProcessTraining, described))
    model = {
        "engine": f"transformers:{end}",
        "reference_engine": f"transformers:{start}",
        "beta": _BETA,
        "chat": False,
        "split": "line",
        "refine": "clip",
        "eta": 0.0,
        "aggregate": "min",
        "floor": _FLOOR,
    }
    form = {"regex": {"pattern": _FORM}}
    bounded = {"transform": {"scorer": {"implicit_reward": model}, "steps": [{"clip": {"low": _LOWEST, "high": 0.0}}]}}
    return {"gate": {"gate": form, "main": bounded, "otherwise": _LOWEST}}


def length_model(folder: Path, *, seed: int) -> dict[str, Any]:
    """Train a reward model on preferences for long answers, and return the scorer that it is.

    Args:
        folder: for the data and the model.
        seed: of both.
    """
    from adjudge.reward_models.training.scalar_config import ScalarTraining
    from adjudge.reward_models.training.scalar_training import train_scalar
    from adjudge.rl_integration.trainer.demo.arithmetic import preferences, sums
    from adjudge.training.config_file import config_of

    tasks, _ = sums(20, held_out=0.15, seed=seed)
    data = _written(folder / "preferences.jsonl", preferences(tasks, _PREFERENCES, seed=seed))
    described = {"model": "ngrams", "data": data, "output": str(folder / "reward_model"), "seed": seed}
    train_scalar(config_of(ScalarTraining, described))
    return {"preference_model": {"model": described["output"]}}


def _written(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)
