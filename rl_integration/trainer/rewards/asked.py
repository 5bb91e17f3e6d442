"""Samples on their way to a score, and who gives it.

Not covered: which samples are asked about together (`rewards`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from adjudge.protocol import Sample, Score


class Asked:
    """What was asked for in one call.

    Args:
        samples: to be scored.

    Attributes:
        samples: the same.
        scores: one for each, in order, as soon as all are there.
    """

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples
        self.scores: Future[list[Score]] = Future()

    def answer(self, scores: Sequence[Score]) -> None:
        """Give the scores; whoever asked may have left."""
        if self.scores.set_running_or_notify_cancel():
            self.scores.set_result(list(scores))

    def fail(self, error: BaseException) -> None:
        """Say why there will be no scores."""
        if self.scores.set_running_or_notify_cancel():
            self.scores.set_exception(error)


class Outside(Protocol):
    """Gives scores."""

    @property
    def by_group(self) -> bool:
        """Whether the members of a group must be asked about together."""
        ...

    def send(self, together: Sequence[Asked]) -> None:
        """See that each gets its scores; return soon."""
        ...

    def close(self) -> None:
        """Give up what is under way."""
        ...
