"""Whether this process is one of a pool's own."""

from __future__ import annotations

_entered = False


class NestedPoolError(RuntimeError):
    """A worker of a pool asked for a pool of its own."""


def enter() -> None:
    """Mark this process, for good, as a supervisor or a worker of a pool."""
    global _entered
    _entered = True


def in_worker() -> bool:
    """Return whether the calling code runs inside a worker of a pool, where no other pool can be made."""
    return _entered
