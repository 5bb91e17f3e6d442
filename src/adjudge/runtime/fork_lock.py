"""What a fork must not tear: a lock that `os.fork` takes, and what begins anew in a child.

The lock is held while file descriptors are made, while modules are imported on first use (a child could never finish an
import that another thread began), and while global state of other libraries is changed.  Only for milliseconds.

Not covered: forks made by C code; they run no Python hooks.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.RLock()
_ANEW: weakref.WeakSet[Any] = weakref.WeakSet()


@contextmanager
def undivided() -> Iterator[None]:
    """Keep this process from being forked meanwhile."""
    with _lock:
        yield


def anew_in_child(thing: Any) -> None:
    """Have a thing's `begin_anew` called in every forked child: locks and threads do not survive a fork."""
    _ANEW.add(thing)


def _after_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for thing in list(_ANEW):
        thing.begin_anew()


os.register_at_fork(
    before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_after_in_child
)
