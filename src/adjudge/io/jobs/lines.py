"""From what a maker made to lines of JSON, checked field by field, and what a column holds whose kind only rows tell.

How a format stores a kind is said in `formats`.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge import wire
from adjudge.io.errors import JobError
from adjudge.io.jobs.maker import Made, Unit
from adjudge.protocol import NO_COST, Cost

_WHOLE_LIMIT: Final = 1 << 63  # what Parquet and Arrow hold

UNKNOWN: Final = ""  # nothing but None so far
NO_ITEMS: Final = "list"  # nothing but empty lists so far
TURNS: Final = "turns"  # chat turns of a role and a content, both text
ANY: Final = "any"


class Unfit(Exception):
    """A value is not what its field holds; the text says what it is."""


def fitted(value: Any, kind: str) -> Any:
    """Return a value as plain JSON data, if it is of the kind.

    Raises:
        Unfit: it is of another kind.
    """
    if value is None:
        return None
    return _KINDS[kind][0](value)


def known_kinds() -> tuple[str, ...]:
    """Return the names that `fitted` takes."""
    return tuple(_KINDS)


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as plain JSON data: tuples become lists, mappings dictionaries.

    Raises:
        Unfit: JSON cannot hold it.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value.bit_length() > 4096:  # Python refuses to print integers of more than 4300 digits
            raise Unfit("a whole number of more than 4096 bits")
        return value
    if isinstance(value, float):
        return _finite(value)
    if depth > 100:
        raise Unfit("data nested deeper than 100 levels")
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise Unfit(f"an object with the key {wrong!r}, which is not text")
        return {key: plain(item, depth + 1) for key, item in value.items()}
    raise Unfit(f"a {type(value).__module__}.{type(value).__qualname__}")


def kept(value: Any, name: str) -> Any:
    """Return what an input holds as JSON data; what `wire` wrote of it before stays as it is.

    Raises:
        TypeError: JSON cannot hold it.
    """
    with contextlib.suppress(ValueError):
        value = wire.decode(value)
    return wire.encode(value, name)


def kind_of(value: Any) -> str:
    """Return the narrowest kind of plain JSON data: a `maker.Kind`, or `UNKNOWN`, `NO_ITEMS` or `TURNS`.

    What `wire` writes for NaN and the infinities, which JSON has no word for, is a number.
    """
    if value is None:
        return UNKNOWN
    if not isinstance(value, list):
        return _kind_of_one(value)
    if not value:
        return NO_ITEMS
    if all(_is_simple_turn(item) for item in value):
        return TURNS
    common = UNKNOWN
    for item in value:
        kind = _kind_of_one(item) if item is not None else UNKNOWN
        common = joined(common, kind)
        if kind == ANY or common == ANY:
            return ANY
    return f"{common}s" if common else NO_ITEMS


def joined(one: str, other: str) -> str:
    """Return the narrowest kind that holds what both hold."""
    if one == other or not other:
        return one
    if not one:
        return other
    pair = {one, other}
    if NO_ITEMS in pair:
        (full,) = pair - {NO_ITEMS}
        return full if full in _LISTS else ANY
    if pair == {"whole", "number"}:
        return "number"
    return "numbers" if pair == {"wholes", "numbers"} else ANY


def _kind_of_one(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "whole" if -_WHOLE_LIMIT <= value < _WHOLE_LIMIT else ANY
    if isinstance(value, dict) and value.keys() == {wire.TAG, "value"} and value[wire.TAG] == "float":
        return "number"
    return {str: "text", float: "number"}.get(type(value), ANY)


def _is_simple_turn(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"role", "content"}
        and isinstance(value["role"], str)
        and isinstance(value["content"], str | None)
    )


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise Unfit(f"the number {value!r}, which is not finite")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit(shown(value))
    return value


def _number(value: Any) -> float:
    return _finite(value) if isinstance(value, float) else _whole(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit(shown(value))
    if not -_WHOLE_LIMIT <= value < _WHOLE_LIMIT:
        raise Unfit("a whole number of more than 64 bits")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit(shown(value))
    return value


def _chat(value: Any) -> Any:
    if isinstance(value, str):
        return value
    turns = plain(value)
    if not isinstance(turns, list):
        raise Unfit(shown(value))
    for turn in turns:
        if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
            raise Unfit("a list of which an item is not a chat turn with a role")
        if not isinstance(turn.get("content"), str | list | None):
            raise Unfit("a chat turn whose content is neither text nor parts")
    return turns


def _each(fit: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def fit_list(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise Unfit(shown(value))
        items: list[Any] = []
        for index, item in enumerate(value):
            try:
                items.append(None if item is None else fit(item))
            except Unfit as error:
                raise Unfit(f"a list whose item {index} is {error}") from None
        return items

    return fit_list


def shown(value: Any) -> str:
    """Return how an error names a value: its type, and the value where it is short."""
    text = repr(value) if isinstance(value, str | int | float) else ""
    return f"a {type(value).__name__}{f' ({text})' if 0 < len(text) <= 40 else ''}"


_KINDS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    "text": (_text, "text"),
    "number": (_number, "a number"),
    "whole": (_whole, "a whole number"),
    "flag": (_flag, "true or false"),
    "texts": (_each(_text), "a list of texts"),
    "numbers": (_each(_number), "a list of numbers"),
    "wholes": (_each(_whole), "a list of whole numbers"),
    "flags": (_each(_flag), "a list of true and false"),
    "chat": (_chat, "text or chat turns"),
    "any": (plain, "plain JSON data"),
}
"""What makes a value of each kind plain, and what errors call it."""
_LISTS: Final = {"texts", "numbers", "wholes", "flags", TURNS}


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What one unit came to, ready to write."""

    text: bytes = b""
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    cost: Cost = NO_COST
    kinds: tuple[tuple[str, str], ...] = ()


class LineWriter:
    """Checks what a maker returns and writes it as lines.

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
                raise self._fault(
                    unit, f"made a row whose field {name!r} is {what}, and not {_KINDS[kind][1]}"
                ) from error
        if len(row) > len(record):
            others = [name for name in row if name not in record]
            if not self._keeps_columns:
                raise self._fault(unit, f"made a row with the field {others[0]!r}, which is none of its fields")
            record |= {name: self._kept(unit, name, row[name]) for name in others}
            record = {name: record[name] for name in row}
        return record

    def _kept(self, unit: Unit, name: object, value: Any) -> Any:
        if not isinstance(name, str):
            raise self._fault(unit, f"made a row with the field {name!r}, which is not text")
        try:
            return kept(value, name)
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


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
