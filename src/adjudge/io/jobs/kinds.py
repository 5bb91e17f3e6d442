"""What a field of a made row may hold, and what a column holds whose kind only its values tell.

Not covered: how a format stores a kind (`formats`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from adjudge import wire

_WHOLE_LIMIT: Final = 1 << 63  # what Parquet and Arrow hold

UNKNOWN: Final = ""  # nothing but None so far
NO_ITEMS: Final = "list"  # nothing but empty lists so far
TURNS: Final = "turns"  # chat turns of a role and a content, both text
ANY: Final = "any"


class Unfit(Exception):
    """A value is not what its field holds; the text says what it is."""


def fitted(value: Any, kind: str) -> Any:
    """Return a value as plain JSON data, if it is of the kind.

    Args:
        value: what a maker gave for a field.
        kind: one of `maker.Kind`.

    Raises:
        Unfit: it is of another kind.
    """
    if value is None:
        return None
    return _FITTERS[kind](value)


def known_kinds() -> tuple[str, ...]:
    """Return the names that `fitted` takes."""
    return tuple(_FITTERS)


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
            raise Unfit(f"an object with the key {wrong!r}, which is no text")
        return {key: plain(item, depth + 1) for key, item in value.items()}
    raise Unfit(f"a {type(value).__module__}.{type(value).__qualname__}")


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
    found = UNKNOWN
    for item in value:
        kind = _kind_of_one(item) if item is not None else UNKNOWN
        found = joined(found, kind)
        if kind == ANY or found == ANY:
            return ANY
    return f"{found}s" if found else NO_ITEMS


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
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(shown(value))
    if isinstance(value, float):
        return _finite(value)
    if not -_WHOLE_LIMIT <= value < _WHOLE_LIMIT:
        raise Unfit("a whole number of more than 64 bits")
    return value


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
            raise Unfit("a list of which an item is no chat turn with a role")
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


_FITTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "text": _text,
    "number": _number,
    "whole": _whole,
    "flag": _flag,
    "texts": _each(_text),
    "numbers": _each(_number),
    "wholes": _each(_whole),
    "flags": _each(_flag),
    "chat": _chat,
    "any": plain,
}
_LISTS: Final = {"texts", "numbers", "wholes", "flags", TURNS}
