"""Stops a run whose reward rises while the quality it stands for falls (arXiv 2210.10760).

Now and then some answers of a step are also scored by a scorer that the policy is not trained against, the gold one.
The run is stopped when, of the means over a few such measurements, the gold one is surely below its highest and the
reward's is surely above what it was there.  The policy of the highest gold mean is kept beside the checkpoints, that of
the beginning included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards

_START = "start_"  # how the names of what was measured before the first step begin


@dataclass(frozen=True, kw_only=True)
class GuardConfig(Options, what="guard option"):
    """How a run is guarded.

    Attributes:
        gold: the scorer that is trusted.
        every: steps between measurements.
        samples: answers of one measurement; of the one before the first step, up to as many as a window has.
        window: measurements whose mean is compared.
        surely: how many standard errors a difference of means must have.
        then: "stop" leaves the policy as it is; "roll_back" puts that of the highest gold mean in its place.
    """

    gold: RewardConfig
    every: Count = 5
    samples: Annotated[int, Range(ge=2)] = 64
    window: Count = 3
    surely: Annotated[float, Range(gt=0)] = 3.0
    then: Literal["stop", "roll_back"] = "roll_back"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The same answers under both scorers.

    Attributes:
        step: of the run; 0 is before the first one.
        gold: mean under the gold scorer, and its standard error.
        reward: mean under the reward, and its standard error.
    """

    step: int
    gold: tuple[float, float]
    reward: tuple[float, float]

    def numbers(self) -> dict[str, float]:
        """Return it for the log."""
        (gold, gold_error), (reward, reward_error) = self.gold, self.reward
        return {"gold": gold, "gold_error": gold_error, "proxy": reward, "proxy_error": reward_error}

    @classmethod
    def of_line(cls, line: Mapping[str, Any], *, start: bool = False) -> Measurement | None:
        """Return what a line of the log says of its step, or of the policy before the first; None if not measured."""
        prefix = _START if start else ""
        if f"{prefix}gold" not in line:
            return None
        gold, gold_error, reward, reward_error = (
            line[prefix + name] for name in ("gold", "gold_error", "proxy", "proxy_error")
        )
        step = line["step"] - 1 if start else line["step"]
        return cls(step=step, gold=(gold, gold_error), reward=(reward, reward_error))


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The reward and the gold scorer went different ways.

    Attributes:
        best: the last step of the window with the highest gold mean.
        sentence: what happened, for a person.
    """

    best: int
    sentence: str


@dataclass(kw_only=True)
class Guard:
    """Measures, and says when to stop.

    Attributes:
        config: how.
        rewards: where gold scores come from.
        start: of the policy that the run began with; it counts as a window of its own.
        measurements: of the run so far.
    """

    config: GuardConfig
    rewards: Rewards
    start: Measurement | None = None
    measurements: list[Measurement] = field(default_factory=list)

    def due(self, step: int) -> bool:
        """Return whether a step is to be measured."""
        return step % self.config.every == 0

    def measure(self, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> dict[str, float]:
        """Score some answers of a step once more; return the numbers for the log, none if too few could be judged."""
        made, numbers = self._measured(step, rollouts, scores, self.config.samples)
        self.measurements += [] if made is None else [made]
        return numbers

    def measure_start(self, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> dict[str, float]:
        """Score answers of the policy that the run began with, as many as a window has; return numbers for the log."""
        self.start, numbers = self._measured(step, rollouts, scores, self.config.samples * self.config.window)
        return {f"{_START}{name}": value for name, value in numbers.items()}

    def _measured(
        self, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score], max_samples: int
    ) -> tuple[Measurement | None, dict[str, float]]:
        places = np.linspace(0, len(rollouts) - 1, min(max_samples, len(rollouts))).round().astype(int)
        chosen = sorted({int(place) for place in places})
        golds = self.rewards.ask([rollouts[place].sample() for place in chosen]).result()
        both = [
            (gold.value, scores[place].value)
            for gold, place in zip(golds, chosen, strict=True)
            if gold.value is not None and scores[place].value is not None
        ]
        if len(both) < max(2, len(chosen) // 2):
            return None, {"gold_unscored": 1 - len(both) / len(chosen)}
        values = np.array(both, dtype=np.float64)
        means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))
        gold, reward = ((float(mean), float(error)) for mean, error in zip(means, errors, strict=True))
        made = Measurement(step=step, gold=gold, reward=reward)
        return made, made.numbers()

    def best(self) -> int | None:
        """Return the last step of the window with the highest gold mean, the latest of equals; None without any."""
        windows = self._windows()
        return _highest(windows)[-1].step if windows else None

    def parting(self) -> Parting | None:
        """Return what happened, if the reward and the gold scorer parted."""
        windows = self._windows()
        if not windows:
            return None
        now, best = windows[-1], _highest(windows)
        fallen = _difference(_mean(best, "gold"), _mean(now, "gold"))
        risen = _difference(_mean(now, "reward"), _mean(best, "reward"))
        if min(fallen, risen) < self.config.surely:
            return None
        gold_then, gold_now = _mean(best, "gold")[0], _mean(now, "gold")[0]
        then, here = _mean(best, "reward")[0], _mean(now, "reward")[0]
        return Parting(
            best=best[-1].step,
            sentence=f"since step {best[-1].step} the reward rose from {then:.3g} to {here:.3g} while the gold scorer "
            f"fell from {gold_then:.3g} to {gold_now:.3g} ({fallen:.1f} standard errors)",
        )

    def _windows(self) -> list[list[Measurement]]:
        size = self.config.window
        windows = [self.measurements[at : at + size] for at in range(len(self.measurements) - size + 1)]
        return windows if self.start is None else [[self.start], *windows]


def _highest(windows: Sequence[list[Measurement]]) -> list[Measurement]:
    """The window with the highest gold mean, the latest of equals."""
    return max(windows, key=lambda window: (_mean(window, "gold")[0], window[-1].step))


def _mean(window: Sequence[Measurement], of: Literal["gold", "reward"]) -> tuple[float, float]:
    """The mean over a window, and its standard error."""
    estimates: list[tuple[float, float]] = [getattr(one, of) for one in window]
    mean = sum(value for value, _ in estimates) / len(estimates)
    return mean, math.sqrt(sum(error**2 for _, error in estimates)) / len(estimates)


def _difference(left: tuple[float, float], right: tuple[float, float]) -> float:
    """How many standard errors the left mean is above the right one; without errors any difference is sure."""
    gap, error = left[0] - right[0], math.hypot(left[1], right[1])
    return gap / error if error > 0 else math.copysign(math.inf, gap) if gap else 0.0
