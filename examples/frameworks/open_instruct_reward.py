"""A verifier for open-instruct: rows whose column `dataset` is "adjudge_math" are scored by it.

Import this module before open-instruct builds its verifiers, and keep it imported.

Run it where open-instruct is installed: python examples/frameworks/open_instruct_reward.py
"""

from __future__ import annotations

import asyncio

from adjudge.open_instruct import OpenInstructReward

MathVerifier = OpenInstructReward(scorer="math", fallback=0.0).verifier("adjudge_math")


def main() -> None:
    """Verify three predictions, the last against a reference that cannot be read."""
    verifier = MathVerifier()
    for prediction, label in (("\\boxed{2}", "2"), ("\\boxed{3}", "2"), ("\\boxed{2}", "\\frac{1}{")):
        found = asyncio.run(verifier.async_call([], prediction, label, "What is 1 + 1?"))
        print(found.score, found.reasoning)


if __name__ == "__main__":
    main()
