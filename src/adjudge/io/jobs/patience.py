"""When a scorer is beyond hope: it judges nothing from the start, or it has stopped judging.

A sample that cannot be judged, or is of another scorer's kind, stops nothing.  A scorer that cannot judge any would go
through the whole input, and cost time and money for no number; it is stopped with its own words instead.

Not covered: which failures count; who watches decides what to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from adjudge.io.errors import JobError

MOST_IN_A_ROW: Final = 512
_SHOWN: Final = 300


class Judged(Protocol):
    """What a scorer said about one sample."""

    @property
    def status(self) -> str:
        """Either "scored", "abstained" or "failed"."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no number: a code from `adjudge.reasons`."""
        ...

    @property
    def error(self) -> str:
        """The same in words; "" where nobody said."""
        ...


class Patience:
    """Watches what a scorer gives.

    Args:
        name: of the scorer.
        after: the end of the message: what the same call does when the scorer is repaired.
        most: so many newest scores may have failed, all of them, before it is given up.
    """

    def __init__(self, name: str, *, after: str, most: int = MOST_IN_A_ROW) -> None:
        self._name = name
        self._after = after
        self._most = most
        self._began = False
        self.failed_in_a_row = 0

    def watch(self, judged: Sequence[Judged], *, first: bool) -> None:
        """Look at the scores of one batch.

        Args:
            judged: the scores.
            first: whether it is given up now if neither these nor any before could be judged.

        Raises:
            ValueError: none of the first samples could be judged.
            JobError: nothing could be judged any more.
        """
        asked = [one for one in judged if one.reason != "out_of_scope"]
        alive = any(one.status != "failed" for one in asked)
        self._began = self._began or alive
        self.failed_in_a_row = 0 if alive else self.failed_in_a_row + len(asked)
        if first and judged and not self._began:
            count = max(self.failed_in_a_row, len(judged))
            raise ValueError(f"the scorer {self._name!r} could judge none of the first {count} samples: {_why(judged)}")
        if self.failed_in_a_row >= self._most:
            raise JobError(
                f"the scorer {self._name!r} could judge none of the last {self.failed_in_a_row} samples: "
                f"{_why(judged)}. When it is repaired, the same call {self._after}"
            )


def _why(judged: Sequence[Judged]) -> str:
    first = next((one for one in judged if one.error), judged[0])
    return f"{first.reason} ({' '.join(first.error.split())[:_SHOWN]})" if first.error else first.reason
