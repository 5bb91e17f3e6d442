"""What is subtracted from rewards before advantages: overlong answers, and leaving the reference policy.

| shaping | formula | source |
|---|---|---|
| `Overlong` | 0 up to limit - buffer, then linear to -factor at the limit | DAPO, arXiv 2503.14476 |
| `kl_penalty` | r_i - beta * Σ_t (logp - logp_reference) | RLOO, REINFORCE++ |
| `token_rewards` | -beta * (logp - logp_reference) at each token, and the reward at the last | PPO, arXiv 2203.02155 |

Both penalties take the log-probabilities under which the tokens were sampled, and no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, Integers, check_number, flags, same_shape


@dataclass(frozen=True, kw_only=True)
class Overlong(Options):
    """DAPO's soft penalty of length.

    Attributes:
        limit: response tokens at which generation stops.
        buffer: tokens before the limit over which the penalty grows.
        factor: the penalty at the limit; the reward's unit.
    """

    limit: Count = 20480
    buffer: Count = 4096
    factor: Annotated[float, Range(ge=0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buffer > self.limit:
            raise ValueError(f"buffer={self.buffer} is more than limit={self.limit}; it must lie before the limit")

    def __call__(self, lengths: Integers) -> Floats:
        """Return (n,) numbers in [-factor, 0] to add to the rewards of responses of so many tokens."""
        excess = np.asarray(lengths, dtype=np.float64) - (self.limit - self.buffer)
        return -self.factor * np.clip(excess / self.buffer, 0.0, 1.0)


def kl_penalty(logp: Floats, reference_logp: Floats, mask: Bools, beta: float) -> Floats:
    """Return (n,) numbers to add to the rewards: -beta times the log-ratio of each response.

    Args:
        logp: (n, t) log-probabilities when the tokens were sampled.
        reference_logp: (n, t) of the reference policy.
        mask: (n, t) tokens of the policy.
        beta: weight of the penalty, 0 or more.

    Raises:
        ValueError: shapes differ, or beta is below 0.
    """
    penalty: Floats = -beta * _log_ratio(logp, reference_logp, mask, beta).sum(axis=1)
    return penalty


def token_rewards(
    rewards: Floats, mask: Bools, *, logp: Floats | None = None, reference_logp: Floats | None = None, beta: float = 0.0
) -> Floats:
    """Return (n, t) token rewards: the response's reward at its last token of the policy, and the penalty at each.

    A response without a token of the policy has no place for its reward, and gets none.

    Args:
        rewards: (n,) one for each response; not read where a row of the mask is empty.
        mask: (n, t) tokens of the policy, of valid samples alone.
        logp: (n, t) log-probabilities when the tokens were sampled; needed unless beta is 0.
        reference_logp: (n, t) of the reference policy; needed unless beta is 0.
        beta: weight of the penalty, 0 or more.

    Raises:
        ValueError: shapes differ, beta is below 0, or log-probabilities are needed and missing.
    """
    mask = flags("mask", mask)
    same_shape("rewards", np.shape(rewards), mask.shape[:1])
    shaped = np.zeros(mask.shape)
    if beta:
        if logp is None or reference_logp is None:
            raise ValueError(f"beta={beta} needs logp and reference_logp; give both, or beta=0")
        shaped -= beta * _log_ratio(logp, reference_logp, mask, beta)
    rows = np.flatnonzero(mask.any(axis=1))
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
    shaped[rows, last[rows]] += np.asarray(rewards, dtype=np.float64)[rows]
    return shaped


def _log_ratio(logp: Floats, reference_logp: Floats, mask: Bools, beta: float) -> Floats:
    check_number("beta", beta, Range(ge=0))
    same_shape("logp", np.shape(logp), np.shape(mask))
    same_shape("reference_logp", np.shape(reference_logp), np.shape(mask))
    hidden = ~flags("mask", mask)
    return np.where(hidden, 0.0, np.where(hidden, 0.0, logp) - np.where(hidden, 0.0, reference_logp))
