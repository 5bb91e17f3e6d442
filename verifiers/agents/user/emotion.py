"""How a simulated user feels: a number, how it changes, and when the conversation is over.

    start 40; after each turn: feeling + change, the change clipped to [-10, 10], the feeling to [0, 100]
    100: ends happy    from 70: A    from 40: B    from 10: C    below 10: ends angry
    reward: last feeling / 100

Numbers and bands are those of RLVER and SAGE (`Tencent/digitalhuman` at 6dcfa78).

Not covered: who says what the change is; a model does (`adjudge.verifiers.agents.user.scorer`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Band: TypeAlias = Literal["happy", "A", "B", "C", "angry"]

START: Final = 40.0
MOST_CHANGE: Final = 10
TOP: Final = 100.0
LEAST: Final = 10.0
"""Below this the conversation is over."""

MANNERS: Final[dict[Band, str]] = {
    "happy": "at peace; nothing is left to say",
    "A": "moved and open; the person shares more, and thanks for what helped",
    "B": "neither won nor lost; the person answers and waits what comes",
    "C": "hurt or annoyed; the person is short, doubts, or complains",
    "angry": "done with this conversation",
}


@dataclass(frozen=True, slots=True)
class Emotion:
    """A feeling, from 0 to 100.

    Raises:
        ValueError: the number lies outside.
    """

    value: float = START

    def __post_init__(self) -> None:
        """Reject what is no feeling."""
        if not (math.isfinite(self.value) and 0 <= self.value <= TOP):
            raise ValueError(f"a feeling is {self.value!r}; it must be a number from 0 to 100")

    @property
    def band(self) -> Band:
        """Where it lies."""
        if self.value >= TOP:
            return "happy"
        if self.value >= 70:
            return "A"
        if self.value >= 40:
            return "B"
        return "C" if self.value >= LEAST else "angry"

    @property
    def over(self) -> bool:
        """Whether the conversation has ended with it."""
        return self.band in ("happy", "angry")

    @property
    def reward(self) -> float:
        """What a conversation is worth that ends with it, in [0, 1]."""
        return self.value / TOP

    def after(self, change: float, most: float = MOST_CHANGE) -> Emotion:
        """Return the feeling that follows.

        Args:
            change: what a model says; clipped.
            most: the largest change to either side.

        Raises:
            ValueError: the change is no number, or the conversation is over.
        """
        if not math.isfinite(change):
            raise ValueError(f"a change of feeling is {change!r}; it must be a finite number")
        if self.over:
            raise ValueError(f"the conversation ended {self.band}; nothing changes the feeling any more")
        return Emotion(min(TOP, max(0.0, self.value + min(most, max(-most, change)))))
