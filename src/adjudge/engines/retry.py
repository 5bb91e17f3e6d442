"""When to ask a server again: exponential back-off with full jitter, and what the server itself asked for."""

from __future__ import annotations

import email.utils
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from adjudge.options import Range, check_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and after which pauses a request is sent again.

    Attributes:
        attempts: how often a request is sent at most, the first time included.
        first_pause: upper bound in seconds of the pause after the first attempt; it doubles with each attempt.
        longest_pause: upper bound in seconds of any pause, also of one that the server asks for.
    """

    attempts: Annotated[int, Range(ge=1)] = 6
    first_pause: Annotated[float, Range(ge=0, unit="seconds")] = 0.5
    longest_pause: Annotated[float, Range(ge=0, unit="seconds")] = 30.0

    def __post_init__(self) -> None:
        """Check the options."""
        check_options(self, "retry option")
        if self.longest_pause < self.first_pause:
            raise ValueError(f"retry option longest_pause={self.longest_pause!r}; it must be at least first_pause")

    def pause(self, attempt: int, asked: float | None, source: random.Random) -> float:
        """Return the seconds to wait after an attempt.

        Full jitter: uniform between 0 and the doubled bound, so that a thousand clients of a server that comes back do
        not come back together.  What the server asked for is a lower bound, with the jitter on top of it.

        Args:
            attempt: which attempt failed, from 1.
            asked: the seconds that the server asked for, or None.
            source: where the jitter comes from.
        """
        doublings = min(attempt - 1, 64)  # 2.0 ** 1024 overflows
        jitter = source.uniform(0, min(self.longest_pause, self.first_pause * 2.0**doublings))
        return min(self.longest_pause, (asked or 0.0) + jitter)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for; None where there is none that can be read.

    Source: RFC 9110, section 10.2.3: a number of seconds, or an HTTP date.
    """
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    try:
        moment = email.utils.parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, OverflowError):
        return None
