"""The job that makes pairs.

Not covered: labelling (`adjudge label`), which gives the scores, and training, which reads what comes out as it is.
"""

from __future__ import annotations

from dataclasses import replace

from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.labelled_rows import LabelledRows
from adjudge.data_pipelines.pairs.layout import layout_of
from adjudge.data_pipelines.pairs.maker import LearningPairMaker, PairMaker
from adjudge.data_pipelines.pairs.rule import LearningRule
from adjudge.data_pipelines.pairs.rule_specs import rule_of
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.opening import check_paths, glance
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.source import Source, open_source


def build_pairs(config: PairsConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make preference pairs of scored answers, or go on with a job that was interrupted.

    Args:
        config: input, output, rule and options.
        progress: who is told how the input was understood and how far the job is.

    Returns:
        What was made, and what was left out, by reason.

    Raises:
        ValueError: a mistake in the call; no work was done.
        JobError: the job could not go on; the message says how it can.
        JobStopped: Ctrl-C; the same call goes on.
    """
    check_paths(config.input, config.output)
    scores = _opened(config, config.input)
    rows = LabelledRows(scores, _opened(config, config.rows), config) if config.rows else None
    source: RowSource = rows if rows is not None else scores
    seen = glance(source)
    if not seen.rows:
        raise ValueError(f"{config.input} holds no rows, so there is nothing to make pairs of")
    rule = rule_of(config.rule)
    layout = layout_of(config, rule, seen.columns, seen.rows)
    if rows is not None:
        layout = replace(layout, notes=(*rows.notes, *layout.notes))
    kind = LearningPairMaker if isinstance(rule, LearningRule) else PairMaker
    return run_job(config, kind(rule, layout, config), group_column=layout.group, source=source, progress=progress)


def _opened(config: PairsConfig, name: str) -> Source:
    own = name == config.input
    return open_source(
        name,
        limit=config.max_row_mb << 20,
        split=config.split if own else "",
        subset=config.subset if own else "",
        revision=config.revision if own else "",
    )
