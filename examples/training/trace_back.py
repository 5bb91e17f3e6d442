"""Scores of answers that count what became of them once they were repaired: trace-back rescoring (VeriRL).

    python examples/training/trace_back.py traced.jsonl scores.jsonl repaired_scores.jsonl [MORE ...]

An answer that was repaired has the mean of its repairs' scores in the place of its own; the last repairs come first.
Its repairs are rows whose `id` is its own and "/", a number more, as `adjudge data sample --rows` writes them.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean


def main(out: str, *files: str) -> None:
    """Write the rows of the first file with their new scores."""
    rounds = [[json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()] for file in files]
    values: dict[str, float | None] = {row["id"]: row["value"] for rows in rounds for row in rows}
    for rows in reversed(rounds[1:]):
        repairs: defaultdict[str, list[float]] = defaultdict(list)
        for row in rows:
            value = values[row["id"]]
            if value is not None:
                repairs[row["id"].rpartition("/")[0]].append(value)
        values |= {name: fmean(some) for name, some in repairs.items()}
    lines = [json.dumps({**row, "value": values[row["id"]]}, ensure_ascii=False) + "\n" for row in rounds[0]]
    Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
