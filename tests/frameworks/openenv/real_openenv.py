"""OpenEnv's own environment and containers with our rubric; prints what came out as JSON."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from importlib.metadata import version
from typing import Any

from adjudge.openenv import rubric

types: Any = import_module("openenv.core.env_server.types")
rubrics: Any = import_module("openenv.core.rubrics")
Environment: Any = import_module("openenv.core.env_server.interfaces").Environment


class Answer(types.Action):  # type: ignore[misc]
    """An answer."""

    message: str


class Question(types.Observation):  # type: ignore[misc]
    """A question."""

    gold: str = ""


PLACES = {"response": "action.message", "reference": "observation.gold"}


class Asks(Environment):  # type: ignore[misc]
    """Asks one question."""

    def __init__(self, reward: Any) -> None:
        super().__init__(rubric=reward)

    def reset(self, *given: Any, **more: Any) -> Any:
        """Ask."""
        return Question(gold="2")

    def step(self, action: Any, *given: Any, **more: Any) -> Any:
        """Not used."""
        raise NotImplementedError

    async def step_async(self, action: Any, *given: Any, **more: Any) -> Any:
        """Reward the answer."""
        seen = Question(gold="2", done=True)
        seen.reward = await self._apply_rubric_async(action, seen)
        return seen

    @property
    def state(self) -> Any:
        """None is kept."""
        return types.State()


async def ran() -> dict[str, Any]:
    """Play some episodes."""
    environment = Asks(rubric("math", **PLACES))
    rewards = [(await environment.step_async(Answer(message=text))).reward for text in ("\\boxed{2}", "\\boxed{3}")]
    broken = Question(gold="\\frac{1}{")
    both = rubrics.WeightedSum([rubric("math", **PLACES), rubric("repetition", response="action.message")], [0.5, 0.5])
    try:
        told = str(await rubric("math", **PLACES)(Answer(message="\\boxed{2}"), broken))
    except RuntimeError as error:
        told = f"{type(error).__name__}: {error}"
    misspelt = {**PLACES, "response": "action.mesage"}
    try:
        lacking = str(await rubric("math", **misspelt)(Answer(message="\\boxed{2}"), Question(gold="2")))
    except ValueError as error:
        lacking = str(error)
    return {
        "version": version("openenv-core"),
        "lacking": lacking,
        "rewards": rewards,
        "together": await both(Answer(message="\\boxed{2}"), Question(gold="2")),
        "broken": told,
        "fallback": await rubric("math", fallback=-1.0, **PLACES)(Answer(message="\\boxed{2}"), broken),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ran())))
