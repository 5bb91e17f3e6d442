"""One answer that a policy wrote, with all that learning from it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from adjudge.protocol import Message, Sample
from adjudge.rl_integration.trainer.contract.task import Task

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

    def sample(self) -> Sample:
        """Return it as the scorers take it."""
        return self.task.sample(
            self.turns or self.text, id=self.id, finish_reason=self.finish_reason, tokens=int(self.own.sum())
        )

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
