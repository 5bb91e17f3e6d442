"""What a framework is told where there is no number, and when a run of which too much fails is ended.

A framework that knows numbers alone is not told that there is none: it hears of it (`NotScored`), and ends the run or
leaves the sample out, as its page says.  A `fallback` is a number of the user's own choice instead, which the adapter
marks wherever the framework can carry one.

Failed scores are counted (`RecentFailures`), so that a run whose samples mostly fail is ended, however few of them come
at a time.  A sample that the scorer is not for counts neither as failed nor as judged.
"""

from __future__ import annotations

import logging
import math
import threading
import warnings
from collections import deque

from adjudge.protocol import Sample, Score


class StopRun(BaseException):
    """The run must end.  It is no `Exception`, because the framework catches those and goes on without a reward."""


_LOG = logging.getLogger("adjudge.rewards")

WINDOW = 64
"""How many of the latest scores are looked at, and how many there must be before the run is stopped."""

_NEVER = 256
"""After so many samples of which the scorer was for none, the user is warned."""


class TooManyFailures(RuntimeError):
    """So many samples could not be judged that training on the rest would be training on chance."""


def is_out_of_scope(score: Score) -> bool:
    """Return whether the scorer was not for the sample: it has no reference, or another scorer's."""
    return score.status == "abstained" and score.reason == "out_of_scope"


class RecentFailures:
    """The failed among the latest scores of this process."""

    def __init__(self, most: float) -> None:
        if isinstance(most, bool) or not isinstance(most, int | float) or not 0 <= most <= 1:
            raise ValueError(f"max_failed={most!r}; it must be a share from 0 to 1")
        self._most = most
        self._latest: deque[bool] = deque(maxlen=WINDOW)
        self._told = False
        self._foreign: int | None = 0  # samples out of scope so far; None once one was in it, or the user was warned
        self._lock = threading.Lock()

    def count(self, sample: Sample, score: Score) -> None:
        """Take note of a score.

        Raises:
            TooManyFailures: with this one, too many have failed.
        """
        if is_out_of_scope(score):
            self._warn_if_never(sample, score)
            return
        with self._lock:
            self._foreign = None
            self._latest.append(score.status == "failed")
            failed = sum(self._latest)
            first, self._told = failed > 0 and not self._told, self._told or failed > 0
        if first:
            _LOG.warning(
                "a sample could not be judged (%s): %.300s; more are counted, and the run ends when %.0f%% of the "
                "latest %d have failed",
                score.reason,
                dict(score.evidence),
                100 * self._most,
                WINDOW,
            )
        # A framework that catches this and goes on, as verl does, must not lose what was judged besides.
        if score.status == "failed" and failed > self._most * WINDOW:
            raise TooManyFailures(
                f"{failed} of the latest {WINDOW} samples could not be judged, this one because of {score.reason!r} "
                f"({str(dict(score.evidence))[:300]}); more than {self._most:.0%} may not (`max_failed`), since "
                "training on what is left would be training on chance"
            )

    def _warn_if_never(self, sample: Sample, score: Score) -> None:
        with self._lock:
            if self._foreign is None:
                return
            self._foreign += 1
            if self._foreign < _NEVER:
                return
            self._foreign = None
        warnings.warn(
            f"the scorer {score.provenance.scorer!r} was for none of the first {_NEVER} samples; the last one has the "
            f"reference {str(sample.reference)[:80]!r}: {score.evidence.get('error', '')}",
            stacklevel=2,
        )


class NotScored(RuntimeError):
    """A sample has no score, the framework cannot be told so, and no fallback was chosen."""


def number(score: Score, fallback: float | None, framework: str) -> float:
    """Return the value of a score, or the fallback."""
    if score.value is not None:
        return score.value
    if fallback is not None:
        return fallback
    seen = str(dict(score.evidence))[:300]
    remedy = "Remove what keeps it from being scored"
    if is_out_of_scope(score):
        remedy = (
            f"The scorer {score.provenance.scorer!r} is not for it: choose the scorer of each row, by the reference "
            '(scorer="auto") or by a column "kind" ({by_kind: ...})'
        )
    raise NotScored(
        f"a sample {score.status} ({score.reason}): {seen}; {framework} wants a number for it. {remedy}, or "
        "choose the number that stands for it: fallback=NUMBER"
    )


def checked_fallback(fallback: float | None) -> float | None:
    """Return a fallback if it is a finite number or None, else raise `ValueError`."""
    if fallback is None:
        return None
    if isinstance(fallback, bool) or not isinstance(fallback, int | float) or not math.isfinite(fallback):
        raise ValueError(f"fallback={fallback!r}; it must be a finite number, or None to raise")
    return float(fallback)
