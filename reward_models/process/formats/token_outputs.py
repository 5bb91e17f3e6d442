"""A token classifier's outputs at the places of steps, and the probabilities that they stand for.

A row that is asked of an engine must be the row that was made here: where the engine reads other tokens, the places
would mean something else, and the result is a fault.

Not covered: engines that do not say which tokens they read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from adjudge.engines.interface import Engine, Fault, Prompt, TokenLogits
from adjudge.reward_models.process.formats.step_format import Reading
from adjudge.reward_models.process.rows import StepRow, Unfit
from adjudge.statistics.logistic import sigmoid

Outputs: TypeAlias = tuple[tuple[float, ...], ...]
"""For each step, the raw outputs at its place."""


async def read_outputs(
    engine: Engine, rows: Sequence[StepRow], meaning: Callable[[Outputs], Reading | Fault]
) -> list[Reading | Fault]:
    """Return what a token classifier says at the places of rows, in order: one forward pass for each row.

    Args:
        engine: a token classifier.
        rows: solutions.
        meaning: makes a reading of the raw outputs; the cost is added here.

    Raises:
        ValueError: the engine is no token classifier.
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
    found = meaning(tuple(result.values[place] for place in row.places))
    if isinstance(found, Fault):
        return found
    return Reading(values=found.values, labels=found.labels, facts=found.facts, cost=result.cost)
