"""A clock that nobody sets, for what is shown over time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

_since_boot: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
_BOOT = time.time() - _since_boot()


def steady() -> float:
    """Return seconds since the epoch: what the wall clock said when this process began, and how long that is ago.

    The wall clock itself is set, by people and by NTP, and a chart by it would go back, or leap.
    """
    return _BOOT + _since_boot()
