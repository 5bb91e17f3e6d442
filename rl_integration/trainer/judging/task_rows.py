"""Tasks as rows of a file, for runs that are started from one (`adjudge train policy`).

Not covered: reading them; the trainer reads rows of many kinds, these among them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from adjudge.rl_integration.trainer.contract.task import Task


def write_tasks(path: Path, tasks: Iterable[Task]) -> int:
    """Write a line of JSON for each task, with `id`, `prompt`, `reference`, `cohort` and its extra fields; count them.

    Raises:
        ValueError: an extra field has the name of one of these columns, or a value is no plain data.
    """
    lines = []
    for task in tasks:
        row = {"id": task.id, "prompt": task.prompt, "reference": task.reference, "cohort": task.cohort}
        if clash := row.keys() & task.extra.keys():
            raise ValueError(f"the extra field {min(clash)!r} of task {task.id!r} has the name of a column; rename it")
        try:
            lines.append(json.dumps({**row, **task.extra}, ensure_ascii=False))
        except TypeError as error:
            raise ValueError(f"the task {task.id!r} cannot be written as JSON: {error}") from error
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
