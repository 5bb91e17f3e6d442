"""Estimates of KL(policy || reference) at sampled tokens, with x = logp_reference - logp.

| name | estimate | in expectation | its gradient alone, on average |
|---|---|---|---|
| `k1` | -x | unbiased, may be negative | 0 |
| `k2` | x² / 2 | biased, low variance | that of the divergence |
| `k3` | exp(x) - x - 1 | unbiased, never negative | that of KL(reference || policy) |

After J. Schulman, "Approximating KL divergence" (2020); their gradients, arXiv 2510.01555.  x is cut at 20 in size.
Multiplied by the ratio, which is 1 where the policy is the one that sampled but has a gradient
(`use_bias_correction_kl`), k1 and k3 get the gradient of KL(policy || reference), also for an older policy's tokens
(arXiv 2512.02556).  TRL does so with k3 (1.16); verl takes k3 alone (`low_var_kl`, cut to [-10, 10]).

Not covered: divergences over the whole vocabulary.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.ratio import LARGEST_LOG

Estimator: TypeAlias = Literal["k1", "k2", "k3"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


def kl_estimate(logp: Tensor, reference_logp: Tensor, how: Estimator) -> Tensor:
    """Return estimates in nats, of the same shape."""
    x = (reference_logp.detach() - logp).clamp(-LARGEST_LOG, LARGEST_LOG)
    match how:
        case "k1":
            return -x
        case "k2":
            return x**2 / 2
        case "k3":
            return x.exp() - x - 1
