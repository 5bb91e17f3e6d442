"""The linear models on n-grams, as what `adjudge train rm` and `prm` train and as a baseline beside other models."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adjudge.reward_models.baselines.linear import LinearModel
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.reward_models.baselines.step_model import FILES, chances, fit_steps
from adjudge.reward_models.scalar.chat import ChatForm
from adjudge.reward_models.training.held_out import Judged, preference_measures
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_metrics import Judged as JudgedSteps
from adjudge.reward_models.training.process_metrics import step_measures
from adjudge.reward_models.training.process_rows import StepSplit, require_difference
from adjudge.reward_models.training.report import TrainingReport, scorer_in, use
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_data import SplitData, responses_of
from adjudge.statistics.intervals import Interval
from adjudge.training.config_file import plain_config
from adjudge.training.data_files import families
from adjudge.training.examples import Example
from adjudge.training.step_data import StepExample

_USE = """The model sees words, signs and lengths, and no meaning: a first filter and a baseline, not a reward to
optimise."""


def train_ngrams(config: ScalarTraining, data: SplitData, output: Path) -> TrainingReport:
    """Fit the n-gram model, save it, and return the report.

    Args:
        config: of the training; its schedule is not used.
        data: preferences, split.
        output: the folder.

    Raises:
        ValueError: scikit-learn is missing, or the examples cannot be fitted.
    """
    begun = time.monotonic()
    model = PreferenceModel.fit(data.train, reasoning=config.data.reasoning)
    seconds = time.monotonic() - begun
    metrics, rules = preference_measures(_judged(model, data.held, data.clusters))
    output.mkdir(parents=True, exist_ok=True)
    model.save(output)
    report = TrainingReport(
        what="ngrams",
        model=config.model.label,
        output=str(output),
        seconds=round(seconds, 3),
        data={**data.counts, "trained_on": len(data.train), "held_out": len(data.held), "digest": data.digest},
        metrics=metrics,
        baselines=rules,
        config=plain_config(config),
        sections=use(scorer_in(output), _USE),
    )
    report.write(output)
    return report


def ngram_baseline(
    config: ScalarTraining, data: SplitData, held: Sequence[Example], clusters: Sequence[str]
) -> dict[str, Interval]:
    """Return what the n-gram model, fitted to the training examples, reaches; nothing without scikit-learn.

    Args:
        config: of the training.
        data: preferences, split.
        held: those held-out examples on which the other model is measured.
        clusters: the family of each.
    """
    if importlib.util.find_spec("sklearn") is None:
        return {}
    model = PreferenceModel.fit(data.train, reasoning=config.data.reasoning)
    found = preference_measures(_judged(model, held, clusters))[0]
    return {"n-gram model": found["accuracy"]} if "accuracy" in found else {}  # there is none where all pairs are ties


def _judged(model: PreferenceModel, held: Sequence[Example], clusters: Sequence[str]) -> list[Judged]:
    form = ChatForm(reasoning=model.reasoning)
    return [_judged_one(model, form, example, cluster) for example, cluster in zip(held, clusters, strict=True)]


def _judged_one(model: PreferenceModel, form: ChatForm, example: Example, cluster: str) -> Judged:
    responses: Sequence[str] = responses_of(example)
    prompt = form.prompt(example.prompt)
    rewards = [model.reward([*prompt, *form.answer(response).turns]) for response in responses]
    return Judged(
        example=example,
        rewards=np.array(rewards, dtype=float)[:, None],
        lengths=np.array([len(response) for response in responses], dtype=float),
        cluster=cluster,
    )


_STEP_USE = """Set `split` to how the steps were cut that it was fitted on.

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
        by_solution=config.normalize == "solution",
        good=config.loss.good,
        bad=config.loss.bad,
        seed=config.seed,
    )
    seconds = time.monotonic() - begun
    metrics, rules = step_measures(judged_steps(weights, data.held_out), error=config.data.labels.threshold)
    output.mkdir(parents=True, exist_ok=True)
    weights.save(output, FILES)
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
        sections=use(scorer_in(output), _STEP_USE),
    )
    report.write(output)
    return report


def judged_steps(weights: LinearModel, examples: Sequence[StepExample]) -> list[JudgedSteps]:
    """Return what a fitted model says about solutions, in order."""
    return [
        JudgedSteps(
            probabilities=tuple(chances(weights, example.prompt, example.steps)), labels=example.labels, cluster=cluster
        )
        for example, cluster in zip(examples, families(examples), strict=True)
    ]
