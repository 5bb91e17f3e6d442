"""Runs a job of this folder on rows that a test gives, with a model whose answers a function writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.engines.scripted import ScriptedEngine, key_of

from adjudge.io.jobs.report import JobReport


def keyed(prompt: Any, **fields: Any) -> str:
    """What a model answers that was asked for JSON: some thoughts, then the object with the prompt's key."""
    return f"I looked at it.\n```json\n{json.dumps({'key': key_of(prompt), **fields})}\n```"


def run(
    folder: Path,
    make: Callable[..., JobReport],
    config: Callable[..., Any],
    rows: Sequence[dict[str, Any]],
    answers: Callable[[Any, int], Any],
    *,
    gate_scorer: Any = None,
    **options: Any,
) -> tuple[JobReport, list[dict[str, Any]], ScriptedEngine]:
    """Return the report, the rows made, and the engine with all it was asked."""
    given, output = folder / "in.jsonl", folder / "out.jsonl"
    given.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    engine = ScriptedEngine(answers)
    more = {} if gate_scorer is None else {"judge": gate_scorer}
    report = make(config(input=str(given), output=str(output), overwrite=True, **options), engine=engine, **more)
    made = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return report, made, engine
