"""The label job: reading, scoring and writing overlap, with a bounded number of batches under way.

Batches are written in the order in which they were read, so no score's place depends on how long it took.  The scorers
may work elsewhere (`ray_workers`); reading, numbering and writing are always here.

Not covered: several jobs on one output.  Run one for each shard (`--shard i/n`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from adjudge.data_pipelines.label.bench import Column, Stage, Written, load_stages, settles
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.outputs import LineWriter, ScoreWriter
from adjudge.data_pipelines.label.plan import Batch, Plan, make_plan
from adjudge.data_pipelines.label.report import LabelReport, Progress, ScorerReport, Snapshot, Tally
from adjudge.data_pipelines.label.samples import Item
from adjudge.io.errors import JobError
from adjudge.io.jobs.job import JobRun
from adjudge.io.jobs.journal import Journal
from adjudge.io.jobs.ordered import in_order
from adjudge.io.jobs.report import Patience, tell
from adjudge.io.row import Cursor
from adjudge.protocol import Cost, Provenance, Scorer
from adjudge.runtime.contract import BrokenScorer

_MAX_AT_FIRST: Final = 32  # samples of which a scorer must have judged one
_MAX_HELD: Final = 64  # batches that wait until a scorer judges again

_Row: TypeAlias = Mapping[str, Written | None]
"""What the scorers said about one sample, by name."""


def run_label(config: LabelConfig, *, progress: Progress | None = None, scorer: Scorer | None = None) -> LabelReport:
    """Label a dataset, or go on with a job that was interrupted.

    Works from any thread, inside a running event loop too.

    Args:
        config: the options.
        progress: who is told how the input was understood and how far the job is.
        scorer: a scorer to use in place of the one that `config.scorer` names.

    Returns:
        The counts, exact over all runs of the job.

    Raises:
        ValueError: a mistake in the call: unknown column, no such file, an output that exists, a partial output of
            another job.  No work was done.
        JobError: the job could not go on; the message says how it can.
        JobStopped: Ctrl-C; the same call goes on.
    """
    if not config.retry_failed or not Path(config.output).exists():  # what was stopped goes on first
        report = _run(config, progress, scorer)
        if not config.retry_failed or not report.failed:
            return report
    return _run(config, progress, scorer)


def _run(config: LabelConfig, progress: Progress | None, scorer: Scorer | None) -> LabelReport:
    with contextlib.ExitStack() as opened:
        note = functools.partial(tell, progress)
        plan = make_plan(config, functools.partial(load_stages, config, scorer, note, opened))
        overwrite = config.overwrite or plan.earlier is not None
        with contextlib.closing(
            Journal(Path(config.output), plan.identity, Tally(), restart=config.restart, overwrite=overwrite)
        ) as journal:
            return _Job(plan, journal, progress).run()


class _Job(JobRun[Tally, Snapshot, LabelReport]):
    did = done = "labelled"

    def __init__(self, plan: Plan, journal: Journal[Tally], progress: Progress | None) -> None:
        super().__init__(plan.source, plan.config.limit, plan.identity, plan.notes, journal, progress)
        self._plan = plan
        self._lines = LineWriter(columns=len(plan.columns.responses) > 1)
        self._scores = {
            stage.name: ScoreWriter(
                Provenance(scorer=stage.bench.name, fingerprint=stage.bench.fingerprint), timings=plan.config.timings
            )
            for stage in plan.stages.each
        }
        after = "goes on behind what was judged; --fail-on 0 goes through in any case"
        most = plan.config.fail_on
        self._patience = {name: Patience(name, after=after, most=most) for name in self._scores if most}
        self._held: list[tuple[Batch, list[_Row], bytes]] = []
        self._begun: asyncio.Event | None = None  # set when the first batch was done
        self._started: tuple[float, int] | None = None  # seconds and rows then

    def run(self) -> LabelReport:
        try:
            return super().run()
        except BrokenScorer as error:
            raise JobError(
                f"{error}; {self.safe()}. When the scorer is repaired, make the same call again to go on"
            ) from error

    def end(self) -> LabelReport:
        late = self._plan.late_notes()
        for note in late:
            tell(self._progress, note)
        report = self._report(late)
        self._journal.finish(self._plan.convert)
        return report

    def prepare(self) -> None:
        unseen = self._plan.batcher.whole_groups and self._journal.cursor == Cursor()
        if unseen and (note := self._plan.batcher.check_groups()):
            tell(self._progress, note)

    async def work(self) -> None:
        start = self._journal.cursor
        batches = self._plan.batcher.batches(start)
        if self._plan.earlier is not None:
            batches = self._plan.earlier.beside(batches, start)
        await in_order(
            ([batch] for batch in batches),
            self._judge,
            self._write,
            at_once=self._plan.at_once,
            ahead=self._plan.at_once,
            told=self.tell,
            rest=self._journal.rest,
        )

    async def _judge(self, batch: Batch) -> dict[str, Column]:
        samples = [item.sample for item in batch.items if item.sample is not None]
        if self._begun is None or self._plan.config.limit is None:
            self._begun = self._begun or asyncio.Event()
        else:  # what the whole input would take is told in the end: the first batch starts the scorers alone
            await self._begun.wait()
        try:
            return await self._plan.stages.judge(samples, batch.earlier)
        finally:
            self._begun.set()

    def _write(self, done: Sequence[tuple[Batch, dict[str, Column]]]) -> None:
        for batch, columns in done:
            written = {name: self._settled(name, batch, column) for name, column in columns.items()}
            rows: list[_Row] = [dict(zip(written, row, strict=True)) for row in zip(*written.values(), strict=True)]
            lines = [self._line(item, scores) for item, scores in zip(batch.items, rows, strict=True)]
            self._held.append((batch, rows, b"".join(lines)))
            for name, column in columns.items():
                self._watch(name, batch, column, written[name])
            failing = any(patience.failed_in_a_row for patience in self._patience.values())
            if not failing or len(self._held) > _MAX_HELD:
                self.release()

    def release(self) -> None:
        """Write what was held back: a scorer that is given up leaves nothing of the failures it ended with."""
        for batch, rows, lines in self._held:
            self._count(batch, rows)  # when all lines are there: the tally never counts one that is not
            self._journal.append(lines, batch.after)
            self._started = self._started or (self._journal.seconds, self._journal.tally.rows)
        self._held.clear()

    def _watch(self, name: str, batch: Batch, column: Column, written: Sequence[Written | None]) -> None:
        """Give up a scorer that judges nothing any more; what it was not asked says nothing of it."""
        patience = self._patience.get(name)
        if patience is None:
            return
        before = batch.earlier.get(name, [None] * len(column))
        scores = [score for item, score in zip(batch.items, written, strict=True) if item.sample is not None]
        judged = [
            score
            for score, now, was in zip(scores, column, before, strict=True)
            if score is not None and now is not was and score.reason != "bad_sample"
        ]
        enough = patience.failed_in_a_row + len(judged) >= _MAX_AT_FIRST
        first = enough and not batch.earlier and not any(score.of_the_row for score in judged)
        try:
            patience.watch(judged, first=first)
        except ValueError as error:
            raise JobError(
                f"{error}. When it is repaired, make the same call again; --fail-on 0 goes through in any case"
            ) from error

    def _settled(self, name: str, batch: Batch, column: Column) -> list[Written | None]:
        """Return what is written of each item; None where the scorer was not asked."""
        settle, given = self._scores[name].settle, iter(column)
        settled: list[Written | None] = []
        for item in batch.items:
            verdict = None if item.sample is None else next(given)
            unasked = item.sample is not None and verdict is None
            settled.append(None if unasked else settle(item, verdict))
        return settled

    def _line(self, item: Item, scores: _Row) -> bytes:
        stages = self._plan.stages
        if stages.named:
            settled = (name for name, one in scores.items() if one is not None and settles(one, stages.doubt))
            return self._lines.named_line(item, scores, next(settled, None))
        return self._lines.line(item, _only(scores))

    def _count(self, batch: Batch, rows: Sequence[_Row]) -> None:
        tally = self._journal.tally
        tally.rows += batch.rows
        for scores in rows:
            if not self._plan.stages.named:
                tally.add(_only(scores))
                continue
            for name, score in scores.items():
                tally.add_named(name, score)

    def snapshot(self, **pace: Any) -> Snapshot:
        return Snapshot(rows=self._journal.tally.rows, **self._journal.tally.statuses(), **pace)

    def _report(self, late: Sequence[str]) -> LabelReport:
        journal, tally, stages = self._journal, self._journal.tally, self._plan.stages
        done = self._share_of_all()
        scale = 1 / done if done else 0.0
        seconds, bound = self._seconds_of_all(scale)
        return LabelReport(
            output=self._plan.config.output,
            scorer=", ".join(stages.names if stages.named else [stages.each[0].bench.name]),
            fingerprint=", ".join(stage.bench.fingerprint for stage in stages.each),
            rows=tally.rows,
            samples=tally.count(),
            **tally.statuses(),
            counts=dict(tally.counts),
            seconds=journal.seconds,
            resumed_rows=journal.resumed_rows,
            rows_per_second=self.rows_per_second,
            notes=(*self._plan.notes, *late),
            by_scorer={stage.name: _report_of(stage, tally) for stage in stages.each} if stages.named else {},
            errors=dict(tally.errors),
            out_of_scope=tally.count("abstained", "out_of_scope"),
            cost=tally.cost,
            references=self._plan.references,
            whole_rows=round(journal.cursor.row * scale) if done else None,
            whole_counted=self._plan.source.count() is not None,
            whole_cost=_scaled(tally.cost, scale),
            whole_seconds=seconds,
            whole_bound=bound,
            groupwise=stages.groupwise,
        )

    def _share_of_all(self) -> float | None:
        """Return the share of the whole input that was read, if the call asked for the first rows alone."""
        if self._plan.config.limit is None:
            return None
        share = self._plan.source.fraction(self._journal.cursor)
        return share if share and share < 1 else None

    def _seconds_of_all(self, scale: float) -> tuple[float, bool]:
        """Return the wall time of the whole input, and whether it is an upper bound; start-up is counted once."""
        seconds, rows = self._journal.seconds, self._journal.tally.rows
        start, first = self._started or (seconds, rows)
        if rows == first:
            return seconds * scale, True
        return start + (rows * scale - first) * (seconds - start) / (rows - first), False


def _scaled(cost: Cost, scale: float) -> Cost:
    return Cost(
        seconds=cost.seconds * scale,
        prompt_tokens=round(cost.prompt_tokens * scale),
        completion_tokens=round(cost.completion_tokens * scale),
    )


def _report_of(stage: Stage, tally: Tally) -> ScorerReport:
    part = tally.parts.get(stage.name, Tally())
    return ScorerReport(
        scorer=stage.bench.name,
        fingerprint=stage.bench.fingerprint,
        **part.statuses(),
        not_asked=part.not_asked,
        out_of_scope=part.count("abstained", "out_of_scope"),
        cost=part.cost,
    )


def _only(scores: _Row) -> Written:
    (score,) = scores.values()
    assert score is not None, "the only scorer was not asked"
    return score
