"""Commands with what people bring as a scorer: a file, a function in it, and a folder that they trained."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.reward_models.training.tiny_training import planted, write_rows

from adjudge.cli import exits
from adjudge.scoring import registry

Adjudge = Callable[..., Any]

MINE = '''
from dataclasses import dataclass
from typing import ClassVar

from adjudge import Sample, Score, Verifier, response_text


@dataclass(frozen=True, kw_only=True)
class ShoutingVerifier(Verifier):
    """Is the response all upper case?"""

    name: ClassVar[str] = "shouting"
    needs_reference: ClassVar[bool] = False

    def verify(self, sample: Sample) -> Score:
        return Score.scored(float(response_text(sample).isupper()))


def reward(prompt, response, reference, level=1):
    """As many points as the task has levels.

    The reference is the answer.
    """
    return level * (response == reference)
'''

ROWS = [
    {"prompt": "Capital of France?", "response": "PARIS", "reference": "PARIS", "level": 3},
    {"prompt": "Capital of Norway?", "response": "Bergen", "reference": "Oslo", "level": 2},
    {"prompt": "Say something.", "response": "SOMETHING", "level": 2},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rewards.py").write_text(MINE)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def test_score_with_a_file(adjudge: Adjudge, folder: Path) -> None:
    ran = adjudge("score", "--response", "STOP", "--scorer", "./rewards.py:ShoutingVerifier", "--json")
    assert (ran.code, ran.json["value"], ran.json["provenance"]["scorer"]) == (exits.FINE, 1.0, "shouting")
    ran = adjudge("score", "--response", "yes", "--reference", "yes", "--scorer", "rewards.py:reward", "--json")
    assert (ran.code, ran.json["value"], ran.json["provenance"]["scorer"]) == (exits.FINE, 1.0, "reward")


def test_label_with_a_file(adjudge: Adjudge, folder: Path) -> None:
    def values(out: str) -> list[tuple[float | None, str]]:
        return [(row["value"], row["reason"]) for row in map(json.loads, Path(out).read_text().splitlines())]

    ran = adjudge("label", "rows.jsonl", "shouting.jsonl", "--scorer", "./rewards.py:ShoutingVerifier")
    assert ran.code == exits.FINE, ran.err
    assert values("shouting.jsonl") == [(1.0, ""), (0.0, ""), (1.0, "")]
    words = ("--scorer", "./rewards.py:reward", "--extra-column", "level")
    ran = adjudge("label", "rows.jsonl", "reward.jsonl", *words)
    assert values("reward.jsonl") == [(3.0, ""), (0.0, ""), (None, "out_of_scope")], ran.err


def test_what_a_module_prints_stays_out_of_the_json(adjudge: Adjudge, folder: Path) -> None:
    for name in ("loud", "louder"):
        Path(f"{name}.py").write_text(f"print('importing {name}')\n{MINE}")
    words = ("score", "--response", "yes", "--reference", "yes", "--scorer")
    ran = adjudge(*words, "./loud.py:reward", "--json")
    assert (ran.json["value"], "importing loud" in ran.err) == (1.0, True)
    ran = adjudge(*words, "./louder.py:reward")
    assert "importing louder" in ran.out


def test_scorers_describes_it(adjudge: Adjudge, folder: Path) -> None:
    ran = adjudge("scorers", "./rewards.py:ShoutingVerifier")
    assert (ran.code, "Is the response all upper case?" in ran.out) == (exits.FINE, True)
    ran = adjudge("scorers", "./rewards.py:reward", "--json")
    assert (ran.json["reference"], ran.json["options"]) == ("the answer", {})


def test_by_kind_is_described_as_it_is_written(adjudge: Adjudge) -> None:
    ran = adjudge("scorers", "by_kind")
    assert "spec:      by_kind: `{KIND: SPEC, ...}`" in ran.out
    assert "required" not in ran.out
    ran = adjudge("score", "--response", "x", "--scorer", "{math: math, code: code}")
    assert ran.code == exits.USER
    assert "one key" in ran.err
    assert "{by_kind: {KIND: SCORER, ...}}" in ran.err


def test_train_rm_ends_with_the_scorer_and_what_comes_next(adjudge: Adjudge, folder: Path) -> None:
    rows = write_rows(folder / "pairs.jsonl", planted(60))
    (folder / "rm.yaml").write_text(yaml.safe_dump({"model": "ngrams", "data": rows, "output": "my models/rm"}))
    ran = adjudge("train", "rm", "rm.yaml")
    assert ran.code == exits.FINE, ran.err
    assert ran.out.splitlines()[-3:] == [
        "scorer: './my models/rm'  (preference_model)",
        "next:   adjudge eval pairs PAIRS --scorer './my models/rm'",
        "        adjudge serve rm='./my models/rm'",
    ]
    _, *words = shlex.split(ran.out.splitlines()[-2].removeprefix("next:").replace("PAIRS", rows))
    ran = adjudge(*words)
    assert ran.code == exits.FINE, ran.err
    ran = adjudge("train", "rm", "rm.yaml", "--resume", "--json")
    assert ran.json["scorer"] == {"preference_model": {"model": "my models/rm"}}
    assert registry.load(ran.json["scorer"]).fingerprint == registry.load("./my models/rm").fingerprint


def test_train_prm_does_too(adjudge: Adjudge, folder: Path) -> None:
    steps = [
        {"prompt": f"{at} + 1?", "completions": [f"{at} + 1", word], "labels": [True, word == "good"]}
        for at in range(40)
        for word in ("good", "bad")
    ]
    (folder / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    record = {"model": "ngrams", "data": {"path": "steps.jsonl"}, "output": str(folder / "prm"), "normalize": "step"}
    (folder / "prm.yaml").write_text(yaml.safe_dump(record))
    ran = adjudge("train", "prm", "prm.yaml")
    assert ran.code == exits.FINE, ran.err
    assert ran.out.splitlines()[-3:] == [
        f"scorer: {folder}/prm  (step_model)",
        f"next:   adjudge eval process_bench --scorer {folder}/prm",
        f"        adjudge serve prm={folder}/prm",
    ]
    ran = adjudge("score", "--prompt", "1 + 1?", "--response", "1 + 1\ngood", "--scorer", "./prm", "--json")
    assert (ran.code, len(ran.json["steps"])) == (exits.FINE, 2)
