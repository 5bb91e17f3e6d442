"""The watches of all scorers of a service, and their newest samples.

panel = WatchPanel()
service = RewardService({"math": "math"}, watch=panel)
panel.report("math")
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from adjudge.protocol import Sample, Score, Status
from adjudge.rl_integration.watch.hacking import HackingWatch, Seen, WatchConfig, seen, texts_of
from adjudge.rl_integration.watch.report import HackingReport

_HEAD, _TAIL = 700, 500
"""Characters kept of a text's two ends; answers stand at the end."""

_PARTS = 24
"""Parts of a composite that are kept."""


class Part(NamedTuple):
    """What a part of a composite said."""

    value: float | None
    status: Status
    reason: str


class Recent(NamedTuple):
    """A sample and its score, cut down to what fits on a page.

    Attributes:
        number: later ones have higher ones.
        time: when its score came, in seconds since the epoch.
        prompt: its two ends, and those of the response (of a trajectory, what the assistant wrote); None if not kept.
        tokens: prompt and completion tokens of the models that were asked.
    """

    number: int
    time: float
    prompt: str | None
    response: str | None
    value: float | None
    status: Status
    reason: str
    parts: Mapping[str, Part]
    seconds: float
    tokens: int


def shortened(texts: Sequence[str]) -> str:
    """Return texts joined by newlines, or their two ends around a note of how much was left out."""
    length = sum(map(len, texts)) + max(0, len(texts) - 1)
    if length <= _HEAD + _TAIL:
        return texts[0] if len(texts) == 1 else "\n".join(texts)
    head, tail = "", ""
    for text in texts:
        head = f"{head}\n{text[:_HEAD]}" if head else text[:_HEAD]
        if len(head) >= _HEAD:
            break
    for text in reversed(texts):
        tail = f"{text[-_TAIL:]}\n{tail}" if tail else text[-_TAIL:]
        if len(tail) >= _TAIL:
            break
    return f"{head[:_HEAD]}\n[... {length - _HEAD - _TAIL:,} characters ...]\n{tail[-_TAIL:]}"


class WatchPanel:
    """Takes each score from a `RewardService`; may be asked from any thread."""

    def __init__(self, config: WatchConfig | None = None, *, texts: bool = True, newest: int = 40) -> None:
        self.config = config or WatchConfig()
        self.texts = texts
        self.size = newest
        self._lock = threading.Lock()
        self._count = 0
        self._watches: dict[str, tuple[HackingWatch, deque[Recent]]] = {}

    def __call__(self, name: str, sample: Sample, score: Score) -> None:
        """Take note of a scorer's sample; never raises, whatever the sample holds."""
        self.add(name, *self.cut(sample, score))

    def cut(self, sample: Sample, score: Score) -> tuple[Seen, Recent]:
        """Return what is kept of a sample; its number comes with `add`."""
        prompt, response = texts_of(sample.prompt), texts_of(sample.response, assistant=True)
        return seen(sample, score, prompt, response), self._recent(score, prompt, response)

    def add(self, name: str, one: Seen, recent: Recent | None) -> None:
        """Keep what `cut` gave, here or in another process; None where it is too old to be shown."""
        with self._lock:
            watched = self._watches.get(name)
            if watched is None:
                watched = self._watches[name] = (HackingWatch(self.config), deque(maxlen=self.size))
            if recent is not None:
                self._count += 1
                watched[1].append(recent._replace(number=self._count))
        watched[0].add(one)

    def count(self, name: str) -> int:
        """Return how many samples of a scorer were seen."""
        watched = self._watches.get(name)
        return watched[0].count if watched else 0

    def report(self, name: str) -> HackingReport:
        """Look at a scorer's newest samples; one that was never seen has none."""
        watched = self._watches.get(name)
        return (watched[0] if watched else HackingWatch(self.config)).report()

    def newest(self, after: int = 0) -> dict[str, list[Recent]]:
        """Return the kept samples with a number above `after` by scorer, the newest first."""
        with self._lock:
            return {
                name: [one for one in reversed(kept) if one.number > after] for name, (_, kept) in self._watches.items()
            }

    def forget(self, name: str) -> None:
        """Begin anew for a scorer: another one stands under its name now."""
        with self._lock:
            self._watches.pop(name, None)

    def _recent(self, score: Score, prompt: Sequence[str], response: Sequence[str]) -> Recent:
        cost = score.cost
        shown = islice(score.parts.items(), _PARTS)
        return Recent(
            0,
            time.time(),
            shortened(prompt) if self.texts else None,
            shortened(response) if self.texts else None,
            score.value,
            score.status,
            score.reason,
            {name: Part(part.value, part.status, part.reason) for name, part in shown},
            cost.seconds,
            cost.prompt_tokens + cost.completion_tokens,
        )
