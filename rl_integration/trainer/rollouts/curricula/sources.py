"""Which tasks a batch is of: by pass rates (MoPPS, PCL, Kimi k1.5), or by what sources of tasks teach (SEC, DUMP).

| curriculum | expected pass rate of a task | candidates for each place |
|---|---|---|
| `Mopps` (arXiv 2507.04632) | one draw from Beta(a + right, b + wrong), which keeps uncertain prompts in play | 16 |
| `Pcl` (arXiv 2510.01135) | a value of the prompt, learnt beside the policy (`PromptValue`) | 4 |

`Prioritized` (Kimi k1.5, arXiv 2501.12599) draws from all tasks, with chances that go with 1 - s, s the share of right
answers to a task so far: 0 for one that was never seen.

| curriculum | score of source j | temperature of the softmax |
|---|---|---|
| `Sec` (arXiv 2505.14970) | moving average over batches of mean |A| | 0.2 to 1, tuned |
| `Dump` (arXiv 2504.09710) | mean |A| of the last 300 samples + sqrt(2 ln(N + 1) / (n_j + 1)) | 0.1 |

n_j counts the samples of j, N those of all.  SEC's temperatures and the weight 0.5 of the newest batch are from memory
of the paper.  Each place of a batch draws a source by these chances, and takes the next task of that source's own
shuffled order; one that has no further task for the batch is left out while others have one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from adjudge.options import Count, Options, Range, Share
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.arrays import Floats, Integers, check_number, floats
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskOrder, by_task, check_tasks
from adjudge.rl_integration.trainer.rewards.groups import Groups, groups_of
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import (
    Curriculum,
    Record,
    Setting,
    States,
    marks,
    random_of,
)

_SOURCE = frozenset({"source"})


@dataclass(frozen=True, kw_only=True)
class Mopps(Options):
    """MoPPS: Thompson sampling of prompts; see the module.

    Attributes:
        target: the wanted pass rate.
        prior: a and b of the Beta distribution of prompts that were never seen.
        memory: what of a task's earlier answers stays when it is seen again; released code forgets half on some data.
        pool: candidates for each place.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    target: Share = 0.5
    prior: tuple[float, ...] = (1.0, 1.0)
    memory: Share = 1.0
    pool: Count = 16
    right_above: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prior) != 2:
            raise ValueError(f"prior={self.prior!r}; give two numbers, a and b of a Beta distribution")
        for value in self.prior:
            check_number("prior", value, Range(gt=0))

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return Curriculum(
            source=RatedSource(
                setting,
                Posterior(self.prior, Record(memory=self.memory)),
                choose_nearest(self),
                right_above=self.right_above,
            )
        )


@dataclass(frozen=True, kw_only=True)
class Pcl(Options):
    """PCL: a value of prompts; see the module.

    Attributes:
        target: the wanted pass rate.
        pool: candidates for each place; each costs a forward pass over its prompt.
        rate: the share of its error that the value loses with one observation.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    target: Share = 0.5
    pool: Count = 4
    rate: Share = 0.5
    right_above: float | None = None

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return Curriculum(
            source=RatedSource(
                setting,
                PromptValue(setting.states, rate=self.rate),
                choose_nearest(self),
                right_above=self.right_above,
            )
        )


@dataclass(frozen=True, kw_only=True)
class Prioritized(Options):
    """Kimi k1.5: tasks are drawn by how often they are failed; see the module.

    Attributes:
        memory: what of a task's earlier answers stays when it is seen again.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    memory: Share = 1.0
    right_above: float | None = None

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        # All but no prior: what was always right keeps a chance, but only against its like.
        rates = Posterior((0.0, 1e-9), Record(memory=self.memory))
        return Curriculum(source=RatedSource(setting, rates, choose_failed, right_above=self.right_above))


def nearest(estimates: Floats, count: int, *, target: float = 0.5) -> Integers:
    """Return the places of the candidates whose estimates are nearest to the target, nearest first.

    Args:
        estimates: (n,) pass rates.
        count: how many are wanted; all if there are no more.
        target: the wanted pass rate, in [0, 1].

    Raises:
        ValueError: an estimate is not finite.
    """
    estimates = floats("estimates", estimates)
    if not np.isfinite(estimates).all():
        raise ValueError("an estimate of a pass rate is not finite; leave that prompt out")
    return np.argsort(np.abs(estimates - target), kind="stable")[:count]


class Posterior:
    """MoPPS's expectation: Beta(a + right, b + wrong) of a task's own answers."""

    def __init__(self, prior: Sequence[float], record: Record) -> None:
        self._prior = prior
        self._record = record

    def _counts(self, tasks: Sequence[Task]) -> tuple[Floats, Floats]:
        known = [self._record.prompt(task.id) for task in tasks]
        right, wrong = self._prior
        return np.array([right + one.right for one in known]), np.array([wrong + one.wrong for one in known])

    def draw(self, tasks: Sequence[Task], random: np.random.Generator) -> Floats:
        """Return (n,) pass rates to choose by: one draw from each task's distribution."""
        return random.beta(*self._counts(tasks))

    def mean(self, tasks: Sequence[Task]) -> Floats:
        """Return (n,) the best guesses: the mean of each task's distribution."""
        right, wrong = self._counts(tasks)
        means: Floats = right / (right + wrong)
        return means

    def observe(self, tasks: Sequence[Task], answers: Sequence[Sequence[float]]) -> None:
        """Take in the shares, in [0, 1], of the judged answers to each task; at least one for each."""
        names = [task.id for task, judged in zip(tasks, answers, strict=True) for _ in judged]
        self._record.observe(names, Groups.of([value for judged in answers for value in judged], names))

    def state(self) -> dict[str, Any]:
        """Return the record."""
        return self._record.to_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a record."""
        self._record = Record.from_dict(state)


class PromptValue:
    """PCL's expectation: the pass rate of a prompt before anything is written to it, from the policy's own states h(x).

        V(x) = w . h(x) + b, cut to [0, 1];  after a batch, for each prompt with the observed pass rate p,
        (w, b) += rate * (p - V(x)) * (h(x), 1) / (1 + |h(x)|^2)

    The step is normalised by its length, so that it needs no tuning to the scale of h.  The paper trains a whole model
    as V beside the policy; this is its linear head alone.

    Args:
        states: what a model makes of prompts.
        rate: the share of the error that one observation takes away, in [0, 1].
        prior: the value before anything was observed, in [0, 1].
    """

    def __init__(self, states: States, *, rate: float = 0.5, prior: float = 0.5) -> None:
        self._states = states
        self._rate = rate
        self._bias = prior
        self._weights: Floats | None = None

    def draw(self, tasks: Sequence[Task], random: np.random.Generator) -> Floats:
        """Return the values: there is nothing to draw."""
        return self.mean(tasks)

    def mean(self, tasks: Sequence[Task]) -> Floats:
        """Return (n,) values.

        Raises:
            ValueError: the states are not finite, or of another width than those before.
        """
        return np.clip(self._raw(self._read(tasks)), 0.0, 1.0)

    def observe(self, tasks: Sequence[Task], answers: Sequence[Sequence[float]]) -> None:
        """Learn from observed pass rates, one after the other."""
        states = self._read(tasks)
        rates = np.array([sum(judged) / len(judged) for judged in answers])
        if self._weights is None:
            self._weights = np.zeros(states.shape[1])
        for state, rate in zip(states, rates, strict=True):
            step = self._rate * (rate - self._raw(state[None])[0]) / (1 + state @ state)
            self._weights = self._weights + step * state
            self._bias += float(step)

    def state(self) -> dict[str, Any]:
        """Return bias and weights."""
        return {"bias": self._bias, "weights": None if self._weights is None else self._weights.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from bias and weights."""
        self._bias = float(state["bias"])
        self._weights = None if state["weights"] is None else np.array(state["weights"], dtype=np.float64)

    def _raw(self, states: Floats) -> Floats:
        """Values that are not cut, so that an error beyond the cut is still an error."""
        values: Floats = np.full(len(states), self._bias)
        return values if self._weights is None else values + states @ self._weights

    def _read(self, tasks: Sequence[Task]) -> Floats:
        states = floats("states", self._states(tasks))
        if states.ndim != 2 or (self._weights is not None and states.shape[1] != len(self._weights)):
            width = "d" if self._weights is None else len(self._weights)
            raise ValueError(f"the states of prompts have the shape {states.shape}; it must be (n, {width})")
        if not np.isfinite(states).all():
            raise ValueError("a prompt's state is not finite; look at the policy's weights")
        return states


Expectation: TypeAlias = Posterior | PromptValue
Choose: TypeAlias = Callable[[Expectation, Sequence[Task], int, np.random.Generator], list[Task]]
"""Returns at most so many different tasks, the most wanted first; fewer only where there are no more."""


def choose_nearest(rule: Mopps | Pcl) -> Choose:
    """Return what chooses tasks near a target from a pool."""

    def choose(expectation: Expectation, tasks: Sequence[Task], count: int, random: np.random.Generator) -> list[Task]:
        size = min(rule.pool * count, len(tasks))
        candidates = [tasks[place] for place in random.choice(len(tasks), size, replace=False)]
        estimates = expectation.draw(candidates, random)
        return [candidates[at] for at in nearest(estimates, count, target=rule.target)]

    return choose


def choose_failed(
    expectation: Expectation, tasks: Sequence[Task], count: int, random: np.random.Generator
) -> list[Task]:
    """Draw tasks without replacement, with chances that go with 1 - their pass rates."""
    waits = random.exponential(size=len(tasks)) / (1 - expectation.mean(tasks))
    return [tasks[place] for place in np.argsort(waits, kind="stable")[:count]]


class RatedSource:
    """Draws tasks by their pass rates; see the module.

    Raises:
        ValueError: there are no tasks, or two have one id.
    """

    def __init__(
        self, setting: Setting, expectation: Expectation, choose: Choose, *, right_above: float | None
    ) -> None:
        check_tasks(setting.tasks)
        self._choose = choose
        self._right_above = right_above
        self._tasks = setting.tasks
        self._seed = setting.seed
        self._expectation = expectation
        self._draws = 0

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, the most wanted first."""
        random = random_of(self._seed, self._draws)
        self._draws += 1
        chosen: list[Task] = []
        while len(chosen) < count:  # a second time only where there are fewer tasks than places
            chosen += self._choose(self._expectation, self._tasks, count, random)[: count - len(chosen)]
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


@dataclass(frozen=True, kw_only=True)
class Sec(Options):
    """SEC: sources by the moving average of advantages; see the module.

    Attributes:
        temperature: small for nearly always the best source.
        rate: weight of the newest batch in the moving average.
        column: the field of a task's `extra` that names its source.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    temperature: Annotated[float, Range(gt=0)] = 0.2
    rate: Share = 0.5
    column: str = "source"

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return Curriculum(source=MixedSource(self, setting, Record(rate=self.rate)))

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        return _softmax([record.source(name).value for name in sources], self.temperature)


@dataclass(frozen=True, kw_only=True)
class Dump(Options):
    """DUMP: sources by recent advantages and an upper bound for what is not known; see the module.

    Attributes:
        temperature: small for nearly always the best source.
        window: answers of a source whose advantages are remembered.
        column: the field of a task's `extra` that names its source.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    temperature: Annotated[float, Range(gt=0)] = 0.1
    window: Count = 300
    column: str = "source"

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return Curriculum(source=MixedSource(self, setting, Record(window=self.window)))

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        known = [record.source(name) for name in sources]
        total = sum(one.seen for one in known)
        scores = [one.mean + math.sqrt(2 * math.log(total + 1) / (one.seen + 1)) for one in known]
        return _softmax(scores, self.temperature)


@dataclass(frozen=True, kw_only=True)
class Mixture(Options):
    """Sources by fixed chances, such as `adjudge data mixture` finds (MoDoMoDo, arXiv 2505.24871).

    Attributes:
        weights: the share of each source; they need not sum to 1, and 0 leaves a source out.  None for equal ones.
        column: the field of a task's `extra` that names its source.
    """

    parts: ClassVar[frozenset[str]] = _SOURCE

    weights: Mapping[str, float] = field(default_factory=dict)
    column: str = "source"

    def made(self, setting: Setting) -> Curriculum:
        """Return the source.

        Raises:
            ValueError: a source has no weight, a weight above 0 has no source, or none is above 0.
        """
        source = MixedSource(self, setting, Record())
        if self.weights and source.names != (sorted(name for name, some in self.weights.items() if some > 0) or None):
            raise ValueError(
                f"mixture.weights is {dict(self.weights)}, and the other tasks than those of weight 0 are from "
                f"{', '.join(source.names) or 'nowhere'}; give each of these a weight above 0, and no other"
            )
        return Curriculum(source=source)

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        shares = [self.weights.get(name, 1.0) for name in sources]  # `made` lets all be named, or none
        return floats("weights", shares) / math.fsum(shares)


def _softmax(scores: Sequence[float], temperature: float) -> Floats:
    if not len(scores):
        raise ValueError("there are no sources to choose from; give at least one")
    powers = np.exp((np.array(scores) - max(scores)) / temperature)
    chances: Floats = powers / powers.sum()
    return chances


class MixedSource:
    """Draws tasks by their sources; see the module.

    Raises:
        ValueError: a task names no source, there are no tasks, or two have one id.
    """

    def __init__(self, rule: Sec | Dump | Mixture, setting: Setting, record: Record) -> None:
        check_tasks(setting.tasks)
        self._rule = rule
        self._record = record
        self._advantages = setting.advantages
        self._seed = setting.seed
        self._draws = 0
        parted: dict[str, list[Task]] = {}
        for task in setting.tasks:
            parted.setdefault(self._source_of(task), []).append(task)
        weights = rule.weights if isinstance(rule, Mixture) else {}
        self._sizes = {name: len(parted[name]) for name in sorted(parted) if weights.get(name) != 0}
        self._orders = {name: TaskOrder(parted[name], seed=setting.seed) for name in self._sizes}

    @property
    def names(self) -> list[str]:
        """The sources that are drawn from, sorted."""
        return list(self._sizes)

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, those of a source side by side."""
        random = random_of(self._seed, self._draws)
        self._draws += 1
        taken: Counter[str] = Counter()
        for place in range(count):
            every = place >= sum(self._sizes.values())  # more places than tasks
            names = [name for name, size in self._sizes.items() if every or taken[name] < size]
            chances = self._rule.chances(self._record, names)
            taken[names[int(random.choice(len(names), p=chances))]] += 1
        return [task for name, order in self._orders.items() for task in order.draw(taken[name])]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Learn how large the advantages were; return each source's share of the answers."""
        names = [self._source_of(rollout.task) for rollout in rollouts]
        groups = groups_of(rollouts, scores)
        self._record.observe_sources(names, groups, self._advantages(groups))
        return {f"source/{name}": names.count(name) / len(names) for name in self._sizes}

    def state(self) -> dict[str, Any]:
        """Return the place in each order, and what is known of the sources."""
        return {
            "draws": self._draws,
            "record": self._record.to_dict(),
            "orders": {name: order.state() for name, order in self._orders.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._draws = state["draws"]
        self._record = Record.from_dict(state["record"])
        for name, order in self._orders.items():
            order.restore(state["orders"][name])

    def _source_of(self, task: Task) -> str:
        source = task.extra.get(self._rule.column)
        if not isinstance(source, str) or not source:
            raise ValueError(
                f"the task {task.id!r} does not say where it is from: its extra field {self._rule.column!r} is "
                f"{source!r}; give every task a source, or name another field (the curriculum's option column)"
            )
        return source
