"""A page of memory on which a worker says what it is doing, for the parent to read without asking.

The worker writes the start time first and the position after it.  A reader that comes in between sees the old
position with the newer time and waits a little longer; it never sees an item as older than it is (on processors
that reorder stores it might, which is why the parent looks twice before it kills).
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

IDLE: Final = -1
"""Position of a worker that is waiting for work or for its results to be taken; no clock runs."""
HANDLING: Final = -2
"""Position of a worker that unpickles items or pickles results."""

_SERIAL, _POSITION, _START, _PID, _EXCUSED = range(5)  # 8-byte cells


class Board:
    """The shared page of one worker.

    Args:
        fd: a file descriptor made by `new_page`; the board keeps no hold of it.
    """

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, mmap.PAGESIZE)
        self._view = memoryview(self._page)
        self._whole = self._view.cast("q")
        self._real = self._view.cast("d")

    def sign(self) -> None:
        """Say that the calling process is the worker."""
        self._whole[_PID] = os.getpid()

    @property
    def pid(self) -> int:
        """The worker's process id; 0 before it has signed."""
        return self._whole[_PID]

    def excuse(self, seconds: float) -> None:
        """Say that of the time of the item under way so much is not to be charged."""
        self._real[_EXCUSED] += seconds

    @property
    def excused(self) -> float:
        """Seconds of the item under way that are not to be charged."""
        return self._real[_EXCUSED]

    def begin_chunk(self, serial: int, now: float) -> None:
        """Say that the chunk with this serial number was taken up and is being unpickled."""
        self._real[_START] = now
        self._whole[_POSITION] = HANDLING
        self._whole[_SERIAL] = serial

    def begin(self, position: int, now: float) -> None:
        """Say that the item at this position of the chunk starts now (`time.monotonic`), or IDLE or HANDLING."""
        self._real[_START] = now
        self._real[_EXCUSED] = 0.0
        self._whole[_POSITION] = position

    def read(self) -> tuple[int, int, float]:
        """Return the chunk's serial number, the position in it, and when that position started."""
        return self._whole[_SERIAL], self._whole[_POSITION], self._real[_START]

    def close(self) -> None:
        """Unmap the page."""
        for view in (self._whole, self._real, self._view):
            view.release()
        self._page.close()


def new_page() -> int:
    """Return a file descriptor of one zeroed page that exists only in memory where the platform can."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("adjudge-board")
    else:
        fd, path = tempfile.mkstemp(prefix="adjudge-board-")
        os.unlink(path)
    os.ftruncate(fd, mmap.PAGESIZE)
    return fd
