"""Several processes are one run: the same gradients, the same weights, one end."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.rl_integration.trainer.child_work import FAILED
from tests.rl_integration.trainer.loop.test_resume import KILLED, ended, same, told
from tests.rl_integration.trainer.nursery import Nursery
from tests.rl_integration.trainer.small_runs import small_config, small_policy, small_run

from adjudge.rl_integration.client.client import ClientConfig
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES
from adjudge.rl_integration.trainer.loop.processes import Processes


@given(costs=st.lists(st.integers(0, 1000), max_size=30), count=st.integers(1, 5))
def test_parts_cover_everything_once(costs: list[int], count: int) -> None:
    everyone = [Processes(rank=rank, world_size=count) for rank in range(count)]
    assert [cost for one in everyone for cost in one.share(costs)] == costs
    parts = [one.balanced(costs) for one in everyone]
    assert sorted(place for part in parts for place in part) == list(range(len(costs)))
    loads = [sum(costs[place] for place in part) for part in parts]
    assert max(loads) - min(loads) <= max(costs, default=0)


@given(sizes=st.lists(st.integers(1, 4), max_size=12), count=st.integers(1, 5))
def test_what_belongs_together_comes_to_one_process(sizes: list[int], count: int) -> None:
    things = [f"{name}" if size > 1 else "" for name, size in enumerate(sizes) for _ in range(size)]
    parts = [Processes(rank=rank, world_size=count).share(things, together=str) for rank in range(count)]
    assert [thing for part in parts for thing in part] == things
    for name in set(things) - {""}:
        assert sum(name in part for part in parts) == 1


def test_one_process_is_its_own_company() -> None:
    alone, tensor = Processes.joined(), torch.ones(2)
    assert (alone.world_size, alone.is_main_process, alone.device) == (1, True, "cpu")
    assert alone.all_gather([1, 2]) == [1, 2]
    assert alone.broadcast("a") == "a"
    alone.all_reduce([tensor])
    alone.broadcast_tensors([tensor])
    assert tensor.tolist() == [1, 1]


# One of each kind: group, batch, thresholds over all tokens, pairs, critic; the other names are `full`.
KINDS = [("grpo", 0), ("reinforce_plus_plus", 0), ("top_entropy", 0), ("steer", 0), ("dpo", 2), ("ppo", 0)]


@pytest.mark.parametrize(
    ("objective", "lora"),
    [*KINDS, *(pytest.param(name, 0, marks=pytest.mark.full) for name in OBJECTIVES if (name, 0) not in KINDS)],
)
def test_gradients_do_not_depend_on_processes(nursery: Nursery, tmp_path: Path, objective: str, lora: int) -> None:
    """From other weights and seeds in the second process, with cuts elsewhere, and the loss of the whole batch.

    In shards, processes make as many passes as each other, of which they need not have as many: three have 1, 1 and 2
    for the groups of GRPO, and there are three groups with pairs, so that one of four has none.
    """
    shards = 4 if objective == "dpo" else 3
    runs = (("whole", 1, 100_000), ("two", 2, 40), ("in shards", shards, 60))
    for name, count, micro_tokens in runs:
        folder = tmp_path / name
        folder.mkdir()
        options: dict[str, Any] = {"objective": objective, "lora": lora, "micro_tokens": micro_tokens, "state": False}
        options["sharding"] = "full" if "shards" in name else "none"
        assert nursery.run("learn", processes=count, folder=str(folder), **options) == [0] * count
    whole = load_file(tmp_path / "whole" / "grads-0.safetensors")
    assert any(value.abs().max() > 1e-3 for value in whole.values())
    numbers = json.loads((tmp_path / "whole" / "numbers-0.json").read_text(encoding="utf-8"))
    for name, rank in [(name, rank) for name, count, _ in runs[1:] for rank in range(count)]:
        found = load_file(tmp_path / name / f"grads-{rank}.safetensors")
        assert found.keys() == whole.keys()
        apart = sum(float((found[key] - value).square().sum()) for key, value in whole.items())
        assert apart <= 1e-10 * sum(float(value.square().sum()) for value in whole.values()), "1e-5 of the length"
        others = json.loads((tmp_path / name / f"numbers-{rank}.json").read_text(encoding="utf-8"))
        assert others == pytest.approx(numbers, rel=1e-4, abs=1e-6)


def test_two_processes_that_were_killed_end_as_two_that_were_not(nursery: Nursery, tmp_path: Path) -> None:
    """When one is killed, the other notices and ends; three groups of answers for two processes, and one to write."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    options: dict[str, Any] = {"steps": 4, "tasks": 3, "staleness": 1, "save_steps": 2, "eval_steps": 2}
    assert nursery.run("train", processes=2, folder=str(whole), **options) == [0, 0]
    same(whole, whole, ranks=2)
    left, right = (load_file(whole / f"end-{rank}.safetensors") for rank in (0, 1))
    assert all(torch.equal(left[name], right[name]) for name in left), "both learnt the same"
    for dies, at in ((1, 30), (0, 75)):
        ends = nursery.run("train", processes=2, dies=dies, die_at=at, folder=str(cut), **options)
        assert ends[dies] == KILLED
        assert ends[1 - dies] == FAILED
    assert nursery.run("train", processes=2, folder=str(cut), **options) == [0, 0]
    same(cut, whole, ranks=2)
    steps, _ = told(cut)
    assert [line["step"] for line in steps] == [1, 2, 3, 4], "one of them writes"


def test_two_processes_that_share_a_population_end_as_one(nursery: Nursery, tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 2, "evolution": {"population": 3, "sigma": 0.1}}
    for count in (1, 2):
        assert nursery.run("train", processes=count, folder=str(tmp_path / f"{count}"), **options) == [0] * count
    alone, left, right = (load_file(tmp_path / f"{name}.safetensors") for name in ("1/end-0", "2/end-0", "2/end-1"))
    for name, value in alone.items():
        assert torch.equal(left[name], right[name]), "both learnt the same"
        torch.testing.assert_close(left[name], value)


def test_a_failure_ends_all_and_is_told(nursery: Nursery, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    ends = nursery.run("train", processes=2, folder=str(folder), steps=3, fail=2)
    assert ends == [1, FAILED]
    told = (folder / "why.txt").read_text(encoding="utf-8")
    assert told == "another process of this run stopped: process 0: KeyError: 'this process was told to fail'"


def test_all_stop_when_the_first_is_told_to(nursery: Nursery, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert nursery.run("train", processes=2, folder=str(folder), steps=9, stop=2) == [0, 0]
    assert len(told(folder)[0]) == 2
    assert (folder / "checkpoint-2").is_dir()


def test_all_go_back_to_the_best_policy(nursery: Nursery, tmp_path: Path) -> None:
    """The gold scorer wants the opposite of the reward; the first process notices, and both go back."""
    folder = tmp_path / "run"
    options: dict[str, Any] = {
        "steps": 30,
        "tasks": 8,
        "num_generations": 8,
        "save_steps": 100,
        "guard": {"surely": 2.0},
    }
    assert nursery.run("train", processes=2, folder=str(folder), **options) == [0, 0]
    back, other = (ended(folder, rank)["rolled_back"] for rank in (0, 1))
    assert back == other
    assert 0 <= back < 29
    best = load_file(folder / "best" / f"checkpoint-{back}" / "trained.safetensors")
    for rank in (0, 1):
        end = load_file(folder / f"end-{rank}.safetensors")
        assert all(torch.equal(end[name.removeprefix("policy.")], value) for name, value in best.items())


def test_all_must_see_one_folder(nursery: Nursery, tmp_path: Path) -> None:
    """As on two machines: the first process has a checkpoint to go on from, the second has none."""
    options: dict[str, Any] = {"steps": 1, "tasks": 2}
    assert nursery.run("train", folder=str(tmp_path / "0"), **options) == [0]
    assert nursery.run("train", processes=2, folder=str(tmp_path / "{rank}"), **options) == [FAILED, 1]
    told = (tmp_path / "0" / "why.txt").read_text(encoding="utf-8")
    assert "process 1: ValueError: this process found the checkpoint of step 0" in told
    assert "the first one that of step 1" in told


def test_all_make_every_call_of_the_engine_that_writes(nursery: Nursery, tmp_path: Path) -> None:
    """One held-out prompt for two processes."""
    options: dict[str, Any] = {"steps": 2, "tasks": 2, "held_out": 1, "eval_steps": 1}
    assert nursery.run("train", processes=2, folder=str(tmp_path / "run"), together=True, **options) == [0, 0]
    assert [line["held_out_unscored"] for line in told(tmp_path / "run")[0]] == [0, 0]


def test_processes_wait_longer_than_a_client_of_a_reward_server() -> None:
    patience = inspect.signature(Processes.joined).parameters["timeout"].default
    assert patience > ClientConfig(url="http://127.0.0.1:1").deadline


@pytest.mark.parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"])
def test_a_launcher_that_shards_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "true")
    with pytest.raises(ValueError, match=rf"{name} is 'true', .* with torchrun .* set learning\.sharding to full"):
        Processes.joined()


@pytest.mark.parametrize("world_size", [1, 2])
def test_policy_critic_and_reference_are_where_the_process_computes(tmp_path: Path, world_size: int) -> None:
    """The device "meta" plays the GPU."""
    run = small_run(tmp_path, small_config(objective="ppo"), processes=Processes(world_size=world_size, device="meta"))
    assert run._reference is not None
    models = {"policy": run.policy.model, "critic": run._learner.critic, "reference": run._reference.model}
    for name, model in models.items():
        assert model is not None
        assert {value.device.type for value in model.parameters()} == {"meta"}, name


def test_a_single_process_leaves_a_policy_on_its_gpu() -> None:
    model = small_policy().model.to("meta")
    Processes(device="cpu").place(model)
    assert model.device.type == "meta"


def test_fewer_tasks_than_processes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rollouts.tasks is 1, and there are 2 processes"):
        small_run(tmp_path, small_config(tasks=1), processes=Processes(rank=0, world_size=2))


def test_a_command_trains_in_two_processes(nursery: Nursery, tmp_path: Path) -> None:
    """As a user would type it behind `torchrun`, or behind `accelerate launch`, which sets the same environment."""
    rows = "".join(json.dumps({"prompt": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(12))
    (tmp_path / "sums.jsonl").write_text(rows, encoding="utf-8")
    record = {
        "model": {"from_scratch": "tiny"},
        "data": {"path": str(tmp_path / "sums.jsonl"), "held_out": 0.3},
        "reward": "exact",
        "objective": "rloo",
        "rollouts": {"tasks": 2, "num_generations": 2, "sampling": {"max_new_tokens": 4}},
        "steps": 2,
        "output": str(tmp_path / "run"),
    }
    (tmp_path / "run.yaml").write_text(json.dumps(record), encoding="utf-8")
    train = ["train", "policy", str(tmp_path / "run.yaml"), "--json"]
    assert nursery.run("command", processes=2, folder=str(tmp_path), arguments=train) == [0, 0]
    (line,) = [line for rank in (0, 1) for line in (tmp_path / f"out-{rank}").read_text("utf-8").splitlines()]
    assert json.loads(line)["steps"] == 2
    assert len(told(tmp_path / "run")[0]) == 2
    assert (tmp_path / "run" / "policy" / "model.safetensors").is_file()


WAITS = """
import json, os, signal, sys
from adjudge.rl_integration.trainer.loop.processes import Processes
processes = Processes.joined()
told = json.dumps(processes.all_gather([os.getpid()]))
if processes.is_main_process:
    with open(sys.argv[1], "w") as file:
        file.write(told)
signal.pause()
"""


def test_torchrun_starts_them_and_none_outlives_it(tmp_path: Path) -> None:
    program, told = tmp_path / "waits.py", tmp_path / "pids"
    program.write_text(WAITS, encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with open(tmp_path / "log", "w") as log:
        launcher = subprocess.Popen([*torchrun, str(program), str(told)], stdout=log, stderr=log)
    deadline = time.monotonic() + 300
    while not told.is_file() or not (said := told.read_text()).endswith("]"):
        assert launcher.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.1)
    first, second = json.loads(said)
    assert first != second
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 30
    try:
        while is_alive(first) or is_alive(second):
            assert time.monotonic() < deadline, "it goes on"
            time.sleep(0.1)
    finally:
        for pid in filter(is_alive, (first, second)):
            os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
