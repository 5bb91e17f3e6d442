"""The job that makes databases.

Not covered: how they are made (`adjudge.data_pipelines.databases.maker`).
"""

from __future__ import annotations

from adjudge.data_pipelines.databases.config import DatabasesConfig
from adjudge.data_pipelines.databases.maker import DatabaseMaker
from adjudge.data_pipelines.databases.suite import Judges
from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport


def make_databases(config: DatabasesConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make SQLite databases from schemas, or go on with a job that was interrupted.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.

    Returns:
        The counts.  `dropped` says why rows came to nothing: "no_schema", "bad_schema", "schema_takes_no_rows",
        "query_fails", "query_finds_nothing", "told_too_few_apart" and others.

    Raises:
        ValueError: a mistake in the call, or a package that is not installed; no work was done.
        JobError: the job could not go on; the message says how it can.
    """
    return run_job(config, DatabaseMaker(config, Judges.of(config.moment, config.seconds)), progress=progress)
