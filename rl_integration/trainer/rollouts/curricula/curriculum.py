"""What a curriculum is made of: a source of tasks, rounds of answers, and a filter; each may be missing.

| part | asked | decides |
|---|---|---|
| `TaskSource` | before a batch is written | which tasks it is of |
| `Rounds` | when a task's answers have scores | how many more it gets |
| `Filter` | when the batch is complete | how often each answer is learnt from |

An answer that is not learnt from still has a vote in its group's mean; a group without any that is learnt from is
dropped.

All processes of a run ask with the same batches, so each keeps the same state; what is random comes from the run's seed
and from what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.task import Task, TaskSource
from adjudge.rl_integration.trainer.rewards.groups import Groups

States: TypeAlias = Callable[[Sequence[Task]], Floats]
"""Returns (n, d) what the policy makes of n prompts."""


class Rounds(Protocol):
    """Says how many more answers a task gets."""

    def further(self, values: Sequence[float | None], rounds: int) -> int:
        """Return the answers of the next round; 0 for none.

        Args:
            values: the scores of all answers to one task so far; None where one could not be judged.
            rounds: how many rounds there were.
        """
        ...


class Filter(Protocol):
    """Says what of a batch is learnt from."""

    @property
    def refills(self) -> bool:
        """Whether further batches are drawn for groups that were dropped, up to `rollouts.max_num_gen_batches`."""
        ...

    def copies(self, groups: Groups) -> Integers:
        """Return (n,) how often each answer is learnt from; a group of zeros is dropped."""
        ...

    def state(self) -> dict[str, Any]:
        """Return all that the next call depends on, as plain JSON data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...


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

    Args:
        values: scores; None where an answer could not be judged.
        right_above: a score above it is right, 1, and any other wrong, 0; None takes scores as they are.

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
