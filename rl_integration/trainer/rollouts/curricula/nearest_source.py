"""Tasks whose expected pass rate is nearest to a target: MoPPS and PCL.

Prompts near a wanted pass rate, chosen before anything is sampled: MoPPS and PCL.

| rule | estimate of the pass rate | source |
|---|---|---|
| `Mopps` | one draw from Beta(a + right, b + wrong) for each candidate | MoPPS, arXiv 2507.04632 |
| `nearest` | any estimates, such as a value model's of the prompt alone (`PromptValue`) | PCL, arXiv 2510.01135 |

Both take the candidates nearest to 0.5, MoPPS of 16 for each place and PCL of four.  A draw instead of the mean keeps
uncertain prompts in play.  On some data MoPPS forgets: `Record(memory=0.5)`.

PCL's value of a prompt (arXiv 2510.01135): the pass rate that is expected of it before anything is written.

    V(x) = w . h(x) + b, cut to [0, 1];  after a batch, for each prompt with the observed pass rate p,
    (w, b) += rate * (p - V(x)) * (h(x), 1) / (1 + |h(x)|^2)

h(x) is what a model makes of the prompt, such as the last hidden state of its last token.  The step is normalised by
its length, so that it needs no tuning to the scale of h, and follows the policy as that changes.

The paper trains a whole model as V beside the policy; this is its linear head alone, over the policy's own states.

Of `pool` candidates for each place, drawn evenly from all tasks, those nearest to the target are taken.

| curriculum | expectation | pool |
|---|---|---|
| `Mopps` | a draw from the Beta distribution of the task's own answers | 16 |
| `Pcl` | a value of the prompt, learnt beside the policy (`PromptValue`) | 4 |

Not covered: which prompts are candidates; where h comes from; PCL's own value model; a linear one over the policy's
last hidden states stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, floats, same_shape
from adjudge.rl_integration.trainer.contract.options import check_above, check_between, check_finite, check_whole
from adjudge.rl_integration.trainer.contract.rollout import Rollout, by_task
from adjudge.rl_integration.trainer.contract.task import Task, check_tasks
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import (
    Curriculum,
    Record,
    Setting,
    States,
    marks,
    random_of,
)


def nearest(estimates: Floats, count: int, *, target: float = 0.5) -> Integers:
    """Return the places of the candidates whose estimates are nearest to the target, nearest first.

    Args:
        estimates: (n,) pass rates.
        count: how many are wanted; all if there are no more.
        target: the wanted pass rate, in [0, 1].

    Raises:
        ValueError: an estimate is not finite, or an option is out of range.
    """
    check_whole("count", count, 0)
    check_between("target", target, 0.0, 1.0)
    estimates = floats("estimates", estimates)
    if not np.isfinite(estimates).all():
        raise ValueError("an estimate of a pass rate is not finite; leave that prompt out")
    return np.argsort(np.abs(estimates - target), kind="stable")[:count]


@dataclass(frozen=True, kw_only=True)
class Mopps:
    """Thompson sampling of prompts; see the module.

    Attributes:
        target: the wanted pass rate.
        prior: a and b of the Beta distribution of prompts that were never seen.
    """

    target: float = 0.5
    prior: tuple[float, ...] = (1.0, 1.0)

    def __post_init__(self) -> None:
        check_between("target", self.target, 0.0, 1.0)
        if len(self.prior) != 2:
            raise ValueError(f"prior={self.prior!r}; give two numbers, a and b of a Beta distribution")
        for value in self.prior:
            check_above("prior", value, 0.0)

    def estimates(self, record: Record, candidates: Sequence[str], random: np.random.Generator) -> Floats:
        """Return one draw from each candidate's distribution of pass rates."""
        known = [record.prompt(name) for name in candidates]
        right = np.array([self.prior[0] + one.right for one in known])
        wrong = np.array([self.prior[1] + one.wrong for one in known])
        return random.beta(right, wrong)

    def means(self, record: Record, candidates: Sequence[str]) -> Floats:
        """Return the mean of each candidate's distribution."""
        known = [record.prompt(name) for name in candidates]
        return np.array([(self.prior[0] + one.right) / (sum(self.prior) + one.right + one.wrong) for one in known])

    def select(self, record: Record, candidates: Sequence[str], count: int, random: np.random.Generator) -> list[str]:
        """Return so many of the candidates, those whose draws are nearest to the target first."""
        places = nearest(self.estimates(record, candidates, random), count, target=self.target)
        return [candidates[int(place)] for place in places]


class PromptValue:
    """A linear value of prompts; see the module.

    Args:
        rate: the share of the error that one observation takes away, in [0, 1].
        prior: the value before anything was observed, in [0, 1].
    """

    def __init__(self, *, rate: float = 0.5, prior: float = 0.5) -> None:
        check_between("rate", rate, 0.0, 1.0)
        check_between("prior", prior, 0.0, 1.0)
        self._rate = rate
        self._bias = prior
        self._weights: Floats | None = None

    def __call__(self, states: Floats) -> Floats:
        """Return (n,) values of (n, d) states.

        Raises:
            ValueError: the states are not finite, or of another width than those before.
        """
        states = self._checked(states)
        return np.clip(self._raw(states), 0.0, 1.0)

    def observe(self, states: Floats, rates: Floats) -> None:
        """Learn from observed pass rates, one after the other.

        Args:
            states: (n, d).
            rates: (n,) in [0, 1].

        Raises:
            ValueError: as above, or the numbers of both differ.
        """
        states = self._checked(states)
        same_shape("rates", np.shape(rates), (len(states),))
        if self._weights is None:
            self._weights = np.zeros(states.shape[1])
        for state, rate in zip(states, rates, strict=True):
            step = self._rate * (rate - self._raw(state[None])[0]) / (1 + state @ state)
            self._weights = self._weights + step * state
            self._bias += float(step)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, for a checkpoint."""
        return {"bias": self._bias, "weights": None if self._weights is None else self._weights.tolist()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` returned."""
        self._bias = float(data["bias"])
        self._weights = None if data["weights"] is None else np.array(data["weights"], dtype=np.float64)

    def _raw(self, states: Floats) -> Floats:
        """Values that are not cut, so that an error beyond the cut is still an error."""
        found: Floats = np.full(len(states), self._bias)
        return found if self._weights is None else found + states @ self._weights

    def _checked(self, states: Floats) -> Floats:
        states = floats("states", states)
        if states.ndim != 2 or (self._weights is not None and states.shape[1] != len(self._weights)):
            width = "d" if self._weights is None else len(self._weights)
            raise ValueError(f"the states of prompts have the shape {states.shape}; it must be (n, {width})")
        if not np.isfinite(states).all():
            raise ValueError("a prompt's state is not finite; look at the policy's weights")
        return states


class Expectation(Protocol):
    """What pass rates are expected of tasks."""

    def draw(self, tasks: Sequence[Task], random: np.random.Generator) -> Floats:
        """Return (n,) pass rates to choose by."""
        ...

    def mean(self, tasks: Sequence[Task]) -> Floats:
        """Return (n,) the best guesses."""
        ...

    def observe(self, tasks: Sequence[Task], answers: Sequence[Sequence[float]]) -> None:
        """Take in the shares, in [0, 1], of the judged answers to each task; at least one for each."""
        ...

    def state(self) -> dict[str, Any]:
        """Return it as plain JSON data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...


class NearestSource:
    """Draws tasks near a target; see the module.

    Args:
        tasks: what there is.
        expectation: of their pass rates.
        target: the wanted pass rate.
        pool: candidates for each place; no more than there are tasks.
        right_above: see `marks`.
        seed: of the candidates.

    Raises:
        ValueError: there are no tasks, or two have one id.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        expectation: Expectation,
        *,
        target: float,
        pool: int,
        right_above: float | None,
        seed: int,
    ) -> None:
        check_tasks(tasks)
        self._tasks = tasks
        self._expectation = expectation
        self._target = target
        self._pool = pool
        self._right_above = right_above
        self._seed = seed
        self._draws = 0

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, the nearest first."""
        random = random_of(self._seed, self._draws)
        self._draws += 1
        chosen: list[Task] = []
        while len(chosen) < count:  # a second time only where there are fewer tasks than places
            size = min(self._pool * count, len(self._tasks))
            candidates = [self._tasks[place] for place in random.choice(len(self._tasks), size, replace=False)]
            estimates = self._expectation.draw(candidates, random)
            chosen += [candidates[place] for place in nearest(estimates, count - len(chosen), target=self._target)]
        return chosen

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Learn how right the answers were; return how far off the guesses had been, and the mean pass rate."""
        tasks: list[Task] = []
        answers: list[list[float]] = []
        for places in by_task(rollouts).values():
            given = marks([scores[place].value for place in places], self._right_above)
            judged = [value for value in given if value is not None]
            if judged:
                tasks.append(rollouts[places[0]].task)
                answers.append(judged)
        if not tasks:
            return {}
        rates = np.array([sum(judged) / len(judged) for judged in answers])
        error = float(np.abs(self._expectation.mean(tasks) - rates).mean())
        self._expectation.observe(tasks, answers)
        return {"pass_rate": float(rates.mean()), "pass_rate_error": error}

    def state(self) -> dict[str, Any]:
        """Return how often it was asked, and the expectation."""
        return {"draws": self._draws, "expectation": self._expectation.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._draws = state["draws"]
        self._expectation.restore(state["expectation"])


class _Posterior:
    """MoPPS: what a task's own answers say."""

    def __init__(self, rule: Mopps, record: Record) -> None:
        self._rule = rule
        self._record = record

    def draw(self, tasks: Sequence[Task], random: np.random.Generator) -> Floats:
        return self._rule.estimates(self._record, [task.id for task in tasks], random)

    def mean(self, tasks: Sequence[Task]) -> Floats:
        return self._rule.means(self._record, [task.id for task in tasks])

    def observe(self, tasks: Sequence[Task], answers: Sequence[Sequence[float]]) -> None:
        names = [task.id for task, judged in zip(tasks, answers, strict=True) for _ in judged]
        self._record.observe(names, Groups.of([value for judged in answers for value in judged], names))

    def state(self) -> dict[str, Any]:
        return self._record.to_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._record = Record.from_dict(state)


class _Value:
    """PCL: what a value of the prompt says."""

    def __init__(self, value: PromptValue, states: States) -> None:
        self._value = value
        self._states = states

    def draw(self, tasks: Sequence[Task], random: np.random.Generator) -> Floats:
        return self.mean(tasks)

    def mean(self, tasks: Sequence[Task]) -> Floats:
        return self._value(self._states(tasks))

    def observe(self, tasks: Sequence[Task], answers: Sequence[Sequence[float]]) -> None:
        rates = np.array([sum(judged) / len(judged) for judged in answers])
        self._value.observe(self._states(tasks), rates)

    def state(self) -> dict[str, Any]:
        return self._value.to_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._value.restore(state)


@dataclass(frozen=True, kw_only=True)
class MoppsRule(Mopps):
    """MoPPS (arXiv 2507.04632).

    Attributes:
        memory: what of a task's earlier answers stays when it is seen again; released code forgets half on some data.
        pool: candidates for each place.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    memory: float = 1.0
    pool: int = 16
    right_above: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.pool, self.right_above)
        check_between("memory", self.memory, 0.0, 1.0)

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        expectation = _Posterior(self, Record(memory=self.memory))
        return _curriculum(setting, expectation, self.target, self.pool, self.right_above)


@dataclass(frozen=True, kw_only=True)
class PclRule:
    """PCL (arXiv 2510.01135).

    Attributes:
        target: the wanted pass rate.
        pool: candidates for each place; each costs a forward pass over its prompt.
        rate: the share of its error that the value loses with one observation.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    target: float = 0.5
    pool: int = 4
    rate: float = 0.5
    right_above: float | None = None

    def __post_init__(self) -> None:
        _check(self.pool, self.right_above)
        check_between("target", self.target, 0.0, 1.0)
        PromptValue(rate=self.rate)

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        expectation = _Value(PromptValue(rate=self.rate), setting.states)
        return _curriculum(setting, expectation, self.target, self.pool, self.right_above)


def _check(pool: int, right_above: float | None) -> None:
    check_whole("pool", pool, 1)
    if right_above is not None:
        check_finite("right_above", right_above)


def _curriculum(
    setting: Setting, expectation: Expectation, target: float, pool: int, right_above: float | None
) -> Curriculum:
    source = NearestSource(
        setting.tasks, expectation, target=target, pool=pool, right_above=right_above, seed=setting.seed
    )
    return Curriculum(source=source)
