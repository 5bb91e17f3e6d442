"""tinker-cookbook: an environment of one question, whose reward is a score.

    reward = TinkerReward("math", reference="answer")
    ProblemGroupBuilder(env_thunk=partial(reward.env, renderer, row), num_envs=8)

What `step` raises is an error of the rollout, of which the cookbook makes what its configuration says (by default it
ends the run); so without a `fallback` an answer without a score does.

Tried with tinker-cookbook 0.6.1: environments, renderers and group builders.  Not tried: the service that trains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class TinkerReward(RowReward):
    """Makes environments.

    Attributes:
        prompt: the row's column with the question, a text or messages.

    The others are those of `RowReward`.
    """

    framework = "tinker-cookbook"
    reference: Place = "answer"
    prompt: str = "prompt"

    def env(self, renderer: Any, row: Mapping[str, Any]) -> Any:
        """Return an `Env` of the cookbook for a row.

        Args:
            renderer: of the cookbook, for the policy.
            row: the columns.

        Raises:
            ValueError: the row lacks a column.
            ModuleNotFoundError: the cookbook is not installed.
        """
        if self.prompt not in row:
            raise ValueError(
                f"a row of tinker-cookbook has no {self.prompt!r} with the prompt; it has "
                f"{', '.join(map(str, row)) or 'nothing'}. Name the right one: prompt=COLUMN"
            )
        types: Any = import_module("tinker_cookbook.rl.types")
        empty: Any = import_module("tinker").ModelInput.empty
        text_of: Any = import_module("tinker_cookbook.renderers").get_text_content
        reward, asked = self, row[self.prompt]
        reward.made_sample(row, asked, "")  # what the row lacks is told before anything is sampled

        class AdjudgeEnv(types.Env):  # type: ignore[misc]
            async def initial_observation(self) -> tuple[Any, Any]:
                turns = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked)
                return renderer.build_generation_prompt(turns), renderer.get_stop_sequences()

            async def step(self, action: Any, *, extra: Any = None) -> Any:
                message, termination = renderer.parse_response(action)
                ended = "stop" if termination.is_clean else "length"
                sample = reward.made_sample(row, asked, text_of(message), finish_reason=ended)
                (score,) = await reward.scores([row], [sample])
                return types.StepResult(
                    reward=reward.number(score),
                    episode_done=True,
                    next_observation=empty(),
                    next_stop_condition=renderer.get_stop_sequences(),
                    metrics={name: float(score.status == name) for name in ("scored", "failed", "abstained")},
                )

        return AdjudgeEnv()
