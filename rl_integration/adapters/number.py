"""What a framework that knows numbers alone is given where there is no number.

Such a framework cannot leave a sample out.  By default the run hears of it (`NotScored`); a `fallback` is a number of
the user's own choice instead, which the adapter marks wherever the framework can carry a mark.
"""

from __future__ import annotations

import math

from adjudge.protocol import Score
from adjudge.rl_integration.adapters.recent_failures import is_out_of_scope


class NotScored(RuntimeError):
    """A sample has no score, the framework cannot be told so, and no fallback was chosen."""


def number(score: Score, fallback: float | None, framework: str) -> float:
    """Return the value of a score, or the fallback.

    Raises:
        NotScored: there is no number and no fallback.
    """
    if score.value is not None:
        return score.value
    if fallback is not None:
        return fallback
    seen = str(dict(score.evidence))[:300]
    remedy = "Remove what keeps it from being scored"
    if is_out_of_scope(score):
        remedy = (
            f"The scorer {score.provenance.scorer!r} is not for it: choose the scorer of each row, by the reference "
            '(scorer="auto") or by a column "kind" ({by_kind: ...})'
        )
    raise NotScored(
        f"a sample {score.status} ({score.reason}): {seen}; {framework} has no way to leave a sample out. {remedy}, or "
        "choose the number that stands for it: fallback=NUMBER"
    )


def checked_fallback(fallback: float | None) -> float | None:
    """Return a fallback that is a finite number, or None.

    Raises:
        ValueError: it is neither.
    """
    if fallback is None:
        return None
    if isinstance(fallback, bool) or not isinstance(fallback, int | float) or not math.isfinite(fallback):
        raise ValueError(f"fallback={fallback!r}; it must be a finite number, or None to raise")
    return float(fallback)
