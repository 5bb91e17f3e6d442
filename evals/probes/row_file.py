"""Rows of an input with a prompt, a good response, a bad one, a reference: what probes and attacks read alike.

A response may be a text, chat turns that end with the assistant's (a whole chat, or a transcript of HH, too), or a list
of these, of which the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from adjudge.evals.reports.config import EvalConfig, input_facts
from adjudge.io.columns import GUESSES, MISSING, Choice, Column
from adjudge.io.preferences import turns_of_transcript
from adjudge.io.row import Cursor
from adjudge.io.values import Text, exchange, is_chat, plain, prompt_of, text_or_chat, turns_of
from adjudge.protocol import content_text

SHIPPED: Final = "rows:"
"""How their names begin."""

_FOLDER: Final = Path(__file__).parent / "rows"


def shipped_names() -> list[str]:
    """Return the names of the sets, without the beginning."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def place_of(name: str) -> str:
    """Return where an input lies: the file behind "rows:NAME", or the name itself."""
    if not name.startswith(SHIPPED):
        return name
    if name.removeprefix(SHIPPED) not in shipped_names():
        raise ValueError(
            f"there are no shipped rows {name!r}; there are {', '.join(map(SHIPPED.__add__, shipped_names()))}"
        )
    return str(_FOLDER / f"{name.removeprefix(SHIPPED)}.json")


TRIED: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": GUESSES["prompt"],
    "good": ("good", "good_response", "chosen"),
    "bad": ("bad", "bad_response", "wrong_response", "rejected"),
    "reference": GUESSES["reference"],
    "id": GUESSES["id"],
}
"""Columns that are tried for each role where none is named."""


@dataclass(frozen=True, kw_only=True)
class RowsConfig(EvalConfig):
    """Options of an evaluation of such rows: what their columns are called."""

    prompt_column: str = ""
    """Column of the prompts: text or chat turns. Of every column: a.b.c reaches into
    nested objects, and where none is named, the usual names are tried."""

    good_column: str = ""
    """Column of responses that do the task."""

    bad_column: str = ""
    """Column of responses that do not."""

    reference_column: str = ""
    """Column of the references: what the scorer checks against."""

    id_column: str = ""
    """Column of the ids; without one, rows are named by their number, from 0."""

    extra_column: tuple[str, ...] = ()
    """A further column that the scorer asks for by name."""


_PEEKED: Final = 100  # rows that show which columns there are
_NAMED: Final = 5  # unreadable rows that are named one by one


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A row as the file has it, with its place from 0 and which column is what by role."""

    data: Mapping[str, Any]
    number: int
    columns: Mapping[str, Column]
    extra: Mapping[str, Any]

    def value(self, role: str) -> Any:
        """Return the cell of a role; None where there is no such column, or nothing in it."""
        cell = self.columns[role].cell(self.data) if role in self.columns else None
        return None if cell == "" else cell

    @property
    def id(self) -> str:
        """Its id; without one, its number."""
        identity = self.value("id")
        return str(self.number if identity is None else identity)

    def exchange(self, role: str) -> tuple[Text, str | None]:
        """Return the prompt, and the response of a role as text, None where there is none.

        A response of several turns is its last one; those before belong to the prompt.
        """
        prompt, said = self.value("prompt"), self.value(role)
        asked = "" if prompt is None else prompt_of(prompt, self.columns["prompt"].name)
        if said is None:
            return asked, None
        said, column = plain(said), self.columns[role].name
        if isinstance(said, list) and said and not is_chat(said):
            said = said[0]
        if isinstance(said, str) and not asked and said.lstrip().startswith("Human:"):
            said = turns_of_transcript(said)
        asked, said = exchange(asked, text_or_chat(said, "response", column))
        if isinstance(said, str):
            return asked, said
        *before, last = said
        if last.get("role") != "assistant":
            raise ValueError(
                f"the response in {column!r} ends with a turn of {last.get('role')!r}, not the assistant's"
            )
        return [*turns_of(asked), *before] if before else asked, content_text(last.get("content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows(Generic[T]):
    """What was read; the notes say which columns were guessed, and what is wrong with unreadable rows."""

    rows: tuple[T, ...]
    source: Mapping[str, Any]
    unreadable: int
    notes: tuple[str, ...]


def read_rows(config: RowsConfig, tried: Mapping[str, tuple[str, ...]], make: Callable[[FileRow], T]) -> ReadRows[T]:
    """Read an input; of each role, the names in `tried` are tried where none is given.

    `make` says what becomes of a row, and raises `ValueError` for one that is of no use.
    """
    place = place_of(config.input)
    source = config.opened("" if place == config.input else place)
    data: list[tuple[int, Mapping[str, Any]]] = []
    problems: list[str] = []
    count = 0
    for row in source.rows(Cursor()):
        count += 1
        cells = row.cells()
        if cells is None:
            problems.append(f"row {row.index}: {row.error}")
        else:
            data.append((row.index, cells))
        if count == config.limit:
            break
    columns, notes = _columns(config, tried, [row for _, row in data[:_PEEKED]])
    by_id: dict[str, T] = {}
    for number, row_data in data:
        more = {name: cell for name in config.extra_column if (cell := Column(name).of(row_data)) is not MISSING}
        file_row = FileRow(data=row_data, number=number, columns=columns, extra=more)
        try:
            made = make(file_row)
        except ValueError as error:
            problems.append(f"row {number}: {error}")
            continue
        if file_row.id in by_id:
            raise ValueError(f"two rows have the id {file_row.id!r}, the second is row {number}; give each its own id")
        by_id[file_row.id] = made
    if not by_id:
        raise ValueError(f"{config.input} holds no row that can be used: {problems[0] if problems else 'it is empty'}")
    if problems:
        rest = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        notes.append(f"{len(problems)} rows cannot be read: {'; '.join(problems[:_NAMED])}{rest}")
    return ReadRows(
        rows=tuple(by_id.values()),
        source={
            **input_facts(source, count),
            "name": config.input,
            "columns": {role: one.name for role, one in columns.items()},
        },
        unreadable=len(problems),
        notes=tuple(notes),
    )


def _columns(
    config: RowsConfig, tried: Mapping[str, tuple[str, ...]], rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Column], list[str]]:
    given = {role: str(getattr(config, f"{role}_column")) for role in tried}
    choice = Choice(list(dict.fromkeys(name for row in rows for name in row)), rows, closed=bool(rows))
    for role, name in [*given.items(), *(("extra", name) for name in config.extra_column)]:
        if name:
            choice.given(role, name)
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for role, name in given.items():
        guess = next((each for each in tried[role] if each in choice.known and each not in given.values()), "")
        if name or guess:
            columns[role] = Column(name or guess)
        if guess and not name and guess != role:
            notes.append(f"{role}: column {guess!r} (guessed)")
    return columns, notes
