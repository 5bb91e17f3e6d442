"""One process at a time on one output.

A POSIX record lock: the kernel drops it when its process dies, however it dies, and worker processes forked from
the job do not inherit it.  Not covered: two machines on a network file system without locking.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Self

from adjudge.io.errors import JobError

_GUARD = threading.Lock()
_HELD: set[tuple[int, str]] = set()  # record locks do not keep two threads of one process apart


class OutputLock:
    """Holds the folder `partial` for this process until `release`.

    Raises:
        JobError: another job holds it.
    """

    def __init__(self, partial: Path) -> None:
        self._path = partial / "lock"
        self._key = (os.getpid(), str(partial.absolute()))
        with _GUARD:
            if self._key in _HELD:
                raise JobError(f"another thread of this process is writing {partial}; wait until it has finished")
            self._file = self._locked(partial)
            _HELD.add(self._key)

    def _locked(self, partial: Path) -> int:
        while True:
            partial.mkdir(parents=True, exist_ok=True)
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                continue  # the job that held it finished, and removed the folder, between the two lines above
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                holder = os.read(file, 100).decode(errors="replace").strip() or "another process"
                os.close(file)
                raise JobError(
                    f"{partial} is in use by {holder}; wait until that job has finished, or choose another output"
                ) from None
            if self._still_there(file):
                os.truncate(file, 0)
                os.write(file, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
                return file
            os.close(file)

    def _still_there(self, file: int) -> bool:
        """Whether the path still names the file that was locked."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(file))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go; does nothing the second time."""
        with _GUARD:
            if self._key in _HELD:
                _HELD.discard(self._key)
                os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()
