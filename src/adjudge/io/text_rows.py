"""Rows from text: JSON Lines, a small file that holds one JSON list, and delimited text with a header line.

A line has a limit on what it may take in memory, and so has a row.

JSON: RFC 8259 and jsonlines.org.  Blank lines are not rows.  Not covered: pretty-printed objects one after another, and
lists too large for memory; turn those into JSON Lines first.

Delimited (by comma, semicolon, tab or bar): RFC 4180, as Python's `csv` reads it in strict mode.  Quoted cells may hold
line ends.  An empty cell is empty text.  Not covered: files without a header, quoting by backslash.
A stray quote would swallow the rest of the file.  So a row that ends badly (strict mode refuses it, the file
ends inside it, it passes the size limit, or many lines of it hold too many cells) costs its first line only, and
reading goes on at the next line.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from adjudge.io.errors import JobError
from adjudge.io.row import Part, Place, Row

DAMAGE: Final = (OSError, EOFError, zlib.error)
"""What reading a file that is cut off or damaged raises; gzip itself, and the library under it."""

UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_WIDE: Final = re.compile(rb"[^\0]\0[^\0]\0|\0[^\0]\0[^\0]|[^\0]\0\0\0|\0\0\0[^\0]")
"""How UTF-16 and UTF-32 text without a mark begins, where its first characters are ASCII: RFC 4627, section 3."""
_SKIP_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line with its line end, or the first `limit` bytes of one that is too long.

    Attributes:
        raw: its bytes.
        size: bytes it takes in the file.
        whole: whether `raw` is all of it.
    """

    raw: bytes
    size: int
    whole: bool


def is_gzip(path: Path) -> bool:
    """Return whether the name says that the file is compressed."""
    return path.suffix.lower() == ".gz"


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed.

    Raises:
        ValueError: the file is UTF-16 or UTF-32.
    """
    # A GzipFile has all of IO[bytes] that is used here.
    stream = cast("IO[bytes]", gzip.GzipFile(path)) if is_gzip(path) else path.open("rb", buffering=1 << 18)
    try:
        head = stream.read(4)
        stream.seek(0)
    except DAMAGE as error:
        stream.close()
        raise ValueError(f"{path} cannot be read: {error}") from error
    marked = head.startswith(_WIDE_BOMS)
    if marked or _WIDE.match(head):
        stream.close()
        name = ("UTF-32" if b"\0\0" in head else "UTF-16") + ("" if marked else "BE" if head[0] == 0 else "LE")
        raise ValueError(f"{path} is UTF-16 or UTF-32 text; write it as UTF-8 (iconv -f {name} -t UTF-8 FILE)")
    return stream


def read_lines(stream: IO[bytes], limit: int, *, path: Path) -> Iterator[Line]:
    """Yield the lines from the stream's position on.

    Args:
        stream: an open binary file.
        limit: bytes of a line kept in memory; the rest of a longer one is read and dropped.
        path: how an error names the file.

    Raises:
        JobError: the file breaks off or is damaged (a cut gzip file, a failing disk).
    """
    try:
        while raw := stream.readline(limit + 1):
            if len(raw) <= limit or raw.endswith(b"\n"):
                yield Line(raw, len(raw), True)
                continue
            size = len(raw)
            while chunk := stream.readline(_SKIP_CHUNK):
                size += len(chunk)
                if chunk.endswith(b"\n"):
                    break
            yield Line(raw, size, False)
    except DAMAGE as error:
        raise JobError(f"{path} is damaged or cut off: {error}; repair it and start again with --restart") from error


def too_long(size: int, limit: int) -> str:
    """Return the error text of a row above the size limit."""
    return f"the row takes {size} bytes, more than the limit of {limit} (--max-row-mb)"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return the error text of bytes that are not UTF-8."""
    return f"not UTF-8: byte 0x{error.object[error.start]:02x} at position {error.start}"


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


_OTHER_DELIMITERS = (";", "\t", "|", ",")
_FEW_LINES = 16


class _RowTooLong(Exception):
    """The lines of one row pass the limit."""


class _TooManyCells(Exception):
    """The lines of one row hold more cells than the header has names, and the row has not ended yet."""


class _Feed:
    """Hands lines to `csv.reader` and remembers those of the current row, so that they can be handed out again."""

    def __init__(self, lines: Iterator[Line], limit: int, delimiter: str, cells: int | None = None) -> None:
        self._lines = lines
        self._again: deque[Line] = deque()
        self._limit = limit
        self._delimiter = delimiter
        self._cells = cells
        self.taken: list[Line] = []
        self._size = 0
        self.problem = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        self._size += line.size
        if self._size > self._limit:
            raise _RowTooLong
        self._count_cells()
        if b"\0" in line.raw:
            self.problem = "a NUL byte in the row"
        try:
            return line.raw.decode()
        except UnicodeDecodeError as error:
            self.problem = not_utf8(error)
            return line.raw.decode(errors="replace")

    def _count_cells(self) -> None:
        """Give up a row of many lines that has too many cells, looking at 16, 32, 64, ... of its lines.

        A line that opens a quote behind the one that closes the last adds a cell.  Where every line does, every line
        begins a row that goes on to the end of the file; reading each of them to there takes forever.
        """
        lines = len(self.taken) - 1
        if self._cells is None or lines < _FEW_LINES or lines & (lines - 1):
            return
        so_far = (line.raw.decode(errors="replace") for line in self.taken[:-1])
        if len(next(csv.reader(so_far, delimiter=self._delimiter), ())) > self._cells:
            raise _TooManyCells

    def begin(self) -> None:
        """Forget the row that was read."""
        self.taken, self._size, self.problem = [], 0, ""

    def give_back(self) -> None:
        """Keep the first line of the row; the others will be read again."""
        self._again.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


class CsvFile(Part):
    """A delimited text file, plain or gzip-compressed.

    Args:
        path: the file.
        limit: bytes one row may take.
        delimiter: what separates cells; where the header has none of it but has another usual one, that is used.

    Raises:
        ValueError: there is no header, or it names a column twice.
    """

    def __init__(self, path: Path, limit: int, delimiter: str) -> None:
        self.path = path
        self._limit = limit
        # The limit is one setting for the whole process; it is only ever raised here.
        csv.field_size_limit(max(csv.field_size_limit(), limit))
        with open_bytes(path) as stream:
            head = stream.readline(limit)
        self._delimiter = delimiter
        if delimiter.encode() not in head:
            self._delimiter = next((mark for mark in _OTHER_DELIMITERS if mark.encode() in head), delimiter)
        self._header, self._body = self._read_header()
        self.names = self._header

    def _read_header(self) -> tuple[list[str], Place]:
        with open_bytes(self.path) as stream:
            if stream.read(len(UTF8_BOM)) != UTF8_BOM:
                stream.seek(0)
            offset = stream.tell()
            feed = _Feed(read_lines(stream, self._limit, path=self.path), self._limit, self._delimiter)
            try:
                header = next(self._reader(feed), [])
            except (csv.Error, _RowTooLong) as error:
                raise ValueError(f"the header of {self.path} cannot be read: {error or 'it is too long'}") from error
        if feed.problem:
            raise ValueError(f"the header of {self.path} cannot be read: {feed.problem}")
        if not any(name.strip() for name in header):
            raise ValueError(f"{self.path} has no header; its first line must name the columns")
        double = [name for name in header if header.count(name) > 1]
        if double:
            raise ValueError(f"the header of {self.path} names the column {double[0]!r} twice; rename one")
        return header, Place(0, offset + sum(line.size for line in feed.taken), len(feed.taken))

    def _reader(self, feed: _Feed) -> Iterator[list[str]]:
        return csv.reader(feed, delimiter=self._delimiter, strict=True)

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place."""
        record, offset, line = start if start.record else self._body
        with open_bytes(self.path) as stream:
            stream.seek(offset)
            lines = read_lines(stream, self._limit, path=self.path)
            feed = _Feed(lines, self._limit, self._delimiter, len(self._header))
            reader = self._reader(feed)
            while True:
                feed.begin()
                cells: list[str] = []
                problem = ""
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except (csv.Error, _RowTooLong, _TooManyCells) as error:
                    problem = self._problem(error, feed)
                    feed.give_back()
                    reader = self._reader(feed)
                size = sum(part.size for part in feed.taken)
                first, offset, line = line + 1, offset + size, line + len(feed.taken)
                if not cells and not problem:
                    continue  # a blank line
                record += 1
                data, problem = self._row(cells, problem or feed.problem)
                yield Row(data, problem, Place(record, offset, line), min(size, self._limit), first)

    def _problem(self, error: Exception, feed: _Feed) -> str:
        if isinstance(error, _RowTooLong):
            return too_long(sum(part.size for part in feed.taken), self._limit)
        if isinstance(error, _TooManyCells):
            return f"malformed row: a quote in it does not close, or more than {len(self._header)} cells stand in it"
        return f"malformed row: {error}"

    def _row(self, cells: list[str], problem: str) -> tuple[dict[str, Any] | None, str]:
        if problem:
            return None, problem
        if len(cells) != len(self._header):
            return None, f"the row has {len(cells)} cells; the header has {len(self._header)}"
        return dict(zip(self._header, cells, strict=True)), ""
