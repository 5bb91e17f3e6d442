"""tinker-cookbook's own renderer and group builder with our environment; prints what came out as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

from transformers import AutoTokenizer

from adjudge.tinker import TinkerReward

renderers: Any = import_module("tinker_cookbook.renderers")
problems: Any = import_module("tinker_cookbook.rl.problem_env")

ROW = {"prompt": "1+1?", "answer": "2"}


async def ran(folder: str) -> dict[str, Any]:
    """Play a group, and what cannot be judged."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    renderer = renderers.get_renderer("role_colon", tokenizer)
    reward = TinkerReward("math")
    envs = await problems.ProblemGroupBuilder(env_thunk=partial(reward.env, renderer, ROW), num_envs=3).make_envs()
    ends = ["\n\nUser:", "\n\nUser:", ""]
    steps = []
    for env, text, end in zip(envs, ("\\boxed{2}", "\\boxed{3}", "\\boxed{2}"), ends, strict=True):
        asked, _ = await env.initial_observation()
        assert asked.length > 0
        steps.append(await env.step(tokenizer.encode(f" {text}{end}", add_special_tokens=False)))
    broken = {**ROW, "answer": "\\frac{1}{"}
    action = tokenizer.encode(" \\boxed{2}\n\nUser:", add_special_tokens=False)
    try:
        told = str(await reward.env(renderer, broken).step(action))
    except RuntimeError as error:
        told = f"{type(error).__name__}: {error}"
    lenient = await TinkerReward("math", fallback=0.25).env(renderer, broken).step(action)
    try:
        lacking = str(TinkerReward("math", prompt="question").env(renderer, ROW))
    except ValueError as error:
        lacking = str(error)
    return {
        "lacking": lacking,
        "version": version("tinker-cookbook"),
        "rewards": [step.reward for step in steps],
        "done": [step.episode_done for step in steps],
        "broken": told,
        "fallback": [lenient.reward, lenient.metrics],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ran(sys.argv[1]))))
