"""A run that is to end with its best policy does, resumed or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_run

from adjudge.rl_integration.trainer.loop.checkpoints import newest_checkpoint
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig

OPTIONS: Any = {"steps": 8, "tasks": 8, "num_generations": 8, "eval_steps": 1, "save_steps": 5}


class Whim(Digits):
    """A number that changes with every text, so that the best policy is hardly the first or the last one."""

    name = "whim"
    fingerprint = "whim:1"

    def _share(self, text: str) -> float:
        return crc32(text.encode(), 1) % 1000 / 1000


def run_in(folder: Path, **options: Any) -> Any:
    given = {"measured_by": RewardConfig(scorer=Whim()), "load_best_model_at_end": True, **OPTIONS, **options}
    return small_run(folder, small_config(**given), held_out=TASKS[:3])


def test_the_best_policy_on_held_out_tasks_is_put_back(tmp_path: Path) -> None:
    run = run_in(tmp_path / "best")
    result = run.train()
    measured = {line["step"]: line["held_out"] for line in result.history if "held_out" in line}
    best = max(measured, key=lambda step: (measured[step], -step))
    assert best == 4, "as good as all after it, and better than all before"
    assert (result.steps, result.stopped, result.rolled_back) == (8, "", best)
    assert result.held_out == pytest.approx(measured[best])
    kept = newest_checkpoint(tmp_path / "best")
    assert kept is not None
    assert kept.step == 8, "more steps go on from the last one"
    shorter = run_in(tmp_path / "shorter", steps=best, load_best_model_at_end=False)
    shorter.train()
    for name, value in run.policy.model.named_parameters():
        assert torch.equal(value, shorter.policy.model.get_parameter(name))


@pytest.mark.parametrize("cut", [1, 7])
def test_a_resumed_run_ends_with_the_same(tmp_path: Path, cut: int) -> None:
    expected = run_in(tmp_path / "whole").train()
    run_in(tmp_path / "cut").train(on_step=lambda numbers, *_: numbers["step"] == cut)
    found = run_in(tmp_path / "cut").train(resume=True)
    assert (found.resumed, found.rolled_back, found.held_out) == (cut, expected.rolled_back, expected.held_out)


def test_without_measurements_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="set eval_steps"):
        small_config(**{**OPTIONS, "eval_steps": 0}, load_best_model_at_end=True)
    with pytest.raises(ValueError, match="no held-out tasks"):
        small_run(tmp_path, small_config(**OPTIONS, load_best_model_at_end=True))


def test_what_another_judge_measured_is_no_rival(tmp_path: Path) -> None:
    """The judge of the resumed run gives a hundredth of what the one before gave."""
    run_in(tmp_path).train(on_step=lambda numbers, *_: numbers["step"] == 5)
    for steps in (8, 9):
        run = run_in(tmp_path, measured_by=RewardConfig(scorer=Strict()), steps=steps)
        found = run.train(resume=True)
        later = {line["step"]: line["held_out"] for line in found.history[5:]}
        assert found.rolled_back == max(later, key=lambda step: (later[step], -step))
        assert found.held_out == pytest.approx(max(later.values()))
        assert run.told.state()["best"] == pytest.approx(max(later.values()))


class Strict(Whim):
    """Gives a hundredth."""

    name = "strict"
    fingerprint = "strict:1"

    def _share(self, text: str) -> float:
        return super()._share(text) / 100


def test_the_best_of_steps_that_kept_no_policy_is_no_rival(tmp_path: Path) -> None:
    run_in(tmp_path, load_best_model_at_end=False).train(on_step=lambda numbers, *_: numbers["step"] == 5)
    assert run_in(tmp_path).train(resume=True).rolled_back in {6, 7, 8}
