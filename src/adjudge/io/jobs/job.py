"""The job over rows: everything around a maker.

It reads the input, cuts it into units, has several made at once, checks and writes what was made in the order of
the input, counts, and goes on after any interruption where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from adjudge.io.errors import JobError, JobStopped
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.formats import Columns, convert
from adjudge.io.jobs.groups import Piece, RowSource
from adjudge.io.jobs.journal import Journal, Tally
from adjudge.io.jobs.lines import ANY, TURNS, Lines, joined, place_of
from adjudge.io.jobs.maker import Maker, Prepares, Unit
from adjudge.io.jobs.opening import Plan, make_plan
from adjudge.io.jobs.ordered import in_order, run_to_end
from adjudge.io.jobs.report import JobProgress, JobReport, JobSnapshot, JobTally, Pace, Watcher, tell
from adjudge.io.jobs.row_maker import RowMaker
from adjudge.io.row import Cursor

_CHUNK: Final = 64  # units handed over by the reading thread at once: a hand-over takes 0.1 ms
_AHEAD: Final = 4  # times `in_flight`: no more is read while so many units wait for the first of them
_AHEAD_BYTES: Final = 64 << 20
_MAX_COLUMNS: Final = 5_000  # kept ones, of Parquet and datasets: rows whose keys are data have one more each
_KEPT: Final = "what was made before is kept beside the output, and the same call goes on from there"


def run_job(
    config: JobConfig,
    maker: Maker | RowMaker[Any],
    *,
    group_column: str = "",
    source: RowSource | None = None,
    progress: JobProgress | None = None,
) -> JobReport:
    """Make rows of rows, or go on with a job that was interrupted.

    Works from any thread, inside a running event loop too.  A maker with `async def aclose()`, or else with
    `close()`, is closed at the end, however the job ends.

    Args:
        config: input, output and options.
        maker: what makes the rows.
        group_column: the column whose value the rows of a group share, for a maker with `grouped`; text, a number, or
            chat turns.  A row without one is dropped as `no_group`.  "" makes each row a unit.
        source: rows to read in place of `config.input`.
        progress: who is told how the input was understood and how far the job is.

    Returns:
        The counts, exact over all runs of the job.

    Raises:
        ValueError: a mistake in the call: unknown column, no such file, an output that exists, rows of a group that
            do not stand together, a partial output of another job.  No work was done.
        JobError: the job could not go on; the message says how it can.
        JobStopped: Ctrl-C; the same call goes on.
    """
    maker = cast("Maker", maker)  # a class variable is not a property, says the typing specification
    closer = contextlib.AsyncExitStack()
    closer.push_async_callback(_close, maker)
    try:
        plan = make_plan(config, maker, group_column, source)
        with contextlib.closing(
            Journal(Path(config.output), plan.identity, JobTally(), restart=config.restart, overwrite=config.overwrite)
        ) as journal:
            return _Job(plan, journal, progress, closer).run()
    finally:
        run_to_end(closer.aclose())  # nothing, if it was closed in the event loop in which it worked


async def _close(maker: Maker) -> None:
    close = getattr(maker, "aclose", None) or getattr(maker, "close", None)
    if callable(close) and inspect.isawaitable(result := close()):
        await result


T = TypeVar("T", bound=Tally)
S = TypeVar("S")
R = TypeVar("R")


class JobRun(ABC, Generic[T, S, R]):
    """One run of a job.

    Args:
        source: the rows.
        limit: how many of them are read; None reads all.
        identity: of the job; `input` is that of the source before it was read.
        notes: how the input was understood.
        journal: what is done.
        progress: who watches.
    """

    did: ClassVar[str] = "did"
    done: ClassVar[str] = "done"

    def __init__(
        self,
        source: RowSource,
        limit: int | None,
        identity: Mapping[str, Any],
        notes: Sequence[str],
        journal: Journal[T],
        progress: Watcher[S] | None,
    ) -> None:
        self._source, self._identity, self._notes = source, identity, notes
        self._journal, self._progress = journal, progress
        self._pace = Pace(source, limit, journal.cursor)

    @abstractmethod
    def prepare(self) -> None:
        """Look at the whole input, where that is needed before the first row."""

    @abstractmethod
    async def work(self) -> None:
        """Do what is left."""

    def release(self) -> None:
        """Write what was held back until the work ended well."""

    @abstractmethod
    def end(self) -> R:
        """Put the output in its place, and return the report."""

    @abstractmethod
    def snapshot(self, **pace: Any) -> S:
        """Return how far the job is; `pace` is `rows_per_second`, `fraction` and `eta_seconds`."""

    def run(self) -> R:
        """Do what is left, and return the report."""
        for note in self._notes:
            tell(self._progress, note)
        if self._journal.resumed_rows:
            tell(self._progress, f"going on behind {self._journal.resumed_rows} rows that an earlier run {self.did}")
        try:
            if not self._journal.done:
                self._work()
            return self.end()
        except KeyboardInterrupt:
            raise JobStopped(f"stopped; {self.safe()}. Make the same call again to go on") from None

    def _work(self) -> None:
        self.prepare()
        try:
            run_to_end(self.work())
            self.release()
        except BaseException:
            self._journal.save()
            raise
        if self._source.identity() != self._identity["input"]:
            raise JobError(
                f"{self._source.name} changed while it was read, so old and new rows may be mixed; "
                "begin anew with --restart"
            )
        self._journal.commit(done=True)

    def safe(self) -> str:
        """Say how much no interruption can take away."""
        return f"{self._journal.safe_rows} rows are {self.done} and kept beside the output"

    @property
    def rows_per_second(self) -> float:
        """The rate of this run, in rows of the input."""
        return self._pace.per_second(self._journal.tally.rows - self._journal.resumed_rows)

    def tell(self) -> None:
        """Tell who watches how far the job is."""
        if self._progress is not None:
            share = self._pace.share(self._journal.cursor)
            left = self._pace.seconds_left(share)
            self._progress.update(self.snapshot(rows_per_second=self.rows_per_second, fraction=share, eta_seconds=left))


class _Job(JobRun[JobTally, JobSnapshot, JobReport]):
    def __init__(
        self,
        plan: Plan,
        journal: Journal[JobTally],
        progress: JobProgress | None,
        closer: contextlib.AsyncExitStack[bool | None],
    ) -> None:
        super().__init__(plan.source, plan.config.limit, plan.identity, plan.notes, journal, progress)
        self._plan = plan
        self._closer = closer

    def end(self) -> JobReport:
        report = self._report()
        self._journal.finish(self._convert(), lambda: self._write_card(report))
        return report

    def prepare(self) -> None:
        if self._journal.cursor == Cursor():
            self._plan.reader.check_groups()
        maker = self._plan.maker
        if not isinstance(maker, Prepares):
            return
        try:
            maker.prepare(self._units())
        except (ValueError, JobError):
            raise
        except Exception as error:  # the boundary: whatever a maker raises is reported under its name
            raise JobError(f"{self._plan.maker.name} failed in `prepare`: {type(error).__name__}: {error}") from error

    def _units(self) -> Iterator[Unit]:
        tell(self._progress, "looking at the whole input first")  # not before the maker does
        yield from self._plan.reader.units()

    async def work(self) -> None:
        at_once = self._plan.config.in_flight
        try:
            await in_order(
                self._plan.reader.chunks(self._journal.cursor, _CHUNK),
                self._make,
                self._write,
                at_once=at_once,
                ahead=_AHEAD * at_once,
                size=lambda piece: piece.size,
                ahead_bytes=_AHEAD_BYTES,
                told=self.tell,
                rest=self._journal.rest,
            )
        finally:
            await self._closer.aclose()

    async def _make(self, piece: Piece) -> Lines:
        if piece.unit is None:
            return Lines()
        try:
            made: object = await self._plan.maker.make(piece.unit)
        except JobError as error:
            raise JobError(f"{error}; {_KEPT}") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self._failure(piece, error) from error
        except (Exception, SystemExit) as error:  # the boundary: whatever a maker raises is reported under its name
            raise self._failure(piece, error) from error
        return self._plan.writer.lines(piece.unit, made)

    def _failure(self, piece: Piece, error: BaseException) -> JobError:
        where = f" at {place_of(piece.unit)}" if piece.unit is not None else ""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return JobError(f"{self._plan.maker.name} failed{where}: {what}; {_KEPT}")

    def _write(self, done: Sequence[tuple[Piece, Lines]]) -> None:
        tally = self._journal.tally
        for piece, lines in done:
            kinds = self._kinds(piece, lines)
            tally.rows += piece.rows
            tally.dropped.update(piece.dropped)
            tally.add(lines)
            tally.kinds.update(kinds)
            self._journal.append(lines.text, piece.after)

    def _kinds(self, piece: Piece, lines: Lines) -> dict[str, str]:
        """Return the kinds of the columns that these lines have, as wide as all lines so far need them."""
        plan, before = self._plan, self._journal.tally.kinds
        kinds: dict[str, str] = {}
        for name, kind in lines.kinds:
            kinds[name] = joined(kinds.get(name, before.get(name, "")), kind)
            if kinds[name] == ANY and plan.fields.get(name) == "chat" and piece.unit is not None:
                what = {"text": "text", TURNS: "chat turns"}.get(kind, "chat turns of more than a role and a text")
                raise JobError(
                    f"{plan.maker.name} made the field {name!r} of {place_of(piece.unit)} as {what}, and "
                    f"{plan.config.output} cannot hold that beside what was made before: there it is text in all "
                    "rows, or turns of a role and a text in all rows. Write .jsonl, which holds both"
                )
        if len(before) + len(kinds) > _MAX_COLUMNS and len(before | kinds) > _MAX_COLUMNS:
            raise JobError(
                f"the rows have more than {_MAX_COLUMNS} different columns, and {plan.config.output} would have as "
                "many; write .jsonl, in which each row has its own"
            )
        return kinds

    def _convert(self) -> Callable[[Path, Path], None] | None:
        plan = self._plan
        if plan.written == "jsonl":
            return None
        columns = Columns(plan.fields, self._journal.tally.kinds)
        return lambda source, target: convert(source, target, plan.written, columns.schema, columns.flat)

    def _write_card(self, report: JobReport) -> None:
        from adjudge.io.jobs.card import write_job_card

        write_job_card(report, self._plan.config, self._plan.maker)

    def snapshot(self, **pace: Any) -> JobSnapshot:
        tally = self._journal.tally
        return JobSnapshot(rows=tally.rows, made=tally.made, dropped=dict(tally.dropped), **pace)

    def _report(self) -> JobReport:
        journal, tally = self._journal, self._journal.tally
        return JobReport(
            output=self._plan.config.output,
            maker=self._plan.maker.name,
            fingerprint=self._plan.maker.fingerprint,
            rows=tally.rows,
            made=tally.made,
            dropped={reason: tally.dropped[reason] for reason in sorted(tally.dropped) if tally.dropped[reason]},
            counts={name: tally.counts[name] for name in sorted(tally.counts)},
            cost=tally.cost,
            seconds=journal.seconds,
            resumed_rows=journal.resumed_rows,
            notes=self._plan.notes,
        )
