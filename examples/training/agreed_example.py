"""The judge of the next round, which is shown a ranking that judge and policy have agreed on (CycleAlign).

    python examples/training/agreed_example.py pairs.jsonl judge.yaml JUDGE

It stands in the judge's criteria, which are trusted, and the policy has written it: read it before you go on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml

CRITERIA = "how correct, helpful and complete the answer is"


def main(pairs: str, out: str, engine: str) -> None:
    """Write the spec of a `listwise_judge` with the ranking of the longest agreement as its example."""
    groups: dict[str, list[dict[str, str]]] = {}
    for line in Path(pairs).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        groups.setdefault(row["prompt"], []).append(row)
    prompt, rows = max(groups.items(), key=lambda group: len(group[1]))
    wins = dict.fromkeys([row["chosen"] for row in rows] + [row["rejected"] for row in rows], 0)
    for row in rows:
        wins[row["chosen"]] += 1
    ranking = "\n".join(f"{place}. {text}" for place, text in enumerate(sorted(wins, key=lambda one: -wins[one]), 1))
    criteria = (
        f"{CRITERIA}. An example: asked\n{prompt}\nthese answers stand in the right order, the best first:\n{ranking}"
    )
    spec = {"listwise_judge": {"engine": engine, "criteria": criteria}}
    Path(out).write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
