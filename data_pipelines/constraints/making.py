"""The call behind `adjudge data constraints`."""

from __future__ import annotations

from adjudge.data_pipelines.constraints.config import ConstraintsConfig
from adjudge.data_pipelines.constraints.maker import ConstraintMaker
from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport


def make_constraints(config: ConstraintsConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Add constraints to the prompts of a file, or look at those they have.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the job could not go on; the same call goes on.
    """
    return run_job(config, ConstraintMaker(config), progress=progress)
