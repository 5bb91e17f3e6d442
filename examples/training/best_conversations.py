"""Supervised data from the conversations that a run's reward likes best: of each task's group the best, if it is paid.

    python examples/training/best_conversations.py run.yaml talks.jsonl [KEY=VALUE ...]

It writes the answers of a step of `adjudge train policy run.yaml`, with its user and its tools, and learns nothing.
Each turn of the policy's is a row, `prompt` what came before it, so `sft.py` learns no word that others said.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import open_policy
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks
from adjudge.training.config_file import load_config


def main(file: str, out: str, *settings: str) -> None:
    """Write the rows."""
    config, folder, processes = load_config(RunFile, file, settings), Path(out).parent, Processes.joined()
    tasks = read_tasks(config.data, accept=lambda sample: None).train
    policy = open_policy(
        config.model, texts=(), folder=folder, seed=config.seed, learning=config.learning, processes=processes
    )
    run, many, size = Run(policy, tasks, config, folder), config.rollouts.tasks, config.rollouts.num_generations
    with run.rewards(config.reward) as rewards, Path(out).open("w", encoding="utf-8") as rows:
        for start in range(0, len(tasks), many):
            answers = list(zip(*run.answers(tasks[start : start + many], rewards), strict=True))
            for at in range(0, len(answers), size):
                best, score = max(answers[at : at + size], key=lambda answer: answer[1].value or 0.0)
                prompt = best.task.prompt
                before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
                for turn in best.turns if (score.value or 0.0) > 0 else ():
                    if turn["role"] == "assistant":
                        row = {"prompt": before, "response": turn["content"], "value": score.value}
                        rows.write(json.dumps(row, ensure_ascii=False) + "\n")
                    before = [*before, turn]


if __name__ == "__main__":
    main(*sys.argv[1:])
