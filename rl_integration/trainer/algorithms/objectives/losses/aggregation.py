"""From losses of tokens to one number.

| name | formula, N responses, T tokens in all | used by |
|---|---|---|
| `sequence_mean` | 1/N Σ_i 1/|o_i| Σ_t l_it: short responses weigh more for each token | GRPO, GSPO, RLOO |
| `token_mean` | 1/T Σ_i Σ_t l_it | DAPO, CISPO, PPO, Lite PPO, REINFORCE++ |
| `sequence_sum` | 1/N Σ_i Σ_t l_it | OPMD, AsymRE |
| `constant` | 1/(N * length) Σ_i Σ_t l_it, length the same throughout a run | Dr.GRPO |

N counts responses that take part, also those without a token.  verl's `seq-mean-token-sum-norm` divides by the padded
width of the batch instead of a constant, and not by N.

Not covered: weights of tokens (`token_weights`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import TokenBatch

Aggregation: TypeAlias = Literal["sequence_mean", "token_mean", "sequence_sum", "constant"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)


def aggregate(losses: Tensor, tokens: TokenBatch, how: Aggregation, *, length: int = 1) -> Tensor:
    """Return a scalar.

    Args:
        losses: (n, t), or (n, 1) for one number throughout a response.
        tokens: whose mask and totals are used.
        how: see the table above.
        length: the constant of `constant`, in tokens.
    """
    sequences = max(1, tokens.total.sequences)
    sums = (losses * tokens.mask).sum(dim=1)
    match how:
        case "sequence_mean":
            return (sums / tokens.mask.sum(dim=1).clamp(min=1)).sum() / sequences
        case "token_mean":
            return sums.sum() / max(1, tokens.total.tokens)
        case "sequence_sum":
            return sums.sum() / sequences
        case "constant":
            return sums.sum() / (sequences * length)
