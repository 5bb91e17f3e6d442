"""rLLM: an evaluator of episodes.

    # my_rewards.py
    evaluator = RllmEvaluator(scorer="math", reference="ground_truth", fallback=0.0)

rLLM knows numbers alone, and repeats a whole rollout, generation included, when its evaluator raises; after its retries
it stops, or calls the episode an error.  So without a `fallback` an unreadable reference costs several rollouts; with
one the episode gets that number, and the signals `valid`, `failed` and `abstained` say what it is.  The scored parts of
a score are signals too.

Written from rLLM's source (commit 9beb6e0).  Not covered: rewards of single steps, and the older `RewardFunction`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.io.values import Text
from adjudge.protocol import Score
from adjudge.rl_integration.adapters.row import Place, named, words
from adjudge.rl_integration.adapters.row_reward import RowReward

_CUT_OFF = "max_response_length_exceeded"


@dataclass(eq=False, kw_only=True)
class RllmEvaluator(RowReward):
    """Scores an episode's answer: the artifact `answer`, or else what the last trajectory ended in.

    Attributes:
        reference: where the reference is among the task's metadata (of older tasks, their data).
        correct_from: the score from which an episode counts as correct.

    The others are those of `RowReward`; without a `group`, the task's id is one.
    """

    framework = "rLLM"
    reference: Place = "ground_truth"
    correct_from: float = 1.0

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        least = self.correct_from
        if isinstance(least, bool) or not isinstance(least, int | float) or math.isnan(least):
            raise ValueError(f"correct_from={least!r}; it must be the score from which an episode is correct")
        super().__post_init__()

    def evaluate(self, task: Any, episode: Any) -> Any:
        """Return an `rllm.eval.types.EvalOutput`; called by rLLM in a thread, and never changes the episode.

        Args:
            task: an `rllm.types.Task`, an older task with `data`, or a dict.
            episode: an `rllm.types.Episode`.

        Raises:
            NotScored: there is no score and no fallback.
            TooManyFailures: too many of the latest episodes failed.
            ValueError: the task lacks the reference.
        """
        types: Any = import_module("rllm.eval.types")

        row = _row(task)
        group, ended = named(getattr(task, "id", None)), _finish_reason(episode)
        sample = self.made_sample(row, _prompt(task, row), _answer(episode), group=group, finish_reason=ended)
        (score,) = self.scores_blocking([row], [sample])
        return types.EvalOutput(
            reward=self._asked.number(score),
            is_correct=score.value is not None and score.value >= self.correct_from,
            signals=[types.Signal(name=name, value=value) for name, value in _signals(score).items()],
            metadata={"status": score.status, "reason": score.reason},
        )

    __call__ = evaluate


def _signals(score: Score) -> dict[str, float]:
    names = {"valid": "scored", "failed": "failed", "abstained": "abstained"}
    parts = {f"part_{name}": part.value for name, part in score.parts.items() if part.value is not None}
    return {**{name: float(score.status == status) for name, status in names.items()}, **parts}


def _row(task: Any) -> Mapping[str, Any]:
    for row in (task, getattr(task, "metadata", None), getattr(task, "data", None)):
        if isinstance(row, Mapping):
            return row
    raise ValueError(f"the task of rLLM is a {type(task).__name__} without metadata; give a Task, or a dict")


def _prompt(task: Any, row: Mapping[str, Any]) -> Text:
    instruction = getattr(task, "instruction", row.get("question", row.get("prompt")))
    if isinstance(instruction, list) and not all(isinstance(turn, Mapping) and "role" in turn for turn in instruction):
        return [{"role": "user", "content": instruction}]  # blocks of text and images, not turns
    return words(instruction, "instruction of a task of rLLM")


def _answer(episode: Any) -> str:
    artifacts = getattr(episode, "artifacts", None) or {}
    if "answer" in artifacts:
        return _text(artifacts["answer"])
    if not episode.trajectories:
        return ""
    last = episode.trajectories[-1]
    for output in (last.output, *(step.output for step in last.steps[-1:])):
        if output is not None and output != "":  # 0 is an answer
            return _text(output)
    # What rLLM's gateway recorded: a turn that only calls a tool has no text.
    return next((_text(step.model_response) for step in reversed(last.steps) if step.model_response), "")


def _finish_reason(episode: Any) -> str | None:
    """Whether the answer was cut off: rLLM's engines say so of the episode, or only of the last step's model output."""
    if _told(episode, "termination_reason") == _CUT_OFF:
        return "length"
    steps = episode.trajectories[-1].steps if episode.trajectories else ()
    ended = getattr(steps[-1].model_output, "finish_reason", None) if steps else None
    return ended if isinstance(ended, str) else None


def _text(value: Any) -> str:
    """An answer that is a number or another thing, as text: rLLM takes any.  None is that of an agent without one."""
    return "" if value is None else str(value)


def _told(holder: Any, name: str) -> Any:
    value = getattr(holder, name, None)
    return getattr(value, "value", value)
