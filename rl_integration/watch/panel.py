"""The watches of all scorers of a service, and their newest samples.

panel = WatchPanel()
service = RewardService({"math": "math"}, watch=panel)
panel.report("math")
"""

from __future__ import annotations

import threading

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.watch.config import WatchConfig
from adjudge.rl_integration.watch.hacking import HackingWatch
from adjudge.rl_integration.watch.newest import Newest, Recent
from adjudge.rl_integration.watch.report import HackingReport
from adjudge.rl_integration.watch.seen import seen, texts_of


class WatchPanel:
    """Told each score by a `RewardService`; may be asked from any thread.

    Attributes:
        config: as given.
        texts: as given.
    """

    def __init__(self, config: WatchConfig | None = None, *, texts: bool = True, newest: int = 40) -> None:
        self.config = config or WatchConfig()
        self.texts = texts
        self._size = newest
        self._lock = threading.Lock()
        self._count = 0
        self._watches: dict[str, tuple[HackingWatch, Newest]] = {}

    def __call__(self, name: str, sample: Sample, score: Score) -> None:
        """Take note of a scorer's sample; never raises, whatever the sample holds."""
        prompt, response = texts_of(sample.prompt), texts_of(sample.response, assistant=True)
        one = seen(sample, score, prompt, response)
        with self._lock:
            found = self._watches.get(name)
            if found is None:
                found = self._watches[name] = (HackingWatch(self.config), Newest(size=self._size, texts=self.texts))
            self._count += 1
            found[1].add(self._count, score, prompt, response)
        found[0].add(one)

    def count(self, name: str) -> int:
        """Return how many samples of a scorer were seen."""
        found = self._watches.get(name)
        return found[0].count if found else 0

    def report(self, name: str) -> HackingReport:
        """Look at a scorer's newest samples; one that was never seen has none."""
        found = self._watches.get(name)
        return (found[0] if found else HackingWatch(self.config)).report()

    def newest(self, after: int = 0) -> dict[str, list[Recent]]:
        """Return the kept samples with a number above `after` by scorer, the newest first."""
        with self._lock:
            return {name: kept.after(after) for name, (_, kept) in self._watches.items()}

    def forget(self, name: str) -> None:
        """Begin anew for a scorer: another one stands under its name now."""
        with self._lock:
            self._watches.pop(name, None)
