"""The loss of tokens that were written to another prompt than they are learnt after: Critique-GRPO (arXiv 2506.03106).

    l = -A f(p),  f(p) = p / (p + gamma),  p = exp(logp) with gradient

There is no ratio to be clipped, since the policy that wrote them saw something else.  The gradient of f in logp is
p gamma / (p + gamma)^2, largest at p = gamma: unlikely tokens of a right answer are learnt from most, those that the
policy takes for granted or for impossible hardly at all.  gamma is 0.1, as in the released code and in LUFFY
(arXiv 2504.14945), whose shaping this is.

Not covered: preference pairs and ROVER, which have no ratio of their own prompt and take such answers as any other.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import TokenBatch
from adjudge.rl_integration.trainer.contract.options import check_above


@dataclass(frozen=True, kw_only=True)
class Injected:
    """-A p / (p + gamma); see the module.

    Attributes:
        gamma: above 0; the probability whose tokens are learnt from most.
    """

    gamma: float = 0.1

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_above("gamma", self.gamma, 0.0)

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return (n, t) losses."""
        chance = tokens.logp.exp()
        return -tokens.advantages * chance / (chance + self.gamma)
