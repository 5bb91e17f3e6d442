"""Physical lines of a text file, with a limit on what one line may take in memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

from adjudge.io.errors import JobError

DAMAGE: Final = (OSError, EOFError, zlib.error)
"""What reading a file that is cut off or damaged raises; gzip itself, and the library under it."""

UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
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
    if head.startswith(_WIDE_BOMS):
        stream.close()
        raise ValueError(f"{path} is UTF-16 or UTF-32 text; write it as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)")
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
