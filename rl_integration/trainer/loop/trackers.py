"""Where the numbers of a run go besides its own file of JSON lines: TensorBoard, Weights & Biases."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

LogName: TypeAlias = Literal["tensorboard", "wandb", "none"]

_NEEDS: Mapping[LogName, tuple[str, str, str]] = {
    "tensorboard": ("torch.utils.tensorboard", "SummaryWriter", "pip install tensorboard"),
    "wandb": ("wandb", "init", "pip install wandb"),
}
_ID = "wandb.id"


def require_logs(names: Sequence[LogName]) -> None:
    """Raise `ValueError` if a package is missing that a log needs."""
    for name in names:
        home, attribute, remedy = _NEEDS[name]
        try:
            installed = hasattr(importlib.import_module(home), attribute)
        except ImportError:
            installed = False
        if not installed:  # a folder of that name, which wandb makes wherever it runs, imports as an empty package
            raise ValueError(f"report_to has {name}, whose package is not installed; {remedy}, or leave {name} out")


def open_log(name: LogName, folder: Path, *, facts: Mapping[str, Any]) -> TensorBoardLog | WandbLog:
    """Return a log of a run.

    What an earlier process wrote of steps that are made once more is hidden, or allowed to be there twice.

    Raises:
        ValueError: it cannot begin.
    """
    require_logs([name])
    return TensorBoardLog(folder) if name == "tensorboard" else WandbLog(folder, facts=facts)


class TensorBoardLog:
    """Event files in the folder `tensorboard` of the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"
        self._writer: Any = None

    def write(self, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a step."""
        if self._writer is None:  # which step is the first one, is known now
            make = importlib.import_module("torch.utils.tensorboard").SummaryWriter
            self._writer = make(log_dir=str(self._folder), purge_step=int(numbers["step"]))
        for name, value in numbers.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, int(numbers["step"]))

    def close(self) -> None:
        """Write what is not written yet."""
        if self._writer is not None:
            self._writer.close()


class WandbLog:
    """A run at Weights & Biases, or below the run's folder with WANDB_MODE=offline; a resumed run goes on with it.

    The project is that of WANDB_PROJECT, else "adjudge".

    Raises:
        ValueError: W&B does not take it.
    """

    def __init__(self, folder: Path, *, facts: Mapping[str, Any]) -> None:
        wandb: Any = importlib.import_module("wandb")
        kept = folder / _ID
        if not kept.is_file():
            kept.write_text(secrets.token_hex(4), encoding="utf-8")
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "adjudge"),
                name=folder.name,
                id=kept.read_text(encoding="utf-8").strip(),
                resume="allow",
                dir=str(folder),
                config=dict(facts),
                settings=wandb.Settings(console="off"),  # it would print through the progress bar
            )
        except wandb.Error as error:
            raise ValueError(
                f"report_to has wandb, which does not begin: {error}; log in (wandb login), set WANDB_MODE=offline, or "
                "leave it out of report_to"
            ) from error
        self._run.define_metric("*", step_metric="step")  # steps that are made once more after a kill are allowed

    def write(self, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a step."""
        self._run.log(dict(numbers))

    def close(self) -> None:
        """Write what is not written yet."""
        self._run.finish()
