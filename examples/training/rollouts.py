"""The answers that a run's policy gives to its tasks now, with its tools and its user, and what its reward gives them.

    python examples/training/rollouts.py RUN/run.yaml runs.jsonl [KEY=VALUE ...]

It writes a step's answers of `adjudge train policy run.yaml` in the folder RUN, each as a row of turns, and learns
nothing.  The rows have the columns of the task that `data.extra` names.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import start_answers
from adjudge.training.config_file import load_config


def main(file: str, out: str, *settings: str) -> None:
    """Write the rows."""
    lines = []
    with contextlib.chdir(Path(file).parent):
        config = load_config(RunFile, Path(file).name, settings)
        for group in start_answers(config):
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                task = rollout.task
                row = {name: task.extra[name] for name in config.data.extra if name in task.extra}
                row |= {"prompt": task.prompt, "response": [dict(turn) for turn in rollout.turns] or rollout.text}
                row |= {"reference": task.reference, "score": score.value}
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
