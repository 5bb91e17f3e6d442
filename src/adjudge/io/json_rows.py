"""Rows from JSON Lines, one object per line, and from a small file that holds one JSON list.

Source: RFC 8259 and jsonlines.org.  Blank lines are not rows.  Not covered: pretty-printed objects one after
another, and lists too large for memory; turn those into JSON Lines first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from adjudge.io.lines import UTF8_BOM, not_utf8, open_bytes, read_lines, too_long
from adjudge.io.row import Part, Place, Row

_LIST_LIMIT_MB = 256
_MAX_LEVELS: Final = 100  # Python walks and pickles no more than some hundred, and no data needs as many
TOO_DEEP: Final = f"nested too deeply: more than {_MAX_LEVELS} levels"
_WHAT = {list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}


def parse_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the object a line holds and "", or None and what is wrong with the line."""
    try:
        value = json.loads(text)
    except RecursionError:
        return None, TOO_DEEP
    except json.JSONDecodeError as error:
        return None, f"malformed JSON: {error.msg} at character {error.pos}"
    except ValueError as error:  # an integer of more than 4300 digits
        return None, f"malformed JSON: {error}"
    if text.count("[") + text.count("{") > _MAX_LEVELS and nested_too_deeply(value):
        return None, TOO_DEEP
    return as_object(value)


def nested_too_deeply(value: Any) -> bool:
    """Return whether data holds lists or objects inside each other on more than 100 levels."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(_MAX_LEVELS):
        items = (item for each in level for item in (each.values() if isinstance(each, dict) else each))
        level = [item for item in items if isinstance(item, list | dict)]
        if not level:
            return False
    return True


def as_object(value: Any) -> tuple[dict[str, Any] | None, str]:
    """Return the value and "" if it is an object, else None and what it is instead."""
    if isinstance(value, dict):
        return value, ""
    return None, f"the row is {_WHAT[type(value)]}; it must be a JSON object"


class JsonLines(Part):
    """A JSON Lines file, plain or gzip-compressed."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self._limit = limit

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place."""
        with open_bytes(self.path) as stream:
            stream.seek(start.offset)
            record, offset, line = start
            for raw, size, whole in read_lines(stream, self._limit, path=self.path):
                first = offset == 0
                offset, line = offset + size, line + 1
                if whole and not raw.strip():
                    continue
                record += 1
                place = Place(record, offset, line)
                if not whole:
                    yield Row(None, too_long(size, self._limit), place, self._limit, line)
                    continue
                try:
                    text = (raw.removeprefix(UTF8_BOM) if first else raw).decode()
                except UnicodeDecodeError as error:
                    yield Row(None, not_utf8(error), place, size, line)
                    continue
                data, problem = parse_object(text)
                yield Row(data, problem, place, size, line)


class JsonList(Part):
    """A file with one JSON list of objects, read as a whole.

    Raises:
        ValueError: the file is too large, is not JSON, or holds no list.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_bytes(path) as stream:
            raw = stream.read((_LIST_LIMIT_MB << 20) + 1)
        if len(raw) > _LIST_LIMIT_MB << 20:
            raise ValueError(
                f"{path} is one JSON list of more than {_LIST_LIMIT_MB} MiB, which cannot be read piece by piece; "
                "write it as JSON Lines first (jq -c '.[]' FILE > FILE.jsonl)"
            )
        try:
            items = json.loads(raw.decode("utf-8-sig"))
        except RecursionError:
            raise ValueError(f"{path} is not a JSON list: nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a JSON list: {error}; one object per line is read too") from error
        if not isinstance(items, list):
            raise ValueError(f"{path} holds {_WHAT.get(type(items), 'one object')}; need a list or one object per line")
        self._items: list[Any] = items
        self._size = len(raw) // max(1, len(items))

    def count(self) -> int | None:
        """Return the length of the list."""
        return len(self._items)

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the items behind a place."""
        for index in range(start.record, len(self._items)):
            item = self._items[index]
            data, problem = (None, TOO_DEEP) if nested_too_deeply(item) else as_object(item)
            yield Row(data, problem, Place(index + 1), self._size)


def holds_list(path: Path) -> bool:
    """Return whether a `.json` file holds one list; else it is read as JSON Lines.

    Raises:
        ValueError: it holds neither a list nor one object per line, or one object with a list of rows.
    """
    with open_bytes(path) as stream:
        head = stream.read(1 << 16).removeprefix(UTF8_BOM).lstrip()
    if head.startswith(b"["):
        return True
    first, _, rest = (line.strip() for line in head.partition(b"\n"))
    spread = first in (b"{", b"{}") and b"\n" in head
    key = _key_of_rows(path, alone=not spread) if spread or not rest else ""
    if key:
        raise ValueError(
            f"{path} holds one object; its rows are under {key!r}: write them as JSON Lines first "
            f"(jq -c '.[{json.dumps(key)}][]' FILE > FILE.jsonl)"
        )
    if spread:
        raise ValueError(f"{path} holds one object over several lines; need a list or one object per line (jq -c)")
    return False


def _key_of_rows(path: Path, *, alone: bool) -> str:
    """Return the only key of a file's one object that holds a list of rows, or ""; `alone`: it has no other key."""
    with open_bytes(path) as stream:
        raw = stream.read(_LIST_LIMIT_MB << 20)
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # no single object; it is read line by line, and each line says what is wrong
        return ""
    if not isinstance(value, dict) or (alone and len(value) != 1):
        return ""
    keys = [key for key, items in value.items() if isinstance(items, list) and items and all(map(_like_row, items))]
    return keys[0] if len(keys) == 1 else ""


def _like_row(item: Any) -> bool:
    return isinstance(item, dict) and item.keys().isdisjoint(("role", "message"))  # those are messages and choices
