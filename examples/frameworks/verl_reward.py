"""A reward function for verl: more than one data source, each with its scorer, and a fallback.

verl is told: reward.custom_reward_function.path=examples/frameworks/verl_reward.py
A file of your own is needed only for what `reward_kwargs` cannot say; see docs/frameworks/verl.md.

Run it without verl: python examples/frameworks/verl_reward.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from adjudge import verl


async def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> dict[str, float]:
    """Score one response as verl asks for it."""
    return await verl.compute_score(
        data_source,
        solution_str,
        ground_truth,
        extra_info,
        scorers={"gsm8k": "math", "arc": "choice"},
        fallback=0.0,
    )


def main() -> None:
    """Score four rows with the arguments verl gives."""
    rows = [
        ("gsm8k", "\\boxed{2}", "2"),
        ("gsm8k", "\\boxed{3}", "2"),
        ("arc", "The answer is B.", "B"),
        ("gsm8k", "\\boxed{2}", "\\frac{1}{"),  # a reference that cannot be read
    ]
    for source, response, truth in rows:
        found = asyncio.run(compute_score(source, response, truth, {"index": 0}))
        print(source, repr(response), found)


if __name__ == "__main__":
    main()
