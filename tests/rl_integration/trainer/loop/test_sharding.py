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
    assert apart(one, learnt(nursery, tmp_path / "in shards", 4, **options, **SHARDS)) <= 1e-5


@pytest.mark.parametrize("lora", [0, 2])
def test_a_state_goes_on_in_any_number_of_shards(nursery: Nursery, tmp_path: Path, lora: int) -> None:
    """The value model's and the optimiser's, too."""
    options: dict[str, Any] = {"objective": "ppo", "lora": lora}
    one = learnt(nursery, tmp_path / "one", **options, steps=2)
    first = learnt(nursery, tmp_path / "first", 2, **options, **SHARDS)
    assert apart(one, first) > 1e-5, "the second step matters"
    for name, count, more in (("alone", 1, {}), ("three in shards", 3, SHARDS)):
        assert apart(one, learnt(nursery, tmp_path / name, count, after=str(first), **options, **more)) <= 1e-5, name


@pytest.mark.parametrize(("lora", "counts"), [(0, (2, 1)), (2, (2, 3, 1))])
def test_a_run_in_shards_goes_on_without_them(
    nursery: Nursery, tmp_path: Path, lora: int, counts: tuple[int, ...]
) -> None:
    """With measurements, and answers of each process's own; what it saves is what it learnt."""
    folder = tmp_path / "run"
    options: dict[str, Any] = {"tasks": 4, "eval_steps": 1, "objective": "dpo", "save_hf_ckpt": True}
    for steps, count in enumerate(counts, 2):
        learning = {"lora": lora, **(SHARDS if count > 1 else {})}
        ends = nursery.run("train", processes=count, folder=str(folder), steps=steps, learning=learning, **options)
        assert ends == [0] * count
        assert ended(folder, count - 1)["resumed"] == (steps - 1 if steps > 2 else 0)
        if count in (1, 2):
            saved(folder, lora)
        if steps == 2:
            assert [line["held_out_unscored"] for line in told(folder)[0]] == [0, 0]
            same(folder, folder, ranks=2)


def saved(folder: Path, lora: int) -> None:
    """Compare the policy that a run saved with what it ended with."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    causal: Any = AutoModelForCausalLM
    (newest,) = sorted(folder.glob("checkpoint-*"))[-1:]
    trained = load_file(newest / "trained.safetensors")
    files = [path.relative_to(folder / "policy") for path in (folder / "policy").rglob("*.safetensors")]
    assert len(files) == (2 if lora else 1)
    assert all((newest / "policy" / one).read_bytes() == (folder / "policy" / one).read_bytes() for one in files)
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


@pytest.mark.parametrize("lora", [0, 2])
def test_another_engine_is_handed_whole_weights(nursery: Nursery, tmp_path: Path, lora: int) -> None:
    """Tied ones once; and the saved policy has them, tied."""
    from transformers import AutoModelForCausalLM

    for name, count in (("none", 1), ("full", 3)):
        folder = tmp_path / name
        folder.mkdir()
        ends = nursery.run("hand_over", processes=count, folder=str(folder), lora=lora, sharding=name)
        assert ends == [0] * count
    for part in ("handed", "back"):
        expected = load_file(tmp_path / "none" / f"{part}-0.safetensors")
        assert "lm_head.weight" not in expected
        for rank in range(3):
            found = load_file(tmp_path / "full" / f"{part}-{rank}.safetensors")
            assert found.keys() == expected.keys()
            assert all(torch.allclose(value, expected[name], atol=1e-6) for name, value in found.items()), part
    causal: Any = AutoModelForCausalLM
    model = causal.from_pretrained(tmp_path / "full" / "policy")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in found.items())


def test_options_for_memory_change_nothing(nursery: Nursery, tmp_path: Path) -> None:
    options = {**SHARDS, "cpu_offload": True, "gradient_checkpointing": True}
    one = learnt(nursery, tmp_path / "one", objective="ppo", steps=2)
    assert apart(one, learnt(nursery, tmp_path / "two", 2, objective="ppo", steps=2, **options)) <= 1e-5


def test_shards_in_bfloat16_learn_as_a_whole_policy_in_it(nursery: Nursery, tmp_path: Path) -> None:
    """To the rounding of 8 bits; what is trained, and its gradients, stay in 32."""
    options: dict[str, Any] = {"objective": "ppo", "precision": "bf16"}
    one = learnt(nursery, tmp_path / "one", **options)
    two = learnt(nursery, tmp_path / "two", 2, **options, **SHARDS)
    whole, parts = (load_file(folder / "grads-0.safetensors") for folder in (one, two))
    assert {value.dtype for value in parts.values()} == {torch.float32}
    difference = sum(float((value - parts[name]).square().sum()) for name, value in whole.items())
    assert difference <= 0.05**2 * sum(float(value.square().sum()) for value in whole.values())


def test_processes_write_as_often_as_each_needs_to(nursery: Nursery, tmp_path: Path) -> None:
    """A curriculum that reads prompts, and asks for more answers where one process has no right one yet."""
    options: dict[str, Any] = {"steps": 2, "learning": SHARDS, "curriculum": ["pcl", "reinforce_ada"]}
    assert nursery.run("train", processes=2, folder=str(tmp_path / "run"), **options) == [0, 0]
    assert [line["answers"] > 4 for line in told(tmp_path / "run")[0]] == [True, True]


def test_a_pass_that_memory_does_not_hold_ends_the_run(nursery: Nursery, tmp_path: Path) -> None:
    """And is not made again: the other process waits in it."""
    assert nursery.run("out_of_memory", processes=2, folder=str(tmp_path)) == [0, 0]
    expected = "a pass does not fit into memory (as told); lower learning.micro_tokens (100)"
    assert all((tmp_path / f"why-{rank}.txt").read_text(encoding="utf-8").startswith(expected) for rank in (0, 1))


def test_a_process_alone_is_not_sharded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"learning.sharding is full, .* started alone; start it with torchrun"):
        small_run(tmp_path, small_config(learning=SHARDS), processes=Processes())
