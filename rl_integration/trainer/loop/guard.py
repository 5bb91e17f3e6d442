"""Stops a run whose reward rises or stays while the quality it stands for falls (arXiv 2210.10760).

Now and then some answers of a step are also scored by a scorer that the policy is not trained against, the gold one.
The run is stopped when, of the means over a few such measurements, the gold one is surely below its highest and the
reward's is no lower than it was there: where both fall, the tasks became harder or the learning rate is bad.  The
policy of the highest gold mean is kept beside the checkpoints, that of the beginning included.

Of many means the highest is above the last one by chance, and where the reward truly rises that alone would stop the
run.  So the gold mean must have fallen as far as, of all pairs of means so far, one falls by chance no oftener than a
single pair falls by `surely`.
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

Of = Literal["gold", "reward"]

_START = "start_"  # how the names of what was measured before the first step begin


@dataclass(frozen=True, kw_only=True)
class GuardConfig(Options, what="guard option"):
    """How a run is guarded.

    Attributes:
        gold: the scorer that is trusted.
        every: steps between measurements.
        samples: answers of one measurement; of the one before the first step, up to as many as a window has.
        window: measurements whose mean is compared.
        surely: how many standard errors the gold mean must fall by if there are two means, and by as many more as make
            it as sure among all pairs of means so far: 5 in place of 3 after a thousand steps.
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
        gold: mean under the gold scorer, and its standard error; answers to one prompt depend on each other.
        reward: the same under the reward.
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
        both: list[tuple[float, float]] = []
        groups: dict[str, list[int]] = {}
        for gold_score, place in zip(golds, chosen, strict=True):
            value, task = scores[place].value, rollouts[place].task
            if gold_score.value is not None and value is not None:
                groups.setdefault(task.cohort or task.id, []).append(len(both))
                both.append((gold_score.value, value))
        if len(groups) < 2 or len(both) < len(chosen) // 2:
            return None, {"gold_unscored": 1 - len(both) / len(chosen)}
        values = np.array(both, dtype=np.float64)
        means = values.mean(axis=0)
        sums = np.array([(values[places] - means).sum(axis=0) for places in groups.values()])
        errors = np.sqrt((sums**2).sum(axis=0) * len(groups) / (len(groups) - 1)) / len(values)
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
        fallen = _difference(self._mean(best), self._mean(now))
        # Means that share measurements are hardly two; and the tail of a normal distribution falls as exp(-x²/2).
        apart = 1 + len(self.measurements) // self.config.window
        needed = math.hypot(self.config.surely, math.sqrt(2 * math.log(max(1, math.comb(apart, 2)))))
        gold_then, gold_now = _level(best, "gold"), _level(now, "gold")
        then, here = _level(best, "reward"), _level(now, "reward")
        if fallen < needed or here < then:
            return None
        return Parting(
            best=best[-1].step,
            sentence=f"since step {best[-1].step} the reward went from {then:.3g} to {here:.3g} while the gold scorer "
            f"fell from {gold_then:.3g} to {gold_now:.3g} ({fallen:.1f} standard errors)",
        )

    def _windows(self) -> list[list[Measurement]]:
        size = self.config.window
        windows = [self.measurements[at : at + size] for at in range(len(self.measurements) - size + 1)]
        return windows if self.start is None else [[self.start], *windows]

    def _mean(self, window: Sequence[Measurement]) -> tuple[float, float]:
        """The gold mean over a window, and its standard error: no less than that of as many usual measurements.

        Among many windows the highest is one whose few prompts happen to agree, and its own error is then too small.
        """
        known = [*filter(None, [self.start]), *self.measurements]
        usual = _squared_error(known) * len(known) / len(window)
        return _level(window, "gold"), math.sqrt(max(_squared_error(window), usual))


def _highest(windows: Sequence[list[Measurement]]) -> list[Measurement]:
    """The window with the highest gold mean, the latest of equals."""
    return max(windows, key=lambda window: (_level(window, "gold"), window[-1].step))


def _level(window: Sequence[Measurement], of: Of) -> float:
    return sum((one.gold if of == "gold" else one.reward)[0] for one in window) / len(window)


def _squared_error(window: Sequence[Measurement]) -> float:
    """The squared standard error of the gold one."""
    return sum(one.gold[1] ** 2 for one in window) / len(window) ** 2


def _difference(left: tuple[float, float], right: tuple[float, float]) -> float:
    """How many standard errors the left mean is above the right one; without errors any difference is sure."""
    gap, error = left[0] - right[0], math.hypot(left[1], right[1])
    return gap / error if error > 0 else math.copysign(math.inf, gap) if gap else 0.0
