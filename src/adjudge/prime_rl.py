"""PrimeIntellect's verifiers and prime-rl: a reward for tasks, and functions for `Rubric`, the older way.

    CORRECT = VerifiersReward("math", reference="answer")   # in my_env.py; version 1: `@vf.reward`, or by a config

    [orchestrator.train.source.env.taskset.task.rewards]
    correct = {fn = "my_env:CORRECT", weight = 1.0}

A sample without a score raises: the framework records a `TaskError` on the trace, leaves the reward None, and
prime-rl leaves such a trace out of its group.  A returned number could not say that, and neither could an empty
mapping, whose trace would count as 0.

    rubric = vf.Rubric(funcs=[RubricReward("math", reference="answer")])    # most environments of the hub
    rubric = vf.Rubric(funcs=[RubricGroupReward("tournament")])             # for scorers of groups

Every exception of a reward function becomes 0.0 in a `Rubric`, and there is no other way to say that there is no score.
So a rollout without one also gets `state["error"]`, which `vf-eval` reports and prime-rl takes as a reason to leave the
rollout out; the 0.0 still counts in the `state["advantage"]` that the rubric computes for its siblings.

Tried with verifiers 0.4.0, and `Rubric` with 0.3.1, the last version that has it.  Not covered: parsers, since our
scorers find the answer; and a whole group in one call of version 1, which only an `Env` sees: a server whose scorer has
a cohort size puts groups together.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.protocol import Message, Sample, Score
from adjudge.rl_integration.adapters.failures import NotScored
from adjudge.rl_integration.adapters.row import Place, row_name
from adjudge.rl_integration.adapters.row_reward import RowReward, metric_name

State = MutableMapping[str, Any]


@dataclass(eq=False, kw_only=True)
class _NamedReward(RowReward):
    """What all of them have: a name in the metrics, and no end to the run, since each says when there is no score.

    Attributes:
        reference: where the reference is in the task's data; for a `Rubric` in a rollout's "answer" and "info", such as
            "info.gold".
        name: what the reward is called in the metrics and in `trace.info["adjudge"]`; the scorer's name, if it is a
            text, otherwise.

    The others are those of `RowReward`.
    """

    numbers_only = False
    reference: Place = "answer"
    max_failed: float = 1
    name: str = ""

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        super().__post_init__()
        self.__name__ = metric_name(self.scorer, self.name)

    def _value(self, score: Score) -> float:
        value = self.fallback if score.value is None else score.value
        if value is None:
            raise NotScored(_why(score))
        return value


class VerifiersReward(_NamedReward):
    """Scores traces; the options are those of `_NamedReward`.  `trace.info["adjudge"]` keeps what came out."""

    framework = "verifiers"
    remedy = "put it behind a reward server that gathers them (`cohort`): server=ADDRESS"

    async def __call__(self, task: Any, trace: Any) -> float:
        """Return the score of a trace; called by verifiers, which finds the arguments by their names.

        Args:
            task: the task's data (`vf.TaskData`).
            trace: what the agent did (`vf.Trace`).

        Raises:
            ValueError: the task's data has no reference.
            NotScored: there is no score.
        """
        (score,) = await self.scores([task.model_dump(mode="json")], [self.sample(task, trace)])
        trace.info.setdefault("adjudge", {})[self.__name__] = _record(score)
        return self._value(score)

    def sample(self, task: Any, trace: Any) -> Sample:
        """Return what of a trace is scored: the turns of its final branch from the model's first one on.

        Raises:
            ValueError: the task's data has no reference.
        """
        prompt, response = _turns(trace)
        calls = [call for call in trace.calls if call.error is None]
        sample = self.made_sample(
            task.model_dump(mode="json"),
            prompt or task.prompt_text,
            response,
            group=getattr(trace.task, "key", None) or "",
            finish_reason="length" if trace.is_truncated else calls[-1].finish_reason if calls else None,
        )
        return replace(sample, id=trace.id)


def _turns(trace: Any) -> tuple[list[Message], list[Message]]:
    """What the agent was given, and what it made of it."""
    branches = trace.branches
    if not branches:
        return [], []
    nodes = (branches[0] if trace.root_reply is not None else branches[-1]).nodes
    first = next((place for place, node in enumerate(nodes) if node.sampled), len(nodes))
    given = [_message(node.message) for node in nodes[:first]]
    if trace.root_reply is not None:  # other branches are of agents that the root called
        return given, [{"role": "assistant", "content": trace.root_reply}]
    return given, [_message(node.message) for node in nodes[first:]]


def _message(message: Any) -> Message:
    plain: dict[str, Any] = message.model_dump(mode="json", exclude_none=True, exclude={"provider_state"})
    return plain


def _record(score: Score) -> dict[str, Any]:
    return {"status": score.status, "reason": score.reason, "fingerprint": score.provenance.fingerprint}


class _Rollouts(_NamedReward):
    """What both kinds of functions for a `Rubric` need: samples out of rollouts."""

    framework = "Rubric"

    async def _scores(self, rollouts: Sequence[tuple[Any, Any, Any, Any, State]]) -> list[Score]:
        """Score rollouts, and mark in their states those that have no score."""
        try:
            rows = [_row(answer, info) for _, _, answer, info, _ in rollouts]
            scores = await self.scores(rows, [self._sample(*rollout) for rollout in rollouts])
        except BaseException as error:
            for *_, state in rollouts:
                _mark(state, f"{type(error).__name__}: {error}")
            raise
        for score, (*_, state) in zip(scores, rollouts, strict=True):
            if score.value is None and self.fallback is None:
                _mark(state, _why(score))
        return scores

    def _sample(self, prompt: Any, completion: Any, answer: Any, info: Any, state: State) -> Sample:
        asked, steps = _messages(prompt), state.get("trajectory") or []
        cut = [bool(step.get("is_truncated")) for step in steps]
        sample = self.made_sample(
            _row(answer, info),
            asked,
            _messages(completion),
            # verifiers calls a rollout truncated if any turn was; where no turn was, the environment says so
            finish_reason="length" if (cut[-1] if any(cut) else state.get("is_truncated")) else None,
        )
        # Every data set numbers its examples from 0, and a server gathers those of several.
        name = row_name(state.get("example_id"), asked, sample.reference)
        return sample if sample.group else replace(sample, group=name)


class RubricReward(_Rollouts):
    """Scores one rollout."""

    remedy = "give it to RubricGroupReward, which gets them together"

    async def __call__(self, prompt: Any, completion: Any, answer: Any, info: Any, state: State) -> float:
        """Return the score of a rollout; called by verifiers, which finds the arguments by their names.

        Raises:
            NotScored: there is no score; `state["error"]` says so too.
        """
        (score,) = await self._scores([(prompt, completion, answer, info, state)])
        return self._value(score)


class RubricGroupReward(_Rollouts):
    """Scores the rollouts of a group in one call; the options are those of `RubricReward`."""

    remedy = ""

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        answers: Sequence[Any],
        infos: Sequence[Any],
        states: Sequence[State],
    ) -> list[float]:
        """Return the score of each rollout of a group, in order; called by verifiers.

        A rollout without a score gets 0.0 here, as from `RubricReward`, and `state["error"]`; the others keep theirs.
        """
        scores = await self._scores(list(zip(prompts, completions, answers, infos, states, strict=True)))
        return [(self.fallback or 0.0) if score.value is None else score.value for score in scores]


def _why(score: Score) -> str:
    return f"the rollout {score.status} ({score.reason}): {str(dict(score.evidence))[:300]}"


def _mark(state: State, why: str) -> None:
    """Say in the state that the rollout has no score, unless something went wrong with it before."""
    if state.get("error") is None:
        kind = importlib.import_module("verifiers").Error  # no other class can be written down with a rollout
        state["error"] = kind(f"adjudge: {why}")


def _messages(turns: Any) -> Any:
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        return turns
    return [turn if isinstance(turn, Mapping) else turn.model_dump(mode="json", exclude_none=True) for turn in turns]


def _row(answer: Any, info: Any) -> dict[str, Any]:
    """The columns of a rollout: what stands in `info`, and both as such."""
    return {**(info if isinstance(info, Mapping) else {}), "answer": answer, "info": info}
