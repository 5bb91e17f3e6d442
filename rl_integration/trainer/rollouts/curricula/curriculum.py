"""What a curriculum is made of: a source of tasks, rounds of answers, and a filter; and what is known of prompts.

| part | asked | decides |
|---|---|---|
| `TaskSource` | before a batch is written | which tasks it is of |
| `Rounds` | when a task's answers have scores | how many more it gets |
| `Filter` | when the batch is complete | how often each answer is learnt from |

Each may be missing.  All processes of a run ask with the same batches, so each keeps the same state; what is random
comes from the run's seed and from what was asked before.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from adjudge.options import Range
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, Integers, check_number, same_shape
from adjudge.rl_integration.trainer.data.task import Task, TaskSource
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """One prompt.

    Attributes:
        seen: samples that were judged, ever.
        right: the sum of their rewards, in [0, 1] each; older ones may have faded.
        wrong: the sum of 1 - reward, likewise.
    """

    seen: int = 0
    right: float = 0.0
    wrong: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One source of prompts, such as a data set or a category.

    Attributes:
        seen: samples that were judged, ever.
        recent: sizes of the last advantages, oldest first.
        value: a moving average over batches of the mean size of advantages.
    """

    seen: int = 0
    recent: tuple[float, ...] = ()
    value: float = 0.0

    @property
    def mean(self) -> float:
        """The mean of the recent sizes; 0 if there are none."""
        return math.fsum(self.recent) / len(self.recent) if self.recent else 0.0


class Record:
    """What groups of rewards have said so far.

    Args:
        memory: what of a prompt's earlier rewards stays when it is seen again, in [0, 1]; 1 forgets nothing.
        window: how many advantages of a source are recent.
        rate: weight of the newest batch in a source's moving average, in [0, 1].
    """

    def __init__(self, *, memory: float = 1.0, window: int = 300, rate: float = 0.5) -> None:
        check_number("memory", memory, Range(ge=0, le=1))
        check_number("window", window, Range(ge=1), whole=True)
        check_number("rate", rate, Range(ge=0, le=1))
        self._options = {"memory": memory, "window": window, "rate": rate}
        self._memory, self._window, self._rate = memory, window, rate
        self._prompts: dict[str, PromptRecord] = {}
        self._sources: dict[str, SourceRecord] = {}

    def prompt(self, name: str) -> PromptRecord:
        """Return what is known of a prompt; one that was never seen has an empty record."""
        return self._prompts.get(name, PromptRecord())

    def source(self, name: str) -> SourceRecord:
        """Return what is known of a source; one that was never seen has an empty record."""
        return self._sources.get(name, SourceRecord())

    def observe(self, prompts: Sequence[str], groups: Groups) -> None:
        """Take in what a batch says about its prompts.

        Raises:
            ValueError: numbers of samples differ, or a valid reward is outside [0, 1].
        """
        same_shape("prompts", (len(prompts),), (len(groups),))
        bad = np.flatnonzero(groups.valid & ((groups.rewards < 0) | (groups.rewards > 1)))
        if len(bad):
            raise ValueError(
                f"sample {bad[0]} has the reward {groups.rewards[bad[0]]}; records are of rewards in [0, 1], "
                "so say from which reward on an answer is right (right_above)"
            )
        seen: dict[str, list[float]] = {}
        for name, reward, valid in zip(prompts, groups.rewards.tolist(), groups.valid, strict=True):
            if valid:
                seen.setdefault(name, []).append(reward)
        for name, rewards in seen.items():
            before, right = self.prompt(name), math.fsum(rewards)
            self._prompts[name] = PromptRecord(
                seen=before.seen + len(rewards),
                right=self._memory * before.right + right,
                wrong=self._memory * before.wrong + len(rewards) - right,
            )

    def observe_sources(self, sources: Sequence[str], groups: Groups, advantages: Floats) -> None:
        """Take in what a batch says about where its prompts are from.

        Raises:
            ValueError: numbers of samples differ.
        """
        same_shape("sources", (len(sources),), (len(groups),))
        same_shape("advantages", np.shape(advantages), (len(groups),))
        sizes: dict[str, list[float]] = {}
        for name, size, counted in zip(sources, np.abs(advantages).tolist(), groups.counted(2), strict=True):
            if counted:
                sizes.setdefault(name, []).append(size)
        for name, magnitudes in sizes.items():
            before = self.source(name)
            self._sources[name] = SourceRecord(
                seen=before.seen + len(magnitudes),
                recent=(*before.recent, *magnitudes)[-self._window :],
                value=self._rate * math.fsum(magnitudes) / len(magnitudes) + (1 - self._rate) * before.value,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, for a checkpoint."""
        return {
            "options": dict(self._options),
            "prompts": {name: asdict(record) for name, record in self._prompts.items()},
            "sources": {name: asdict(record) for name, record in self._sources.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that `to_dict` wrote, or raise `ValueError`."""
        try:
            made = cls(**data["options"])
            made._prompts = {name: PromptRecord(**record) for name, record in data["prompts"].items()}
            made._sources = {
                name: SourceRecord(**{**record, "recent": tuple(record["recent"])})
                for name, record in data["sources"].items()
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"this is not a record of prompts: {error!r}; start a new one") from None
        return made


States: TypeAlias = Callable[[Sequence[Task]], Floats]
"""Returns (n, d) what the policy makes of n prompts."""


Rounds: TypeAlias = Callable[[Sequence[float | None], int], int]
"""From the scores of all answers to one task so far (None where one could not be judged), and how many rounds there
were, to how many answers the next round has; 0 for none."""


class Filter:
    """Says how often each answer of a batch is learnt from; a group of zeros is dropped.

    Args:
        rule: returns (n,) counts, or truth for 1, from a batch and what it remembers, plain JSON data that it may
            change; it begins empty.
        refills: whether further batches are drawn for groups that were dropped, up to `rollouts.max_num_gen_batches`.
    """

    def __init__(self, rule: Callable[[Groups, dict[str, Any]], Integers | Bools], *, refills: bool = False) -> None:
        self._rule = rule
        self._memory: dict[str, Any] = {}
        self.refills = refills

    def copies(self, groups: Groups) -> Integers:
        """Return (n,) how often each answer is learnt from."""
        return self._rule(groups, self._memory).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return all that the next call depends on, as plain JSON data."""
        return copy.deepcopy(self._memory)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._memory = copy.deepcopy(dict(state))

    def and_then(self, other: Filter) -> Filter:
        """Return a filter that keeps what both keep, as often as this one says."""

        def rule(groups: Groups, memory: dict[str, Any]) -> Integers:
            first, second = (
                one._rule(groups, memory.setdefault(place, {})) for place, one in (("0", self), ("1", other))
            )
            return np.where(second > 0, first, 0)

        return Filter(rule, refills=self.refills or other.refills)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a run tells its curriculum.

    Attributes:
        tasks: all of them.
        seed: of the run.
        num_generations: answers to a task in the first round.
        advantages: of a batch, where the objective has a rule for them.
        states: what the policy makes of prompts now.
    """

    tasks: Sequence[Task]
    seed: int
    num_generations: int
    advantages: Callable[[Groups], Floats]
    states: States


@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """The parts; see the module."""

    source: TaskSource | None = None
    rounds: Rounds | None = None
    filter: Filter | None = None


class CurriculumRule(Protocol):
    """The options of a curriculum, from which its parts are made.

    Attributes:
        parts: the names of the parts that it has: "source", "rounds", "filter".
    """

    parts: ClassVar[frozenset[str]]

    def made(self, setting: Setting) -> Curriculum:
        """Return the parts for a run.

        Raises:
            ValueError: they do not fit the run's tasks or its groups.
        """
        ...


def marks(values: Sequence[float | None], right_above: float | None) -> list[float | None]:
    """Return scores as shares of what is right, in [0, 1].

    Raises:
        ValueError: a score that is taken as it is lies outside [0, 1].
    """
    if right_above is not None:
        return [None if value is None else float(value > right_above) for value in values]
    for value in values:
        if value is not None and not 0 <= value <= 1:
            raise ValueError(
                f"an answer has the score {value!r}; this curriculum reads scores from 0 to 1, so set its option "
                "right_above to the score above which an answer is right"
            )
    return list(values)


def random_of(seed: int, *keys: int) -> np.random.Generator:
    """Return a generator that depends on a seed and on where in the run it is needed, and on nothing else."""
    return np.random.default_rng([seed % 2**32, *keys])
