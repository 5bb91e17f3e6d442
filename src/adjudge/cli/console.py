"""What the commands print: text that is safe on a terminal, tables, JSON and progress bars.

Model text goes through `visible` first: it may hold terminal escapes, and nothing it holds is read as markup.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import tyro

from adjudge.score_view import plain, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

JsonFlag = Annotated[bool, tyro.conf.arg(name="json", help="Print one line of JSON, for programs.")]
"""The type of the field behind `--json`, in every command."""

_PIPE_WIDTH: Final = 110  # columns of a table that no terminal shows
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
