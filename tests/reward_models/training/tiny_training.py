"""Preferences that anybody can tell, and a configuration that learns them in seconds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.reward_models.training.loop import Progress
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.training.config_file import config_of

GOOD = "calm clear kind exact brief".split()
BAD = "loud vague rude wrong endless".split()


class Killed(Exception):
    """Ends a training in its middle."""


def kill_at(step: int) -> Callable[[Progress], None]:
    """Return what ends a training after a step."""

    def kill(progress: Progress) -> None:
        if progress.step == step:
            raise Killed

    return kill


def planted(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return pairs whose better response has more good words; both have ten."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        few, many = sorted(draw.sample(range(11), 2))
        texts = []
        for good in (many, few):
            words = draw.choices(GOOD, k=good) + draw.choices(BAD, k=10 - good)
            draw.shuffle(words)
            texts.append(" ".join(words))
        rows.append({"prompt": f"Question {number}?", "chosen": texts[0], "rejected": texts[1]})
    return rows


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as JSON Lines and return the file's name."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def tiny_config(folder: Path, rows: Sequence[Mapping[str, Any]], **more: Any) -> ScalarTraining:
    """Return a configuration that trains a new tiny model on rows."""
    record: dict[str, Any] = {
        "model": {"from_scratch": "tiny"},
        "data": {"path": write_rows(folder / "rows.jsonl", rows), **more.pop("data", {})},
        "output": str(folder / "model"),
        "max_length": 64,
        "baselines": False,
        "schedule": {
            "learning_rate": 2e-3,
            "batch_size": 16,
            "save_steps": 4,
            "log_steps": 2,
            **more.pop("schedule", {}),
        },
        **more,
    }
    return config_of(ScalarTraining, record)
