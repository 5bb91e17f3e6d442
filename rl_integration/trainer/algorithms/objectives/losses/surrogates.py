"""The loss of a token, given its advantage A and the ratio ρ of the policy to the one that the update began with.

| name | loss | used by |
|---|---|---|
| `clipped` | -min(ρA, clip(ρ, 1 - low, 1 + high) A); high > low is DAPO's clip-higher | PPO, GRPO, DAPO, GSPO, RLOO |
| `detached` | -sg[min(ρ, ceiling)] A logp: a clipped token keeps its gradient | CISPO (arXiv 2506.13585) |
| `plain` | -A logp / (1 + tau) | REINFORCE, PSR/NSR, AsymRE; OPMD with its tau |

With `ceiling`, the clipped loss uses min(ρ, ceiling): for A < 0 it never exceeds ceiling * |A|, which is dual clipping
(arXiv 1912.09729; verl's `clip_ratio_c`, TRL's `delta`).  CISPO's paper clips from below too, at a bound that it leaves
without effect; TRL has the ceiling alone, and so do we.

Not covered: SAPO's and VESPO's soft weights.
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped(rho: Tensor, advantages: Tensor, *, low: float, high: float, ceiling: float | None = None) -> Tensor:
    """Return (n, t) losses of PPO's clipped surrogate.

    Args:
        rho: (n, t) or (n, 1) ratios.
        advantages: (n, t).
        low: how far below 1 the ratio may fall with effect.
        high: how far above 1 it may rise with effect.
        ceiling: the largest ratio that counts at all, above 1 + high; None for no bound.
    """
    inside = rho.clamp(1 - low, 1 + high)
    bounded = rho if ceiling is None else rho.clamp(max=ceiling)
    return -torch.minimum(bounded * advantages, inside * advantages)


def detached(rho: Tensor, advantages: Tensor, logp: Tensor, *, ceiling: float) -> Tensor:
    """Return (n, t) losses of REINFORCE with the bounded ratio as a weight without gradient."""
    return -rho.detach().clamp(max=ceiling) * advantages * logp


def plain(advantages: Tensor, logp: Tensor, *, tau: float = 0.0) -> Tensor:
    """Return (n, t) losses of REINFORCE, divided by 1 + tau."""
    return -advantages * logp / (1 + tau)
