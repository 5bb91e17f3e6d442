"""Rewards of judges that compare, as the papers give them: functions beside the scorers of docs/judge_training.md.

Pairwise preferences among the responses of a group become one skew-symmetric matrix (Think-RM, arXiv 2505.16265), so
that a policy can be trained on comparisons as they are.  Asked about (i, j) and about (j, i), a judge that favours a
place contradicts itself; the skew-symmetric part takes the place out:

    S[i][j] = (P[i][j] - P[j][i]) / 2,   S[j][i] = -S[i][j],   S[i][i] = 0
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
