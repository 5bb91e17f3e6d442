"""A task, the answers that a policy wrote to it, and the order of tasks, which a resumed run goes on with."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from adjudge.protocol import Message, Sample, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prompt, and what its answers are checked against.

    Attributes:
        id: unique in the data.
        prompt: text, or the turns of a chat.
        reference: for the scorer.
        extra: further fields for the scorer.
        cohort: tasks that share it are scored together, by scorers that compare answers: a pair in both orders.  They
            must be drawn in one batch; "" for a task by itself.
        begun: what its answers begin with; the policy writes what follows, and learns from that alone.
    """

    id: str
    prompt: str | Sequence[Message]
    reference: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    cohort: str = ""
    begun: str = ""

    @property
    def opening(self) -> str | Sequence[Message]:
        """What the policy goes on from: the prompt, and what was begun."""
        if not self.begun:
            return self.prompt
        if isinstance(self.prompt, str):
            return self.prompt + self.begun
        return [*self.prompt, {"role": "assistant", "content": self.begun}]

    def sample(
        self, response: str | Sequence[Message], *, id: str, finish_reason: str | None, tokens: int = 0
    ) -> Sample:
        """Return an answer to it as a sample; answers of one task, or one cohort, are a group."""
        return Sample(
            prompt=self.prompt,
            response=self.begun + response if isinstance(response, str) else response,
            reference=self.reference,
            id=id,
            group=self.cohort or self.id,
            finish_reason=finish_reason,
            extra={**self.extra, "completion_tokens": tokens},
        )


CONFIDENCE = "confidence"
"""A task whose `extra` has it wants each answer's in its place: the mean probability of its tokens."""

SESSION = "session"
"""What a user who answered the policy knows of the conversation, in the `extra` of its sample."""

FinishReason: TypeAlias = Literal["stop", "length"]

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """An answer.

    Attributes:
        id: unique in a run.
        task: what it answers.
        prompt_ids: tokens of the prompt.
        ids: tokens after the prompt, the end token included.
        logprobs: log-probability of each of `ids` when it was written, in nats, at the temperature it was drawn with;
            [len(ids)], float32.  NaN throughout, where it was written to another prompt (`learning_batch.injected`).
        own: which of `ids` the policy wrote; a tool's are not its own; [len(ids)].
        text: what the policy wrote, without special tokens; of several turns its own, a line break between them.
        finish_reason: "stop" if it was ended, "length" if it was cut off.
        version: how many updates the policy had seen.
        turns: the messages after the prompt, for an answer of several turns; its sample has them in the place of the
            text.
        origin: who wrote it to this very prompt: "policy", or, for one that was written with help, what helped.
        fault: what of ours kept it from being finished, such as a tool that is down, so that it is not judged; or "".
        path: the nodes of the task's tree that it goes through, for an answer that shares its beginning with others:
            the name of each, unique in a run, and its tokens; () for one that was written by itself.
        session: what the user who answered it knows of the conversation, as plain JSON data, for scorers; or {}.
    """

    id: str
    task: Task
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: Floats
    own: Bools
    text: str
    finish_reason: FinishReason
    version: int
    turns: tuple[Message, ...] = ()
    origin: str = "policy"
    path: tuple[tuple[str, int], ...] = ()
    fault: str = ""
    session: Mapping[str, Any] = field(default_factory=dict)

    def sample(self) -> Sample:
        """Return it as the scorers take it."""
        sample = self.task.sample(
            self.turns or self.text, id=self.id, finish_reason=self.finish_reason, tokens=int(self.own.sum())
        )
        if self.session:
            sample = replace(sample, extra={**sample.extra, SESSION: self.session})
        if CONFIDENCE not in sample.extra:
            return sample
        chances = np.exp(self.logprobs[self.own], dtype=np.float64)
        known = chances.size and np.isfinite(chances).all()  # not of an answer that was written to another prompt
        extra = {name: value for name, value in sample.extra.items() if name != CONFIDENCE}
        return replace(sample, extra=extra | ({CONFIDENCE: min(1.0, float(chances.mean()))} if known else {}))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; the task is named by its id."""
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "task": self.task.id,
            "prompt_ids": list(self.prompt_ids),
            "ids": list(self.ids),
            "logprobs": self.logprobs.tolist(),  # every float32 is a float64, so nothing is lost
            "own": self.own.tolist(),
            "turns": [dict(turn) for turn in self.turns],
            "path": [list(node) for node in self.path],
            "session": dict(self.session),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], tasks: Mapping[str, Task]) -> Rollout:
        """Return what `to_dict` wrote."""
        read: dict[str, Any] = {
            "task": tasks[record["task"]],
            "prompt_ids": tuple(record["prompt_ids"]),
            "ids": tuple(record["ids"]),
            "logprobs": np.asarray(record["logprobs"], dtype=np.float32),
            "own": np.asarray(record["own"], dtype=np.bool_),
            "turns": tuple(record["turns"]),
            "path": tuple((node, tokens) for node, tokens in record["path"]),
        }
        return cls(**{**record, **read})


def by_task(rollouts: Sequence[Rollout]) -> dict[str, list[int]]:
    """Return the places of each task's rollouts, tasks in the order they first come."""
    places: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        places.setdefault(rollout.task.id, []).append(place)
    return places


class TaskSource(Protocol):
    """Says which tasks come next."""

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; none twice in one call, if there are enough."""
        ...

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Hear how a batch went, whole groups; return numbers for the log.

        Batches are told in the order they were drawn, with those that were dropped; by then later ones may be drawn.
        Answers that were written with help are not told: they say nothing about the task.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Return all that the next call depends on, as plain JSON data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...


class TaskOrder:
    """An endless order of tasks: each pass over them shuffled anew, whatever their scores.

    Raises:
        ValueError: there are no tasks, or two have one id.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int) -> None:
        check_tasks(tasks)
        self._tasks = tasks
        self._seed = seed
        self._next = 0
        self._held: list[int] = []
        self._pass: tuple[int, list[int]] = (-1, [])

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; one that begins a pass and ended the one before waits for the next call."""
        chosen: list[int] = []
        held, self._held = deque(self._held), []
        while len(chosen) < count:
            place = held.popleft() if held else self._following()
            if place in chosen and count <= len(self._tasks):
                self._held.append(place)
            else:
                chosen.append(place)
        self._held.extend(held)
        return [self._tasks[place] for place in chosen]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Take no notice."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the place in the order."""
        return {"next": self._next, "held": list(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a place."""
        self._next = state["next"]
        self._held = list(state["held"])

    def _following(self) -> int:
        number, rest = divmod(self._next, len(self._tasks))
        self._next += 1
        if self._pass[0] != number:
            order = list(range(len(self._tasks)))
            random.Random(f"{self._seed}:{number}").shuffle(order)
            self._pass = (number, order)
        return self._pass[1][rest]


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise `ValueError` if there are no tasks, or if two have one id."""
    if not tasks:
        raise ValueError("there are no tasks to train on; give at least one prompt")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise ValueError(f"two tasks have the id {task.id!r}; ids must be unique")
        seen.add(task.id)
