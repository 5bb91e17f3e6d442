"""The job that makes test benches.

Not covered: how one is made (`adjudge.data_pipelines.testbenches.maker`).
"""

from __future__ import annotations

from adjudge.data_pipelines.jobs.engines import engine_named
from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport
from adjudge.data_pipelines.testbenches.config import TestbenchesConfig
from adjudge.data_pipelines.testbenches.maker import BenchMaker
from adjudge.data_pipelines.testbenches.trials import Trials
from adjudge.engines.interface import Engine


def make_testbenches(
    config: TestbenchesConfig, *, engine: Engine | None = None, progress: JobProgress | None = None
) -> JobReport:
    """Make test benches of reference designs, or go on with a job that was interrupted.

    Args:
        config: input, output and options.
        engine: the model that writes benches, in place of the one that `config.engine` names.
        progress: who is told how far the job is.

    Returns:
        The counts.  `dropped` says why rows came to nothing: "no_design", "bad_design", "outputs_never_known",
        "nothing_to_tell_apart" (no wrong design behaves differently), "does_not_separate", "bench_does_not_run",
        "misaligned" and others.

    Raises:
        ValueError: a mistake in the call, or a tool that is not installed; no work was done.
        JobError: the job could not go on; the message says how it can.
    """
    if engine is None and config.engine:
        engine = engine_named(config.engine)
    trials = Trials.of(config.isolation, config.seconds, config.seed)
    return run_job(config, BenchMaker(config, trials, engine), progress=progress)
