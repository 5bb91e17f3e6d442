"""`adjudge train policy` by rewards: from a file to a policy, also after Ctrl-C, and mistakes of one paragraph."""

from __future__ import annotations

import importlib
import json
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from adjudge.cli import exits
from adjudge.cli.train import _by_rewards
from adjudge.rl_integration.trainer.loop.checkpoints import held
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.training.config_file import load_config

Adjudge = Callable[..., Any]

REWARDS = '''
import signal

from adjudge.protocol import Score


class Short:
    """The shorter the better: a reward that a new policy can learn at once.

    Somebody presses Ctrl-C while the answer with the number `pressed` is judged.
    """

    name = "short"
    fingerprint = "short:1"
    seen = pressed = 0

    async def score(self, samples):
        for _ in samples:
            Short.seen += 1
            if Short.seen == Short.pressed:
                signal.raise_signal(signal.SIGINT)
        return [Score.scored(1 / (1 + len(sample.response))) for sample in samples]


class Down(Short):
    name = "down"

    async def score(self, samples):
        return [Score.failed("verifier_error", error="it is broken") for _ in samples]


class Same(Short):
    name = "same"

    async def score(self, samples):
        return [Score.scored(0.0) for _ in samples]


class Gold(Short):
    """Likes what Short does not."""

    name = "gold"
    fingerprint = "gold:1"

    async def score(self, samples):
        return [Score.scored(float(len(sample.response))) for sample in samples]
'''


def config(folder: Path, **more: Any) -> dict[str, Any]:
    rows = [{"question": f"{a}+{b}=", "answer": str(a + b)} for a in range(5) for b in range(5)]
    (folder / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return {
        "model": {"from_scratch": "tiny"},
        "data": {"path": str(folder / "sums.jsonl"), "held_out": 0.1},
        "output": str(folder / "run"),
        "reward": {"scorer": {"weighted": {"exact": 1.0, "scorers_of_this_test:Short": 1.0}}},
        "rollouts": {"tasks": 2, "num_generations": 4, "sampling": {"max_new_tokens": 4}},
        "learning": {"learning_rate": 1e-3},
        "steps": 3,
        "save_steps": 1,
        **more,
    }


def written(folder: Path, record: Mapping[str, Any]) -> str:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(dict(record)), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def _rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scorers_of_this_test.py").write_text(REWARDS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def curve(folder: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "steps.jsonl").read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in line.items() if not name.startswith("seconds")} for line in lines]


def test_from_file_to_policy_and_on_after_ctrl_c(adjudge: Adjudge, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = written(tmp_path, config(tmp_path, report_to=["tensorboard"]))
    with (tmp_path / "sums.jsonl").open("a", encoding="utf-8") as file:
        print('{"question": " "}', file=file)
    whole = adjudge("train", "policy", path, "--json")
    assert whole.code == exits.FINE, whole.err
    report = whole.json
    assert (report["steps"], report["stopped"]) == (3, "")
    assert report["data"]["left_out"] == {"the prompt is empty": 1}
    assert [report["data"][name] for name in ("rows", "trained_on", "held_out")] == [26, 23, 2]
    assert set(report["held_out"]) == {"before", "after"}
    assert {
        "parts/exact",
        "parts/scorers_of_this_test:Short",
        "advantage_std",
        "grad_norm",
        "entropy",
        "failed",
    } <= set(report["last"])
    run = tmp_path / "run"
    assert json.loads((run / "report.json").read_text(encoding="utf-8")) == report
    assert list((run / "tensorboard").iterdir())
    assert "23 prompts to train on and 2 held out; rows left out: 1 x the prompt is empty" in whole.err
    assert "data.chat: true makes turns of them" in whole.err
    assert "step 3/3" in whole.err

    tokenizer: Any = AutoTokenizer.from_pretrained(run / "policy")
    model: Any = AutoModelForCausalLM.from_pretrained(run / "policy")
    assert model.generate(**tokenizer("1+1=", return_tensors="pt"), max_new_tokens=2, do_sample=False).shape[1] > 2
    assert adjudge("train", "policy", path, "--json", "--resume").json == report, "what has ended is not repeated"

    path = written(tmp_path, {**config(tmp_path), "output": str(tmp_path / "cut")})
    short = importlib.import_module("scorers_of_this_test").Short
    short.pressed = short.seen + 12
    cut = adjudge("train", "policy", path)
    assert cut.code == exits.INTERRUPTED
    stopped = int(cut.err.split("stopped behind step ")[1].split(";")[0])
    assert stopped < 3
    assert "the same command with --resume goes on from there" in cut.err
    again = adjudge("train", "policy", path, "--resume", "--json")
    assert (again.code, again.json["resumed"], again.json["steps"]) == (exits.FINE, stopped, 3)
    assert curve(tmp_path / "cut") == curve(run)
    left, right = (load_file(folder / "policy" / "model.safetensors") for folder in (tmp_path / "cut", run))
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)


def test_a_guard_that_stops_a_run_is_told_and_its_best_policy_saved(adjudge: Adjudge, tmp_path: Path) -> None:
    guard = {"gold": "scorers_of_this_test:Gold", "every": 1, "samples": 16, "window": 1, "surely": 1e-9}
    more = {"reward": "scorers_of_this_test:Short", "guard": guard, "steps": 12, "data": str(tmp_path / "sums.jsonl")}
    path = written(tmp_path, {**config(tmp_path), **more, "learning": {"learning_rate": 1e-2}})
    ran = adjudge("train", "policy", path)
    assert ran.code == exits.FOUND, ran.err
    assert "It ended early: since step " in ran.out
    assert "The policy is that of step " in ran.out
    assert (tmp_path / "run" / "policy" / "model.safetensors").is_file()
    card = (tmp_path / "run" / "policy" / "README.md").read_text(encoding="utf-8")
    assert "The run ended early: since step" in card


def test_before_and_after_are_measured_by_the_same_scorer(adjudge: Adjudge, tmp_path: Path) -> None:
    more = {"reward": "scorers_of_this_test:Short", "measured_by": "scorers_of_this_test:Gold", "steps": 1}
    path = written(tmp_path, {**config(tmp_path), **more, "learning": {"learning_rate": 1e-12}})
    lengths = adjudge("train", "policy", path, "--json").json["held_out"]
    assert lengths["before"] == lengths["after"]
    resumed = ("--resume", "--set", "measured_by=scorers_of_this_test:Short", "--set", "steps=2")
    again = adjudge("train", "policy", path, "--json", *resumed).json["held_out"]
    assert again["before"] == again["after"] != lengths["before"]


def test_a_reward_that_is_down_stops_the_run_and_says_how_it_goes_on(adjudge: Adjudge, tmp_path: Path) -> None:
    path = written(tmp_path, config(tmp_path, reward="scorers_of_this_test:Down", data=str(tmp_path / "sums.jsonl")))
    ran = adjudge("train", "policy", path, "--set", "data.held_out=0")
    assert ran.code == exits.USER
    assert "8 of 8 rollouts have no score" in ran.err
    assert "--resume goes on with the same answers" in ran.err
    assert (tmp_path / "run" / "checkpoint-0").is_dir()


def test_steps_that_learn_nothing_and_prompts_drawn_twice_are_told(adjudge: Adjudge, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "data": {"path": str(tmp_path / "sums.jsonl"), "held_out": 0.1, "limit": 2},
        "rollouts": {"tasks": 4, "num_generations": 2, "sampling": {"max_new_tokens": 1}},
        "reward": "scorers_of_this_test:Same",
        "steps": 2,
        "report_to": "none",
    }
    ran = adjudge("train", "policy", written(tmp_path, config(tmp_path, **options)))
    assert ran.code == exits.FINE, ran.err
    assert "2 of 2 steps learned nothing from rewards: in 2 the rewards of each group were equal." in ran.out
    assert "rollouts.tasks is 4, more than the prompts (1): " in ran.err


MISTAKES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("no reward", {"reward": None}, ("`rollouts`", "no `reward`", "reward: math")),
    ("both kinds", {"loss": "dpo"}, ("`reward`", "`loss`", "leave out the one or the other")),
    ("unknown option", {"rollout": {}}, ("'rollout'", "did you mean 'rollouts'?")),
    (
        "a scorer in the place of a reward",
        {"measured_by": {"rlpr": {}}},
        ("'measured_by.scorer'", "{scorer: {rlpr: ..}}"),
    ),
    (
        "unknown nested option",
        {"rollouts": {"num_generation": 4}},
        ("'rollouts.num_generation'", "did you mean 'rollouts.num_generations'?"),
    ),
    ("no model", {"model": None}, ("'model' is missing",)),
    ("no data", {"data": None}, ("'data' is missing",)),
    ("two models", {"model": {"name": "a", "from_scratch": "tiny"}}, ("model.name", "give one of the two")),
    ("a folder that is not there", {"model": "./no/such/model"}, ("./no/such/model", "there is no such folder")),
    ("ngrams", {"model": "ngrams"}, ("model is ngrams", "from_scratch: tiny")),
    ("no file", {"data": "nowhere.jsonl"}, ("nowhere.jsonl", "check the path")),
    ("no column", {"data": {"path": "{sums}", "prompt": "promt"}}, ("data.prompt 'promt'", "question, answer")),
    ("no scorer", {"reward": "mathh"}, ("reward.scorer", "mathh", "math")),
    ("no reference", {"data": {"path": "{bare}"}}, ("data.reference",)),
    ("no guard scorer", {"guard": {"gold": "golld"}}, ("guard.gold.scorer", "golld")),
    ("no measuring scorer", {"measured_by": "mathh"}, ("measured_by.scorer", "mathh")),
    ("a measure without its reference", {"measured_by": "code"}, ("measured_by cannot judge the held-out prompt",)),
    ("no server", {"reward": {"server": "http://127.0.0.1:9"}}, ("reward.server", "does not answer", "adjudge serve")),
    ("no objective", {"objective": "gropo"}, ("gropo", "grpo")),
    ("an option of no objective", {"objective": {"name": "grpo", "set": {"policy.clip": 1}}}, ("policy.clip",)),
    ("text for a number", {"steps": "many"}, ("steps is 'many'", "a whole number")),
    ("no steps", {"steps": 0}, ("steps=0", "at least 1")),
    (
        "too long answers",
        {"rollouts": {"sampling": {"max_new_tokens": 9999}}},
        ("max_new_tokens", "4096", "lower it"),
    ),
    (
        "too short prompts",
        {"data": {"path": "{sums}", "max_prompt_tokens": 1}},
        ("25 prompts", "longer than 1 tokens (data.max_prompt_tokens)"),
    ),
    ("all held out", {"data": {"path": "{sums}", "held_out": 0.99}}, ("data.held_out", "leaves nothing to train on")),
    ("no output", {"output": " "}, ("output is empty", "name the folder")),
    ("a log of no kind", {"report_to": ["mlflow"]}, ("mlflow", "tensorboard, wandb")),
    ("a log twice", {"report_to": ["wandb", "wandb"]}, ("name each once",)),
]


@pytest.mark.parametrize(("name", "change", "words"), MISTAKES, ids=[name for name, _, _ in MISTAKES])
def test_mistakes_are_one_paragraph_before_any_work(
    adjudge: Adjudge, tmp_path: Path, name: str, change: dict[str, Any], words: tuple[str, ...]
) -> None:
    record = config(tmp_path)
    record["reward"] = "exact"
    (tmp_path / "bare.jsonl").write_text('{"question": "1"}\n{"question": "2"}\n', encoding="utf-8")
    for key, value in change.items():
        if isinstance(value, dict) and "path" in value:
            value = {**value, "path": str(tmp_path / f"{value['path'][1:-1]}.jsonl")}
        record[key] = value
    ran = adjudge(
        "train", "policy", written(tmp_path, {key: value for key, value in record.items() if value is not None})
    )
    assert ran.code == exits.USER, (name, ran.err)
    assert ran.err.count("\n") == 1
    assert all(word in ran.err for word in words), ran.err
    assert "unexpected" not in ran.err
    assert not (tmp_path / "run" / "steps.jsonl").exists()


def test_a_folder_with_another_run_is_refused(adjudge: Adjudge, tmp_path: Path) -> None:
    path = written(tmp_path, config(tmp_path, steps=1, data={"path": str(tmp_path / "sums.jsonl"), "held_out": 0.0}))
    assert adjudge("train", "policy", path).code == exits.FINE
    ran = adjudge("train", "policy", path)
    assert ran.code == exits.USER
    assert "which holds a run; resume it (--resume)" in ran.err
    ran = adjudge("train", "policy", path, "--resume", "--set", "objective=dapo")
    assert ran.code == exits.USER
    assert "with other options (objective.name)" in ran.err
    longer = adjudge("train", "policy", path, "--resume", "--set", "steps=2", "--json")
    assert (longer.code, longer.json["resumed"], longer.json["steps"]) == (exits.FINE, 1, 2)


def test_a_folder_that_another_run_writes_is_refused_before_any_work(adjudge: Adjudge, tmp_path: Path) -> None:
    path = written(tmp_path, config(tmp_path))
    with held(tmp_path / "run"), ThreadPoolExecutor() as pool:
        ran = pool.submit(adjudge, "train", "policy", path).result()
    assert ran.code == exits.USER
    assert f"another run writes '{tmp_path / 'run'}'; wait until it ends" in ran.err
    assert [one.name for one in (tmp_path / "run").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("record", "settings", "by_rewards"),
    [
        ({"reward": "math"}, (), True),
        ({"model": "x"}, ("reward.scorer=math",), True),
        ({"model": "x", "loss": "dpo"}, (), False),
        ({"model": "x"}, ("schedule.epochs=2",), False),
        ({}, (), False),
    ],
)
def test_the_two_kinds_of_files_are_told_apart(
    tmp_path: Path, record: dict[str, Any], settings: tuple[str, ...], by_rewards: bool
) -> None:
    assert _by_rewards(written(tmp_path, record), settings) is by_rewards


def test_a_setting_reaches_an_option_with_dots_in_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, {**config(tmp_path), "objective": "grpo"})
    settings = ("objective.set.policy.beta=0.1", "objective.set.policy.clip_ratio_high=0.3", "reward.scorer=exact")
    made = load_config(RunFile, path, settings)
    assert made.objective.name == "grpo"
    assert made.objective.set == {"policy.beta": 0.1, "policy.clip_ratio_high": 0.3}
    assert made.reward.scorer == "exact"


@pytest.mark.parametrize("text", ["{", '{"what": "policy", "model": "another kind of report"}'])
def test_a_report_of_something_else_is_named(adjudge: Adjudge, tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "report.json").write_text(text, encoding="utf-8")
    ran = adjudge("train", "policy", written(tmp_path, config(tmp_path)), "--resume")
    assert ran.code == exits.USER
    assert "is not the report of a run" in ran.err


def test_ctrl_c_before_the_first_step_has_ended_stops_at_once(adjudge: Adjudge, tmp_path: Path) -> None:
    path = written(tmp_path, config(tmp_path))
    short = importlib.import_module("scorers_of_this_test").Short
    short.pressed = short.seen + 1
    ran = adjudge("train", "policy", path)
    assert ran.code == exits.INTERRUPTED
    assert ran.err.endswith("the same command with --resume goes on from the newest checkpoint, if there is one\n")
    assert not (tmp_path / "run" / "report.json").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
