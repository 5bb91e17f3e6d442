"""What the commands print: text that is safe on a terminal, tables, JSON, and how far a long command is.

Model text goes through `visible` first: it may hold terminal escapes, and nothing it holds is read as markup.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Self

import tyro

from adjudge.score_view import plain, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from adjudge.io.jobs.report import JobSnapshot

JsonFlag = Annotated[bool, tyro.conf.arg(name="json", help="Print one line of JSON, for programs.")]
"""The type of the field behind `--json`, in every command."""

_PIPE_WIDTH: Final = 110  # columns of a table that no terminal shows
_FIRST: Final = 10.0  # seconds between two lines, and before the first
_LATER: Final = 60.0  # the same from the second minute on
_answers: list[IO[str]] = []  # standard output, while `json_alone` keeps it for JSON


def print_json(data: Mapping[str, Any]) -> None:
    """Print plain data as one line of ASCII JSON on standard output, also inside `json_alone`."""
    print(json.dumps(data, allow_nan=False), file=_answers[-1] if _answers else sys.stdout, flush=True)


@contextlib.contextmanager
def json_alone() -> Iterator[None]:
    """Send what is printed to standard error while the block runs, such as by a user's module; but for `print_json`."""
    _answers.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _answers.pop()


def console(stream: IO[str] | None = None) -> Console:
    """Return a console that reads no markup in what it prints."""
    from rich.console import Console

    target = sys.stdout if stream is None else stream
    width = None if target.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(file=target, width=width, markup=False, highlight=False, emoji=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table on standard output; numbers are set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, show_edge=False)
    for index, name in enumerate(columns):
        numeric = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=name == "name")
    for row in cells:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, one to a line, on standard output; what is empty is left out."""
    shown = {visible(name): value for name, value in fields.items() if value not in ("", (), {}, [])}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{name:<{width}}  {plain(value, 400)}")


def progress_bar(extra: str = "") -> Progress:
    """Return a progress bar on standard error; it shows nothing when that is not a terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    tail = [TextColumn(f"{{task.fields[{extra}]}}")] if extra else []
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        *tail,
        TimeRemainingColumn(),
        console=console(sys.stderr),
        disable=not sys.stderr.isatty(),
    )


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

    def __exit__(self, *exc_info: object) -> None:
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
