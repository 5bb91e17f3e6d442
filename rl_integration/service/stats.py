"""What a lane has done, in numbers."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

from adjudge.protocol import Score
from adjudge.rl_integration.service.tickets import Traffic

LOWEST = 1e-4
"""The upper edge of the first bin, in seconds: nothing that is counted here is quicker."""

PER_OCTAVE = 4
BINS = 1 + 24 * PER_OCTAVE
"""Up to LOWEST * 2**24 = 28 minutes; the last bin holds the rest."""


class Spread:
    """Counts of positive values by size; each bin's edge is 2**(1/4) = 1.19 times the one below."""

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        place = 0 if value <= LOWEST else min(BINS - 1, math.ceil(PER_OCTAVE * math.log2(value / LOWEST)))
        self.counts[place] += 1
        self.sum += value


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the value below which a share of the counted ones lie, at most 9 % off; None where none was counted."""
    total = sum(counts)
    if not total:
        return None
    passed = list(accumulate(counts))
    place = next(place for place, count in enumerate(passed) if count and count >= share * total)
    return LOWEST * 2 ** ((place - 0.5) / PER_OCTAVE) if place else LOWEST  # the geometric middle of the bin


@dataclass(frozen=True, kw_only=True)
class LaneStats:
    """A moment of a lane.

    Attributes:
        name: of the scorer in the service.
        scorer: the scorer's own name.
        fingerprint: the scorer's fingerprint.
        generation: 1 for the first scorer of this name, one more with each reload.
        state: "closed", "open" or "trial", as the circuit breaker is.
        waiting: samples accepted and not begun.
        running: samples being scored.
        accepted: samples accepted so far.
        refused: samples refused so far.
        answered: scores given so far, those of equal samples included.
        shared: of these, scores that an equal sample's computation gave.
        given_up: samples that were accepted and whose score nobody waited for any more; not among the answered.
        reward_sum: the sum of all values.
        calls: calls of the scorer that ended.
        called: samples that these calls were given; over `calls`, the mean batch.
        empty_calls: of the calls, those that gave no score at all.
        suspensions: how often the scorer was suspended.
        threads_left: threads that a blocking scorer took with it.
        reasons: how many scores had each status and reason, as "failed engine_timeout"; "scored" without one.
        seconds: time that calls took together.
        queued: time that samples waited together, in seconds.
        latency: how long samples took from being accepted to their score, as `Spread` counts it.
        latency_sum: the sum of these, in seconds.
    """

    name: str
    scorer: str
    fingerprint: str
    generation: int
    state: str
    waiting: int
    running: int
    accepted: int
    refused: int
    answered: int
    shared: int
    given_up: int
    reward_sum: float
    calls: int
    called: int
    empty_calls: int
    suspensions: int
    threads_left: int
    reasons: Mapping[str, int]
    seconds: float
    queued: float
    latency: tuple[int, ...]
    latency_sum: float

    @property
    def failed_share(self) -> float:
        """The share of scores without a number that are our side's doing; 0 while there are none."""
        failed = sum(count for reason, count in self.reasons.items() if reason.startswith("failed"))
        return failed / self.answered if self.answered else 0.0


_STATES: Final = ("closed", "trial", "open")
_SUMMED: Final = (
    "accepted refused answered shared given_up reward_sum calls called empty_calls suspensions threads_left seconds "
    "queued latency_sum"
).split()


def together(stats: Sequence[LaneStats], there: Sequence[LaneStats]) -> LaneStats:
    """Add up what lanes of one scorer in several processes have done.

    Args:
        stats: of each lane that there ever was.
        there: of those that are there still: what waits, what runs and who rests is asked of them alone.
    """
    reasons: Counter[str] = Counter()
    for one in stats:
        reasons.update(one.reasons)
    totals: dict[str, Any] = {name: sum(getattr(one, name) for one in stats) for name in _SUMMED}
    return replace(
        max(stats, key=lambda one: one.generation),
        **totals,
        reasons=reasons,
        latency=tuple(map(sum, zip(*(one.latency for one in stats), strict=True))),
        waiting=sum(one.waiting for one in there),
        running=sum(one.running for one in there),
        state=max((one.state for one in there), key=_STATES.index, default="closed"),
    )


@dataclass(kw_only=True)
class Tally:
    """The counters of a lane; changed on the service's thread alone, but for `accepted` and `refused`."""

    accepted: int = 0
    refused: int = 0
    answered: int = 0
    shared: int = 0
    given_up: int = 0
    reward_sum: float = 0.0
    calls: int = 0
    called: int = 0
    empty_calls: int = 0
    seconds: float = 0.0
    queued: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    latency: Spread = field(default_factory=Spread)

    def count(self, score: Score, copies: int) -> None:
        """Count a score that `copies` equal samples got."""
        self.answered += copies
        self.shared += copies - 1
        self.reward_sum += (score.value or 0.0) * copies
        self.reasons[f"{score.status} {score.reason}".rstrip()] += copies


@dataclass(slots=True, kw_only=True)
class Outcomes:
    """What became of some samples.

    Attributes:
        answered: scores given.
        scored: of these, those with a value.
        failed: of these, those that could not be judged; the rest abstained.
        sum: of all values; infinite or NaN where they are too large together.
    """

    answered: int = 0
    scored: int = 0
    failed: int = 0
    sum: float = 0.0

    def add(self, other: Outcomes) -> None:
        """Count what became of others too."""
        self.answered += other.answered
        self.scored += other.scored
        self.failed += other.failed
        self.sum += other.sum


OTHERS: Final = "all others"
"""Stands for the clients beyond the first `MAX_CLIENTS` of a lane; no token can have this name."""

MAX_CLIENTS: Final = 32


class Flows:
    """Counts outcomes by traffic and client until they are taken; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: set[str] = set()
        self._counts: dict[tuple[Traffic, str], Outcomes] = {}

    def count(self, traffic: Traffic, client: str, score: Score) -> None:
        """Count the score of a client's sample."""
        with self._lock:
            if client not in self._clients:
                if len(self._clients) < MAX_CLIENTS:
                    self._clients.add(client)
                else:
                    client = OTHERS
            counts = self._counts.get((traffic, client))
            if counts is None:
                counts = self._counts[traffic, client] = Outcomes()
            counts.answered += 1
            if score.value is not None:
                counts.scored += 1
                counts.sum += score.value
            elif score.status == "failed":
                counts.failed += 1

    def take(self) -> dict[tuple[Traffic, str], Outcomes]:
        """Return what was counted since the last call, by traffic and client."""
        with self._lock:
            taken, self._counts = self._counts, {}
        return taken
