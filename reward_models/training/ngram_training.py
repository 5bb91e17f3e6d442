"""The linear models on n-grams, as what `adjudge train rm` and `prm` train and as a baseline beside other models."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from adjudge.reward_models.baselines.linear import LinearModel
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.reward_models.baselines.step_model import FILES, chances, fit_steps
from adjudge.reward_models.scalar.chat import ChatForm
from adjudge.reward_models.training.held_out import JudgedSteps, Rewarded, preference_measures, step_measures
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.report import Measures, TrainingReport, scorer_in, use
from adjudge.reward_models.training.rows import Unit
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_data import responses_of
from adjudge.reward_models.training.schedule import TrainingOptions
from adjudge.reward_models.training.training import Split
from adjudge.statistics.intervals import Interval
from adjudge.training.config_file import plain_config
from adjudge.training.data_files import families
from adjudge.training.examples import Example
from adjudge.training.step_data import StepExample, require_difference

M = TypeVar("M")

_USE = """The model sees words, signs and lengths, and no meaning: a first filter and a baseline, not a reward to
optimise."""
_STEP_USE = """Set `split` to how the steps were cut that it was fitted on.

The model sees words, signs and where numbers come from, and no meaning: a baseline, not a reward to optimise."""


def train_ngrams(config: ScalarTraining, data: Split[Example], output: Path) -> TrainingReport:
    """Fit the n-gram model to preferences, save it, and return the report; the schedule is not used.

    Raises:
        ValueError: scikit-learn is missing, or the examples cannot be fitted.
    """
    counts = {"trained_on": len(data.train), "held_out": len(data.held_out), "digest": data.digest}
    return _trained(
        config,
        output,
        lambda: PreferenceModel.fit(data.train, reasoning=config.data.reasoning),
        lambda model: preference_measures(_rewarded(model, data.held_out, families(data.held_out))),
        lambda model: model.save(output),
        lambda model: {**data.facts, **counts},
        _USE,
    )


def train_ngram_steps(config: ProcessTraining, data: Split[StepExample], output: Path) -> TrainingReport:
    """Fit the model to labelled steps, save it, and return the report; the schedule is not used.

    Raises:
        ValueError: scikit-learn is missing, or the solutions cannot be fitted.
    """
    require_difference((label for example in data.train for label in example.labels), "steps")
    return _trained(
        config,
        output,
        lambda: fit_steps(
            data.train,
            by_solution=config.normalize == "solution",
            good=config.loss.good,
            bad=config.loss.bad,
            seed=config.seed,
        ),
        lambda model: step_measures(judged_steps(model, data.held_out), error=config.data.labels.threshold),
        lambda model: model.save(output, FILES),
        lambda model: {
            **data.facts,
            "trained_on": model.trained["solutions"],
            "measured_on": len(data.held_out),
            "labelled_steps": model.trained["steps"],
            "strength": model.trained["strength"],
        },
        _STEP_USE,
    )


def _trained(
    config: TrainingOptions,
    output: Path,
    fit: Callable[[], M],
    measures: Callable[[M], Measures],
    save: Callable[[M], Path],
    data: Callable[[M], Mapping[str, Any]],
    said: str,
) -> TrainingReport:
    begun = time.monotonic()
    model = fit()
    seconds = time.monotonic() - begun
    reached, rules = measures(model)
    save(model)
    report = TrainingReport(
        what="ngrams",
        model=config.model.label,
        output=str(output),
        seconds=round(seconds, 3),
        data=data(model),
        metrics=reached,
        baselines=rules,
        config=plain_config(config),
        sections=use(scorer_in(output), said),
    )
    report.write(output)
    return report


def ngram_baseline(config: ScalarTraining, data: Split[Example], held: Sequence[Unit[Example]]) -> dict[str, Interval]:
    """Return what the n-gram model, fitted to the training examples, reaches; nothing without scikit-learn.

    `held` are those held-out examples on which the other model is measured, without those that were too long.
    """
    if importlib.util.find_spec("sklearn") is None:
        return {}
    model = PreferenceModel.fit(data.train, reasoning=config.data.reasoning)
    rewarded = _rewarded(model, [unit.example for unit in held], [unit.cluster for unit in held])
    reached = preference_measures(rewarded)[0]
    return {"n-gram model": reached["accuracy"]} if "accuracy" in reached else {}  # none where all pairs are ties


def _rewarded(model: PreferenceModel, held: Sequence[Example], clusters: Sequence[str]) -> list[Rewarded]:
    form = ChatForm(reasoning=model.shown_reasoning)
    rewarded = []
    for example, cluster in zip(held, clusters, strict=True):
        responses, prompt = responses_of(example), form.prompt(example.prompt)
        rewards = [model.reward([*prompt, *form.answer(response).turns]) for response in responses]
        rewarded.append(
            Rewarded(
                example=example,
                rewards=np.array(rewards, dtype=float)[:, None],
                lengths=np.array([len(response) for response in responses], dtype=float),
                cluster=cluster,
            )
        )
    return rewarded


def judged_steps(model: LinearModel, examples: Sequence[StepExample]) -> list[JudgedSteps]:
    """Return what a fitted model says about solutions, in order."""
    return [
        JudgedSteps(
            probabilities=tuple(chances(model, example.prompt, example.steps)), labels=example.labels, cluster=cluster
        )
        for example, cluster in zip(examples, families(examples), strict=True)
    ]
