"""A judge with the principles that a game of prompts has found, from texts that people called good or bad.

    python examples/training/principle_game.py labelled.jsonl judge.yaml ENGINE

A row has `prompt`, `response` and `good`, true or false; ENGINE plays all roles, and judges.  The lists that it begins
with say in other words what those of Igniting Creative Writing in Small Language Models (f7a4813) say.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import yaml

from adjudge.io.jobs.engines import engine_named
from adjudge.judges.items.principle_game import Writing, play

PRINCIPLES = (
    "Does what was asked for, on the occasion that was named.",
    "Feels sincere and is no mere politeness.",
    "Its words and tone suit writer, reader and occasion.",
    "Has no worn phrase.",
    "Has no mistake of grammar or logic.",
    "Cares about this reader or this event, and is no template.",
)
STRATEGIES = (
    "Write what fits every occasion and nobody in particular.",
    "Use at least one phrase that is a little out of date.",
    "Leave out one of the smaller things that were asked for.",
    "Be very short and show no feeling.",
    "Take a tone that does not suit the situation, such as a formal one among friends.",
)


def main(labelled: str, out: str, engine: str) -> None:
    """Play, and write the judge's spec."""
    rows = [json.loads(line) for line in Path(labelled).read_text(encoding="utf-8").splitlines()]
    texts = [Writing(prompt=row["prompt"], text=row["response"], good=row["good"]) for row in rows]
    result = asyncio.run(play(engine_named(engine), texts, principles=PRINCIPLES, strategies=STRATEGIES))
    spec = {"principles": {"engine": yaml.safe_load(engine), "principles": list(result.principles)}}
    Path(out).write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
