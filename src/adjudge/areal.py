"""AReaL: a workflow that rejects a trajectory without a score, and the plain reward function.

    # my_rewards.py
    MathWorkflow = ArealReward(scorer="math", reference="answer").workflow()

    trainer.train(workflow="my_rewards.MathWorkflow", workflow_kwargs={...})  # as for RLVRWorkflow, less reward_fn

AReaL runs a plain `reward_fn` in a pool of processes, each with a copy of the scorer, and gives up after 15 seconds:
it asks three times more, and then trains on 0.  The workflow calls the scorer from AReaL's event loop instead, without
that limit; time limits are the scorer's or the server's (`seconds`).

AReaL logs whatever a workflow raises, rejects the trajectory, and rolls out the next: with a misspelt column or a dead
scorer it would go on so for ever.  The workflow raises `StopRun` for these, which is no `Exception` and ends the run.

Tried with AReaL 1.0.4.  Not covered: rewards of several completions at once (the agent interface's mapping).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.failures import NotScored, StopRun
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class ArealReward(RowReward):
    """Scores completions: as `reward_fn`, inside a workflow, or awaited by a workflow or an agent of one's own.

    Attributes:
        reference: where the reference is among the row's columns.
        ends: special tokens as text, such as "<|im_end|>": AReaL leaves them in.  With them, they are cut from the end
            of a completion, and one that ends in none is scored as cut off.

    The others are those of `RowReward`.  A workflow rejects a trajectory without a score whatever `fallback` is.
    """

    framework = "AReaL"
    numbers_only = False
    reference: Place = "answer"
    ends: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        if isinstance(self.ends, str) or not all(isinstance(end, str) and end for end in self.ends):
            raise ValueError(f"ends={self.ends!r}; it must be a list of special tokens as text")
        super().__post_init__()
        self.__name__ = "adjudge"  # AReaL's logs name reward functions

    def __call__(
        self, prompt: Any, completions: Any, prompt_ids: Sequence[int], completion_ids: Sequence[int], **row: Any
    ) -> float:
        """Return the reward of a completion; called by AReaL as `reward_fn`, where 15 seconds are all it has.

        Raises:
            NotScored: there is no score and no fallback; AReaL tries three times more, and then rejects the trajectory.
            TooManyFailures: too many of the latest samples failed.
            ValueError: the row lacks the reference.
        """
        (score,) = self.scores_blocking([row], [self._sample(prompt, completions, row)])
        return self._asked.number(score)

    async def value(
        self,
        prompt: Any,
        completions: Any,
        prompt_ids: Sequence[int] = (),
        completion_ids: Sequence[int] = (),
        **row: Any,
    ) -> float | None:
        """Return the score of a completion, or None where it has none and its trajectory should be rejected.

        Raises:
            TooManyFailures: too many of the latest samples failed.
            ValueError: the row lacks the reference.
        """
        (score,) = await self.scores([row], [self._sample(prompt, completions, row)])
        return score.value

    def workflow(self, base: type[Any] | None = None) -> type[Any]:
        """Return a workflow class that scores with this, and returns None, which rejects, where there is no score.

        Args:
            base: a workflow that takes `reward_fn` and awaits `self.async_reward_fn(...)`, as AReaL's own do;
                `areal.workflow.rlvr.RLVRWorkflow` if None.

        Its episodes raise `StopRun` where there is more wrong than a sample: too many failed, the row lacks the
        reference, the scorer is broken, or the server refuses the request.
        """
        if base is None:
            base = import_module("areal.workflow.rlvr").RLVRWorkflow
        parent: Any = base
        reward = self

        async def scored(*texts: Any, **row: Any) -> float:
            try:
                value = await reward.value(*texts, **row)
            except Exception as error:  # AReaL would reject this trajectory and all others, and never end
                raise StopRun(f"adjudge: {error}") from error
            if value is None:
                raise NotScored("a trajectory without a score; its workflow rejects it")
            return value

        class AdjudgeWorkflow(parent):  # type: ignore[misc]
            def __init__(self, **options: Any) -> None:
                if "reward_fn" in options:
                    raise ValueError(f"reward_fn={options['reward_fn']!r}; leave it out, this workflow has its reward")
                super().__init__(reward_fn=reward, **options)
                self.async_reward_fn = scored

            async def arun_episode(self, engine: Any, data: dict[str, Any]) -> Any:
                try:
                    return await super().arun_episode(engine, data)
                except NotScored:
                    return None

        return AdjudgeWorkflow

    def _sample(self, prompt: Any, completions: Any, row: dict[str, Any]) -> Sample:
        ended = None
        if self.ends and isinstance(completions, str):
            end = next((end for end in self.ends if completions.rstrip().endswith(end)), "")
            completions = completions.rstrip().removesuffix(end)
            ended = "stop" if end else "length"
        return self.made_sample(row, prompt, completions, finish_reason=ended)
