"""A reward for AReaL in its two forms.

As a workflow, where AReaL is installed:

    MathWorkflow = reward.workflow()
    trainer.train(workflow="areal_reward.MathWorkflow", workflow_kwargs={...})

Run it without AReaL: python examples/frameworks/areal_reward.py
"""

from __future__ import annotations

import asyncio

from adjudge.areal import ArealReward

reward = ArealReward(scorer="math", reference="answer", ends=["<|im_end|>"])


async def main() -> None:
    """Score three completions; what is None is rejected by the workflow, and never trained on."""
    rows = [
        ("\\boxed{2}<|im_end|>", "2"),
        ("\\boxed{3}<|im_end|>", "2"),
        ("\\boxed{2}<|im_end|>", "\\frac{1}{"),  # a reference that cannot be read
    ]
    for completion, answer in rows:
        print(await reward.value("What is 1 + 1?", completion, answer=answer))
    print(reward("What is 1 + 1?", "\\boxed{2}<|im_end|>", [1], [2], answer="2"), "as reward_fn")


if __name__ == "__main__":
    asyncio.run(main())
