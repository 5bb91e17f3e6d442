"""Rewards for training a judge on verdicts that can be checked: plain functions, as the papers give them.

Each takes verdicts or scores that were read from the judge's text by `adjudge.prompts.reading`, and the gold label.
`None` stands for a text without a verdict, which earns the lowest reward.

Pairwise preferences among the responses of a group as one skew-symmetric matrix (Think-RM, arXiv 2505.16265).

Judges that compare have no score of a single response; Think-RM trains a policy on their comparisons as they are.
Asked about (i, j) and about (j, i), a judge that favours a place contradicts itself; the skew-symmetric part takes the
place out:

    S[i][j] = (P[i][j] - P[j][i]) / 2,   S[j][i] = -S[i][j],   S[i][i] = 0

Not covered: rewards for form alone; the papers report that they add nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def skew_symmetric(preferences: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return the skew-symmetric part of a matrix of preferences.

    Args:
        preferences: entry [i][j] says how much i, shown first, was preferred to j: 1 a win, -1 a loss, 0 a tie, or
            anything between; the diagonal is not looked at.

    Raises:
        ValueError: the matrix is not square, has fewer than two rows, or an entry is outside [-1, 1].
    """
    count = len(preferences)
    if count < 2 or any(len(row) != count for row in preferences):
        raise ValueError(
            f"the preferences have {count} rows of {sorted({len(row) for row in preferences})} entries; "
            "need a square matrix of two responses or more"
        )
    for i, row in enumerate(preferences):
        for j, entry in enumerate(row):
            if i != j and not (math.isfinite(entry) and -1 <= entry <= 1):
                raise ValueError(f"the preference of {i} over {j} is {entry!r}; it must be in [-1, 1]")
    return tuple(
        tuple(0.0 if i == j else (preferences[i][j] - preferences[j][i]) / 2 for j in range(count))
        for i in range(count)
    )


def rewards(skew: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return for each response its mean preference over the others, in [-1, 1]; they sum to 0."""
    return tuple(math.fsum(row) / (len(row) - 1) for row in skew)


def rm_r1_reward(verdict: str | None, gold: str) -> float:
    """Return 1 for the right verdict and -1 for a wrong one or none (RM-R1, arXiv 2505.02387)."""
    return 1.0 if verdict == gold else -1.0


def j1_verdict_reward(verdict: str | None, gold: str) -> float:
    """Return 1 for the right verdict, else 0 (J1, arXiv 2505.10320)."""
    return float(verdict == gold)


def j1_consistency_reward(verdict: str | None, swapped: str | None, gold: str, swapped_gold: str) -> float:
    """Return 1 only if the verdicts on both orders of a pair are right, else 0; both orders get it (J1)."""
    return float(verdict == gold and swapped == swapped_gold)


def j1_pointwise_reward(chosen: float | None, rejected: float | None) -> float:
    """Return 1 if the better response got the higher score, else 0; a tie is wrong (J1, pointwise)."""
    return float(chosen is not None and rejected is not None and chosen > rejected)


def deepseek_grm_reward(scores: Sequence[float] | None, best: int) -> float:
    """Return 1 if the labelled best response has strictly the highest score, else -1 (DeepSeek-GRM, arXiv 2504.02495).

    Args:
        scores: one score for each response, two or more; None when they could not be read.
        best: place of the response that is labelled best.

    Raises:
        ValueError: there is only one response, or none at `best`.
    """
    if scores is None:
        return -1.0
    if len(scores) < 2 or not 0 <= best < len(scores):
        raise ValueError(
            f"best is {best!r}, and there are {len(scores)} scores; give two or more, and a place among them"
        )
    others = [score for place, score in enumerate(scores) if place != best]
    return 1.0 if scores[best] > max(others) else -1.0


def general_reasoner_reward(same: bool, tokens: int, gold_tokens: int, *, extracted: bool = True) -> float:
    """Return General-Reasoner's reward (arXiv 2505.14652): 1 - 0.05 * min(10, |tokens - gold_tokens|), 0 or -0.5.

    Args:
        same: whether the verifier finds the answers equivalent.
        tokens: length of the answer.
        gold_tokens: length of the accepted answer.
        extracted: whether an answer was found at all; without one the reward is -0.5.
    """
    if not extracted:
        return -0.5
    return 1.0 - 0.05 * min(10, abs(tokens - gold_tokens)) if same else 0.0
