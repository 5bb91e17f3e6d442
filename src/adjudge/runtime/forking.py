"""A lock that `os.fork` takes: what is done under it is never copied half done into a child.

It is held while file descriptors are made, while modules are imported on first use (a child could never finish an
import that another thread began), and while global state of other libraries is changed.  Only for milliseconds.

Not covered: forks made by C code; they run no Python hooks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()


@contextmanager
def undivided() -> Iterator[None]:
    """Keep this process from being forked meanwhile."""
    with _lock:
        yield


def _after_in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(
    before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_after_in_child
)
