"""SkyRL-Gym's own registry, thread pool use and metrics, with our environment; prints what came out as JSON."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from tests.frameworks.pages import pasted

from adjudge.skyrl import SkyRLReward

skyrl_gym: Any = import_module("skyrl_gym")
metrics: Any = import_module("skyrl_gym.metrics")
core: Any = import_module("skyrl_gym.core")

ROWS = [("\\boxed{2}", "2"), ("\\boxed{3}", "2"), ("\\boxed{2}", "\\frac{1}{"), ("\\boxed{2.0}", "2")]


def extras(truth: str) -> dict[str, Any]:
    return {"reward_spec": {"method": "rule", "ground_truth": truth}, "max_turns": 1}


def played(row: tuple[str, str]) -> tuple[Any, Any]:
    action, truth = row
    with skyrl_gym.make("adjudge_math", env_config={}, extras=extras(truth)) as environment:
        assert isinstance(environment, core.Env)
        prompt, info = environment.init([{"role": "user", "content": "1+1?"}])
        assert (len(prompt), info) == (1, {})
        step = environment.step(action)
        return step, environment.get_metrics()


def error_of(work: Any) -> str:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the test compares what was raised
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    # By name, as configurations do it; and a class, as programs do it.
    skyrl_gym.register(id="adjudge_math", entry_point="examples.frameworks.skyrl_reward:MathEnvironment")
    shown = pasted("SkyRL")["MathEnvironment"](extras=extras("2"))
    skyrl_gym.register(id="adjudge_strict", entry_point=SkyRLReward(scorer="math").environment())
    with ThreadPoolExecutor(max_workers=32, thread_name_prefix="skyrl-gym-env-") as threads:
        episodes = list(threads.map(played, ROWS * 8))
    strict = skyrl_gym.make("adjudge_strict", env_config={}, extras=extras("\\frac{1}{"))
    print(
        json.dumps(
            {
                "version": import_module("importlib.metadata").version("skyrl-gym"),
                "steps": [step for step, _ in episodes[: len(ROWS)]],
                "rewards": [step["reward"] for step, _ in episodes],
                "metrics": metrics.aggregate_for_environment("adjudge_math", [found for _, found in episodes]),
                "shown": shown.step("\\boxed{2}")["reward"],
                "strict": error_of(lambda: strict.step("\\boxed{2}")),
                "no reference": error_of(lambda: skyrl_gym.make("adjudge_math", env_config={}, extras={"a": 1})),
            }
        )
    )


if __name__ == "__main__":
    main()
