"""Rows of an input with a prompt, a good response, a bad one, a reference: what probes and attacks read alike.

A response may be a text, chat turns that end with the assistant's, or a list of texts, of which the first counts.
Where a row has no prompt, the turns before the response are it.

Not covered: what a row must have (`rows_read`, `adjudge.evals.attacks.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from adjudge.evals.probes.shipped import place_of
from adjudge.evals.results.config import EvalConfig
from adjudge.evals.results.input_facts import input_facts
from adjudge.io.columns import GUESSES, MISSING, Column, nested_names, unknown_column
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.protocol import Message, content_text

TRIED: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": GUESSES["prompt"],
    "good": ("good", "good_response", "chosen"),
    "bad": ("bad", "bad_response", "wrong_response", "rejected"),
    "reference": GUESSES["reference"],
    "id": GUESSES["id"],
}
"""Columns that are tried for each role where none is named."""

_ROW_BYTES: Final = 64 << 20
_PEEKED: Final = 100  # rows that show which columns there are
_NAMED: Final = 5  # unreadable rows that are named one by one


class Named(Protocol):
    """A row with an id."""

    @property
    def id(self) -> str:
        """Names it."""
        ...


T = TypeVar("T", bound=Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A row as the file has it.

    Attributes:
        data: all of it.
        number: its place, from 0.
        columns: which column is what, by role.
        extra: further columns that are there.
    """

    data: Mapping[str, Any]
    number: int
    columns: Mapping[str, Column]
    extra: Mapping[str, Any]

    def value(self, role: str) -> Any:
        """Return the cell of a role; None where there is no such column, or nothing in it."""
        found = self.columns[role].of(self.data) if role in self.columns else None
        return None if found is MISSING or found == "" else found

    @property
    def id(self) -> str:
        """Its id; without one, its number."""
        identity = self.value("id")
        return str(self.number if identity is None else identity)

    def response(self, role: str) -> tuple[str, Sequence[Message]]:
        """Return the response of a role, and the turns before it.

        Raises:
            ValueError: the cell holds none.
        """
        column, value = self.columns[role], self.columns[role].of(self.data)
        if isinstance(value, str):
            return value, ()
        if _is_chat(value) and value[-1].get("role") == "assistant":
            return content_text(value[-1]["content"]), value[:-1]
        if isinstance(value, list) and value and isinstance(value[0], str):
            return value[0], ()
        raise ValueError(
            f"column {column.name!r} holds a {type(value).__name__}; give text, or chat turns that end with the "
            "assistant's"
        )

    def prompt(self, before: Sequence[Message]) -> str | Sequence[Message]:
        """Return the prompt: text, or chat turns; without one, the turns before the response.

        Raises:
            ValueError: the cell holds none.
        """
        found = self.value("prompt")
        if found is None:
            return before or ""
        if not isinstance(found, str) and not _is_chat(found):
            name = self.columns["prompt"].name
            raise ValueError(f"column {name!r} holds a {type(found).__name__}; give text or chat turns")
        return found  # type: ignore[no-any-return]  # a text, or a list of turns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows(Generic[T]):
    """What was read.

    Attributes:
        rows: what was made of the rows.
        source: facts that name the input again.
        unreadable: rows that could not be used.
        notes: which columns were guessed, and what is wrong with unreadable rows.
    """

    rows: tuple[T, ...]
    source: Mapping[str, Any]
    unreadable: int
    notes: tuple[str, ...]


def read_rows(
    config: EvalConfig, tried: Mapping[str, tuple[str, ...]], extra: Sequence[str], make: Callable[[FileRow], T]
) -> ReadRows[T]:
    """Read an input.

    Args:
        config: names the input, and a column for each role where "ROLE_column" is not empty.
        tried: names that are tried for each role where none is given.
        extra: further columns.
        make: what becomes of a row; it raises `ValueError` for one that is of no use.

    Raises:
        ValueError: there is no such input or column, no row is of use, or two have one id.
    """
    source = open_source(
        place_of(config.input), limit=_ROW_BYTES, split=config.split, subset=config.subset, revision=config.revision
    )
    data: list[tuple[int, Mapping[str, Any]]] = []
    problems: list[str] = []
    count = 0
    for row in source.rows(Cursor()):
        count += 1
        if row.data is None:
            problems.append(f"row {row.index}: {row.error}")
        else:
            data.append((row.index, row.data))
        if count == config.limit:
            break
    columns, notes = _columns(config, tried, extra, [row for _, row in data[:_PEEKED]])
    found: dict[str, T] = {}
    for number, row_data in data:
        more = {name: cell for name in extra if (cell := Column(name).of(row_data)) is not MISSING}
        try:
            made = make(FileRow(data=row_data, number=number, columns=columns, extra=more))
        except ValueError as error:
            problems.append(f"row {number}: {error}")
            continue
        if made.id in found:
            raise ValueError(f"two rows have the id {made.id!r}, the second is row {number}; give each its own id")
        found[made.id] = made
    if not found:
        raise ValueError(f"{config.input} holds no row that can be used: {problems[0] if problems else 'it is empty'}")
    return ReadRows(
        rows=tuple(found.values()),
        source={
            **input_facts(source, count),
            "name": config.input,
            "columns": {role: one.name for role, one in columns.items()},
        },
        unreadable=len(problems),
        notes=(*notes, *_said(problems)),
    )


def _columns(
    config: EvalConfig, tried: Mapping[str, tuple[str, ...]], extra: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Column], list[str]]:
    known = [*dict.fromkeys(name for row in rows for name in row), *nested_names(rows)]
    given = {role: str(getattr(config, f"{role}_column")) for role in tried}
    flags = {f"--{role}-column": name for role, name in given.items() if name}
    for flag, name in [*flags.items(), *(("--extra-column", name) for name in extra)]:
        if rows and name not in known and all(Column(name).of(row) is MISSING for row in rows):
            raise ValueError(unknown_column(name, known, flag))
    found: dict[str, Column] = {}
    notes: list[str] = []
    for role, name in given.items():
        guess = next((each for each in tried[role] if each in known and each not in given.values()), "")
        if name or guess:
            found[role] = Column(name or guess)
        if guess and not name and guess != role:
            notes.append(f"{role}: column {guess!r} (guessed)")
    return found, notes


def _said(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        yield f"{len(problems)} rows cannot be read: {'; '.join(problems[:_NAMED])}{more}"


def _is_chat(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(turn, Mapping) and "role" in turn and "content" in turn for turn in value)
    )
