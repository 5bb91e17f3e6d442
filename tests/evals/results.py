"""What tests of evaluations share: files of rows, and the numbers of a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adjudge.evals.reports.result import Measure, Result


def written(folder: Path, rows: Sequence[dict[str, Any]], name: str = "rows.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def measure(result: Result, name: str, part: str = "") -> Measure:
    (found,) = [one for one in result.measures if (one.name, one.part) == (name, part)]
    return found


def value(result: Result, name: str, part: str = "") -> float:
    return measure(result, name, part).interval.known
