"""Pairs as the tasks of a judge, each pair in both orders, in the prompt that the judge is later asked with.

    python examples/training/judge_tasks.py pairs.jsonl data.jsonl [PROMPT]

A row of the pairs has `prompt`, `chosen` and `rejected`; PROMPT is judges/j1_pair, judges/rm_r1 or your own file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from adjudge.rl_integration.trainer.judge_tasks.pairs import Pair, ask_pair, in_both_orders, write_tasks


def main(rows: str, out: str, template: str = "judges/j1_pair") -> None:
    """Write the tasks, and say how many there are."""
    lines = Path(rows).read_text(encoding="utf-8").splitlines()
    pairs = [Pair.of(json.loads(line), number) for number, line in enumerate(lines)]
    print(write_tasks(Path(out), in_both_orders(pairs, ask_pair(template))), "tasks")


if __name__ == "__main__":
    main(*sys.argv[1:])
