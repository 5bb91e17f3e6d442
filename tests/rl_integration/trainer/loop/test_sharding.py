"""A policy in shards learns what a whole one learns; `test_processes` compares the gradients of all objectives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.rl_integration.trainer.loop.test_resume import ended, same, told
from tests.rl_integration.trainer.nursery import Nursery
from tests.rl_integration.trainer.small_runs import small_config, small_policy, small_run

from adjudge.rl_integration.trainer.loop.processes import Processes

SHARDS = {"sharding": "full"}


def apart(one: Path, other: Path) -> float:
    """The length of the difference of what two folders' policies learnt, relative to the length of the first."""
    first, second = (load_file(folder / "weights-0.safetensors") for folder in (one, other))
    assert first.keys() == second.keys()
    difference = sum(float((value - second[name]).double().square().sum()) for name, value in first.items())
    return float((difference / sum(float(value.double().square().sum()) for value in first.values())) ** 0.5)


def learnt(nursery: Nursery, folder: Path, processes: int = 1, **options: Any) -> Path:
    folder.mkdir()
    given = {"micro_tokens": 100, "max_grad_norm": 0.01, "learning_rate": 1e-3, **options}
    assert nursery.run("learn", processes=processes, folder=str(folder), **given) == [0] * processes
    return folder


def test_weights_after_three_steps_do_not_depend_on_shards(nursery: Nursery, tmp_path: Path) -> None:
    options: dict[str, Any] = {"objective": "grpo", "steps": 3}
    one = learnt(nursery, tmp_path / "one", **options)
    assert apart(one, learnt(nursery, tmp_path / "still", **options, learning_rate=1e-30)) > 1e-3, "it learns"
    assert apart(one, learnt(nursery, tmp_path / "whole", 2, **options)) <= 1e-5
    for count in (2, 4):
        assert apart(one, learnt(nursery, tmp_path / f"{count} in shards", count, **options, **SHARDS)) <= 1e-5


@pytest.mark.parametrize("lora", [0, 2])
def test_a_state_goes_on_in_any_number_of_shards(nursery: Nursery, tmp_path: Path, lora: int) -> None:
    """The value model's and the optimiser's, too."""
    options: dict[str, Any] = {"objective": "ppo", "lora": lora}
    one = learnt(nursery, tmp_path / "one", **options, steps=2)
    first = learnt(nursery, tmp_path / "first", 2, **options, **SHARDS)
    assert apart(one, first) > 1e-5, "the second step matters"
    for name, count, more in (("alone", 1, {}), ("two", 2, {}), ("four in shards", 4, SHARDS)):
        assert apart(one, learnt(nursery, tmp_path / name, count, after=str(first), **options, **more)) <= 1e-5, name


@pytest.mark.parametrize("lora", [0, 2])
def test_a_run_in_shards_goes_on_without_them(nursery: Nursery, tmp_path: Path, lora: int) -> None:
    """With measurements, and answers of each process's own; what it saves is what it learnt."""
    folder = tmp_path / "run"
    options: dict[str, Any] = {"tasks": 4, "eval_steps": 1, "objective": "dpo"}
    learning = {"lora": lora}
    assert nursery.run(
        "train", processes=2, folder=str(folder), steps=2, learning={**learning, **SHARDS}, **options
    ) == [0, 0]
    assert [line["held_out_unscored"] for line in told(folder)[0]] == [0, 0]
    same(folder, folder, ranks=2)
    saved(folder, lora)
    assert (
        nursery.run("train", processes=4, folder=str(folder), steps=3, learning={**learning, **SHARDS}, **options)
        == [0] * 4
    )
    assert ended(folder, 3)["resumed"] == 2
    assert nursery.run("train", folder=str(folder), steps=4, learning=learning, **options) == [0]
    assert ended(folder, 0)["resumed"] == 3
    saved(folder, lora)


def saved(folder: Path, lora: int) -> None:
    """Compare the policy that a run saved with what it ended with."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    causal: Any = AutoModelForCausalLM
    (newest,) = sorted(folder.glob("checkpoint-*"))[-1:]
    trained = load_file(newest / "trained.safetensors")
    plain = causal.from_pretrained(folder / "policy").state_dict()
    if not lora:
        assert {f"policy.{name}" for name in plain} == trained.keys()
        assert all(torch.equal(value, trained[f"policy.{name}"]) for name, value in plain.items())
        return
    adapted: Any = PeftModel.from_pretrained(small_policy().model, folder / "policy" / "adapter")
    for name, value in adapted.state_dict().items():
        if ".lora_" in name:
            assert torch.equal(value, trained[name.replace("base_model.model.", "policy.")]), name
    merged = adapted.merge_and_unload().state_dict()
    assert all(torch.allclose(value, plain[name], atol=1e-7) for name, value in merged.items())
    assert any(not torch.equal(value, plain[name]) for name, value in small_policy().model.state_dict().items())


def test_a_process_alone_is_not_sharded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"learning.sharding is full, .* started alone; start it with torchrun"):
        small_run(tmp_path, small_config(learning=SHARDS), processes=Processes())
