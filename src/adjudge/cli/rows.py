"""The rows that `adjudge check` and `adjudge compare` read: any file, folder or dataset that `adjudge label` reads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from adjudge.data_pipelines.labeling.samples import Item, Sampler
from adjudge.io.columns import (
    GUESSES,
    MISSING,
    Column,
    Wanted,
    map_columns,
    nested_names,
    unknown_column,
)
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source, open_source
from adjudge.protocol import Sample

_ROW_BYTES: Final = 16 << 20
_PEEKED_ROWS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRow:
    """A row of which only the reference matters.

    Attributes:
        id: the row's id, or its number from 0.
        prompt: its prompt as text, or "".
        reference: its reference, or None.
        error: why the row cannot be read, else "".
    """

    id: str
    prompt: str
    reference: Any
    error: str = ""


def read_golds(path: str, *, reference_column: str = "", prompt_column: str = "", id_column: str = "") -> list[GoldRow]:
    """Return the references of a file.

    Raises:
        ValueError: there is no such file or column.
    """
    source, names, peeked = _open(path)
    known = [*names, *nested_names(peeked)]
    reference = reference_column or next((name for name in GUESSES["reference"] if name in known), "")
    if not reference:
        raise ValueError(
            f"no column of {path} looks like a reference (tried {', '.join(GUESSES['reference'])}); name it with "
            f"--reference-column. The columns are: {', '.join(known) or 'none'}"
        )
    if reference not in known and all(Column(reference).of(row) is MISSING for row in peeked):
        raise ValueError(unknown_column(reference, known, "--reference-column"))
    wanted = Wanted(prompt=prompt_column, responses=(reference,), reference=reference, id=id_column)
    columns, _ = map_columns(wanted, names, peeked, closed=False)
    return [_gold_row(row, reference, columns.prompt, columns.id) for row in source.rows(Cursor())]


def read_items(path: str, wanted: Wanted, validate: Callable[[Sample], None]) -> tuple[Iterator[Item], list[str]]:
    """Return the samples of a file, read as they are asked for, and what was guessed about its columns.

    Args:
        path: the file, folder or dataset.
        wanted: the columns that were named.
        validate: raises `ValueError` for a sample that cannot be judged; its item then has no sample.

    Raises:
        ValueError: there is no such file or column.
    """
    source, names, peeked = _open(path)
    columns, notes = map_columns(wanted, names, peeked, closed=False)
    sampler = Sampler(columns=columns, validate=validate)
    items = (item for row in source.rows(Cursor()) for item in sampler.items(row, sampler.group_of(row)))
    return items, notes


def _open(path: str) -> tuple[Source, list[str], list[Any]]:
    source = open_source(path, limit=_ROW_BYTES)
    peeked = [row.data for row in itertools.islice(source.rows(Cursor()), _PEEKED_ROWS) if row.data is not None]
    if not peeked:
        raise ValueError(f"{path} holds no rows that can be read; is it the format that its name says?")
    schema = source.columns()
    return source, schema if schema is not None else list(dict.fromkeys(name for row in peeked for name in row)), peeked


def _gold_row(row: Row, reference: str, prompt: Column | None, row_id: Column | None) -> GoldRow:
    if row.data is None:
        return GoldRow(id=str(row.index), prompt="", reference=None, error=row.error)
    gold = Column(reference).of(row.data)
    name = row_id.of(row.data) if row_id is not None else row.index
    asked = prompt.of(row.data) if prompt is not None else ""
    return GoldRow(
        id=str(row.index if name in (MISSING, None, "") else name),
        prompt=asked if isinstance(asked, str) else "",
        reference=None if gold is MISSING or gold == "" else gold,
    )
