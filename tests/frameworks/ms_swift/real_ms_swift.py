"""ms-swift's own calls of reward functions with ours; prints what came out as JSON."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch

from adjudge.trl import Reward

algorithm: Any = import_module("swift.rl_core.grpo_algorithm")
orms: Any = import_module("swift.rewards.orm").orms
GRPOSample: Any = import_module("swift.rl_core.data").GRPOSample


def sample(answer: str, gold: str, finish_reason: str = "stop") -> Any:
    """A rollout."""
    turns = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": answer}]
    return GRPOSample(messages=turns, extra={"solution": gold}, finish_reason=finish_reason)


def main() -> None:
    """Register a reward as the page shows, make it as ms-swift does, and let ms-swift call it."""
    orms["adjudge_math"] = lambda args=None: Reward("math", reference="solution")
    made = orms["adjudge_math"](args=None)
    rows = [sample("\\boxed{2}", "2"), sample("\\boxed{3}", "2"), sample("\\boxed{2}", "\\frac{1}{")]
    rows.append(sample("\\boxed{2}", "2", "length"))
    found = algorithm.compute_rewards_per_func(rows, [made, orms["format"]()], [None, None], torch.device("cpu"))
    values = [[None if value != value else value for value in row] for row in found.tolist()]
    print(json.dumps({"version": version("ms-swift"), "rewards": values}))


if __name__ == "__main__":
    main()
