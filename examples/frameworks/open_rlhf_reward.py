"""A reward function for OpenRLHF.

OpenRLHF is told: reward.remote_url examples/frameworks/open_rlhf_reward.py

Run it without OpenRLHF (PyTorch is needed): python examples/frameworks/open_rlhf_reward.py
"""

from __future__ import annotations

from adjudge.openrlhf import OpenRlhfReward

reward_func = OpenRlhfReward("math", end_tokens=["<|im_end|>"], fallback=0.0)


def main() -> None:
    """Score three queries as OpenRLHF sends them."""
    prompt = "<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n<|im_start|>assistant\n"
    answers = ["\\boxed{2}<|im_end|>", "\\boxed{3}<|im_end|>", "It is \\boxed{2"]  # the last one was cut off
    for answer in answers:
        found = reward_func([prompt + answer], [prompt], ["2"])
        valid = found["extra_logs"]["reward_valid"].tolist()
        print(repr(answer), "rewards", found["rewards"].tolist(), "valid", valid)


if __name__ == "__main__":
    main()
