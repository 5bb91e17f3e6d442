"""The call behind `adjudge data unit_tests`."""

from __future__ import annotations

from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport
from adjudge.data_pipelines.unit_tests.config import UnitTestsConfig
from adjudge.data_pipelines.unit_tests.maker import UnitTestMaker
from adjudge.engines.interface import Engine


def make_unit_tests(
    config: UnitTestsConfig, *, progress: JobProgress | None = None, engine: Engine | None = None
) -> JobReport:
    """Make unit tests for the tasks of a file.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.
        engine: a model in place of `config.engine`; it stays open.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the sandbox or the model is gone; the same call goes on.
    """
    maker = UnitTestMaker(config, engine=engine)
    return run_job(config, maker, group_column=config.group_column, progress=progress)
