"""A real, tiny language model goes on from prefixes, and the errors that were planted come out.

The policy learns within a second to count on by three, and to box where it ends:

    3>              6
                    9
                    2
                    5
                    \\boxed{5}

From a wrong line it goes on with the wrong number, so it never reaches the answer but by luck.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up

LINES = 4


def lines_of(start: int, error: int | None = None) -> list[str]:
    """A solution with one line, or the answer, two off."""
    lines = []
    for at in range(LINES):
        start = (start + 3 + (2 if at == error else 0)) % 10
        lines.append(str(start))
    return [*lines, f"\\boxed{{{(start + (2 if error == LINES else 0)) % 10}}}"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    # It sees slips too, and how one goes on from them; else it learns to find back by what stands before them.
    shown = [(start, error) for start in range(10) for error in (None, None, *range(LINES))]
    tasks = [Task(id="", prompt=f"{start}>", reference="") for start, _ in shown]
    answers = ["\n".join(lines_of(start, error)) for start, error in shown]
    made = tiny_policy("0123456789>}\n", seed=0, words=("\\boxed{",), width=32, layers=1, window=24)
    warm_up(made, tasks, answers, steps=200, batch=32, rate=5e-3, seed=0, enough=lambda: False)
    folder = tmp_path_factory.mktemp("policy")
    made.save(folder)
    return f"transformers:{folder}"


@pytest.mark.parametrize(("method", "rollouts"), [("mc", 8), ("binary", 8)])
def test_planted_errors_come_out(policy: str, tmp_path: Path, method: Any, rollouts: int) -> None:
    rows: list[dict[str, Any]] = [
        {
            "prompt": f"{start}>",
            "response": "\n".join(lines_of(start, error)),
            "reference": lines_of(start)[-2],
            "error": -1 if error is None else error,
        }
        for start in range(10)
        for error in (None, *range(LINES + 1))
    ]
    given = tmp_path / "in.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    options = StepsConfig(
        input=str(given),
        output=str(out),
        method=method,
        engine=policy,
        chat=False,
        splitting="line",
        rollouts=rollouts,
        temperature=0.5,
        max_tokens=30,
    )
    report = label_steps(options)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    named = sum(found["first_error"] == row["error"] for found, row in zip(made, rows, strict=True))
    assert named >= 0.95 * len(rows), f"{named} of {len(rows)} named; {report.notes[-1]}"
    assert report.cost.completion_tokens > 0
