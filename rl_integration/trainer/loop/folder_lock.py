"""A run's folder is one run's: a lock that ends with the process that holds it."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_held: dict[Path, tuple[int]] = {}  # by which thread: the kernel refuses a process no lock of its own


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Inside, no other run may hold the folder, which is made if need be; the same thread may hold it again.

    Raises:
        ValueError: another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place, token = folder.resolve(), (threading.get_ident(),)
    owner = _held.setdefault(place, token)
    if owner is not token:
        if owner != token:
            raise ValueError(_refusal(folder))
        yield
        return
    try:
        with (place / ".lock").open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by what scorers start
            except (BlockingIOError, PermissionError) as error:
                raise ValueError(_refusal(folder)) from error
            yield
    finally:
        del _held[place]


def _refusal(folder: Path) -> str:
    return f"another run writes {str(folder)!r}; wait until it ends, stop it, or name another output"
