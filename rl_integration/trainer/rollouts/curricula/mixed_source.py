"""Tasks from several sources, each by how much was learnt from it lately: SEC and DUMP.

How much of a batch each source of prompts gets, by how much was learnt from it lately: SEC and DUMP.

| rule | score of source j | temperature of the softmax | source |
|---|---|---|---|
| `Sec` | moving average over batches of mean |A| | 0.2 to 1, tuned | SEC, arXiv 2505.14970 |
| `Dump` | mean |A| of the last 300 samples + sqrt(2 ln(N + 1) / (n_j + 1)) | 0.1 | DUMP, arXiv 2504.09710 |

n_j counts the samples of j, N those of all.  SEC's temperatures are from memory of the paper, as is the weight 0.5 of
the newest batch (`Record(rate=0.5)`).  A source that was never drawn has SEC's score 0 and DUMP's largest bonus.

Each place of a batch draws a source by the rule's chances, and takes the next task of that source's own shuffled order.
A source that has no further task for the batch is left out while others have one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_above
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task, TaskOrder, check_tasks
from adjudge.rl_integration.trainer.rewards.groups import Groups, groups_of
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Record, Setting, random_of


@dataclass(frozen=True, kw_only=True)
class Sec:
    """Chances of sources by the moving average of advantages; see the module.

    Attributes:
        temperature: small for nearly always the best source.
    """

    temperature: float = 0.2

    def __post_init__(self) -> None:
        check_above("temperature", self.temperature, 0.0)

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        return _softmax([record.source(name).value for name in sources], self.temperature)


@dataclass(frozen=True, kw_only=True)
class Dump:
    """Chances of sources by recent advantages and an upper bound for what is not known; see the module.

    Attributes:
        temperature: small for nearly always the best source.
    """

    temperature: float = 0.1

    def __post_init__(self) -> None:
        check_above("temperature", self.temperature, 0.0)

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        known = [record.source(name) for name in sources]
        total = sum(one.seen for one in known)
        scores = [one.mean + math.sqrt(2 * math.log(total + 1) / (one.seen + 1)) for one in known]
        return _softmax(scores, self.temperature)


def _softmax(scores: Sequence[float], temperature: float) -> Floats:
    if not len(scores):
        raise ValueError("there are no sources to choose from; give at least one")
    powers = np.exp((np.array(scores) - max(scores)) / temperature)
    chances: Floats = powers / powers.sum()
    return chances


class MixedSource:
    """Draws tasks by their sources; see the module.

    Args:
        tasks: what there is.
        rule: the sources' chances.
        record: what is known of the sources.
        column: the field of a task's `extra` that names its source.
        advantages: of a batch.
        seed: of the draws.

    Raises:
        ValueError: a task names no source, there are no tasks, or two have one id.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        rule: Sec | Dump,
        record: Record,
        *,
        column: str,
        advantages: Callable[[Groups], Floats],
        seed: int,
    ) -> None:
        check_tasks(tasks)
        self._rule = rule
        self._record = record
        self._column = column
        self._advantages = advantages
        self._seed = seed
        self._draws = 0
        parted: dict[str, list[Task]] = {}
        for task in tasks:
            parted.setdefault(self._source_of(task), []).append(task)
        self._sizes = {name: len(parted[name]) for name in sorted(parted)}
        self._orders = {name: TaskOrder(parted[name], seed=seed) for name in self._sizes}

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
        found = task.extra.get(self._column)
        if not isinstance(found, str) or not found:
            raise ValueError(
                f"the task {task.id!r} does not say where it is from: its extra field {self._column!r} is {found!r}; "
                "give every task a source, or name another field (the curriculum's option column)"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class SecRule(Sec):
    """SEC (arXiv 2505.14970).

    Attributes:
        rate: weight of the newest batch in the moving average.
        column: the field of a task's `extra` that names its source.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    rate: float = 0.5
    column: str = "source"

    def __post_init__(self) -> None:
        super().__post_init__()
        Record(rate=self.rate)

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return _curriculum(setting, self, Record(rate=self.rate), self.column)


@dataclass(frozen=True, kw_only=True)
class DumpRule(Dump):
    """DUMP (arXiv 2504.09710).

    Attributes:
        window: answers of a source whose advantages are remembered.
        column: the field of a task's `extra` that names its source.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    window: int = 300
    column: str = "source"

    def __post_init__(self) -> None:
        super().__post_init__()
        Record(window=self.window)

    def made(self, setting: Setting) -> Curriculum:
        """Return the source."""
        return _curriculum(setting, self, Record(window=self.window), self.column)


def _curriculum(setting: Setting, rule: Sec | Dump, record: Record, column: str) -> Curriculum:
    source = MixedSource(setting.tasks, rule, record, column=column, advantages=setting.advantages, seed=setting.seed)
    return Curriculum(source=source)
