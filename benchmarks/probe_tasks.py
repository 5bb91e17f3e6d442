"""The scorers of `probe_table` for other tasks: translation, abstention, searches, tool calls, edits, speed.

Each is tried on rows of a kind that fits, with its own form of reference.

Not covered: scorers of groups and of several turns (`bapo`, `tool_tree`, `search_steps`, ...), which have no single
response to change; their attacks ship with them.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.probe_scorers import Probed, loaded

from adjudge.protocol import Scorer
from adjudge.scoring import registry


def _translation() -> Scorer:
    return registry.load({"translation": {"form": "text", "scale": "unit", "metric": "chrf"}})


def _performance() -> Scorer:
    # A right program at the baseline's speed is worth 1: what is probed is the gate before the clock.
    clock = {"min_seconds": 0.0, "repeats": 3, "max_repeats": 3}
    return registry.load({"performance": {**clock, "scale": "raw", "slowest": 0.5, "fastest": 1.5, "grain": 4.0}})


def _abstention(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "reference": {"answer": row["reference"]}}


def _search(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "good": f"<answer>{row['good']}</answer>",
        "bad": f"<answer>{row['bad']}</answer>",
        "tool_spans": [],
    }


def _tools(row: dict[str, Any]) -> dict[str, Any]:
    calls = {"calls": [{"name": "answer", "arguments": {"value": row["reference"]}}]}
    return {
        **row,
        "good": f"[answer(value={json.dumps(row['good'])})]",
        "bad": f"[answer(value={json.dumps(row['bad'])})]",
        "reference": calls,
        "tool_spans": [],
    }


def _edits(row: dict[str, Any]) -> dict[str, Any]:
    def edited(answer: str) -> str:
        edit = f"### town.py\n<<<<<<< SEARCH\nTOWN = None\n=======\nTOWN = {answer!r}\n>>>>>>> REPLACE"
        return f"<think>\nThe town is missing.\n</think>\n<solution>\n```python\n{edit}\n```\n</solution>"

    before = {"town.py": "TOWN = None\n"}
    after = {"town.py": f"TOWN = {row['reference']!r}\n"}
    return {
        **row,
        "good": edited(row["good"]),
        "bad": edited(row["bad"]),
        "reference": {"files": before, "after": after},
    }


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    program = row["good"].partition("```python\n")[2].partition("```")[0]
    inputs = [test["args"] for test in row["reference"]["tests"]]
    entry_point = row["reference"]["entry_point"]
    return {**row, "reference": {"entry_point": entry_point, "baseline": program, "inputs": inputs}}


TASKS = [
    loaded("raiden", "persona"),
    Probed(name="translation", make=_translation, rows="translation"),
    Probed(
        name="abstention",
        make=lambda: registry.load({"abstention": {"confidence": None}}),
        rows="short",
        change=_abstention,
    ),
    Probed(
        name="search_boundary",
        make=lambda: registry.load("search_boundary"),
        rows="short",
        change=_search,
        extra=("tool_spans",),
    ),
    Probed(
        name="tool_calls", make=lambda: registry.load("tool_calls"), rows="short", change=_tools, extra=("tool_spans",)
    ),
    Probed(name="patch", make=lambda: registry.load({"patch": {"scale": "unit"}}), rows="short", change=_edits),
    Probed(name="performance", make=_performance, rows="code", change=_timed, per_row=1),
]
