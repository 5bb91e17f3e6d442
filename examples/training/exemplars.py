"""Prompts that show earlier programs with their speed, so that a policy sees what made one faster (CRINN).

    adjudge data sample tasks.jsonl answers.jsonl --engine ENGINE --n 8 --rows
    adjudge label answers.jsonl scores.jsonl --scorer crinn --keep-columns
    python examples/training/exemplars.py scores.jsonl data.jsonl [SHOWN]

Of each prompt's programs that are right, SHOWN (2) are drawn, a faster one more often: by the softmax of log2 of their
speed (the temperature 1 is ours).  They stand with the slowest first.  A prompt with fewer has those that it has.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def shown(rows: Sequence[Mapping[str, Any]], most: int, rng: random.Random) -> list[Mapping[str, Any]]:
    """Return some of the rows of a prompt, drawn without replacement, the slowest first."""
    keys = {at: math.log2(row["value"]) - math.log(-math.log(rng.random())) for at, row in enumerate(rows)}  # Gumbel's
    drawn = sorted(keys, key=lambda at: keys[at], reverse=True)[:most]
    return sorted((rows[at] for at in drawn), key=lambda row: float(row["value"]))


def main(scores: str, out: str, most: str = "2") -> None:
    """Write a row for each prompt."""
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in Path(scores).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        groups[row["prompt"]].append(row)
    rng, lines = random.Random(0), []
    for prompt, rows in groups.items():
        told = [
            f"An earlier program, {row['value']:.3g} times as fast as the baseline:\n\n{row['response']}"
            for row in shown([row for row in rows if row["value"]], int(most), rng)
        ]
        task = {"prompt": "\n\n".join([prompt, *told]), "reference": rows[0]["reference"]}
        lines.append(json.dumps(task, ensure_ascii=False) + "\n")
    Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
