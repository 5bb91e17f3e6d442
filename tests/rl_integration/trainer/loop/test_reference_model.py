"""A run measures divergences from the mean of the weights of several checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.small_runs import small_policy

from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import mean_reference, train_policy_run
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.training.config_file import config_of


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    for seed in range(3):
        small_policy(seed=seed).save(folder / str(seed))
    tiny_policy("0123456789+= ", seed=0, width=32, layers=1).save(folder / "wide")
    return [str(folder / name) for name in ("0", "1", "2", "wide")]


def file_of(folder: Path, homes: list[str], **more: Any) -> RunFile:
    rows = [{"prompt": f"{n}+{n}=", "reference": str(2 * n)} for n in range(9)]
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    run = {
        "model": homes[0],
        "data": {"path": str(folder / "data.jsonl"), "held_out": 0.0},
        "reward": "math",
        "objective": {"name": "grpo", "set": {"policy.beta": 0.1}},
        "rollouts": {"tasks": 2, "num_generations": 2, "sampling": {"max_new_tokens": 4}},
        "output": str(folder / "run"),
        "steps": 1,
    }
    return config_of(RunFile, {**run, **more}, "run.yaml")


def test_the_reference_has_the_mean_of_each_weight(tmp_path: Path, homes: list[str]) -> None:
    config = file_of(tmp_path, homes, reference_model=homes[:3])
    found = mean_reference(config, small_policy(), Processes())
    parts = [dict(small_policy(seed=seed).model.named_parameters()) for seed in range(3)]
    for name, value in found.model.named_parameters():
        torch.testing.assert_close(value, (parts[0][name] + parts[1][name] + parts[2][name]) / 3)
        assert not value.requires_grad
    assert not torch.equal(parts[0]["lm_head.weight"], parts[1]["lm_head.weight"])


@pytest.mark.parametrize("learning", [{}, {"lora": {"rank": 2}}])
def test_a_run_measures_from_it(tmp_path: Path, homes: list[str], learning: dict[str, Any]) -> None:
    divergences = []
    for name, reference in (("start", homes[:1]), ("mean", homes[:2])):
        more = {"output": str(tmp_path / name), "reference_model": reference, "learning": learning}
        divergences.append(train_policy_run(file_of(tmp_path, homes, **more)).last["kl"])
    assert divergences[0] == pytest.approx(0, abs=1e-6), "from the policy's own start"
    assert divergences[1] > 1e-3


def test_what_cannot_be_a_reference_is_refused(tmp_path: Path, homes: list[str]) -> None:
    with pytest.raises(ValueError, match="wide', whose weights have other shapes"):
        train_policy_run(file_of(tmp_path, homes, reference_model=[homes[0], homes[3]]))
    with pytest.raises(ValueError, match=r"objective grpo measures no divergence; set reward_beta or policy\.beta"):
        file_of(tmp_path, homes, objective="grpo", reference_model=homes[:1])
