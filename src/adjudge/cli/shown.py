"""What a long command shows on standard error while it works: a bar on a terminal, lines elsewhere, and sentences.

Not covered: what the bar says; each command fills in its own.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self

from adjudge.cli.console import progress_bar, visible

if TYPE_CHECKING:
    from types import TracebackType


_FIRST: Final = 10.0  # seconds between two lines, and before the first
_LATER: Final = 60.0  # the same from the second minute on


class Lines:
    """Lines on standard error where it is no terminal, as in a log: every ten seconds, and later every minute."""

    def __init__(self) -> None:
        self._shown = not sys.stderr.isatty()
        self._began = self._last = time.monotonic()

    def line(self, text: str, *, now: bool = False) -> bool:
        """Print a line if it is time for one, and return whether it was.

        Args:
            text: how far it is.
            now: print it in any case.
        """
        moment = time.monotonic()
        pause = _FIRST if moment - self._began < _LATER else _LATER
        if not self._shown or not (now or moment - self._last >= pause):
            return False
        self._last = moment
        print(visible(text), file=sys.stderr, flush=True)
        return True


class Shown(Lines):
    """A bar with one row, shown while the `with` block runs; lines where there is no terminal.

    Args:
        extra: the name of the row's text.
    """

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
    """The progress of a job over rows.

    Args:
        name: what the bar calls the job.
    """

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


def duration(seconds: float) -> str:
    """Return a time as people say it: "42 s", "3 min", "5 h 20 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
