"""A solution with what a search found out about its steps, in the form that trainers of process models read.

Not covered: how it was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adjudge.data_pipelines.steps.rollouts import Estimate

Label: TypeAlias = float | None
"""The probability in [0, 1] that the right answer is reached from a step on; None where nobody knows."""

Hardness: TypeAlias = Literal["soft", "hard"]

NO_ERROR = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels of one solution.

    Attributes:
        steps: their texts; none is blank.
        labels: one for each.
        outcome: 1 if the final answer is right, 0 if not, None where unknown.
        values: what the method computes, one for each step, in its own units; None where unknown.
        estimates: the votes behind each step, where there are any.
        start: the value before the first step; None where the method does not ask for it.
        first_error: place of the first wrong step, from 0; -1 for none; None where that is not known.
    """

    steps: tuple[str, ...]
    labels: tuple[Label, ...]
    outcome: Label = None
    values: tuple[float | None, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    start: float | None = None
    first_error: int | None = None

    @property
    def known(self) -> int:
        """How many steps have a label."""
        return sum(label is not None for label in self.labels)

    def row(self) -> Mapping[str, Any]:
        """Return the columns that are this solution's own."""
        blank = [None] * len(self.steps)
        return {
            "steps": list(self.steps),
            "labels": list(self.labels),
            "outcome": self.outcome,
            "values": list(self.values) or blank,
            "start": self.start,
            "first_error": self.first_error,
            "right": [estimate.right for estimate in self.estimates] or blank,
            "judged": [estimate.judged for estimate in self.estimates] or blank,
            "unknown": len(self.steps) - self.known,
        }


def label_of(estimate: Estimate, hardness: Hardness) -> Label:
    """Return the share of rollouts that ended right, or 1.0 as soon as one did; None where none was judged."""
    if hardness == "soft" or estimate.reached is None:
        return estimate.value
    return float(estimate.reached)


def first_error_of(labels: Sequence[Label], *, threshold: float = 0.0) -> int | None:
    """Return the place of the first label at or below the threshold; -1 if there is none; None if that is not known.

    It is not known where a step without a label stands before the first error, or there is no error and some step has
    no label.
    """
    for at, label in enumerate(labels):
        if label is None:
            return None
        if label <= threshold:
            return at
    return NO_ERROR


def labels_until(first_error: int, steps: int) -> tuple[Label, ...]:
    """Return hard labels of a solution whose first error is known (-1: none); what is behind it stays unknown."""
    if first_error == NO_ERROR:
        return (1.0,) * steps
    return (*[1.0] * first_error, 0.0, *[None] * (steps - first_error - 1))


def number_of(outcome: bool | None) -> Label:
    """Return an outcome as a number."""
    return None if outcome is None else float(outcome)
