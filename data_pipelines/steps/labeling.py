"""The call that labels the steps of a data set, and what it says about the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adjudge.data_pipelines.steps.arithmetic import ROUNDED
from adjudge.data_pipelines.steps.config import WITH_ENGINE, StepsConfig
from adjudge.data_pipelines.steps.methods import Tools
from adjudge.data_pipelines.steps.rollouts import Ends, EngineCompleter
from adjudge.data_pipelines.steps.step_labeller import StepLabeller
from adjudge.data_pipelines.steps.turn_labeller import TurnLabeller
from adjudge.engines.interface import Engine, Sampling
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Maker
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.protocol import Scorer
from adjudge.runtime.contract import is_groupwise


def label_steps(
    config: StepsConfig,
    *,
    engine: Engine | None = None,
    prover: Engine | None = None,
    scorer: Any = None,
    critic: Any = None,
    progress: JobProgress | None = None,
) -> JobReport:
    """Label the steps of the solutions in a data set, or go on with a job that was interrupted.

    Args:
        config: the options.
        progress: who is told how far the job is.
        engine: in place of the one that the config names.
        prover: in place of the one that the config names.
        scorer: anything `adjudge.load` takes, in place of the config's.
        critic: anything `adjudge.load` takes, in place of the config's.

    Returns:
        The counts; the last note says what a labelled step cost.
    """
    maker = maker_of(config, engine=engine, prover=prover, scorer=scorer, critic=critic)
    report = run_job(config, maker, progress=progress)
    cost = cost_of_labels(report)
    if progress is not None:
        progress.note(cost)
    return replace(report, notes=(*report.notes, cost))


def maker_of(
    config: StepsConfig,
    *,
    engine: Engine | None = None,
    prover: Engine | None = None,
    scorer: Any = None,
    critic: Any = None,
) -> Maker:
    """Return the maker that a config describes; the arguments are those of `label_steps`.

    Raises:
        ValueError: an engine or a scorer that the method needs is not named, or is unknown.
    """
    if config.method == "spa":
        return TurnLabeller(config)
    named = config.scorer
    if config.method == "arithmetic" and named == "math":
        named = ROUNDED
    completer = _completer(config, config.engine, "--engine", engine) if config.method in WITH_ENGINE else None
    other = _completer(config, config.prover, "--prover", prover) if prover is not None or config.prover else None
    judge = None
    if critic is not None or config.critic:
        judge = single_scorer(critic if critic is not None else config.critic)
    elif config.method == "consensus":
        raise ValueError("the method consensus needs a judge of steps; name a scorer with --critic")
    return StepLabeller(
        Tools(
            config=config,
            ends=Ends(scorer=single_scorer(scorer if scorer is not None else named), pass_at=config.pass_at),
            completer=completer,
            prover=other,
            critic=judge,
        )
    )


def cost_of_labels(report: JobReport) -> str:
    """Return one sentence about what a labelled step cost."""
    steps = int(report.counts.get("labelled_steps", 0))
    if not steps:
        return "no step was labelled"
    calls = report.counts.get("calls", 0)
    tokens = report.cost.prompt_tokens + report.cost.completion_tokens
    return (
        f"{steps} of {int(report.counts['steps'])} steps have a label; each took {calls / steps:.3g} rollouts, "
        f"{tokens / steps:.3g} tokens and {report.cost.seconds / steps:.3g} s of models and scorers"
    )


def _completer(config: StepsConfig, named: str, flag: str, given: Engine | None) -> EngineCompleter:
    sampling = Sampling(
        max_tokens=config.max_tokens, temperature=config.temperature, top_p=config.top_p, seed=config.seed
    )
    engine = given if given is not None else engine_named(named, flag)
    return EngineCompleter(engine=engine, sampling=sampling, chat=config.chat)


def single_scorer(spec: Any) -> Scorer:
    """Return a scorer by name or spec; `ValueError` if it needs several answers at once."""
    from adjudge.scoring import registry

    scorer = registry.load(spec)
    if is_groupwise(scorer):
        raise ValueError(
            f"the scorer {scorer.name!r} compares answers with each other, and here each end is judged by itself; name "
            "one that scores single answers"
        )
    return scorer
