"""How much a watch looks back upon, and from where on it speaks up.

Not covered: what is done about an alarm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_COUNTS = ("window", "baseline", "enough", "block", "enough_groups", "long")
_SHARES = ("follows_length", "flat_groups", "at_maximum", "repeated", "one_response", "failed", "cut_off", "form")


@dataclass(frozen=True, kw_only=True)
class WatchConfig:
    """What is looked back upon, in samples, and the thresholds of the alarms.

    Attributes:
        window: the newest samples that "now" means.  It should hold several training batches: within one, short
            responses often come first.
        baseline: the first samples, whose lengths later ones are compared with.
        enough: below this many samples nothing is said.
        block: lengths are compared by medians of so many samples in a row, so that a group whose members are alike, or
            one giant, counts once.
        longer: alarm when the median length is so many times that of the baseline, or the same part of it.  2, because
            a healthy run lengthens its reasoning by tens of percent between two looks.
        surely: and when the difference is so many standard errors of the blocks.
        follows_length: alarm when the rank correlation of value and length is at least this.  Correct answers are
            usually the shorter ones, so one half in the other direction is far from normal.
        flat_groups: alarm when in this share of the groups all members got one value.  Around a half is usual where
            tasks are mixed; a group without a difference teaches nothing.
        enough_groups: below this many groups nothing is said of them, nor of what different prompts share.
        at_maximum: alarm when this share of the values is the highest.
        maximum: the highest value that the scorer can give; None if it is not known, then the highest one in the window
            counts.
        repeated: alarm when this share of the responses came word for word for another prompt too; counted from `long`
            characters on, since short answers ("B") recur by right.
        long: see `repeated`.
        one_response: alarm when one response, of any length, makes up this share.
        failed: alarm when this share of the samples could not be judged.
        cut_off: alarm when this share of the responses reached the token limit.
        form: alarm when the share of responses with some mark of form (a box, a list, a block of code, ...) is so much
            more or less than in the baseline, and the difference is `surely` one.
    """

    window: int = 2048
    baseline: int = 1024
    enough: int = 256
    block: int = 64
    longer: float = 2.0
    surely: float = 4.0
    follows_length: float = 0.5
    flat_groups: float = 0.8
    enough_groups: int = 16
    at_maximum: float = 0.9
    maximum: float | None = None
    repeated: float = 0.1
    long: int = 24
    one_response: float = 0.5
    failed: float = 0.1
    cut_off: float = 0.25
    form: float = 0.4

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for option in _COUNTS:
            value = getattr(self, option)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"watch option {option}={value!r}; it must be a whole number from 1")
        for option in _SHARES:
            value = getattr(self, option)
            if not _number(value) or not 0 < value <= 1:
                raise ValueError(f"watch option {option}={value!r}; it must be above 0 and at most 1")
        if not _number(self.longer) or self.longer <= 1:
            raise ValueError(f"watch option longer={self.longer!r}; it must be a factor above 1")
        if not _number(self.surely) or self.surely < 0:
            raise ValueError(f"watch option surely={self.surely!r}; it must be 0 standard errors or more")
        if self.maximum is not None and not _number(self.maximum):
            raise ValueError(f"watch option maximum={self.maximum!r}; it must be a finite number, or None")
        if self.enough > self.window:
            raise ValueError(f"watch option enough={self.enough}; it must be at most the window of {self.window}")
        if 2 * self.block > min(self.baseline, self.enough):
            raise ValueError(
                f"watch option block={self.block}; the baseline ({self.baseline}) and enough ({self.enough}) must hold "
                "two blocks at least"
            )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
