"""What a caller asked for, and the samples of it on their way."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from adjudge.protocol import NO_COST, Sample, Score


class Refused(RuntimeError):
    """The service does not take the request now.

    Args:
        message: what is the matter, for a person.
        retry_after: seconds after which it is worth another try; None if it is not.
    """

    def __init__(self, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Callable[[str], Refused], tuple[str]]:
        return partial(type(self), retry_after=self.retry_after), (str(self),)


class Overloaded(Refused):
    """More samples wait than the scorer may keep waiting."""


class Suspended(Refused):
    """The scorer failed too often and rests."""


class Draining(Refused):
    """The service is being shut down."""


Traffic: TypeAlias = Literal["train", "eval"]

WEIGHTS: dict[Traffic, float] = {"train": 3.0, "eval": 1.0}
"""How the scorer's time is shared while both kinds of traffic wait."""


class Request:
    """Samples that are answered together.

    Args:
        samples: what to score.
        client: whose they are; each client gets its share.
        traffic: "train" or "eval".
        on_score: told the place and the score of each sample, on the service's thread.
        expires: the `time.monotonic` after which nobody waits for an answer any more: what has not begun by then is
            not begun.  None: somebody waits, however long it takes.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        *,
        client: str,
        traffic: Traffic,
        expires: float | None = None,
        on_score: Callable[[int, Score], None] | None = None,
    ) -> None:
        self.samples = samples
        self.client = client
        self.traffic: Traffic = traffic
        self.expires = expires
        self.future: Future[list[Score]] = Future()
        self._on_score = on_score
        self._scores: list[Score | None] = [None] * len(samples)
        self._missing = len(samples)

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for the answer."""
        return self.future.cancelled()

    @property
    def complete(self) -> bool:
        """Whether every sample has a score."""
        return not self._missing

    @property
    def missing(self) -> list[int]:
        """The places of samples without a score."""
        return [place for place, score in enumerate(self._scores) if score is None]

    def lacks(self, place: int) -> bool:
        """Return whether a sample has no score yet."""
        return self._scores[place] is None

    def deliver(self, place: int, score: Score) -> bool:
        """Give the score of a sample; the last one completes the request.

        Returns:
            Whether it was the sample's first, and somebody waits for it.
        """
        if self._scores[place] is not None:
            return False
        self._scores[place] = score
        self._missing -= 1
        if self.given_up:
            return False
        if self._on_score is not None:
            self._on_score(place, score)
        if not self._missing:
            with suppress(InvalidStateError):  # cancelled by the caller meanwhile
                self.future.set_result([score for score in self._scores if score is not None])
        return True


@dataclass(slots=True, eq=False)
class Ticket:
    """One sample of a request.

    Attributes:
        request: whose it is.
        place: its place there.
        key: what it has in common with samples that would get the same score; None if that cannot be told.
        entered: when it came, by `time.monotonic`.
        begun: whether it was taken off the queue.
        leader: the ticket of an equal sample that was on its way already, whose score this one gets.
        twins: tickets of equal samples that came while this one was on its way.
        size: characters of the prompt and the response.
    """

    request: Request
    place: int
    key: Hashable = None
    entered: float = field(default_factory=time.monotonic)
    begun: bool = False
    leader: Ticket | None = None
    twins: list[Ticket] = field(default_factory=list)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Measure the sample."""
        self.size = _length(self.sample.prompt) + _length(self.sample.response)

    @property
    def sample(self) -> Sample:
        """The sample itself."""
        return self.request.samples[self.place]

    @property
    def under_way(self) -> bool:
        """Whether the scorer has it, or an equal one."""
        return (self.leader or self).begun

    def wanted(self, now: float | None = None) -> bool:
        """Return whether anybody waits for its score, or that of a twin.

        Args:
            now: by `time.monotonic`: nor does anybody whose deadline was before.
        """
        return any(one.awaited(now) for one in (self, *self.twins))

    def awaited(self, now: float | None) -> bool:
        """Return whether somebody waits for this very one."""
        request = self.request
        late = now is not None and request.expires is not None and request.expires <= now
        return not late and not request.given_up and request.lacks(self.place)

    def answer(self, score: Score) -> list[Ticket]:
        """Deliver the score here and to all twins, and return those who got it; it was paid once."""
        told: list[Ticket] = []
        again = replace(score, cost=NO_COST) if self.twins else score
        for one in (self, *self.twins):
            if one.request.deliver(one.place, again if told else score):
                told.append(one)
        return told


def _length(text: object) -> int:
    if isinstance(text, str):
        return len(text)
    if not isinstance(text, list | tuple):
        return 0
    return sum(len(str(turn.get("content", ""))) for turn in text if isinstance(turn, Mapping))
