"""Which step each token belongs to, and numbers of steps put on tokens.

Scorers say where a step stands by characters (`StepScore.start` and `end`), and `token_spans` says the same of tokens.
A token belongs to the first step that it has a character of, since many tokens begin with the blank before a word; a
token between steps belongs to none, -1.

Not covered: splitting a response into steps; the scorer did that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from adjudge.protocol import StepScore
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, floats


def read_steps(steps: Sequence[StepScore]) -> tuple[Floats, list[tuple[int, int]]]:
    """Return the values and the spans of a score's steps; of none if any was not judged.

    A sum over steps of which one is missing would take it for a 0; without steps the outcome alone counts.
    """
    values = [step.value for step in steps if step.value is not None]
    if len(values) < len(steps):
        return np.zeros(0), []
    return floats("the steps' values", values), [(step.start, step.end) for step in steps]


def steps_of_tokens(spans: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> Integers:
    """Return (t,) the step of each token, -1 for none.

    Args:
        spans: first character and the one after the last of each step, in order and without overlap.
        offsets: the same of each token.

    Raises:
        ValueError: spans overlap or are out of order.
    """
    edges = [edge for span in spans for edge in span]
    if any(after < before for before, after in pairwise(edges)):
        raise ValueError(f"the steps' spans {list(spans)} overlap or are out of order; sort them")
    if not spans or not offsets:
        return np.full(len(offsets), -1, dtype=np.int64)
    starts, ends = np.array(spans, dtype=np.int64).T
    first, last = np.array(offsets, dtype=np.int64).T
    step = np.searchsorted(ends, first, side="right")  # the first that ends behind the token's beginning
    inside = np.minimum(step, len(spans) - 1)
    found: Integers = np.where((first < last) & (step < len(spans)) & (starts[inside] < last), step, -1)
    return found


def over_tokens(values: Floats, steps: Integers) -> Floats:
    """Return (t,) each step's number at all of its tokens; 0 at tokens of no step.

    Raises:
        ValueError: a token belongs to a step that has no number.
    """
    values = _checked(values, steps)
    return np.where(steps >= 0, values[steps], 0.0) if len(values) else np.zeros(len(steps))


def at_last_tokens(values: Floats, steps: Integers) -> Floats:
    """Return (t,) each step's number at its last token, 0 elsewhere; a step without a token is lost.

    That is where token rewards stand for `advantages.gae`.

    Raises:
        ValueError: a token belongs to a step that has no number.
    """
    values = _checked(values, steps)
    found = np.zeros(len(steps))
    last = {int(step): token for token, step in enumerate(steps) if step >= 0}
    for step, token in last.items():
        found[token] = values[step]
    return found


def rows_of_tokens(values: Sequence[Floats], steps: Integers) -> Floats:
    """Return (n, t) each step's number at all of its tokens.

    Args:
        values: the numbers of the steps of each of n responses.
        steps: (n, t) step of each token, -1 for none.

    Raises:
        ValueError: there are not as many responses, or a token belongs to a step that has no number.
    """
    if len(values) != len(steps):
        raise ValueError(f"there are steps of {len(values)} responses and tokens of {len(steps)}; give both for each")
    rows = [over_tokens(row, places) for row, places in zip(values, steps, strict=True)]
    return np.stack(rows) if rows else np.zeros(steps.shape)


def _checked(values: Floats, steps: Integers) -> Floats:
    values = floats("the steps' numbers", values)
    if len(steps) and steps.max() >= len(values):
        raise ValueError(f"a token belongs to step {steps.max()}, and there are {len(values)} numbers; give one each")
    return values
