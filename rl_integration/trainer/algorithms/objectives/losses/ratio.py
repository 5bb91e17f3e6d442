"""How much likelier the policy makes what was sampled than the policy that this update began with.

| level | log of the ratio | used by |
|---|---|---|
| `token` | logp_t - old_t | PPO, GRPO, DAPO, CISPO, LOOP |
| `sequence` | mean over the response's tokens, one ratio for all of them | GSPO (arXiv 2507.18071) |
| `whole` | sum over the response's tokens | RLOO as TRL has it |

Logs are cut at 20 in size, as in verl: exp(20) is far outside every clip range, and exp of more is soon infinite.

Not covered: the ratio to what wrote the tokens (`importance_sampling`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import TokenBatch

Level: TypeAlias = Literal["token", "sequence", "whole"]
LEVELS: tuple[Level, ...] = get_args(Level)

LARGEST_LOG = 20.0


def ratio(tokens: TokenBatch, level: Level) -> Tensor:
    """Return the ratio, (n, t) or, for a whole response, (n, 1)."""
    logs = tokens.logp - tokens.old
    if level != "token":
        logs = logs.sum(dim=1, keepdim=True)
    if level == "sequence":
        logs = logs / tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)
    return logs.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
