"""How much a watch looks back upon, and from where on it speaks up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from adjudge.options import Count, Options, Range

_SHARE: Final = Range(gt=0, le=1)


@dataclass(frozen=True, kw_only=True)
class WatchConfig(Options, what="watch option"):
    """What is looked back upon, in samples, and the thresholds of the alarms.

    Attributes:
        window: the newest samples that "now" means.  It should hold several training batches: within one, short
            responses often come first.
        baseline: the first samples, with which later ones are compared.
        enough: below this many samples nothing is said.
        enough_groups: below this many groups nothing is said of them, nor of what different prompts share.
        block: series are compared by samples in a row, so many, so that a group whose members are alike, or one giant,
            counts once.
        longer: alarm when the median length is so many times that of the baseline, or the same part of it.  2, because
            a healthy run lengthens its reasoning by tens of percent between two looks.
        surely: and when the difference is so many standard errors of the blocks.
        follows_length: alarm when the rank correlation of value and length is at least this.  Correct answers are
            usually the shorter ones, so one half in the other direction is far from normal.
        frac_reward_zero_std: alarm when in this share of the groups all members got one value.  Around a half is
            usual where tasks are mixed; a group without a difference teaches nothing.
        at_maximum: alarm when this share of the values is the highest.
        maximum: the highest value that the scorer can give; None takes the highest one in the window.
        repeated: alarm when this share of the responses came word for word for another prompt too.
        long: characters from which a response counts there; short answers ("B") recur by right.
        one_response: alarm when one response, of any length, makes up this share.
        failed: alarm when this share of the samples could not be judged.
        clipped_ratio: alarm when this share of the responses reached the token limit.
        form: alarm when the share of responses with some mark of form (a box, a list, a block of code, ...) is so much
            more or less than in the baseline, and the difference is `surely` one.
    """

    window: Count = 2048
    baseline: Count = 1024
    enough: Count = 256
    block: Count = 64
    longer: Annotated[float, Range(gt=1)] = 2.0
    surely: Annotated[float, Range(ge=0, unit="standard errors")] = 4.0
    follows_length: Annotated[float, _SHARE] = 0.5
    frac_reward_zero_std: Annotated[float, _SHARE] = 0.8
    enough_groups: Count = 16
    at_maximum: Annotated[float, _SHARE] = 0.9
    maximum: float | None = None
    repeated: Annotated[float, _SHARE] = 0.1
    long: Count = 24
    one_response: Annotated[float, _SHARE] = 0.5
    failed: Annotated[float, _SHARE] = 0.1
    clipped_ratio: Annotated[float, _SHARE] = 0.25
    form: Annotated[float, _SHARE] = 0.4

    def __post_init__(self) -> None:
        """Check the options, and that there are enough samples for two blocks."""
        super().__post_init__()
        if self.enough > self.window:
            raise ValueError(f"watch option enough={self.enough}; it must be at most the window of {self.window}")
        if 2 * self.block > min(self.baseline, self.enough):
            raise ValueError(
                f"watch option block={self.block}; the baseline ({self.baseline}) and enough ({self.enough}) must hold "
                "two blocks at least"
            )
