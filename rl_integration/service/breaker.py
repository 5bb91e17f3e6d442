"""A circuit breaker: rests a scorer that gives no scores, and tries it again with one call."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

State: TypeAlias = Literal["closed", "open", "trial"]


class Breaker:
    """Counts calls that gave no score at all; not to be used from two threads at once.

    Args:
        trip: the share of such calls among the last `window` that opens it.
        window: calls looked back upon; it opens no earlier than after half of them.
        rest: seconds of the first rest; doubled with each failed trial, up to `longest`.
        longest: see `rest`.
        clock: seconds from any start.
    """

    def __init__(
        self, *, trip: float, window: int, rest: float, longest: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._trip = trip
        self._calls: deque[bool] = deque(maxlen=window)
        self._enough = max(1, window // 2)
        self._first = rest
        self._longest = longest
        self._clock = clock
        self._rest = rest
        self._until = 0.0
        self._term = 0  # one more whenever calls that are under way stop to count
        self._trying = False
        self._open = False
        self.opened = 0
        """How often it opened."""

    @property
    def state(self) -> State:
        """Whether all is well ("closed"), the scorer rests ("open"), or one call may be tried ("trial")."""
        if not self._open:
            return "closed"
        return "trial" if self._clock() >= self._until else "open"

    @property
    def wait(self) -> float:
        """Seconds until a trial; 0 unless open."""
        return max(0.0, self._until - self._clock()) if self._open else 0.0

    @property
    def admits(self) -> bool:
        """Whether a call may begin: any while it is closed, one as the trial."""
        return not self._open or (self.state == "trial" and not self._trying)

    def begin(self) -> int:
        """Tell that a call begins that it admits; return what `ended` wants to know of it."""
        if self._open:
            self._trying = True
            self._term += 1
        return self._term

    def ended(self, term: int, *, good: bool) -> None:
        """Tell the end of a call, and whether it gave any score.

        Args:
            term: what `begin` returned; a call from before it opened, or from before a trial, tells nothing any more.
            good: whether there was a score.
        """
        if term != self._term:
            return
        if self._open:
            self._trying = False
            if good:
                self._open = False
                self._calls.clear()
                self._rest = self._first
            else:
                self._rest = min(self._longest, 2 * self._rest)
                self._until = self._clock() + self._rest
            return
        self._calls.append(not good)
        if len(self._calls) >= self._enough and sum(self._calls) >= self._trip * len(self._calls) and not good:
            self._open = True
            self._term += 1
            self.opened += 1
            self._until = self._clock() + self._rest
