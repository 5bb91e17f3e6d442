"""The process model without a network, as what `adjudge train prm` trains.

Not covered: its features and its fit (`adjudge.reward_models.baselines.step_model`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from adjudge.reward_models.baselines.step_fitting import fit_steps
from adjudge.reward_models.baselines.step_weights import StepWeights
from adjudge.reward_models.training.model_folders import scorer_in, use
from adjudge.reward_models.training.preference_data import families
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_metrics import Judged, step_measures
from adjudge.reward_models.training.process_rows import StepSplit, require_difference
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.step_data import StepExample
from adjudge.training.config_file import plain_config

_USE = """Set `split` to how the steps were cut that it was fitted on.

The model sees words, signs and where numbers come from, and no meaning: a baseline, not a reward to optimise."""


def train_ngram_steps(config: ProcessTraining, data: StepSplit, output: Path) -> TrainingReport:
    """Fit the model to labelled steps, save it, and return the report.

    Args:
        config: of the training; its schedule is not used.
        data: solutions, split.
        output: the folder.

    Raises:
        ValueError: scikit-learn is missing, or the solutions cannot be fitted.
    """
    require_difference((label for example in data.train for label in example.labels), "steps")
    begun = time.monotonic()
    weights = fit_steps(
        data.train,
        by_solution=config.normalise == "solution",
        good=config.loss.good,
        bad=config.loss.bad,
        seed=config.seed,
    )
    seconds = time.monotonic() - begun
    metrics, rules = step_measures(judged_steps(weights, data.held_out), error=config.data.labels.threshold)
    output.mkdir(parents=True, exist_ok=True)
    weights.save(output)
    report = TrainingReport(
        what="ngrams",
        model=config.model.label,
        output=str(output),
        seconds=round(seconds, 3),
        data={
            **data.facts,
            "trained_on": weights.trained["solutions"],
            "measured_on": len(data.held_out),
            "labelled_steps": weights.trained["steps"],
            "strength": weights.trained["strength"],
        },
        metrics=metrics,
        baselines=rules,
        config=plain_config(config),
        sections=use(scorer_in(output), _USE),
    )
    report.write(output)
    return report


def judged_steps(weights: StepWeights, examples: Sequence[StepExample]) -> list[Judged]:
    """Return what a fitted model says about solutions, in order."""
    return [
        Judged(
            probabilities=tuple(weights.chances(example.prompt, example.steps)), labels=example.labels, cluster=cluster
        )
        for example, cluster in zip(examples, families(examples), strict=True)
    ]
