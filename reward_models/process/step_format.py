"""What a format of process models is: how a solution becomes a row of tokens, and what the model's numbers mean.

A row that is asked of an engine must be the row that was made here: where the engine reads other tokens, the places
would mean something else, and the result is a fault.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, ClassVar, TypeAlias, cast

from adjudge.engines.interface import Engine, Fault, LabelLogprobs, Labels, Prompt, TokenLogits
from adjudge.options import check_options
from adjudge.prompts.escaping import escape
from adjudge.protocol import NO_COST, Cost, Message, content_text
from adjudge.reward_models.process.rows import RowTokens, StepRow, Unfit
from adjudge.statistics.logistic import sigmoid

Problem: TypeAlias = str | Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a model said about the steps of a solution.

    Attributes:
        values: one number for each step; a probability that the step is good unless the format says otherwise.
        labels: the verdicts as words, if the format has words of its own.
        facts: further numbers for each step, under their names.
    """

    values: tuple[float, ...]
    labels: tuple[str, ...] = ()
    facts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    cost: Cost = NO_COST


@dataclass(frozen=True, kw_only=True)
class StepFormat(ABC):
    """One way in which process models are asked.  A subclass is a frozen dataclass whose fields are its options."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self, f"format {self.kind!r}: option")

    @property
    def bounded(self) -> bool:
        """Whether all values are probabilities, in [0, 1]."""
        return True

    @abstractmethod
    def row(self, tokens: RowTokens, problem: Problem, steps: Sequence[str]) -> StepRow | Fault:
        """Return the row of a solution; a fault if the problem, or our own part of the row, makes none."""

    @abstractmethod
    async def read(self, engine: Engine, rows: Sequence[StepRow]) -> list[Reading | Fault]:
        """Return what the model says about the steps of each row, in order: one forward pass for each row."""

    def record(self) -> dict[str, Any]:
        """Return the kind and the options as plain data, as checkpoints keep them."""
        return {"kind": self.kind, **dataclasses.asdict(self)}


def problem_text(problem: Problem) -> str:
    """Return a problem as one text: the text itself, or the contents of its turns with empty lines between them."""
    if isinstance(problem, str):
        return problem.strip()
    return "\n\n".join(content_text(turn.get("content")).strip() for turn in problem)


def chat_before(tokens: RowTokens, problem: Problem, *, system: str = "", marker: str = "") -> list[Message]:
    """Return the problem as chat turns in which no text becomes a turn or a marker.

    `system` is a system turn that is put first unless the problem has one, and `marker` a further text to break up.
    """
    special = (*tokens.special, marker) if marker else tokens.special
    turns: list[Message] = [{"role": "user", "content": problem}] if isinstance(problem, str) else list(problem)
    harmless: list[Message] = [
        {**turn, "content": escape(content_text(turn.get("content")), special=special)} for turn in turns
    ]
    if system and not any(turn.get("role") == "system" for turn in harmless):
        return [{"role": "system", "content": system}, *harmless]
    return harmless


Outputs: TypeAlias = tuple[tuple[float, ...], ...]
"""For each step, the raw outputs at its place."""


async def read_outputs(
    engine: Engine, rows: Sequence[StepRow], meaning: Callable[[Outputs], Reading | Fault]
) -> list[Reading | Fault]:
    """Return what a token classifier says at the places of rows, in order: one forward pass for each row.

    `meaning` makes a reading of the raw outputs; the cost is added here.

    Raises:
        ValueError: the engine is not a token classifier.
    """
    results = await engine.classify_tokens([prompt_of(row) for row in rows])
    if len(results) != len(rows):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(rows)} rows")
    return [_reading(row, result, meaning) for row, result in zip(rows, results, strict=True)]


def prompt_of(row: StepRow) -> Prompt:
    """Return what an engine is asked for a row."""
    return row.text or cast("Prompt", row.ids)


def class_probabilities(outputs: Outputs, positive: int) -> Reading | Fault:
    """Return the probability of a class for each step: by softmax, or where there is one output, its sigmoid."""
    columns = len(outputs[0])
    if columns == 1:
        return Reading(values=tuple(sigmoid(row[0]) for row in outputs))
    if positive >= columns:
        return Fault(
            reason="engine_error", detail=f"the model has {columns} classes; there is none with the number {positive}"
        )
    return Reading(values=tuple(softmax(row)[positive] for row in outputs))


def softmax(logits: Sequence[float]) -> tuple[float, ...]:
    """Return the probabilities of classes."""
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def _reading(
    row: StepRow, result: TokenLogits | Fault, meaning: Callable[[Outputs], Reading | Fault]
) -> Reading | Fault:
    if isinstance(result, Fault):
        return result
    if result.token_ids != row.ids or len(result.values) != len(row.ids):
        return Unfit(
            reason="engine_error",
            detail="the engine read other tokens than the scorer's tokenizer made; give the option tokenizer",
        )
    reading = meaning(tuple(result.values[place] for place in row.places))
    if isinstance(reading, Fault):
        return reading
    return Reading(values=reading.values, labels=reading.labels, facts=reading.facts, cost=result.cost)


GOOD, BAD = "+", "-"


async def sign_shares(engine: Engine, rows: Sequence[StepRow], *, good: str, bad: str) -> list[Reading | Fault]:
    """Return P(good) / (P(good) + P(bad)) behind the places of each row; the fact `mass` is P(good) + P(bad).

    The signs are texts with a blank in front where the tokenizer has one there.

    Raises:
        ValueError: the engine, a language model, cannot say how likely labels are, or a sign has no token.
    """
    labels: Labels = {GOOD: (good,), BAD: (bad,)}
    at_once: Any = getattr(engine, "inner_label_logprobs", None)
    if at_once is not None:
        results = await at_once([prompt_of(row) for row in rows], labels, [row.places for row in rows])
        return [result if isinstance(result, Fault) else _signs_reading(result) for result in results]
    prompts = [row.text[:stop] for row in rows for stop in row.stops]
    answers = iter(await engine.label_logprobs(prompts, labels))
    own = [[next(answers) for _ in row.stops] for row in rows]
    return [
        next((one for one in several if isinstance(one, Fault)), None)
        or _signs_reading([one for one in several if isinstance(one, LabelLogprobs)])
        for several in own
    ]


def _signs_reading(answers: Sequence[LabelLogprobs]) -> Reading:
    return Reading(
        values=tuple(answer.shares()[GOOD] for answer in answers),
        facts={"mass": tuple(answer.mass for answer in answers)},
        cost=reduce(add, (answer.cost for answer in answers), NO_COST),
    )
