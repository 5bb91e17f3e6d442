"""The call behind `adjudge data tasks`."""

from __future__ import annotations

from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.number_source import NumberSource
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport
from adjudge.data_pipelines.procedural.config import TasksConfig
from adjudge.data_pipelines.procedural.maker import TaskMaker


def make_tasks(config: TasksConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write tasks to a file.

    Raises:
        ValueError: a mistake in the options; nothing was written.
        JobError: the job could not go on; the same call goes on.
    """
    return run_job(config, TaskMaker(config), source=NumberSource(config.count, "tasks"), progress=progress)
