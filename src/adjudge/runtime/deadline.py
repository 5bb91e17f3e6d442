"""When the caller of a scorer stops waiting: what is done by then is given out, and only what is not fails.

Whoever has a limit for a whole call sets it (`set_deadline`); the worker pool and the HTTP clients keep it.
"""

from __future__ import annotations

import time
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("adjudge_deadline", default=None)


def set_deadline(seconds: float) -> None:
    """Have what this task, and the tasks that it starts, asks for end in so many seconds."""
    _deadline.set(time.monotonic() + seconds)


def seconds_left() -> float | None:
    """Return the seconds until this task's deadline, 0 when it has passed; None where there is none."""
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - time.monotonic())
