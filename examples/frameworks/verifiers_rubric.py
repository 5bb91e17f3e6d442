"""Reward functions for a `Rubric` of verifiers before version 1.

rubric = vf.Rubric(funcs=FUNCS, weights=WEIGHTS)
"""

from __future__ import annotations

from adjudge.prime_rl import RubricGroupReward, RubricReward

FUNCS = [
    RubricReward(scorer="math", reference="answer"),
    RubricGroupReward(scorer="repetition", reference="", name="repeats"),
]
WEIGHTS = [1.0, 0.1]
