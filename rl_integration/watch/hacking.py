"""The watch over the scores of one scorer.

`see` is told every sample with its score and keeps a few numbers of it, in a window of fixed size; `report` looks at
the window and says what a person should look at.  Any thread may call either.

    watch = HackingWatch()
    for sample, score in zip(samples, scores):
        watch.see(sample, score)
    for alarm in watch.report().alarms:
        print(alarm.sentence)

Not covered: several runs that share a scorer, and training and evaluation side by side: their samples are one stream.
"""

from __future__ import annotations

import math
import statistics
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.watch.alarms import alarms
from adjudge.rl_integration.watch.config import WatchConfig
from adjudge.rl_integration.watch.forms import form_change
from adjudge.rl_integration.watch.histogram import histogram
from adjudge.rl_integration.watch.lengths import drift, rank_correlation
from adjudge.rl_integration.watch.report import HackingReport, Measures
from adjudge.rl_integration.watch.sameness import groups, repeats
from adjudge.rl_integration.watch.seen import Seen, seen, texts_of


class HackingWatch:
    """Looks for signs that a policy games its reward.

    Args:
        config: how far it looks back, and its thresholds.
    """

    def __init__(self, config: WatchConfig | None = None) -> None:
        self._config = config or WatchConfig()
        self._lock = threading.Lock()
        self._count = 0
        self._window: deque[Seen] = deque(maxlen=self._config.window)
        self._first: list[Seen] = []

    @property
    def count(self) -> int:
        """How many samples it has seen."""
        return self._count

    def see(self, sample: Sample, score: Score) -> None:
        """Take note of a sample; never raises, whatever it holds."""
        self.add(seen(sample, score, texts_of(sample.prompt), texts_of(sample.response, assistant=True)))

    def add(self, one: Seen) -> None:
        """Take note of what was `seen`."""
        with self._lock:
            self._count += 1
            self._window.append(one)
            if len(self._first) < self._config.baseline:
                self._first.append(one)

    def state(self) -> dict[str, Any]:
        """Return what it has seen, as plain JSON data."""
        with self._lock:
            return {
                "count": self._count,
                "window": list(map(list, self._window)),
                "first": list(map(list, self._first)),
            }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a watch with the same configuration."""
        with self._lock:
            self._count = state["count"]
            self._window = deque((Seen(*one) for one in state["window"]), maxlen=self._config.window)
            self._first = [Seen(*one) for one in state["first"]]

    def report(self) -> HackingReport:
        """Look at the newest samples."""
        with self._lock:
            count, window, first = self._count, list(self._window), list(self._first)
        measures = _measured(count, window, first, self._config)
        return HackingReport(
            measures=measures,
            bars=histogram([one.value for one in window if one.value is not None]),
            alarms=alarms(measures, self._config),
            missing=max(0, self._config.enough - len(window)),
        )


def _measured(count: int, window: Sequence[Seen], first: Sequence[Seen], config: WatchConfig) -> Measures:
    scored = [one for one in window if one.value is not None]
    values = [one.value for one in scored if one.value is not None]
    outcomes = Counter(f"{one.status} {one.reason}".rstrip() for one in window)
    highest = max(values, default=None)
    maximum = highest if config.maximum is None else config.maximum
    after = window[-min(len(window), count - len(first)) :] if count > len(first) else []
    comparable = len(first) >= config.baseline and len(after) >= config.enough
    change = drift([one.length for one in first], [one.length for one in after], config.block) if comparable else None
    form = form_change([one.form for one in first], [one.form for one in after], config.block) if comparable else None
    enough = len(scored) >= config.enough
    met, same = groups(scored), repeats(window, config.long)
    many = len(window) >= config.enough and same.prompts >= config.enough_groups
    limits = [one.cut_off for one in window if one.cut_off is not None]
    return Measures(
        samples=count,
        window=len(window),
        outcomes=dict(outcomes.most_common()),
        failed=sum(one.status == "failed" for one in window) / len(window) if window else None,
        values=len(values),
        mean=_mean(values),
        mean_then=_mean([one.value for one in first if one.value is not None]),
        lowest=min(values, default=None),
        highest=highest,
        maximum=maximum,
        at_maximum=None if maximum is None else _share([value >= maximum for value in values]),
        length_then=change.then if change else None,
        length=change.now if change else statistics.median(one.length for one in window) if window else None,
        length_ratio=change.ratio if change else None,
        length_errors=change.errors if change else None,
        follows_length=rank_correlation(values, [one.length for one in scored]) if enough else None,
        groups=met.count,
        flat_groups=met.flat / met.count if met.count >= config.enough_groups else None,
        prompts=same.prompts,
        repeated=same.long if many else None,
        one_response=same.commonest if many else None,
        cut_off=_share(limits) if len(limits) >= config.enough else None,
        form=form,
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(value / len(values) for value in values) if values else None  # so that no sum overflows


def _share(yes: Sequence[bool]) -> float | None:
    return sum(yes) / len(yes) if yes else None
