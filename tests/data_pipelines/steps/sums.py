"""Sums that are solved line by line, `a+b=c`, and a scripted policy that adds right from whatever the last line says.

So a wrong line leads to a wrong answer.  The policy's luck is a function of prefix and draw alone.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import maker_of
from adjudge.engines.interface import Prompt
from adjudge.io.jobs.maker import Made, Unit
from adjudge.protocol import Sample, Score, StepScore

Row = dict[str, Any]


def parts_of(prompt: Prompt) -> tuple[str, str]:
    """The problem and the prefix that an engine is shown."""
    if isinstance(prompt, str):
        problem, _, prefix = prompt.partition("=")
        return f"{problem}=", prefix
    return str(prompt[0]["content"]), str(prompt[1]["content"]) if len(prompt) > 1 else ""


def adder(slip: float = 0.0) -> Callable[[Prompt, int], str]:
    """A policy that goes on from the prefix, and adds wrong now and then."""

    def answer(prompt: Prompt, index: int) -> str:
        problem, prefix = parts_of(prompt)
        chance = random.Random(f"{problem} {prefix} {index}")
        terms = [int(term) for term in problem.rstrip("=").split("+")]
        lines = [line for line in prefix.split("\n") if line]
        total = int(lines[-1].split("=")[1]) if lines else terms[0]
        written = []
        for term in terms[1 + len(lines) :]:
            total += term + (1 if chance.random() < slip else 0)
            written.append(f"{total - term}+{term}={total}\n")
        return "".join(written) + f"\\boxed{{{total}}}"

    return answer


def solution(terms: list[int], error: int | None) -> str:
    total, lines = terms[0], []
    for at, term in enumerate(terms[1:]):
        before, total = total, total + term + (5 if at == error else 0)
        lines.append(f"{before}+{term}={total}\n")
    return "".join(lines) + f"\\boxed{{{total}}}"


def rows_of(count: int) -> list[Row]:
    chance = random.Random(0)
    rows = []
    for number in range(count):
        terms = [chance.randint(1, 9) for _ in range(6)]
        error = None if number % 3 == 0 else chance.randrange(5)
        rows.append(
            {
                "id": f"p{number}",
                "prompt": "+".join(map(str, terms)) + "=",
                "response": solution(terms, error),
                "reference": str(sum(terms)),
                "error": -1 if error is None else error,
            }
        )
    return rows


def write(path: Path, rows: list[Row]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read(path: str | Path) -> list[Row]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def config(folder: Path, rows: list[Row], **options: Any) -> StepsConfig:
    given = {"splitting": "line", "rollouts": 4, "chat": False, "id_column": "id" if "id" in rows[0] else "", **options}
    return StepsConfig(input=write(folder / "in.jsonl", rows), output=str(folder / "out.jsonl"), **given)


class Oracle:
    """A judge of steps that knows where the errors are, and errs in some."""

    name = "oracle"
    fingerprint = "oracle:1"

    def __init__(self, errors: Mapping[str, int]):
        self.errors = errors

    async def score(self, samples: list[Sample]) -> list[Score]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Score:
        steps, error = sample.extra["steps"], self.errors[sample.id]
        values = [1.0 if error < 0 or at < error else 0.0 if at == error else None for at in range(len(steps))]
        return Score(value=float(error < 0), steps=tuple(StepScore(value=value) for value in values))


def make(options: StepsConfig, row: Row, number: int = 0, **tools: Any) -> Made:
    return asyncio.run(maker_of(options, **tools).make(Unit(rows=(row,), first=number)))
