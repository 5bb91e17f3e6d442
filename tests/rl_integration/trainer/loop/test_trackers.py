"""The numbers of a run arrive in TensorBoard and at W&B, also when a run is resumed; what is missing is told before."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from adjudge.rl_integration.trainer.loop.trackers import open_log, require_logs


def steps(folder: Path, name: str, first: int, last: int, **more: float) -> None:
    log = open_log(name, folder, facts={"seed": 0})  # type: ignore[arg-type]
    for step in range(first, last + 1):
        log.write({"step": step, "reward": step / 10, "parts/format": 0.5, **more})
    log.close()


def test_tensorboard_has_each_step_once_after_a_resumption(tmp_path: Path) -> None:
    events: Any = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    steps(tmp_path, "tensorboard", 1, 5)
    steps(tmp_path, "tensorboard", 4, 6, grad_norm=2.0)
    read = events.EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert sorted(read.Tags()["scalars"]) == ["grad_norm", "parts/format", "reward"]
    assert [event.step for event in read.Scalars("reward")] == [1, 2, 3, 4, 5, 6]
    assert [event.value for event in read.Scalars("reward")] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert [event.step for event in read.Scalars("grad_norm")] == [4, 5, 6]


class Wandb(types.ModuleType):
    """As much of W&B as is used; the network it stands for is not there."""

    class Error(Exception):
        pass

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__("wandb")
        self.refuses = refuses
        self.begun: list[dict[str, Any]] = []
        self.logged: list[dict[str, float]] = []
        self.finished = 0
        self.Settings = dict

    def init(self, **options: Any) -> Any:
        if self.refuses:
            raise self.Error("No API key configured")
        self.begun.append(options)

        def finish() -> None:
            self.finished += 1

        return types.SimpleNamespace(
            log=self.logged.append, finish=finish, define_metric=lambda name, *, step_metric: None
        )


def test_a_resumed_run_goes_on_with_its_run_at_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    steps(tmp_path, "wandb", 1, 2)
    steps(tmp_path, "wandb", 2, 3)
    assert [line["step"] for line in wandb.logged] == [1, 2, 2, 3]
    assert wandb.finished == 2
    one, two = wandb.begun
    assert one == two
    assert one["id"] == (tmp_path / "wandb.id").read_text(encoding="utf-8")
    assert (one["resume"], one["project"], one["config"]) == ("allow", "adjudge", {"seed": 0})


def test_a_refusal_of_wandb_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", Wandb(refuses=True))
    with pytest.raises(ValueError, match=r"does not begin: No API key configured; log in .*WANDB_MODE=offline"):
        open_log("wandb", tmp_path, facts={})


@pytest.mark.parametrize("found", [None, types.ModuleType("wandb")], ids=["none", "a folder of that name"])
def test_a_package_that_is_missing_is_named(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", found)
    with pytest.raises(ValueError, match=r"report_to has wandb, whose package is not installed; pip install wandb"):
        require_logs(["wandb"])
