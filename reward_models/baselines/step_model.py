"""A process model that needs no download: n-grams and the bookkeeping of numbers, fitted in seconds, without torch.

It learns which steps of word problems tend to be wrong: those that take a number from nowhere, use nothing of what was
worked out, divide what is not to be divided.  It does not know what a step says, and a policy that writes true and idle
steps is liked by it: a baseline to print beside a process model, and no reward.  docs/training.md has the numbers.

The fit is a logistic regression on labelled steps, each in its context.  A soft label p enters as both outcomes,
weighted p and 1 - p; a step without a label teaches nothing, and still stands before the steps behind it.

Not covered: the meaning of a step, mathematics beyond the four operations, images, losses that order steps, and labels
of answers alone.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from adjudge.engines.interface import Fault
from adjudge.protocol import Cost, Message
from adjudge.reward_models.baselines.linear import LinearModel, LinearScorer, Seen, Table
from adjudge.reward_models.baselines.step_features import (
    Ledger,
    StepFeatureOptions,
    StepText,
    features_of_steps,
    values_of,
)
from adjudge.reward_models.process.step_format import Reading
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer
from adjudge.statistics.logistic import sigmoid
from adjudge.training.data_files import digest_of, held_out
from adjudge.training.step_data import StepExample

FILES: Final = ("step_model.json", "step_weights.npz")

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The strengths among which one is chosen; scikit-learn's C."""

_ASIDE = 0.2  # share of the solutions on which the strength is chosen
_EVERYTHING = StepFeatureOptions()


@dataclass(frozen=True, kw_only=True)
class StepModel(LinearScorer, StepScorer):
    """How likely the steps of a word problem's solution are right, by a linear model; the least likely one counts.

    Set `split` to how the steps were cut that the model was fitted on.

    Attributes:
        model: the folder that `save` or `adjudge train prm` made; or give `weights`.
        weights: a fitted model.
        explain: whether the evidence has what each group of features adds to each step's log-odds (`part_operands`,
            ...).
    """

    name: ClassVar[str] = "step_model"
    version: ClassVar[str] = "2"
    files: ClassVar = FILES
    called: ClassVar[str] = "step model"
    trained_by: ClassVar[str] = "adjudge train prm"

    model: str = ""
    weights: LinearModel | None = None
    explain: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.take_weights()
        self.lowest  # noqa: B018 raises if the formula does not fit probabilities

    @classmethod
    def fit(
        cls,
        examples: Sequence[StepExample],
        *,
        features: StepFeatureOptions = _EVERYTHING,
        strength: float | None = None,
        **options: Any,
    ) -> Self:
        """Return a model fitted to solutions with labelled steps; see `fit_steps`."""
        return cls(weights=fit_steps(examples, features=features, strength=strength), **options)

    @staticmethod
    def value_names(options: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return the names of the values that are computed for given options, by group."""
        values = values_of(StepText(""), Ledger(""))
        return {group: list(values[group]) for group in StepFeatureOptions(**options).groups}

    @property
    def bounded(self) -> bool:
        """The values of steps are probabilities."""
        return True

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return the probabilities of each solution's steps, in order; each solution is judged alone."""
        return await asyncio.to_thread(lambda: [self._judged_one(solution) for solution in solutions])

    def _judged_one(self, solution: Solution) -> Judged:
        begun = time.perf_counter()
        texts = [step.text for step in solution.steps]
        seen = features_of_steps(solution.sample.prompt, texts, StepFeatureOptions(**self.fitted.options))
        parts = [self.fitted.parts(one) for one in seen]
        reading = Reading(
            values=tuple(sigmoid(math.fsum(part.values())) for part in parts),
            facts={f"part_{name}": tuple(part[name] for part in parts) for name in parts[0]} if self.explain else {},
            cost=Cost(seconds=time.perf_counter() - begun),
        )
        return Judged(reading=reading)


def chances(model: LinearModel, problem: str | Sequence[Message], steps: Sequence[str]) -> list[float]:
    """Return the probability that each step of a solution is right, in order."""
    seen = features_of_steps(problem, steps, StepFeatureOptions(**model.options))
    return [sigmoid(float(odds)) for odds in model.sums(seen)]


def fit_steps(
    examples: Sequence[StepExample],
    *,
    features: StepFeatureOptions = _EVERYTHING,
    strength: float | None = None,
    by_solution: bool = True,
    good: float = 1.0,
    bad: float = 1.0,
    seed: int = 0,
) -> LinearModel:
    """Return the weights that explain the labels best.

    Args:
        examples: solutions with labels.
        features: what is looked at.
        strength: of the data against the penalty, above 0; None for the one of `STRENGTHS` with the lowest log loss on
            problems held out for that; then all problems are fitted.
        by_solution: every solution weighs the same, and all together as much as they have labelled steps; else every
            labelled step weighs the same.
        good: weight of right steps, above 0.
        bad: weight of wrong steps, above 0.
        seed: of the choice of problems held out.

    Raises:
        ValueError: there is too little to learn from, a number is out of range, or the extra is missing.
    """
    for name, value in (("strength", strength), ("good", good), ("bad", bad)):
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value!r}; it must be above 0")
    examples = [example for example in examples if any(label is not None for label in example.labels)]
    if not examples:
        raise ValueError("no solution has a labelled step; give solutions with labels")
    steps = [
        (number, seen, float(label))
        for number, example in enumerate(examples)
        for seen, label in zip(features_of_steps(example.prompt, example.steps, features), example.labels, strict=True)
        if label is not None
    ]
    owners = np.array([number for number, _, _ in steps])
    shares = 1.0 / np.bincount(owners)[owners] if by_solution else np.ones(len(owners))
    data = _Steps([seen for _, seen, _ in steps], np.array([label for *_, label in steps]), shares / shares.mean())
    kinds = {"good": good, "bad": bad}
    losses: dict[float, float] = {}
    if strength is None:
        mine, aside = (data.of(np.isin(owners, part)) for part in held_out(examples, _ASIDE, seed=seed))
        table = Table(mine.seen, features.bits)
        losses = {tried: _log_loss(_fitted(table, mine, features, tried, **kinds), aside) for tried in STRENGTHS}
        strength = min(losses, key=lambda tried: losses[tried])
    trained = {
        "solutions": len(examples),
        "steps": len(steps),
        "data": digest_of(examples),
        "strength": strength,
        "log_loss_by_strength": {f"{tried:g}": loss for tried, loss in losses.items()},
        "by_solution": by_solution,
        **kinds,
    }
    # Most values say yes or no, so a rare yes is many standard deviations off; on GSM8K, cutting it costs 0.006 of AUC.
    return replace(_fitted(Table(data.seen, features.bits), data, features, strength, **kinds), trained=trained)


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Labelled steps: what is seen of each, labels in [0, 1], and weights above 0."""

    seen: list[Seen]
    labels: Any
    weights: Any

    def of(self, kept: Any) -> _Steps:
        """Return some of the steps."""
        seen = [one for one, keep in zip(self.seen, kept, strict=True) if keep]
        return _Steps(seen, self.labels[kept], self.weights[kept])


def _fitted(
    table: Table, steps: _Steps, options: StepFeatureOptions, strength: float, *, good: float, bad: float
) -> LinearModel:
    kinds = steps.labels * good + (1 - steps.labels) * bad
    odds = steps.labels * good / kinds  # good and bad weigh the two outcomes of a soft label apart
    count = len(steps.seen)
    return table.fit(
        range(count), [-1] * count, odds, steps.weights * kinds, strength=strength, options=asdict(options)
    )[0]


def _log_loss(model: LinearModel, steps: _Steps) -> float:
    odds = model.sums(steps.seen)
    losses = steps.labels * np.logaddexp(0, -odds) + (1 - steps.labels) * np.logaddexp(0, odds)
    return float(steps.weights @ losses / steps.weights.sum())
