"""The batch label job: read a dataset, score every row, write the scores, survive any interruption.

`run_label` is the call behind `adjudge label`; docs/labeling.md is its manual.
"""

from __future__ import annotations

from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.job import run_label
from adjudge.data_pipelines.label.report import LabelReport, Progress, Snapshot
from adjudge.io.errors import JobError, JobStopped

__all__ = ["JobError", "JobStopped", "LabelConfig", "LabelReport", "Progress", "Snapshot", "run_label"]
