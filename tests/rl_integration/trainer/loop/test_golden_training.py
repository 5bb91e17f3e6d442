"""The golden training finds that nothing changed, and what did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.golden_runs import RUNS, run_file
from benchmarks.golden_training import Compare, compare, trained, weights_digest
from safetensors.torch import save_file

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.training.config_file import config_of


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of the same run, trained twice."""
    made = []
    for time in ("first", "second"):
        folder = tmp_path_factory.mktemp(time)
        made.append(folder / "record.json")
        made[-1].write_text(json.dumps({"ppo": trained("ppo", folder, steps=2)}), encoding="utf-8")
    return made[0], made[1]


def changed(record: Path, folder: Path, row: int, **values: Any) -> Path:
    """The record with other values in a row."""
    told = json.loads(record.read_text(encoding="utf-8"))
    told["ppo"][row] |= values
    (folder / "changed.json").write_text(json.dumps(told), encoding="utf-8")
    return folder / "changed.json"


def test_the_same_code_trains_the_same_policy(records: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(Compare(before=records[0], after=records[1])) == 0
    assert "ppo: the same" in capsys.readouterr().out
    first, second, end = json.loads(records[0].read_text(encoding="utf-8"))["ppo"]
    assert {"loss", "value_loss", "grad_norm", "entropy", "reward", "advantages"} <= first.keys() & second.keys()
    assert first["advantages"][0] != second["advantages"][0]
    assert not any(name.startswith("seconds") for name in first)
    assert "policy/model.safetensors" in end


def test_a_changed_number_is_found(
    records: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loss = json.loads(records[0].read_text(encoding="utf-8"))["ppo"][1]["loss"]
    other = changed(records[1], tmp_path, 1, loss=loss * (1 + 1e-15), entropy=0.0)
    assert compare(Compare(before=records[0], after=other)) == 1
    assert f"ppo: step 2, loss: {loss!r} -> {loss * (1 + 1e-15)!r}" in capsys.readouterr().out
    other = changed(records[1], tmp_path, -1, **{"policy/model.safetensors": "0"})
    assert compare(Compare(before=records[0], after=other)) == 1
    assert "ppo: step end, policy/model.safetensors: " in capsys.readouterr().out


def test_renamed_metrics_are_the_same(
    records: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(records[1].read_text(encoding="utf-8"))
    loss = told["ppo"][0]["loss"]
    told["ppo"] = [{{"loss": "policy_loss"}.get(name, name): row[name] for name in row} for row in told["ppo"]]
    other, names = tmp_path / "renamed.json", tmp_path / "names.json"
    other.write_text(json.dumps(told), encoding="utf-8")
    names.write_text('{"loss": "policy_loss"}', encoding="utf-8")
    assert compare(Compare(before=records[0], after=other)) == 1
    assert f"ppo: step 1, loss: {loss!r} -> nothing" in capsys.readouterr().out
    for rename in (("loss=policy_loss",), (str(names),), ("loss=", "policy_loss=")):
        assert compare(Compare(before=records[0], after=other, rename=rename)) == 0
    with pytest.raises(ValueError, match="two metrics would have one name"):
        compare(Compare(before=records[0], after=records[1], rename=("loss=entropy",)))


def test_weights_are_told_by_what_they_are_and_not_by_their_names(tmp_path: Path) -> None:
    parts = torch.ones(2, 3), torch.zeros(2)
    save_file({"a": parts[0], "b": parts[1]}, tmp_path / "1.safetensors")
    save_file({"d": parts[0], "c": parts[1]}, tmp_path / "2.safetensors")
    save_file({"a": parts[0].T.contiguous(), "b": parts[1]}, tmp_path / "3.safetensors")
    first, second, third = (weights_digest(tmp_path / f"{number}.safetensors") for number in (1, 2, 3))
    assert first == second != third


@pytest.mark.parametrize("name", RUNS)
def test_every_run_file_is_one(name: str, tmp_path: Path) -> None:
    record, processes = run_file(name, tmp_path, steps=20)
    assert config_of(RunFile, record).steps == 20
    assert processes == RUNS[name].get("processes", 1)
