"""Hooks that modules want called in a fork, kept from the forks of a server and given to its runs.

`threading` and `random` register some; called in a fork of the server they copy 100 pages of memory, a fifth of
what a run copies, and change nothing: the server has one thread, holds no lock, and its random numbers are seeded
anew in any case.  In a run they have to be there, because what the run forks may have had threads.

The file uses the standard library alone.  Not covered: hooks registered in C, and hooks for the process that forks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_register = os.register_at_fork
_kept: list[Callable[[], Any]] = []


def keep_back() -> None:
    """Keep what is registered for forked children from now on, until `give`; the rest is registered as ever."""
    os.register_at_fork = _keep  # type: ignore[assignment]


def give() -> None:
    """Register what was kept; for a process that will not fork for the server any more."""
    os.register_at_fork = _register
    _register(after_in_child=_call)


def _keep(after_in_child: Callable[[], Any] | None = None, **others: Callable[[], Any]) -> None:
    if after_in_child is not None:
        _kept.append(after_in_child)
    if others:
        _register(**others)


def _call() -> None:
    for hook in _kept:
        hook()
