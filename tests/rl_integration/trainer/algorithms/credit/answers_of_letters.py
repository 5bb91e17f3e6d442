"""Answers whose tokens are letters, for tests in which every place must be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjudge.protocol import Message, Score, StepScore
from adjudge.rl_integration.trainer.data.task import Rollout, Task

END = 0


def decode(ids: Sequence[int]) -> str:
    """A token is a letter; 0 is special."""
    return "".join(chr(one) for one in ids if one != END)


def encode(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def answer(text: str, *, task: str = "q", ended: bool = True, **more: Any) -> Rollout:
    """An answer of one turn."""
    return rollout([(encode(text) + ((END,) if ended else ()), True)], text=text, task=task, **more)


def dialogue(*turns: tuple[str, str], task: str = "q") -> Rollout:
    """An answer of several turns, each by "assistant" or "tool"; the policy ends each of its own."""
    runs = [(encode(text) + ((END,) if role == "assistant" else ()), role == "assistant") for role, text in turns]
    messages: tuple[Message, ...] = tuple({"role": role, "content": text} for role, text in turns)
    return rollout(runs, text=turns[-1][1], task=task, turns=messages)


def rollout(runs: Sequence[tuple[Sequence[int], bool]], *, text: str, task: str, **more: Any) -> Rollout:
    """An answer made of runs of tokens, each the policy's own or not."""
    ids = tuple(one for run, _ in runs for one in run)
    own = [is_own for run, is_own in runs for _ in run]
    return Rollout(
        id="r",
        task=Task(id=task, prompt=task),
        prompt_ids=(1,),
        ids=ids,
        logprobs=np.full(len(ids), -1.0, dtype=np.float32),
        own=np.array(own, dtype=np.bool_),
        text=text,
        finish_reason="stop",
        version=0,
        **more,
    )


def stepped(value: float | None, *steps: tuple[float | None, int, int], **more: Any) -> Score:
    """A score with steps, each a value, its first character and the one after its last; failed for None."""
    found = tuple(StepScore(value=worth, start=start, end=end) for worth, start, end in steps)
    if value is None:
        return Score(value=None, status="failed", reason="engine_timeout", steps=found, **more)
    return Score(value=value, steps=found, **more)
