"""The call behind `adjudge data theorems`."""

from __future__ import annotations

from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport
from adjudge.data_pipelines.theorems.config import TheoremsConfig
from adjudge.data_pipelines.theorems.maker import TheoremMaker
from adjudge.engines.interface import Engine


def make_theorems(
    config: TheoremsConfig, *, progress: JobProgress | None = None, engine: Engine | None = None
) -> JobReport:
    """Make statements to prove or disprove of the theorems of a file.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.
        engine: a model in place of `config.engine`; it stays open.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the model is gone; the same call goes on.
    """
    return run_job(config, TheoremMaker(config, engine=engine), progress=progress)
