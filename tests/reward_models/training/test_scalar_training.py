"""Training end to end on a tiny model: it learns, is saved as it was measured, and resumes to the bit."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tests.reward_models.training.tiny_training import Killed, kill_at, planted, tiny_config, write_rows

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.loading import engine_of
from adjudge.engines.reward_network import RewardNetwork
from adjudge.protocol import Sample
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.reward_models.training.training import Training
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.scoring import registry
from adjudge.training.config_file import plain_config
from adjudge.training.data_files import held_out, read_preferences


def test_planted_preferences_are_recovered_and_scored_alike_by_the_engine(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, planted(400), schedule={"epochs": 2})
    before = torch.get_rng_state()
    report = train_scalar(config)
    assert torch.equal(torch.get_rng_state(), before)
    accuracy, longer = report.metrics["accuracy"], report.baselines["longer wins"]
    assert accuracy.low is not None
    assert longer.high is not None
    assert accuracy.low > max(0.8, longer.high)
    assert report.metrics["over_longer_wins"].low is not None
    assert report.data["held_out"] + report.data["trained_on"] == 400
    assert TrainingReport.read(tmp_path / "model") == report

    folder = tmp_path / "model"
    notes = CheckpointNotes.read(folder)
    assert notes is not None
    assert notes.normalizer is not None
    examples: Any = read_preferences([str(tmp_path / "rows.jsonl")]).examples
    _, held = held_out(examples, 0.1, seed=0)
    chats = [
        [{"role": "user", "content": examples[at].prompt}, {"role": "assistant", "content": text}]
        for at in held
        for text in (examples[at].chosen, examples[at].rejected)
    ]
    engine = engine_of({"transformers": {"model": str(folder), "device": "cpu"}})
    answers: Any = asyncio.run(engine.classify(chats))
    rewards = np.array([answer.values[0] for answer in answers])
    assert (rewards[::2] > rewards[1::2]).mean() == pytest.approx(accuracy.value)
    assert (rewards.mean(), rewards.std()) == pytest.approx(tuple(notes.normalizer), abs=1e-5)
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["LlamaForSequenceClassification"]
    card = (folder / "README.md").read_text()
    assert "longer wins" in card
    assert str(accuracy) in card
    assert "reward_model:" in card


VARIANTS: dict[str, dict[str, Any]] = {
    "lora": {"schedule": {"lora": {"rank": 4}}},
    "checkpointing": {"schedule": {"checkpointing": True}},
    "mlp head": {"head": {"kind": "mlp", "hidden": 16}},
    "mean pooling": {"head": {"pooling": "mean"}},
    "ensemble": {"head": {"kind": "multi", "members": 3}, "loss": {"name": "bt", "bootstrap": True}},
    "gaussian": {"head": {"kind": "gaussian"}, "loss": "purm"},
    "brme": {"head": {"kind": "gaussian", "outputs": 3}, "loss": {"name": "sampled_bt", "bootstrap": True}},
    "quantile": {"head": {"kind": "quantile", "levels": 5}},
    "length": {"regularizers": {"length": 0.5}},
    "text": {"regularizers": {"text": 0.1}},
    "text with lora": {"regularizers": {"text": 0.1, "centering": 0.01}, "schedule": {"lora": {"rank": 4}}},
    "lists": {"loss": "plackett_luce"},
    "consistency": {"regularizers": {"consistency": 0.5}},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_is_saved_as_it_was_measured(name: str, tmp_path: Path) -> None:
    rows = [{**row, "paraphrase": f"{row['chosen']}!"} for row in planted(40)]
    config = tiny_config(tmp_path, rows, **VARIANTS[name])
    report = train_scalar(config)
    folder = tmp_path / "model"
    network = RewardNetwork.load(folder)
    notes = CheckpointNotes.read(folder)
    assert notes is not None
    assert notes.normalizer is not None
    assert notes.head == config.head
    assert all("lora" not in key for key in network.state_dict())
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    examples: Any = read_preferences([str(tmp_path / "rows.jsonl")]).examples
    _, held = held_out(examples, 0.1, seed=0)
    rewards = []
    for at in held:
        for text in (examples[at].chosen, examples[at].rejected):
            turns = [{"role": "user", "content": examples[at].prompt}, {"role": "assistant", "content": text}]
            ids = tokenizer.apply_chat_template(turns, return_dict=True)["input_ids"]
            with torch.no_grad():
                raw = network(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))
            means = raw[:, : config.head.outputs] if config.head.kind == "gaussian" else raw
            rewards.append(float(means.mean()))
    assert (np.mean(rewards), np.std(rewards)) == pytest.approx(
        tuple(notes.normalizer), abs=2e-4 if "lora" in name else 1e-5
    )
    assert report.steps == 3
    if "lora" in name:
        with safe_open(folder / "training" / "checkpoint-3" / "trained.safetensors", "pt") as held_weights:
            kept = [key for key in held_weights.keys() if "lora_" not in key]  # noqa: SIM118
        assert kept == ["network.head.score.weight"]
    if name == "length":  # the head that explained length is the second
        trained = load_file(folder / "training" / "checkpoint-3" / "trained.safetensors")["network.head.score.weight"]
        assert torch.equal(load_file(folder / "model.safetensors")["score.weight"], trained[:1])
        assert not torch.equal(trained[:1], trained[1:])
    for term in config.regularizers:
        assert report.history[0][term] > 0


@pytest.mark.parametrize(
    ("loss", "head", "metric"),
    [
        ("regression", {"outputs": 2}, "mse_helpful"),
        ("gaussian_nll", {"kind": "gaussian", "outputs": 2}, "mse_helpful"),
        ("pinball", {"kind": "quantile", "levels": 3, "outputs": 2}, "rank_correlation_brief"),
    ],
)
def test_ratings(loss: str, head: dict[str, Any], metric: str, tmp_path: Path) -> None:
    rows = [
        {
            "prompt": row["prompt"],
            "response": row["chosen"],
            "helpful": row["chosen"].count("kind"),
            "brief": at % 2 or None,
        }
        for at, row in enumerate(planted(60))
    ]
    config = tiny_config(tmp_path, rows, loss=loss, head=head, data={"attributes": ["helpful", "brief"]})
    report = train_scalar(config)
    assert metric in report.metrics
    assert report.baselines["mse_helpful of the training mean"].known > 0
    notes = CheckpointNotes.read(tmp_path / "model")
    assert notes is not None
    assert notes.labels == ("helpful", "brief")


def test_labels_of_right_and_wrong(tmp_path: Path) -> None:
    rows = [
        {"prompt": row["prompt"], "response": row[side], "label": side == "chosen"}
        for row in planted(300)
        for side in ("chosen", "rejected")
    ]
    report = train_scalar(tiny_config(tmp_path, rows, loss="bce", schedule={"epochs": 2}))
    assert report.metrics["auc"].known > 0.8
    assert 0.3 < report.baselines["auc of longer is right"].known < 0.7


def test_the_gradient_does_not_depend_on_how_a_step_is_cut(tmp_path: Path) -> None:
    weights = []
    for name, tokens in (("whole", 10**6), ("cut", 100)):
        (tmp_path / name).mkdir()
        config = tiny_config(tmp_path / name, planted(40), schedule={"micro_tokens": tokens, "learning_rate": 1e-4})
        train_scalar(config)
        weights.append(load_file(tmp_path / name / "model" / "model.safetensors"))
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-3, atol=1e-5)


def test_brmes_members_are_trained_and_read_as_one_robust_reward(tmp_path: Path) -> None:
    """A head as in `examples/training/rm_brme.yaml`, by BRME's rule: half the surest mean, half the least."""
    config = tiny_config(tmp_path, planted(40), **VARIANTS["brme"])
    train_scalar(config)
    folder = str(tmp_path / "model")
    rule = {"rule": "nominal_min", "nominal": "surest", "share": 0.5}
    scorer = registry.load({"reward_model": {"model": folder, "combine": rule}})
    sample = Sample(prompt="How are you?", response="I am kind.")
    (score,) = asyncio.run(scorer.score([sample]))
    chat = [{"role": "user", "content": sample.prompt}, {"role": "assistant", "content": sample.response}]
    answers: Any = asyncio.run(engine_of({"transformers": {"model": folder, "device": "cpu"}}).classify([chat]))
    means, logs = answers[0].values[:3], answers[0].values[3:]
    assert len(set(means)) == 3
    assert score.value == pytest.approx(0.5 * means[int(np.argmin(logs))] + 0.5 * min(means), abs=1e-5)


PROCESSES = """
import json, os, signal, socket, sys
import torch
import torch._dynamo  # which each would import again
from adjudge.cli.main import main
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of

def die(at):
    if at.step == 8:  # of 10; the last checkpoint is that of step 6
        os.kill(os.getpid(), signal.SIGKILL)

def killed():
    train_scalar(config_of(ScalarTraining, json.loads(sys.argv[1])), progress=die)

def one_of_two(rank):
    # What `torchrun` and `accelerate launch` set.
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.dup2(os.open(f"{sys.argv[2]}.{rank}", os.O_WRONLY | os.O_CREAT), 1)
    return main(["train", "rm", sys.argv[2], "--json"])

def forked(work, *given):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work(*given) or 0
            sys.stdout.flush()
        finally:
            os._exit(code)
    return child

torch.set_num_threads(1)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
children = [forked(killed), forked(one_of_two, "0"), forked(one_of_two, "1")]
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""
KILLED: dict[str, Any] = {
    "head": {"kind": "gaussian"},
    "loss": "sampled_bt",
    "schedule": {"epochs": 2, "save_steps": 3, "log_steps": 1},
}


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A folder with a training that is killed and one of two processes, and how the three ended; one start for all."""
    folder = tmp_path_factory.mktemp("processes")
    for name in ("killed", "several"):
        (folder / name).mkdir()
    killed = tiny_config(folder / "killed", planted(80), **KILLED)
    several = tiny_config(folder / "several", planted(80), schedule={"batch_size": 8, "micro_tokens": 200})
    path = folder / "rm.yaml"
    path.write_text(json.dumps(plain_config(several)), encoding="utf-8")
    command = [sys.executable, "-c", PROCESSES, json.dumps(plain_config(killed)), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_killed_training_resumes_to_the_very_bits(tmp_path: Path, processes: tuple[Path, list[int]]) -> None:
    """Random numbers are drawn in every step (`sampled_bt`), the second epoch is under way, and no step is repeated."""
    folder, codes = processes
    whole = train_scalar(tiny_config(tmp_path, planted(80), **KILLED))
    assert codes[0] == -signal.SIGKILL
    killed = tiny_config(folder / "killed", planted(80), **KILLED)
    assert not (folder / "killed" / "model" / "report.json").exists()
    with pytest.raises(ValueError, match="holds checkpoints of an earlier training; resume it"):
        train_scalar(killed)
    steps = []
    again = train_scalar(killed, resume=True, progress=lambda at: steps.append(at.step))
    assert again.resumed == 6
    assert steps == [7, 8, 9, 10]
    for name in ("model.safetensors", "adjudge_head.safetensors"):
        files = [run / "model" / name for run in (tmp_path, folder / "killed")]
        if files[0].exists() or files[1].exists():
            assert files[0].read_bytes() == files[1].read_bytes()
    assert again.metrics == whole.metrics
    assert [line["loss"] for line in again.history] == [line["loss"] for line in whole.history]
    assert train_scalar(killed, resume=True) == again
    with pytest.raises(ValueError, match="holds a trained model; name another folder"):
        train_scalar(killed)


def test_a_checkpoint_that_was_not_finished_is_passed_over_and_other_options_are_refused(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, planted(80), schedule={"save_steps": 2})
    with pytest.raises(Killed):
        train_scalar(config, progress=kill_at(5))
    work = tmp_path / "model" / "training"
    (work / "checkpoint-4" / "whole.json").unlink()
    other = tiny_config(tmp_path, planted(80), schedule={"save_steps": 2, "learning_rate": 1e-4})
    with pytest.raises(ValueError, match=r"begun with other options or data \(schedule.learning_rate\)"):
        train_scalar(other, resume=True)
    fewer = tiny_config(tmp_path, planted(79), schedule={"save_steps": 2})
    with pytest.raises(ValueError, match=r"begun with other options or data \(data\)"):
        train_scalar(fewer, resume=True)
    often = tiny_config(tmp_path, planted(80), schedule={"save_steps": 2, "log_steps": 1})
    assert train_scalar(often, resume=True).resumed == 2


def test_a_training_killed_while_its_model_was_saved(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, planted(40), schedule={"save_steps": 2})
    first = train_scalar(config)
    weights = tmp_path / "model" / "model.safetensors"
    before = weights.read_bytes()
    (tmp_path / "model" / "report.json").unlink()
    weights.write_bytes(before[:100])
    again = train_scalar(config, resume=True)
    assert weights.read_bytes() == before
    assert (again.resumed, again.metrics, again.history) == (3, first.metrics, first.history)


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    rows = [{**row, "margin": 3e38} for row in planted(40)]
    with pytest.raises(ValueError, match=r"the loss of step 1 is inf; lower schedule.learning_rate"):
        train_scalar(tiny_config(tmp_path, rows, loss="margin_mse"))
    assert not (tmp_path / "model" / "report.json").exists()


@pytest.mark.parametrize(
    ("rows", "options", "why"),
    [
        ([{**row, "tie": True} for row in planted(4)], {}, "4 pairs are ties, which the loss 'bt' cannot learn from"),
        ([{**row, "probability": 0.7} for row in planted(4)], {}, "4 pairs have soft labels"),
        (planted(4), {"loss": "margin"}, "4 pairs have no margin.*set loss.margin"),
        (
            [{**row, "margin": -1} for row in planted(4)],
            {"loss": "scaled"},
            "a margin below 0, which is not a strength",
        ),
        (planted(4), {"loss": "bce"}, "learns from ratings, and the data hold preferences"),
        ([{"prompt": f"{at}", "response": "a", "score": at} for at in range(4)], {}, "set loss to one of bce"),
        ([{"prompt": f"{at}", "response": "a", "score": at} for at in range(4)], {"loss": "bce"}, "labels in .0, 1."),
        (planted(4), {"regularizers": {"consistency": 1}}, "needs paraphrases, and no pair has one"),
        ([{**row, "prompt": "same"} for row in planted(4)], {}, "all examples answer one prompt"),
        (planted(40), {"max_length": 8}, "no training example is left .36 x longer than max_length"),
        (planted(4), {"model": "no/such/folder-anywhere"}, "cannot be loaded"),
        (planted(4), {"model": "adapter"}, "holds an adapter of 'the/base' and no model; merge the two"),
        (planted(4), {"model": "./nowhere"}, "there is no such folder"),
        (planted(4), {"schedule": {"scheduler": "sudden"}}, "the schedule cannot be used.*sudden"),
        (planted(4), {"schedule": {"lora": {"targets": ["nothing"]}}}, "lora.targets are nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_told_before_any_training(
    rows: list[dict[str, Any]], options: dict[str, Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text('{"base_model_name_or_path": "the/base"}')
    with pytest.raises(ValueError, match=why):
        train_scalar(tiny_config(tmp_path, rows, **options), progress=lambda _: pytest.fail("it trains"))


def test_held_out_files_and_prompts_they_share(tmp_path: Path) -> None:
    rows = planted(40)
    (tmp_path / "held").mkdir()
    path = write_rows(tmp_path / "held" / "rows.jsonl", rows[:10])
    report = train_scalar(tiny_config(tmp_path, rows, data={"held_out_path": [path]}))
    assert (report.data["trained_on"], report.data["held_out"], report.data["prompt_is_held_out"]) == (30, 10, 10)


def test_the_model_is_measured_on_the_way(tmp_path: Path) -> None:
    report = train_scalar(tiny_config(tmp_path, planted(60), schedule={"eval_steps": 2}))
    seen = [line["held_out_accuracy"] for line in report.history if "held_out_accuracy" in line]
    assert len(seen) == 2
    assert seen[-1] == report.metrics["accuracy"].value  # of 4 steps


def test_frozen_weights_are_in_bfloat16_and_what_is_trained_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types: dict[bool, set[torch.dtype]] = {}
    merge = Training.merged

    def merged(self: Any, trained: Any) -> Any:
        for value in trained.parameters():
            types.setdefault(value.requires_grad, set()).add(value.dtype)
        return merge(self, trained)

    monkeypatch.setattr(Training, "merged", merged)
    report = train_scalar(tiny_config(tmp_path, planted(60), schedule={"precision": "bf16", "lora": 4}))
    saved = load_file(tmp_path / "model" / "model.safetensors")
    assert types == {True: {torch.float32}, False: {torch.bfloat16}}
    assert {value.dtype for value in saved.values()} == {torch.float32}, "in bfloat16 small steps would be lost"
    trained = load_file(tmp_path / "model" / "training" / "checkpoint-4" / "trained.safetensors")
    assert {value.dtype for value in trained.values()} == {torch.float32}
    assert report.metrics["equal_rewards"].value == 0.0  # a head in bfloat16 would give ties


def test_several_processes_share_the_steps(processes: tuple[Path, list[int]]) -> None:
    """Two processes on CPUs, as `accelerate launch` starts them on GPUs: half the steps, one report."""
    folder, codes = processes
    assert codes[1:] == [0, 0]
    (line,) = "".join((folder / f"rm.yaml.{rank}").read_text() for rank in range(2)).splitlines()
    assert json.loads(line)["steps"] == 5  # of 9 batches


def test_a_model_of_ours_is_trained_further_with_its_head(tmp_path: Path) -> None:
    first = tiny_config(tmp_path, planted(40), data={"reasoning": "keep"}, schedule={"learning_rate": 1e-3})
    train_scalar(first)
    notes = CheckpointNotes.read(first.output)
    assert notes is not None
    assert notes.reasoning == "keep"
    rate = {"learning_rate": 1e-9}
    again = tiny_config(tmp_path, planted(40), model=first.output, output=str(tmp_path / "again"), schedule=rate)
    train_scalar(again)
    heads = [load_file(Path(folder) / "model.safetensors")["score.weight"] for folder in (first.output, again.output)]
    torch.testing.assert_close(heads[0], heads[1], rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("rows", "schedule"), [(16, {}), (100, {"warmup": 0.3, "scheduler": "linear"}), (100, {"warmup": 0.0})]
)
def test_every_step_learns_at_the_rate_of_runs_with_rewards(
    rows: int, schedule: dict[str, Any], tmp_path: Path
) -> None:
    config = tiny_config(tmp_path, planted(rows), schedule={"log_steps": 1, "report_to": "none", **schedule})
    report = train_scalar(config)
    rates = [line["learning_rate"] for line in report.history if "learning_rate" in line]
    assert len(rates) == report.steps
    like: Any = {
        "warmup_steps": math.ceil(config.schedule.warmup * report.steps),
        "decay": config.schedule.scheduler,
    }
    expected = [LearningConfig(**like).share(step, report.steps) * 2e-3 for step in range(report.steps)]
    assert rates == pytest.approx(expected)
    assert min(rates) > 0
