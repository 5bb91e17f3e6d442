"""PF-PPO (arXiv 2409.06957): how far each response to a prompt can be trusted with its reward.

| policy | weight of a response | when rewards are trustworthy |
|---|---|---|
| `best` | 1 for the best, 0 for the rest | at the top |
| `best_random` | 0.4 for the best, 0.1 for each other | at the top, with some noise |
| `best_worst` | 1 for the best and the worst, 0 for the rest | at both ends |
| `power` | |r|^p | far from 0 |

Equal bests share their weight, and so do equal worsts.  The policy to take is the one under whose weights the rewards
say most about a true score: the largest R² of a straight line.

Not covered: rewards of other scales than the reward model's for `power`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Integers: TypeAlias = npt.NDArray[np.int64]

Keeping: TypeAlias = Literal["best", "best_random", "best_worst", "power"]
KEEPING: tuple[Keeping, ...] = get_args(Keeping)


def response_weights(rewards: Floats, groups: Integers, policy: Keeping, *, exponent: float = 2.0) -> Floats:
    """Return (n,) the chance of each response to be drawn from its group; those of a group sum to 1.

    Args:
        rewards: (n,) finite rewards.
        groups: (n,) whole numbers from 0; responses to one prompt share one.
        policy: the rule.
        exponent: p of `power`.
    """
    import numpy as np

    size = int(groups.max(initial=-1)) + 1

    def share(sign: float) -> Floats:
        """1 for each group, shared by its members of the highest signed reward."""
        top = np.full(size, -np.inf)
        np.maximum.at(top, groups, sign * rewards)
        chosen = (sign * rewards == top[groups]).astype(np.float64)
        return np.asarray(chosen / np.bincount(groups, chosen, minlength=size)[groups], dtype=np.float64)

    best = share(1.0)
    match policy:
        case "best":
            raw = best
        case "best_random":
            raw = 0.4 * best + 0.1 * (best == 0)
        case "best_worst":
            raw = best + share(-1.0)
        case "power":
            largest = np.zeros(size)
            np.maximum.at(largest, groups, np.abs(rewards))
            scale = np.where(largest > 0, largest, 1.0)[
                groups
            ]  # the square of 1e200 is not a number, that of 1e-200 is 0
            raw = (np.abs(rewards) / scale) ** exponent
    total = np.bincount(groups, raw, minlength=size)[groups]
    even = 1.0 / np.bincount(groups, minlength=size)[groups]  # all powers 0: nothing to prefer
    return np.where(total > 0, raw / np.where(total > 0, total, 1.0), even)


def explained(rewards: Floats, truth: Floats, weights: Floats) -> float | None:
    """Return R²: the share of the true scores' variance that a straight line in the rewards explains, 0 to 1.

    Args:
        rewards: (n,) finite numbers.
        truth: (n,) finite numbers.
        weights: (n,) how often each response counts, at least 0.

    Returns:
        None where rewards or true scores do not differ among the responses that count: no line can be fitted.
    """
    import numpy as np

    counted = weights > 0
    x, y, w = rewards[counted], truth[counted], weights[counted]
    if not len(x) or x.min() == x.max() or y.min() == y.max():
        return None
    w = w / w.sum()
    dx, dy = x - w @ x, y - w @ y
    dx, dy = dx / np.abs(dx).max(), dy / np.abs(dy).max()  # R² has no unit, and squares of large numbers overflow
    spread = (w @ dx**2) * (w @ dy**2)
    return float(np.clip((w @ (dx * dy)) ** 2 / spread, 0.0, 1.0)) if spread > 0 else None
