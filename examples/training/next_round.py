"""The solver's rows of the next round: the tasks that the proposer writes now and that passed their check (SSP).

    python examples/training/next_round.py RUN/run.yaml solve.jsonl [KEY=VALUE ...]

The run in the folder RUN pays rows of kind `propose` by `proposed_task`.  They are answered as in a step, and nothing
is learnt; a task that passed becomes a row of kind `solve`, with the reference that its proposer was given.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from pathlib import Path

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import start_answers
from adjudge.training.config_file import load_config

_TASK = re.compile(r"<question>((?:(?!<question>).)*?)</question>", re.DOTALL)


def main(file: str, out: str, *settings: str) -> None:
    """Write the rows."""
    made = {}
    with contextlib.chdir(Path(file).parent):
        config = load_config(RunFile, Path(file).name, settings)
        for group in start_answers(config, lambda task: task.extra["kind"] == "propose"):
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                if "solved" in score.evidence:
                    made[_TASK.findall(rollout.text)[-1].strip()] = rollout.task.reference
    rows = [{"prompt": task, "reference": reference, "kind": "solve"} for task, reference in made.items()]
    Path(out).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
