"""A run that was killed at any moment and resumed is the run that was not."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.rl_integration.trainer.child_work import checkpoint
from tests.rl_integration.trainer.nursery import Nursery
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_policy, small_run

from adjudge.rl_integration.trainer.loop.checkpoints import check_facts, newest_checkpoint, run_facts, save_checkpoint
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig

KILLED = -9


def told(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """The numbers of each step without times, and the samples."""
    lines = (folder / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [
        {name: value for name, value in json.loads(line).items() if not name.startswith("seconds")} for line in lines
    ]
    return steps, (folder / "samples.jsonl").read_text(encoding="utf-8")


def ended(folder: Path, rank: int = 0) -> dict[str, Any]:
    """What a process said at its end."""
    found: dict[str, Any] = json.loads((folder / f"end-{rank}.json").read_text(encoding="utf-8"))
    return found


def same(found: Path, expected: Path, ranks: int = 1) -> None:
    assert told(found) == told(expected)
    for rank in range(ranks):
        left, right = (load_file(folder / f"end-{rank}.safetensors") for folder in (found, expected))
        assert all(torch.equal(left[name], right[name]) for name in right)


RUNS: dict[str, dict[str, Any]] = {
    "every step": {"save_steps": 1, "staleness": 1},
    "now and then": {
        "save_steps": 3,
        "staleness": 1,
        "eval_steps": 2,
        "learning": {"minibatches": 2},
        "guard": {"surely": 1e9},
    },
    "critic": {"save_steps": 2, "staleness": 0, "objective": "ppo", "keep_checkpoints": 1, "save_hf_ckpt": True},
    "factors": {"save_steps": 2, "staleness": 1, "objective": "rloo", "learning": {"lora": 2, "precision": "bf16"}},
}


@pytest.mark.parametrize("name", RUNS)
def test_killed_again_and_again(nursery: Nursery, tmp_path: Path, name: str) -> None:
    """By itself between two files of a checkpoint, in the middle of an answer, while it learns; or from outside."""
    options = {"steps": 7, "tasks": 2, **RUNS[name]}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert nursery.run("train", folder=str(whole), **options) == [0]
    events = ended(whole)["events"]
    assert {"model", "open steps.jsonl", "os.rename .checkpoint-6.part"} <= set(events)
    dice = random.Random(name)
    saved, last = events.index(f"os.rename .checkpoint-{max(2, options['save_steps'])}.part"), len(events)
    for begin, end in ((1, saved), (saved + 5, (saved + last) // 2)):  # before and behind the first checkpoint
        assert nursery.run("train", die_at=dice.randint(begin, end), folder=str(cut), **options) == [KILLED]
    ends = [nursery.run("train", die_at=dice.randint(1, last // 4), folder=str(cut), **options) for _ in range(2)]
    ends.append(nursery.run("train", kill=(5, dice.uniform(0, 0.05)), folder=str(cut), **options))
    assert all(end in ([KILLED], [0]) for end in ends)  # one may have come to the end
    assert nursery.run("train", folder=str(cut), **options) == [0]
    assert ended(cut)["resumed"] >= 3
    same(cut, whole)


def test_a_checkpoint_may_hold_the_policy_as_others_load_it(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    causal: Any = AutoModelForCausalLM
    kept: dict[str, Any] = {"steps": 3, "save_steps": 1, "keep_checkpoints": 2}
    guard = GuardConfig(gold=RewardConfig(scorer=Digits()), every=1, window=1)
    run = small_run(tmp_path / "run", small_config(save_hf_ckpt=True, guard=guard, **kept))
    run.train()
    folders = sorted((tmp_path / "run").glob("**/checkpoint-*/policy"))
    assert [folder.parent.name for folder in folders] == ["checkpoint-2", "checkpoint-3"], "of the best there is none"
    assert list((tmp_path / "run" / "best").glob("checkpoint-*"))
    assert not list((tmp_path / "run").glob(".checkpoint-*"))
    for folder in folders:
        trained = load_file(folder.parent / "trained.safetensors")
        found = causal.from_pretrained(folder).state_dict()
        assert {f"policy.{name}" for name in found} == trained.keys()
        assert all(torch.equal(value, trained[f"policy.{name}"]) for name, value in found.items())
        assert AutoTokenizer.from_pretrained(folder)("1+1=")["input_ids"] == list(run.policy.encode(TASKS[1]))
    small_run(tmp_path / "run", small_config(**{**kept, "steps": 4})).train(resume=True)
    small_run(tmp_path / "plain", small_config(**{**kept, "steps": 4})).train()
    assert told(tmp_path / "run")[1] == told(tmp_path / "plain")[1], "it changes nothing, and may be left out later"
    assert [folder.parent.name for folder in (tmp_path / "run").glob("checkpoint-*/policy")] == ["checkpoint-3"]


def test_dropout_goes_on_where_it_was(tmp_path: Path) -> None:
    weights = []
    for parts in ((3,), (2, 3)):
        for steps in parts:
            torch.manual_seed(steps)
            run = small_run(tmp_path / str(parts), small_config(steps=steps, seed=4))
            run.policy.model.model.layers[0].self_attn.attention_dropout = 0.5
            run.train(resume=True)
        weights.append(run.policy.model.state_dict())
    whole, cut = weights
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_killed_at_each_file_of_a_checkpoint(nursery: Nursery, tmp_path: Path) -> None:
    """Between any two of its files, the checkpoint is whole, or the one before is."""
    end, at, seen = [KILLED], 0, []
    while end == [KILLED]:
        at += 1
        folder = tmp_path / str(at)
        assert nursery.run("save", folder=str(folder), step=1) == [0]
        end = nursery.run("save", die_at=at, folder=str(folder), step=2)
        found = newest_checkpoint(folder)
        assert found is not None
        parts = (found.tensors["policy.weight"][0], found.random["0.cpu"][0], found.optimizer["state"][0]["step"])
        assert {found.record["step"], *map(int, parts)} == {found.step}
        seen.append(found.step)
        assert nursery.run("save", folder=str(folder), step=3) == [0], "and what was left behind is in nobody's way"
        assert sorted(path.name for path in folder.iterdir()) == ["checkpoint-3"]
    assert seen == sorted(seen)
    assert seen.count(1) >= 8, "each file that is written is a moment"
    assert seen.count(2) >= 5, "and each that is deleted"


@pytest.mark.parametrize("file", ["trained.safetensors", "random.safetensors", "optimizer.pt", "record.json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_checkpoint_is_not_gone_on_from(tmp_path: Path, file: str, damage: str) -> None:
    for step in (1, 2):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    path = tmp_path / "checkpoint-2" / file
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes(held) if damage == "changed" else bytes(held[:-1]))
    with pytest.raises(ValueError, match=rf"checkpoint-2' is damaged: .*{file}.*go on from checkpoint-1"):
        newest_checkpoint(tmp_path)
    shutil.rmtree(tmp_path / "checkpoint-2")
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1


def test_what_is_no_checkpoint_is_left_alone(tmp_path: Path) -> None:
    for name in ("checkpoint-old", "checkpoint-", "checkpoint-7.bak"):
        (tmp_path / name).mkdir()
    assert newest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objective": "dr_grpo"}, 'objective.name was "grpo" and is "dr_grpo"'),
        ({"num_generations": 2}, "rollouts.num_generations was 4 and is 2"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"learning": {"learning_rate": 0.5}}, "learning.learning_rate was 0.01 and is 0.5"),
        ({"set": {"policy.clip_ratio_high": 0.4}}, "objective.set"),
    ],
)
def test_other_options_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    small_run(tmp_path, small_config(steps=1)).train()
    with pytest.raises(ValueError, match=f"resumed with other options: {told}"):
        small_run(tmp_path, small_config(**{"steps": 1, **changes})).train(resume=True)


def test_an_option_that_is_newer_than_a_checkpoint_had_its_default() -> None:
    new = ("rollouts.sampling.top_p", "learning.mask_truncated_completions")

    def facts(**changes: Any) -> dict[str, Any]:
        return run_facts(small_config(**changes), TASKS, small_policy())

    for changes in ({}, {"set": {"policy.clip_ratio_high": 0.4}}):
        then = {name: value for name, value in facts(**changes).items() if name not in new}
        check_facts(then, facts(**changes))
    with pytest.raises(ValueError, match=r"learning\.mask_truncated_completions was false and is true"):
        check_facts(then, facts(**changes, learning={"mask_truncated_completions": True}))
    with pytest.raises(ValueError, match=r"objective\.set\.policy\.clip_ratio_high was 0\.4 and is null"):
        check_facts(then, facts())


def test_other_tasks_and_models_are_refused(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(steps=1)).train()
    with pytest.raises(ValueError, match="options: tasks differ; put back"):
        small_run(tmp_path, small_config(steps=1), tasks=TASKS[1:]).train(resume=True)
    other = small_run(tmp_path, small_config(steps=1))
    other.policy.model.lm_head.weight.requires_grad_(False)
    with pytest.raises(ValueError, match="options: model differs; put back"):
        other.train(resume=True)


def test_what_changes_no_number_may_change(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(steps=1)).train()
    config = small_config(
        steps=3,
        save_steps=2,
        keep_checkpoints=1,
        eval_steps=1,
        learning={"micro_tokens": 100, "gradient_checkpointing": True},
    )
    assert small_run(tmp_path, config).train(resume=True).steps == 3


def test_a_run_that_has_ended_has_its_checkpoint(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(steps=3, save_steps=2)).train()
    again = small_run(tmp_path, small_config(steps=3, save_steps=2)).train(resume=True)
    assert (again.steps, again.resumed) == (3, 3)
