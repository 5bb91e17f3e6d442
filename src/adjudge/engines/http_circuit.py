"""A circuit breaker: once a server is known to be dead, new work fails at once instead of waiting for it.

Not covered: servers that answer, but badly; any answer at all counts as a sign of life.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from adjudge.options import Range, check_options


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlan:
    """When a server counts as dead, and how long it is then left alone.

    Attributes:
        failures: so many connections in a row must have failed,
        seconds: and for so long, so that a restart that takes a moment costs nothing but that moment.
        pause: seconds between two looks whether a dead server is back.
    """

    failures: Annotated[int, Range(ge=1)] = 5
    seconds: Annotated[float, Range(ge=0, unit="seconds")] = 5.0
    pause: Annotated[float, Range(ge=0, unit="seconds")] = 5.0

    def __post_init__(self) -> None:
        """Check the options."""
        check_options(self, "circuit option")


class Circuit:
    """What is known about a server, shared by all that ask it.

    Args:
        plan: when the circuit opens, and for how long.
        clock: seconds that only grow.
    """

    def __init__(self, plan: CircuitPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self.plan = plan
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._since = 0.0
        self._open_until: float | None = None

    @property
    def failures(self) -> int:
        """How many connections in a row have failed."""
        return self._failures

    def wait(self) -> float:
        """Return for how many seconds the server is still to be left alone; 0 when it may be asked."""
        with self._lock:
            return 0.0 if self._open_until is None else max(0.0, self._open_until - self._clock())

    def failed(self) -> None:
        """Take note that no connection came about, or that it ended without an answer."""
        with self._lock:
            now = self._clock()
            if not self._failures:
                self._since = now
            self._failures += 1
            if self._failures >= self.plan.failures and now - self._since >= self.plan.seconds:
                self._open_until = now + self.plan.pause

    def answered(self) -> None:
        """Take note of a sign of life."""
        with self._lock:
            self._failures = 0
            self._open_until = None
