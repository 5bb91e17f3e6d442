"""Scores rollouts by the `Rubric` of verifiers before version 1, with our reward functions; prints JSON.

Nothing is generated: a rollout is the state that an environment hands to its rubric.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from examples.frameworks.verifiers_rubric import FUNCS, WEIGHTS
from tests.frameworks.pages import pasted

from adjudge.prime_rl import RubricGroupReward, RubricReward
from adjudge.protocol import Sample, Score

vf: Any = import_module("verifiers")
outputs: Any = import_module("verifiers.legacy.utils.save_utils")


class Longest:
    """Scores a group: 1 for the longest response, 0 for the others; an empty response cannot be judged."""

    name = "longest"
    fingerprint = "longest:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        sizes = [len(str(sample.response[0]["content"])) for sample in samples]  # type: ignore[index]
        return [Score.scored(float(n == max(sizes))) if n else Score.failed("engine_timeout") for n in sizes]


def state(text: str, answer: str = "2", info: Any = None, *, typed: bool = False) -> Any:
    asked = [{"role": "user", "content": "1+1?"}]
    made = vf.State(input={"prompt": asked, "answer": answer, "info": info or {}, "example_id": 7, "task": "adding"})
    said = vf.AssistantMessage(content=text) if typed else {"role": "assistant", "content": text}
    made.update(completion=[said], trajectory=[], metrics={}, timing=vf.RolloutTiming(), is_completed=True)
    made.update(is_truncated=False, stop_condition=None, error=None, reward=None)
    return made


def shown(state: Any) -> dict[str, Any]:
    """What verifiers itself writes down of a rollout."""
    written = outputs.state_to_output(state, [])
    error = written.get("error")
    return {
        "reward": written["reward"],
        "metrics": written["metrics"],
        "advantage": state.get("advantage"),
        "error": None if error is None else f"{error['error']}: {error['message']}",
    }


async def alone(reward: RubricReward, state: Any) -> dict[str, Any]:
    await vf.Rubric(funcs=[reward]).score_rollout(state)
    return shown(state)


async def main() -> None:
    logging.disable(logging.CRITICAL)  # the rubric logs every exception
    math = RubricReward(scorer="math")
    nested = RubricReward(scorer="math", reference="info.gold", name="nested")
    group = [state(r"\boxed{2}"), state("so it is 22"), state("")]
    rubric = vf.Rubric(funcs=[math, RubricGroupReward(scorer=Longest(), name="longest")], weights=[1.0, 0.5])
    await rubric.score_group(group)
    failed = state(r"\boxed{2}", "\\frac{1}{")
    failed["error"] = vf.ToolError("before")
    unasked = RubricGroupReward(scorer="math", reference="info.gold")
    mistaken = [state(r"\boxed{2}"), state(r"\boxed{2}")]
    await vf.Rubric(funcs=[unasked]).score_group(mistaken)
    example = [state(r"\boxed{2}")]
    await vf.Rubric(funcs=FUNCS, weights=WEIGHTS).score_group(example)
    group_of_page = [state(text, info={"gold": "2"}) for text in (r"\boxed{2}", r"\boxed{2}")]
    await pasted("verifiers and prime-rl", 1)["rubric"].score_group(group_of_page)
    cut = [state("so it is 2"), state("so it is 2")]
    for one, turns in zip(cut, ([True, False], [False, True]), strict=True):  # as `Environment` writes it
        one["trajectory"] = [vf.types.TrajectoryStep(is_truncated=turn, reward=None, advantage=None) for turn in turns]
        one["is_truncated"] = any(step.get("is_truncated", False) for step in one["trajectory"])
    await vf.Rubric(funcs=[math]).score_group(cut)
    found = {
        "cut": [one["reward"] for one in cut],
        "version": vf.__version__,
        "right": await alone(math, state(r"\boxed{2}")),
        "shown": shown(group_of_page[0]),
        "wrong": await alone(math, state(r"\boxed{3}", typed=True)),
        "broken": await alone(math, state(r"\boxed{2}", "\\frac{1}{")),
        "broken before": await alone(math, failed),
        "nested": await alone(nested, state(r"\boxed{2}", info={"gold": "2"})),
        "not there": await alone(nested, state(r"\boxed{2}", info={"gilt": "2"})),
        "example": shown(example[0]),
        "group": [shown(one) for one in group],
        "mistaken group": [shown(one) for one in mistaken],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
