"""Texts on the disk, by number, while memory holds eight bytes for each.

The file has no name and vanishes with the process.  Not covered: texts that must outlive it.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from array import array
from pathlib import Path

from adjudge.io.errors import JobError


class TextSpool:
    """Numbered texts, compressed.

    Args:
        folder: a folder on the disk that holds them: about half the size of the texts.

    Raises:
        JobError: it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            # Closed by `close`; a name would have to be cleaned up after a kill.
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise _refused(folder, error) from error
        self._folder = folder
        self._ends = array("Q", [0])
        self._flushed = True

    def __len__(self) -> int:
        """Return how many texts there are."""
        return len(self._ends) - 1

    def append(self, text: str) -> None:
        """Write the next text.

        Raises:
            JobError: the disk is full.
        """
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        try:
            self._file.write(packed)
        except OSError as error:
            raise _refused(self._folder, error) from error
        self._ends.append(self._ends[-1] + len(packed))
        self._flushed = False

    def __getitem__(self, number: int) -> str:
        """Return a text.

        Raises:
            JobError: the disk fails.
        """
        start, end = self._ends[number], self._ends[number + 1]
        try:
            if not self._flushed:
                self._file.flush()
                self._flushed = True
            packed = os.pread(self._file.fileno(), end - start, start)
        except OSError as error:
            raise _refused(self._folder, error) from error
        return zlib.decompress(packed).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()


def _refused(folder: Path, error: OSError) -> JobError:
    return JobError(
        f"the disk refuses ({error.strerror}) while texts are kept in {folder} to be compared; "
        "make room there and make the same call again"
    )
