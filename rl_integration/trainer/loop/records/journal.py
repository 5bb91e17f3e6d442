"""What a run writes down step by step: a line of JSON each.

Not covered: showing it (`report`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STEPS = "steps.jsonl"
"""The numbers of each step."""

SAMPLES = "samples.jsonl"
"""Some rollouts with their scores."""

ALARMS = "alarms.jsonl"
"""Which alarms of the watch came, and which went."""


class Journal:
    """Appends lines to a file of a run's folder.

    Args:
        folder: of the run.
        name: of the file.
        step: the steps that the run begins with; lines of later ones, which a killed process left, are dropped.
    """

    def __init__(self, folder: Path, name: str, *, step: int) -> None:
        self._path = folder / name
        kept = [line for line in read_journal(folder, name) if line["step"] <= step]
        draft = self._path.with_suffix(".part")
        draft.write_text("".join(map(_line, kept)), encoding="utf-8")
        draft.replace(self._path)

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a line, which has a "step"; numbers that are none (NaN) are left out."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(record))


def read_journal(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the lines of a file; a last line that was cut off is left out."""
    path = folder / name
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]


def _line(record: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in record.items() if not isinstance(value, float) or math.isfinite(value)}
    return json.dumps(kept) + "\n"
