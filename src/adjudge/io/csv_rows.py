"""Rows from comma, semicolon, tab or bar separated text with a header line.

Source: RFC 4180, as Python's `csv` reads it in strict mode.  Quoted cells may hold line ends.  An empty cell is
empty text.  Not covered: files without a header, quoting by backslash.

A stray quote would swallow the rest of the file.  So a row that ends badly (strict mode refuses it, the file
ends inside it, it passes the size limit, or many lines of it hold too many cells) costs its first line only, and
reading goes on at the next line.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.io.lines import UTF8_BOM, Line, not_utf8, open_bytes, read_lines, too_long
from adjudge.io.row import Part, Place, Row

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
