"""`adjudge train KIND --help`: the keys of the file, one key, and a file with all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adjudge.cli import exits
from adjudge.cli.train import _BY_REWARDS, TRAINERS, _named, config_text
from adjudge.training.config_file import config_of, load_config
from adjudge.training.config_keys import config_keys

Adjudge = Callable[..., Any]
ROOT = Path(__file__).parents[2]
KINDS: dict[str, Any] = {name: _named(homes[0]) for name, homes in TRAINERS.items()}
NEEDED = {"model": {"name": "m"}, "data": {"path": ["d"]}, "output": "o"}


@pytest.mark.parametrize("kind", TRAINERS)
def test_help_lists_every_key_in_a_line(adjudge: Adjudge, kind: str) -> None:
    ran = adjudge("train", kind, "--help")
    assert ran.code == exits.FINE
    assert ran.out.startswith(f"usage: adjudge train {kind} CONFIG")
    lines = {line.strip().partition(": ")[0].rstrip(":") for line in ran.out.splitlines()}
    kinds = [KINDS[kind], _named(_BY_REWARDS)] if kind == "policy" else [KINDS[kind]]
    for each in kinds:
        assert {key.path for key in config_keys(each) if not key.path.startswith("measured_by.")} <= lines
    assert max(map(len, ran.out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("rm", "--help=learning_rate"), "  schedule.learning_rate: 1e-05\n      float; the highest; 1e-6 to 2e-5"),
        (("--help=schedule.lora.rank", "rm"), "the file:\n  schedule.lora.rank: 16\n"),
        (("prm", "--help=labels"), '  data.labels.kind: "soft"\n      soft|hard;'),
        (("policy", "--help=lr"), "lr is learning.learning_rate here"),
        (("policy", "--help=lr"), "lr is schedule.learning_rate here"),
        (("policy", "--help=algorithm.adv_estimator"), '  objective.name: "grpo"\n'),
        (("policy", "--help=kl_coef"), "kl_coef is objective.set.reward_beta here\n  objective.set: {}\n"),
    ],
    ids=str,
)
def test_help_on_one_key(adjudge: Adjudge, words: tuple[str, ...], shown: str) -> None:
    ran = adjudge("train", *words)
    assert (ran.code, ran.err) == (exits.FINE, "")
    assert shown in ran.out


def test_help_on_what_is_no_key(adjudge: Adjudge) -> None:
    ran = adjudge("train", "rm", "--help=xyzzy")
    assert ran.code == exits.USER
    assert ran.err == "adjudge: there is no key like 'xyzzy'; --help without one lists them all\n"
    ran = adjudge("train", "--help=lr")
    assert ran.code == exits.USER
    assert "adjudge train policy --help=lr" in ran.err


@pytest.mark.parametrize("kind", [*TRAINERS, "by rewards"])
def test_the_printed_file_has_the_defaults(kind: str) -> None:
    described = KINDS.get(kind) or _named(_BY_REWARDS)
    needed: dict[str, Any] = NEEDED | ({"reward": {"scorer": "math"}} if kind == "by rewards" else {})
    printed = yaml.safe_load(config_text(described))
    assert set(printed) == {key.path for key in config_keys(described) if not key.parent}
    filled = {
        name: {**value, **needed[name]} if isinstance(value, dict) and name in needed else value
        for name, value in printed.items()
    } | {"output": "o"}
    assert config_of(described, filled) == config_of(described, needed)


@pytest.mark.parametrize("name", ["rm_lora", "policy_guarded", "policy", "prm_lora"])
def test_a_file_is_printed_whole_and_means_the_same(adjudge: Adjudge, tmp_path: Path, name: str) -> None:
    path = str(ROOT / "examples" / "training" / f"{name}.yaml")
    kind = name.partition("_")[0]
    ran = adjudge("train", kind, path, "--print-config", "--set", "seed=7")
    assert ran.code == exits.FINE, ran.err
    whole = tmp_path / "whole.yaml"
    whole.write_text(ran.out, encoding="utf-8")
    described = _named(_BY_REWARDS) if name == "policy_guarded" else KINDS[kind]
    assert load_config(described, str(whole)) == load_config(described, path, ["seed=7"])


def test_no_file(adjudge: Adjudge) -> None:
    ran = adjudge("train", "rm")
    assert ran.code == exits.USER
    assert "`adjudge train rm --print-config` prints one to fill in" in ran.err


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (
            "num_generations=4",
            "`num_generations`, which is `rollouts.num_generations` in training a policy by rewards, but no",
        ),
        ("reward_funcs=math", "`reward_funcs`, which is `reward.scorer` in training a policy by rewards, but no"),
        ("lr=1e-5", "unknown option 'lr' (did you mean 'schedule.learning_rate'?)"),
    ],
)
def test_words_of_others_are_told(adjudge: Adjudge, setting: str, why: str) -> None:
    ran = adjudge("train", "policy", str(ROOT / "examples" / "training" / "policy.yaml"), "--set", setting)
    assert ran.code == exits.USER
    assert why in ran.err


@pytest.mark.parametrize("wrong", [{"num_generations": 4}, {"rollouts": {"temprature": 1}}])
def test_a_wrong_key_of_a_run_is_told_before_torch_is_imported(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**NEEDED, "reward": "math", "objective": "grpo", **wrong}), encoding="utf-8")
    code = "import sys; from adjudge.cli.main import main; print(main(), 'torch' in sys.modules)"
    words = [sys.executable, "-c", code, "train", "policy", str(path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(exits.USER), "False"]
    assert "unknown option" in ran.stderr


@pytest.mark.parametrize(
    ("report_to", "why"), [("wandb", "requires wandb to be installed"), ("nix", "nix is not supported, only")]
)
def test_a_log_that_is_not_installed(
    adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report_to: str, why: str
) -> None:
    from tests.reward_models.training.tiny_training import planted, write_rows
    from transformers.integrations import integration_utils

    monkeypatch.setattr(integration_utils, "is_wandb_available", lambda: False)
    rows = write_rows(tmp_path / "rows.jsonl", planted(40))
    file = {"model": {"from_scratch": "tiny"}, "data": rows, "output": str(tmp_path / "model")}
    (tmp_path / "rm.yaml").write_text(yaml.safe_dump(file), encoding="utf-8")
    ran = adjudge("train", "rm", str(tmp_path / "rm.yaml"), "--set", f"schedule.report_to={report_to}")
    assert ran.code == exits.USER
    assert f"schedule.report_to is {report_to}: " in ran.err
    assert why in ran.err
    assert not (tmp_path / "model" / "report.json").exists()


def test_the_page_has_every_key() -> None:
    from tests.cli.keys_page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.cli.keys_page"
