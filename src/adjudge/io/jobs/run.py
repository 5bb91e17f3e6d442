"""The life of a job, whatever it does with rows: what it says first, its work, made safe however it ends, its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from adjudge.io.errors import JobError, JobStopped
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.journal import Journal, Tally
from adjudge.io.jobs.ordered import run_to_end
from adjudge.io.jobs.report import Pace, Watcher, tell

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
