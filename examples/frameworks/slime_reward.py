"""A reward for slime, and what becomes of a sample that cannot be scored.

slime is told: custom-rm-path slime_reward.reward, and custom-reward-post-process-path
adjudge.slime.normalized_rewards.

Run it without slime: python examples/frameworks/slime_reward.py
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from adjudge.slime import SlimeReward, normalized_rewards

reward = SlimeReward(scorer="math", fallback=0.0)


def main() -> None:
    """Score one group of four as slime does, with the fields of its samples that are read."""
    args = SimpleNamespace(advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=False)
    labels = ["2", "2", "2", "\\frac{1}{"]  # the last reference cannot be read
    responses = ["\\boxed{2}", "\\boxed{3}", "\\boxed{2.0}", "\\boxed{2}"]
    group = [
        SimpleNamespace(
            prompt="What is 1 + 1?",
            response=response,
            label=label,
            metadata={},
            status="completed",
            group_index=0,
            index=index,
            remove_sample=False,
            reward=None,
        )
        for index, (response, label) in enumerate(zip(responses, labels, strict=True))
    ]
    for sample in group:
        sample.reward = asyncio.run(reward(args, sample))
    print("rewards   ", [sample.reward for sample in group])
    print("removed   ", [sample.remove_sample for sample in group])
    print("advantages", [round(value, 3) for value in normalized_rewards(args, group)[1]])


if __name__ == "__main__":
    main()
