"""OpenEnv: a rubric that scores an action, or an episode by its last action.

    class MathEnvironment(Environment):
        def __init__(self):
            super().__init__(rubric=rubric("math", response="action.message", reference="observation.metadata.answer"))

OpenEnv knows numbers alone: without a `fallback` an action without a score is an error of the environment's step.

Tried with openenv-core 0.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.rl_integration.adapters.row import Place, value_in
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class _OpenEnvReward(RowReward):
    framework = "OpenEnv"


def rubric(spec: Any, *, response: Place, prompt: Place = "", **options: Any) -> Any:
    """Return an OpenEnv `Rubric`, to be awaited as its asynchronous rubrics are.

    Args:
        spec: anything `adjudge.load` takes; with `server`, the scorer's name there.
        response: where the answer is: a path through "action" and "observation", or a function of the two as a row.
        prompt: where the question is; "" for scorers that do not read it.
        options: those of the rewards for frameworks; `reference` and `group` are such places too.

    Raises:
        ValueError: the scorer is unknown, or an option is wrong.
        ModuleNotFoundError: OpenEnv is not installed.
    """
    parent: Any = import_module("openenv.core.rubrics").Rubric
    reward = _OpenEnvReward(spec, **options)

    class AdjudgeRubric(parent):  # type: ignore[misc]
        async def forward(self, action: Any, observation: Any) -> float:
            row = {"action": _fields(action), "observation": _fields(observation)}
            asked = value_in(row, prompt, "prompt", "OpenEnv")
            said = value_in(row, response, "response", "OpenEnv")
            said = "" if said is None else said  # the policy may leave it out of its action, which is an empty answer
            (score,) = await reward.scores([row], [reward.made_sample(row, asked, said)])
            return reward.number(score)

    return AdjudgeRubric()


def _fields(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    return given.model_dump() if hasattr(given, "model_dump") else dict(vars(given))
