"""Tasks whose expected pass rate is nearest to a target: MoPPS and PCL.

Of `pool` candidates for each place, drawn evenly from all tasks, those nearest to the target are taken.

| curriculum | expectation | pool |
|---|---|---|
| `Mopps` | a draw from the Beta distribution of the task's own answers | 16 |
| `Pcl` | a value of the prompt, learnt beside the policy (`prompts.prompt_value`) | 4 |

Not covered: PCL's own value model; a linear one over the policy's last hidden states stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_between, check_finite, check_whole
from adjudge.rl_integration.trainer.contract.rollout import Rollout, by_task
from adjudge.rl_integration.trainer.contract.task import Task, check_tasks
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting, States, marks, random_of
from adjudge.rl_integration.trainer.rollouts.curricula.difficulty import Mopps, nearest
from adjudge.rl_integration.trainer.rollouts.curricula.prompt_value import PromptValue
from adjudge.rl_integration.trainer.rollouts.curricula.record import Record


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
class MoppsRule:
    """MoPPS (arXiv 2507.04632).

    Attributes:
        target: the wanted pass rate.
        prior: a and b of the Beta distribution of tasks that were never seen.
        memory: what of a task's earlier answers stays when it is seen again; released code forgets half on some data.
        pool: candidates for each place.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    target: float = 0.5
    prior: tuple[float, ...] = (1.0, 1.0)
    memory: float = 1.0
    pool: int = 16
    right_above: float | None = None

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        _check(self.pool, self.right_above)
        check_between("memory", self.memory, 0.0, 1.0)
        self._rule()

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        expectation = _Posterior(self._rule(), Record(memory=self.memory))
        return _curriculum(setting, expectation, self.target, self.pool, self.right_above)

    def _rule(self) -> Mopps:
        if len(self.prior) != 2:
            raise ValueError(f"prior={self.prior!r}; give two numbers, a and b of a Beta distribution")
        return Mopps(target=self.target, prior=(self.prior[0], self.prior[1]))


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
        """Reject what cannot be meant."""
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
