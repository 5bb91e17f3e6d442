"""A reward for a task of PrimeIntellect's verifiers; its config plugs it in.

In the run's config, under `env.taskset.task.rewards`:

    correct = {fn = "examples/frameworks/verifiers_reward.py:CORRECT", weight = 1.0}
"""

from __future__ import annotations

from adjudge.prime_rl import VerifiersReward

CORRECT = VerifiersReward(scorer="math", reference="answer")
