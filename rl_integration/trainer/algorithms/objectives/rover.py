"""ROVER (arXiv 2509.24981): fit the values of a policy that picks tokens at random, in the log-ratio of the policy.

    q_t = tau * (logp_t - old_t)
    L = mean over responses of the mean over tokens of ( q_t - sg[ A + tau * next_t ] )²
    next_t = the vocabulary's mean of logp - old at the next token

A is the reward less the group's mean; next of a response's last token is 0.  `next_values` computes next from whole
distributions.  The paper's A is not divided by the standard deviation, its released math code's is, and that code
centres logits where the paper and its other code take log-probabilities.

Not covered: softmax sampling at other temperatures than 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import (
    LossValue,
    TokenBatch,
    aggregate,
)


@dataclass(frozen=True, kw_only=True)
class Rover(Options):
    """The squared error of log-ratios as values; see the module.

    Attributes:
        tau: the scale of log-ratios, in the unit of the advantage.
        aggregation: from tokens to one number (`tokens.aggregate`).
    """

    tau: Annotated[float, Range(gt=0)] = 1.0
    aggregation: Literal["sequence_mean", "token_mean", "sequence_sum"] = "sequence_mean"

    def __call__(self, tokens: TokenBatch) -> LossValue:
        """Return the loss and its metrics.

        Raises:
            ValueError: `next_value` is not there.
        """
        after = tokens.needs("next_value", "ROVER").detach()
        quality = self.tau * (tokens.logp - tokens.old)
        target = tokens.advantages + self.tau * after
        loss = aggregate((quality - target) ** 2, tokens, self.aggregation)
        return LossValue(loss=loss, metrics={"target": tokens.mean(target), "quality": tokens.mean(quality.detach())})


def next_values(logps: Tensor, old_logps: Tensor, mask: Tensor) -> Tensor:
    """Return (n, t) what `TokenBatch.next_value` holds.

    Args:
        logps: (n, t, vocabulary) log-probabilities of the policy at each token of the response.
        old_logps: the same when the update began.
        mask: (n, t) tokens of the policy; after a token comes the next one under the mask.
    """
    means = (logps.detach() - old_logps.detach()).mean(dim=-1)
    found = torch.zeros_like(means)
    after = means.new_zeros(len(means))
    for place in reversed(range(means.shape[1])):
        here = mask[:, place].bool()
        found[:, place] = torch.where(here, after, found[:, place])
        after = torch.where(here, means[:, place], after)
    return found
