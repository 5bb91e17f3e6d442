"""From what a maker made to lines of JSON, checked field by field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge import wire
from adjudge.io.errors import JobError
from adjudge.io.jobs.kinds import Unfit, fitted, kind_of, known_kinds, shown
from adjudge.io.jobs.maker import Made, Unit
from adjudge.protocol import NO_COST, Cost

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What one unit came to, ready to write.

    Attributes:
        text: one line for each row.
        rows: how many.
        dropped: see `Made`.
        counts: see `Made`.
        cost: see `Made`.
        kinds: what the columns whose kind only the rows tell hold here (see `kinds.kind_of`).
    """

    text: bytes = b""
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    cost: Cost = NO_COST
    kinds: tuple[tuple[str, str], ...] = ()


class LineWriter:
    """Checks what a maker returns and writes it as lines.

    Args:
        maker: its name, for errors.
        fields: its columns.
        keeps_columns: whether its rows also hold columns of the input.
        tells_kinds: whether somebody must know what the columns held whose kind only the rows tell.

    Raises:
        ValueError: there is no such kind of field.
    """

    def __init__(self, maker: str, fields: Mapping[str, str], *, keeps_columns: bool, tells_kinds: bool) -> None:
        for name, kind in fields.items():
            if kind not in known_kinds():
                raise ValueError(
                    f"{maker} says that its field {name!r} is a {kind!r}; use one of {', '.join(known_kinds())}"
                )
        self._maker = maker
        self._fields = dict(fields)
        self._keeps_columns = keeps_columns
        self._tells_kinds = tells_kinds
        self._chats = [name for name, kind in fields.items() if kind == "chat"]

    def lines(self, unit: Unit, made: object) -> Lines:
        """Return the lines of what was made of a unit.

        Raises:
            JobError: it is not what the maker promised; the message names the maker, the unit and the field.
        """
        if not isinstance(made, Made):
            raise self._fault(unit, f"returned {shown(made)}; it must return a Made")
        self._check_numbers(unit, made)
        texts: list[bytes] = []
        kinds: list[tuple[str, str]] = []
        for row in made.rows:
            record = self._record(unit, row)
            if self._tells_kinds:
                kinds += [(name, kind_of(record[name])) for name in self._chats]
                kinds += [(name, kind_of(value)) for name, value in record.items() if name not in self._fields]
            texts.append(json_line(record))
        return Lines(
            text=b"".join(texts),
            rows=len(texts),
            dropped=made.dropped,
            counts=made.counts,
            cost=made.cost,
            kinds=tuple(dict.fromkeys(kinds)),
        )

    def _record(self, unit: Unit, row: object) -> dict[str, Any]:
        if not isinstance(row, Mapping):
            raise self._fault(unit, f"made {shown(row)}; a row must be a mapping")
        record: dict[str, Any] = {}
        for name, kind in self._fields.items():
            if name not in row:
                raise self._fault(unit, f"made a row without the field {name!r}; None stands for no value")
            try:
                record[name] = fitted(row[name], kind)
            except (Unfit, RecursionError) as error:
                what = str(error) or "nested without end"
                raise self._fault(unit, f"made a row whose field {name!r} is {what}, and not {_A[kind]}") from error
        if len(row) > len(record):
            others = [name for name in row if name not in record]
            if not self._keeps_columns:
                raise self._fault(unit, f"made a row with the field {others[0]!r}, which is none of its fields")
            record |= {name: self._kept(unit, name, row[name]) for name in others}
            record = {name: record[name] for name in row}
        return record

    def _kept(self, unit: Unit, name: object, value: Any) -> Any:
        if not isinstance(name, str):
            raise self._fault(unit, f"made a row with the field {name!r}, which is no text")
        try:
            return wire.encode(value, name)
        except (TypeError, RecursionError) as error:
            raise self._fault(unit, f"kept the column {name!r}, which JSON cannot hold: {error}") from error

    def _check_numbers(self, unit: Unit, made: Made) -> None:
        for reason, times in made.dropped.items():
            if not isinstance(reason, str) or isinstance(times, bool) or not isinstance(times, int) or times < 0:
                raise self._fault(unit, f"dropped {reason!r} {times!r} times; need a text and a whole number")
        for name, number in made.counts.items():
            fine = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
            if not isinstance(name, str) or not fine:
                raise self._fault(unit, f"counted {name!r} as {number!r}; need a text and a finite number")
        if not isinstance(made.cost, Cost) or not math.isfinite(made.cost.seconds):
            raise self._fault(unit, f"gave the cost {made.cost!r}; need a Cost of finite seconds")

    def _fault(self, unit: Unit, what: str) -> JobError:
        return JobError(f"{self._maker} {what} ({place_of(unit)}); this is a fault of that maker, so report it there")


def place_of(unit: Unit) -> str:
    """Return how an error names a unit: its rows, numbered from 0, and its group."""
    last = unit.first + len(unit.rows) - 1
    rows = f"row {unit.first}" if last == unit.first else f"rows {unit.first} to {last}"
    return f"{rows}, group {unit.group[:80]!r}" if unit.group else rows


def json_line(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of UTF-8."""
    return utf8_line(_ENCODE(record))


def utf8_line(text: str) -> bytes:
    """Return JSON text as one line of UTF-8; a lone surrogate, which no UTF-8 holds, survives as an escape."""
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        return f"{_LONE_SURROGATE.sub(_escape, text)}\n".encode()


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


_A: Final = {
    "text": "text",
    "number": "a number",
    "whole": "a whole number",
    "flag": "true or false",
    "texts": "a list of texts",
    "numbers": "a list of numbers",
    "wholes": "a list of whole numbers",
    "flags": "a list of true and false",
    "chat": "text or chat turns",
    "any": "plain JSON data",
}
