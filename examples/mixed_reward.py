"""A reward for reinforcement learning, mixed from several scorers by the spec in mixed_reward.yaml.

Run it: python examples/mixed_reward.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adjudge import Sample, load, score_batch

SCORER = load(Path(__file__).with_name("mixed_reward.yaml"))


def rewards(prompts: Sequence[str], responses: Sequence[str], golds: Sequence[str]) -> list[float | None]:
    """Return one reward for each response; None where judging was not possible, so that the sample is left out.

    Raises:
        ValueError: a gold is missing (None).
    """
    rows = zip(prompts, responses, golds, strict=True)
    samples = [Sample(prompt=prompt, response=response, reference=gold) for prompt, response, gold in rows]
    return [score.value for score in score_batch(samples, SCORER)]


def main() -> None:
    """Print the rewards of four responses."""
    responses = [
        "<think>Half of a half.</think><answer>0.25</answer>",
        "<think>Half of a half.</think><answer>0.5</answer>",
        "0.25",
        "<think>" + "Half of a half. " * 20 + "</think><answer>0.25</answer>",
    ]
    for reward in rewards(["What is half of a half?"] * 4, responses, ["1/4"] * 4):
        print(reward if reward is None else round(reward, 2))


if __name__ == "__main__":
    main()
