"""SkyRL: an environment of SkyRL-Gym whose one turn is scored, and the step of environments of one's own.

    # my_environments.py
    MathEnvironment = SkyRLReward(scorer="math").environment()

    skyrl_gym.register(id="math", entry_point="my_environments:MathEnvironment")

SkyRL knows numbers alone.  A sample without a score stops the run: SkyRL catches nothing.  With a `fallback` it gets
that number; the step's `metadata` says so, and the environment's metrics `valid`, `failed` and `abstained` are logged.

Tried with SkyRL-Gym 0.4.0.  Not covered: answers that were cut off, which a step is not told; SkyRL's option
`zero_reward_on_non_stop` sees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.protocol import Message
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class SkyRLReward(RowReward):
    """Scores the end of an episode; `environment` makes an environment of one turn.

    Attributes:
        reference: where the reference is among the row's columns, which SkyRL calls extras.

    The others are those of `RowReward`.
    """

    framework = "SkyRL"
    reference: Place = "reward_spec.ground_truth"

    def check(self, extras: Mapping[str, Any]) -> None:
        """Make sure that a row has what scoring needs.

        Raises:
            ValueError: it lacks the reference or the group.
        """
        self.made_sample(extras, "", "")

    def last_step(self, prompt: Any, response: str | Sequence[Message], extras: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `step` returns at the end of an episode; blocks, from any thread.

        Args:
            prompt: what `init` was given.
            response: the answer, or the turns after the prompt; only the assistant's are graded.
            extras: the row's columns, as the environment was given them.

        Returns:
            No observations, the reward, done, and as metadata the status, the reason and whether the reward is a score.

        Raises:
            NotScored: there is no score and no fallback.
            TooManyFailures: too many of the latest samples failed.
            ValueError: the prompt or the response is neither text nor messages, or the row lacks the reference.
        """
        (score,) = self.scores_blocking([extras], [self.made_sample(extras, prompt, response)])
        return {
            "observations": [],
            "reward": self._asked.number(score),
            "done": True,
            "metadata": {"status": score.status, "reason": score.reason, "valid": score.value is not None},
        }

    def environment(self) -> type[Any]:
        """Return an environment class of one turn."""
        parent: Any = import_module("skyrl_gym.envs.base_text_env").BaseTextEnv
        reward = self

        class AdjudgeEnvironment(parent):  # type: ignore[misc]
            def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
                super().__init__()
                self._extras = extras or {}
                reward.check(self._extras)  # now, before anything is generated for a row that cannot be scored
                self._prompt: Any = ""
                self._status = ""

            def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
                self._prompt = prompt
                return prompt, {}

            def step(self, action: str) -> Any:
                self.turns += 1
                made = reward.last_step(self._prompt, action, self._extras)
                self._status = made["metadata"]["status"]
                return made

            def get_metrics(self) -> dict[str, Any]:
                if not self._status:
                    return {}
                names = {"valid": "scored", "failed": "failed", "abstained": "abstained"}
                return {name: float(self._status == status) for name, status in names.items()}

        return AdjudgeEnvironment
