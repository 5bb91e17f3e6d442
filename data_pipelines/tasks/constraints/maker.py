"""Prompts with constraints, made of prompts without, or of prompts whose constraints are known.

Not covered: prompts that contradict a constraint by what they ask ("write a long poem", at most 5 words).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from adjudge import wire
from adjudge.data_pipelines.tasks.constraints.config import ConstraintsConfig
from adjudge.data_pipelines.tasks.constraints.drawing import drawn
from adjudge.data_pipelines.tasks.constraints.witness import witness
from adjudge.data_pipelines.tasks.constraints.wording import stated
from adjudge.instructions.conflicts import conflicts
from adjudge.instructions.constraint import Constraint
from adjudge.io.columns import Choice, Column
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport

_VERSION = "1"
_TRIES: Final = 8  # draws, until one has a witness
_MOST_CONSTRAINTS: Final = 100
_MOST_ARGS: Final = 10_000  # characters of all; two lists of 1,000 short phrases each take a second to compare
_MOST_PROMPT: Final = 50_000  # characters
_REQUESTS = (
    "Tell me about your day.", "Describe a city you know.", "Explain how a bicycle works.",
    "Recommend a book to a friend.", "What makes a good meal?",
)  # fmt: skip


class ConstraintMaker:
    """Makes prompts of a prompt."""

    name = "constraints"
    grouped = False
    fields: Mapping[str, Kind] = {
        "prompt": "text",
        "reference": "any",
        "scorer": "text",
        "kinds": "texts",
        "classes": "texts",
        "level": "whole",
        "pattern": "text",
        "verdict": "text",
        "witness": "text",
        "source_prompt": "text",
    }

    def __init__(self, config: ConstraintsConfig) -> None:
        self.config = config
        self._prompt = Column(config.prompt_column)
        self._given = Column(config.constraints_column) if config.constraints_column else None

    @property
    def fingerprint(self) -> str:
        """The options."""
        config = self.config
        options = [list(config.pattern), list(config.level), config.per_prompt, config.witness, config.seed]
        text = wire.dumps([_VERSION, options, config.prompt_column, config.constraints_column])
        return f"{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """See that the columns are there.

        Raises:
            ValueError: one is not.
        """
        config = self.config
        Choice(columns, first).check({"prompt": config.prompt_column, "constraints": config.constraints_column})
        if self._given is not None:
            return ("constraints are looked at, none are added",)
        return (f"levels {', '.join(map(str, config.level))}; {', '.join(config.pattern)}",)

    async def make(self, unit: Unit) -> Made:
        """Return the new prompts of a prompt."""
        (row,) = unit.rows
        prompt = self._prompt.of(row)
        if not isinstance(prompt, str) or not prompt.strip():
            return Made(dropped={"no_prompt": 1})
        if len(prompt) > _MOST_PROMPT:
            return Made(dropped={"prompt_too_long": 1})
        if self._given is not None:
            return self._looked_at(prompt, self._given.of(row))
        rows, dropped = [], Counter[str]()
        for number in range(self.config.per_prompt):
            made = self._composed(prompt, unit.first * self.config.per_prompt + number)
            if made is None:
                dropped["no_witness" if self.config.witness == "required" else "no_combination"] += 1
            else:
                rows.append(made)
        return Made(rows=tuple(rows), dropped=dict(dropped))

    def _composed(self, prompt: str, number: int) -> Mapping[str, Any] | None:
        """Return a prompt with constraints; its level and pattern follow from its number."""
        config = self.config
        levels, patterns = config.level, config.pattern
        level, pattern = levels[number % len(levels)], patterns[number // len(levels) % len(patterns)]
        random = Random(f"{config.seed} {number} {prompt}".encode("utf-8", "surrogatepass"))
        for _ in range(_TRIES):
            found = drawn(level, prompt, random)
            if found is None:
                continue
            example = witness(found)
            if example is None and (config.witness == "required" or pattern == "example"):
                continue
            text = stated(prompt, found, pattern, random, (random.choice(_REQUESTS), example or ""))
            return _row(text, found, example, prompt, level, pattern)
        return None

    def _looked_at(self, prompt: str, given: Any) -> Made:
        try:
            items = given.get("constraints") if isinstance(given, Mapping) else given
            if not isinstance(items, list) or not 0 < len(items) <= _MOST_CONSTRAINTS:
                raise ValueError("there are no constraints, or too many")
            found = [Constraint.read(item) for item in items]
            if sum(len(str(one.args)) for one in found) > _MOST_ARGS:
                raise ValueError("the arguments are too long")
        except ValueError:
            return Made(dropped={"bad_constraints": 1})
        if conflicts(found):
            return Made(dropped={"conflict": 1})
        example = witness(found)
        if example is None and self.config.witness == "required":
            return Made(dropped={"no_witness": 1})
        return Made(rows=(_row(prompt, found, example, prompt, None, None),))


def _row(
    text: str, found: Sequence[Constraint], example: str | None, source: str, level: int | None, pattern: str | None
) -> Mapping[str, Any]:
    return {
        "prompt": text,
        "reference": {"constraints": [one.to_dict() for one in found]},
        "scorer": "instructions",
        "kinds": [one.kind for one in found],
        "classes": sorted({one.group for one in found}),
        "level": level,
        "pattern": pattern,
        "verdict": "open" if example is None else "satisfiable",
        "witness": example,
        "source_prompt": source,
    }


def make_constraints(config: ConstraintsConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Add constraints to the prompts of a file, or look at those they have.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the job could not go on; the same call goes on.
    """
    return run_job(config, ConstraintMaker(config), progress=progress)
