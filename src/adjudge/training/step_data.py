"""Solutions with a label for each step: the one form that every format of step data becomes.

A label is the probability that a step is right, or that the right answer can still be reached from it; None where
nobody knows, and then it teaches nothing.  Labels are never made up: a neutral rating, a step after the first error and
a step nobody looked at stay unknown unless an option says what they are.

`consensus` keeps the solutions on whose first error two sources of labels agree.  Labels from rollouts alone turn a
process model into a value function: a wrong step from which the answer can still be guessed counts as right.  Labels
from a judge alone are as good as the judge.  Where the two agree, hard labels teach more than either (arXiv
2501.07301).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from adjudge.options import Options, Range

Label: TypeAlias = float | None
"""The probability in [0, 1] that a step is right; None where it is unknown."""

Kind = Literal["soft", "hard"]
Neutral = Literal["good", "masked", "bad"]
AfterError = Literal["kept", "masked", "bad"]
Shared = Literal["once", "each"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepExample:
    """One solution, cut into steps.

    Attributes:
        prompt: the problem.
        steps: the steps' texts, at least one, none of them blank.
        labels: one for each step.
        outcome: the probability in [0, 1] that the final answer is right; None where it is unknown.
        source: where the example comes from, for people.
        group: examples of one group never stand on both sides of a split; "" for the prompt's own group.
    """

    prompt: str
    steps: tuple[str, ...]
    labels: tuple[Label, ...]
    outcome: Label = None
    source: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("the solution has no steps")
        for at, step in enumerate(self.steps):
            if not isinstance(step, str) or not step.strip():
                raise ValueError(f"step {at} holds no text")
        if len(self.labels) != len(self.steps):
            raise ValueError(f"there are {len(self.steps)} steps and {len(self.labels)} labels")
        for at, label in enumerate(self.labels):
            if not _is_label(label):
                raise ValueError(f"the label of step {at} is {label!r}; it must be in [0, 1], or null")
        if not _is_label(self.outcome):
            raise ValueError(f"the outcome is {self.outcome!r}; it must be in [0, 1], or null")


@dataclass(frozen=True, kw_only=True)
class StepOptions(Options, what="step option"):
    """What becomes of labels that can be read in several ways.

    Attributes:
        kind: "soft" keeps probabilities (shares of rollouts that reached the right answer); "hard" makes them 0 or 1.
        threshold: a step is an error if its label is at most this, in [0, 1).  At 0, a step is right as soon as one
            rollout from it got there, which is how Math-Shepherd made its hard labels.
        neutral: what a neutral rating of PRM800K (0) is; the paper that made it took it for "good".
        after_error: "kept" leaves labels after the first error as they are; "masked" takes them for unknown, so that
            training stops at the first error; "bad" sets them to 0.
        shared: in trees, whether the label of a step that several solutions share counts in the first of them only
            ("once"; the others hold it masked) or in each of them ("each").
        alternatives: whether rated steps beside the chosen one (PRM800K) become examples of their own, in which only
            that step has a label.
    """

    kind: Kind = "soft"
    threshold: Annotated[float, Range(ge=0, lt=1)] = 0.0
    neutral: Neutral = "good"
    after_error: AfterError = "kept"
    shared: Shared = "once"
    alternatives: bool = True

    def applied(self, example: StepExample) -> StepExample:
        """Return the example with labels as these options want them."""
        labels = after_first_error(example.labels, self.after_error, threshold=self.threshold)
        if self.kind == "hard":
            labels = hardened(labels, threshold=self.threshold)
        return replace(example, labels=labels)


def first_error(labels: Sequence[Label], *, threshold: float = 0.0) -> int | None:
    """Return the place of the first error, from 0; -1 if there is none; None if that cannot be known.

    It cannot be known where a step without a label stands before the first error, or no error was found and some step
    has no label.
    """
    for at, label in enumerate(labels):
        if label is None:
            return None
        if label <= threshold:
            return at
    return -1


def after_first_error(labels: Sequence[Label], how: AfterError, *, threshold: float = 0.0) -> tuple[Label, ...]:
    """Return labels with those behind the first step that is known to be an error kept, masked or set to 0."""
    errors = [label is not None and label <= threshold for label in labels]
    if how == "kept" or True not in errors:
        return tuple(labels)
    kept = errors.index(True) + 1
    return (*labels[:kept], *[None if how == "masked" else 0.0] * (len(labels) - kept))


def hardened(labels: Sequence[Label], *, threshold: float = 0.0) -> tuple[Label, ...]:
    """Return labels as 1 where they are above the threshold, and as 0 where they are not; unknown ones stay unknown."""
    return tuple(None if label is None else float(label > threshold) for label in labels)


def _is_label(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and 0 <= value <= 1  # which no NaN is


@dataclass(frozen=True, kw_only=True)
class Consensus:
    """What became of the examples, and how many were agreed and disagreed on.

    Attributes:
        examples: those on which both agree, with hard labels: 1 before the first error, 0 at it, unknown behind it.
        unknown: examples whose own labels leave open which step is the first error.
        unjudged: examples on which there is no second opinion.
    """

    examples: tuple[StepExample, ...]
    agreed: int
    disagreed: int
    unknown: int
    unjudged: int


def key_of(example: StepExample) -> tuple[str, tuple[str, ...]]:
    """Return what two opinions on the same solution share: the prompt and the steps, without outer blanks."""
    return example.prompt.strip(), tuple(step.strip() for step in example.steps)


def opinions_of(examples: Iterable[StepExample], *, threshold: float = 0.0) -> dict[tuple[str, tuple[str, ...]], int]:
    """Return what labelled examples say about first errors, for `consensus`; those that leave it open are left out.

    Raises:
        ValueError: the examples hold two different opinions on one solution.
    """
    opinions: dict[tuple[str, tuple[str, ...]], int] = {}
    for example in examples:
        place = first_error(example.labels, threshold=threshold)
        if place is not None and opinions.setdefault(key_of(example), place) != place:
            raise ValueError(
                f"there are two opinions on a solution of {example.prompt[:60]!r}: the first error is at "
                f"{opinions[key_of(example)]} and at {place}; give one opinion on each solution"
            )
    return opinions


def consensus(
    examples: Iterable[StepExample],
    opinions: Mapping[tuple[str, tuple[str, ...]], int],
    *,
    threshold: float = 0.0,
) -> Consensus:
    """Return the examples whose first error is where a second opinion puts it."""
    kept: list[StepExample] = []
    disagreed = unknown = unjudged = 0
    for example in examples:
        place = first_error(example.labels, threshold=threshold)
        opinion = opinions.get(key_of(example))
        if place is None:
            unknown += 1
        elif opinion is None:
            unjudged += 1
        elif place != opinion:
            disagreed += 1
        else:
            kept.append(replace(example, labels=error_labels(len(example.steps), place)))
    return Consensus(examples=tuple(kept), agreed=len(kept), disagreed=disagreed, unknown=unknown, unjudged=unjudged)


def error_labels(steps: int, place: int) -> tuple[Label, ...]:
    """Return the labels of a solution of which only the first error is known: what follows it stays unknown.

    Raises:
        ValueError: there is no such step.
    """
    if not -1 <= place < steps:
        raise ValueError(f"the first error is at step {place}, and there are {steps} steps, counted from 0")
    if place < 0:
        return (1.0,) * steps
    return (*[1.0] * place, 0.0, *[None] * (steps - place - 1))


def require_difference(labels: Iterable[Label], what: str) -> None:
    """Raise `ValueError` if all labels that are known are the same: nothing can be learnt from them."""
    known = {label for label in labels if label is not None}
    if len(known) == 1:
        raise ValueError(
            f"all {what} of the training data have the label {known.pop()}, which teaches nothing; look at data.format "
            "and data.labels, or give other data"
        )
