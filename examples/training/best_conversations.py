"""Supervised data from the conversations that a run's reward likes best: of each task's group the best, if it is paid.

    python examples/training/best_conversations.py RUN/run.yaml talks.jsonl [KEY=VALUE ...]

It writes the answers of a step of `adjudge train policy run.yaml` in the folder RUN, with its user and its tools, and
learns nothing.  Each turn of the policy's is a row, `prompt` what came before it, so `sft.py` learns no word that
others said; nor an answer that a user of the kind `try_again` found wrong.
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
        again = config.rollouts.user is not None and config.rollouts.user.kind == "try_again"
        for group in start_answers(config):
            best, score = max(zip(group.rollouts, group.scores, strict=True), key=lambda one: one[1].value or 0.0)
            prompt = best.task.prompt
            before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            users = [at for at, turn in enumerate(best.turns) if turn["role"] == "user"]
            first = users[-1] if again and users else 0
            for at, turn in enumerate(best.turns if (score.value or 0.0) > 0 else ()):
                if turn["role"] == "assistant" and at >= first:
                    row = {"prompt": before, "response": turn["content"], "value": score.value}
                    lines.append(json.dumps(row, ensure_ascii=False) + "\n")
                before = [*before, turn]
    Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
