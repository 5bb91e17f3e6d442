"""What a long command shows on standard error while it works: a bar on a terminal, lines elsewhere, and sentences."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self

from adjudge.cli.console import progress_bar
from adjudge.score_view import visible

if TYPE_CHECKING:
    from types import TracebackType

    from adjudge.io.jobs.report import JobSnapshot

_FIRST: Final = 10.0  # seconds between two lines, and before the first
_LATER: Final = 60.0  # the same from the second minute on


class Lines:
    """Lines on standard error where it is not a terminal, as in a log: every ten seconds, and later every minute."""

    def __init__(self) -> None:
        self._shown = not sys.stderr.isatty()
        self._began = self._last = time.monotonic()

    def line(self, text: str, *, now: bool = False) -> bool:
        """Print a line if it is time for one, and return whether it was."""
        moment = time.monotonic()
        pause = _FIRST if moment - self._began < _LATER else _LATER
        if not self._shown or not (now or moment - self._last >= pause):
            return False
        self._last = moment
        print(visible(text), file=sys.stderr, flush=True)
        return True


class Shown(Lines):
    """A bar with one row, shown while the `with` block runs; lines where there is no terminal."""

    def __init__(self, extra: str) -> None:
        super().__init__()
        self._bar = progress_bar(extra=extra)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Print one sentence."""
        self._bar.console.print(visible(text)) if sys.stderr.isatty() else print(visible(text), file=sys.stderr)


class JobBar(Shown):
    """The progress of a job over rows."""

    def __init__(self, name: str) -> None:
        super().__init__("counts")
        self._task = self._bar.add_task(name, total=None, counts="")

    def show(self, counts: str, share: float | None, seconds_left: float | None) -> None:
        """Show counts, the share of the job that is done, from 0 to 1, and the seconds left; None where unknown."""
        done = "" if share is None else f"{share:.1%}  "
        left = "" if seconds_left is None else f"  {duration(seconds_left)} left"
        self.line(f"{done}{counts}{left}")
        total = None if share is None else 1.0
        self._bar.update(self._task, completed=share, total=total, counts=counts)


class MadeBar(JobBar):
    """The progress of a job that makes things."""

    def __init__(self, name: str, made: str) -> None:
        super().__init__(name)
        self._made = made

    def update(self, snapshot: JobSnapshot) -> None:
        """Show the state of the job."""
        counts = f"{snapshot.rows} rows  {snapshot.rows_per_second:.0f} rows/s  {snapshot.made} {self._made}"
        dropped = sum(snapshot.dropped.values())
        counts = f"{counts}  {dropped} dropped" if dropped else counts
        self.show(counts, snapshot.fraction, snapshot.eta_seconds)


def duration(seconds: float) -> str:
    """Return a time as people say it: "42 s", "3 min", "5 h 20 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
