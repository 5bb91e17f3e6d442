"""LaRe: a program says numbers of turns, and rewards of turns are what makes them sum to the final reward."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.data_pipelines.steps.turn_labeller import fold_of
from adjudge.io.jobs.report import JobReport

PROGRAM = """
def factors(prompt, turns):
    if any("!" in turn for turn in turns):
        raise RuntimeError("no shouting")
    return [[turn.count("key"), len(turn) / 10 if prompt else 0] for turn in turns]
"""


def labelled(folder: Path, program: str, rows: list[dict[str, Any]]) -> tuple[JobReport, list[dict[str, Any]]]:
    given, output = folder / "in.jsonl", folder / "out.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "factors.py").write_text(program)
    config = StepsConfig(
        input=str(given), output=str(output), method="spa", splitting="line", outcome_column=("reward",), ridge=0.5,
        factors=str(folder / "factors.py"),
    )  # fmt: skip
    return label_steps(config), [json.loads(line) for line in output.read_text().splitlines()]


def trajectories(count: int) -> list[dict[str, Any]]:
    draw = random.Random(3)
    rows = []
    for number in range(count):
        turns = draw.choices(["find the key", "wait", "key to key", "look around here"], k=draw.randint(1, 4))
        reward = sum(0.3 * turn.count("key") - 0.02 * len(turn) / 10 for turn in turns)
        rows.append({"prompt": f"task {number}", "response": "\n".join(turns), "reward": reward})
    return rows


def test_a_turn_gets_what_its_factors_explain_of_other_tasks_rewards(tmp_path: Path) -> None:
    rows = trajectories(40)
    report, made = labelled(tmp_path, PROGRAM, [*rows, {"prompt": "loud", "response": "key!", "reward": 9.0}])
    assert report.dropped == {"bad_factors": 1}

    def numbers(turn: str) -> list[float]:
        return [1.0, turn.count("key"), len(turn) / 10]

    for row in made:
        others = [one for one in rows if fold_of(one["prompt"]) != fold_of(row["prompt"])]
        table = [np.sum([numbers(turn) for turn in one["response"].split("\n")], axis=0) for one in others]
        stacked = np.vstack([*table, np.sqrt(0.5) * np.eye(3)])  # ridge as three more rows
        weights = np.linalg.lstsq(stacked, np.array([one["reward"] for one in others] + [0.0] * 3), rcond=None)[0]
        assert row["values"] == pytest.approx([float(numbers(turn) @ weights) for turn in row["steps"]])
    rewards = {row["prompt"]: row["reward"] for row in rows}
    assert max(abs(sum(row["values"]) - rewards[row["prompt"]]) for row in made) < 0.1


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("def factors(prompt, turns):\n    return [[1.0]]", "for each of 2 turns"),
        ("def factors(prompt, turns):\n    return [[float('nan')] for turn in turns]", "not a finite number"),
        ("def factors(prompt, turns):\n    return turns[5]", "raised IndexError"),
        ("def rewards(prompt, turns):\n    return []", "no function 'factors'"),
    ],
)
def test_a_program_that_does_not_work_is_told_before_anything_is_labelled(
    tmp_path: Path, program: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        labelled(tmp_path, program, [{"prompt": "a", "response": "one\ntwo", "reward": 1.0}])


def test_as_many_numbers_come_of_every_turn(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{at}", "response": "a\nb" if at % 2 else "a", "reward": 1.0} for at in range(12)]
    report, made = labelled(tmp_path, "def factors(prompt, turns):\n    return [[1] * len(turns)] * len(turns)", rows)
    assert report.dropped == {"bad_factors": 6}
    assert {len(row["steps"]) for row in made} == {1}


def test_factors_are_for_the_regression_and_of_a_file(tmp_path: Path) -> None:
    more: dict[str, Any] = {"input": "in", "output": "out", "method": "spa", "outcome_column": ("reward",)}
    with pytest.raises(ValueError, match="the rule regression"):
        StepsConfig(**more, rule="centred", factors="x.py")
    with pytest.raises(ValueError, match="cannot be read"):
        label_steps(StepsConfig(**more, factors=str(tmp_path / "none.py")))
