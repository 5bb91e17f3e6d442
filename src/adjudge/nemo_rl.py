"""NeMo RL: an environment of its own (`EnvironmentInterface`), where no NeMo Gym is wanted.

    # my_env.py
    MathEnvironment = ray.remote(NemoRlReward("math", fallback=0.0).environment())

    # where the run starts
    register_env("adjudge", "my_env.MathEnvironment")

NeMo RL knows numbers alone here: without a `fallback` an answer without a score raises, which ends the run.  Through
NeMo Gym it can be masked (`adjudge.nemo_gym`).

Written from NeMo RL's source (commit 7ea279ab).  Not covered: several turns; the first answer ends the episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.row import Place, row_name
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class NemoRlReward(RowReward):
    """Makes the class of an environment; the fields are those of `RowReward`, and a row is the metadata of a prompt."""

    framework = "NeMo RL"
    reference: Place = "ground_truth"
    remedy = ""  # a batch has whole groups, side by side

    def environment(self) -> type[Any]:
        """Return the class.

        Raises:
            ModuleNotFoundError: NeMo RL is not installed.
        """
        theirs: Any = import_module("nemo_rl.environments.interfaces")
        torch: Any = import_module("torch")
        reward = self

        class AdjudgeEnvironment(theirs.EnvironmentInterface):  # type: ignore[misc]
            def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
                self.cfg = cfg

            def step(self, message_log_batch: Sequence[Any], metadata: Sequence[Any], *rest: Any) -> Any:
                """Score the last turn of each log; every episode ends."""
                logs = [
                    [{"role": turn["role"], "content": turn["content"]} for turn in log] for log in message_log_batch
                ]
                samples = [  # the last turn is what was generated; assistant turns before it are examples of the prompt
                    _grouped(reward.made_sample(row or {}, log[:-1], log[-1:]), log[:-1])
                    for row, log in zip(metadata, logs, strict=True)
                ]
                scores = reward.scores_blocking([row or {} for row in metadata], samples)
                told = [f"{score.status} {score.reason}".rstrip() for score in scores]
                return theirs.EnvironmentReturn(
                    observations=[{"role": "environment", "content": text} for text in told],
                    metadata=list(metadata),
                    next_stop_strings=[None] * len(scores),
                    rewards=torch.tensor([reward.number(score) for score in scores], dtype=torch.float32),
                    terminateds=torch.ones(len(scores)),
                    answers=None,
                )

            def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
                """Leave the batch as it is; its mean reward is a metric."""
                return batch, {"reward": float(batch["rewards"].float().mean())}

            def shutdown(self) -> None:
                """Nothing is held."""

        return AdjudgeEnvironment


def _grouped(sample: Sample, prompt: Sequence[Any]) -> Sample:
    return sample if sample.group else replace(sample, group=row_name(prompt, sample.reference))
