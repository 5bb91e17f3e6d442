"""Losses of policies that are trained on pairs: DPO and its relatives, as pure functions of log-probabilities.

All of them look at the *gap*: how much more the policy prefers the chosen response than its reference does,

    gap = (log π(chosen) - log π(rejected)) - (log π_ref(chosen) - log π_ref(rejected)).

Log-probabilities are sums over the tokens that are compared: those of a response, or, for pairs of steps, those of the
one step in which two solutions differ (Step-DPO, arXiv 2406.18629: the steps before it belong to the prompt).  `orpo`
and `rrhf` have no reference: the first compares log-odds of means over tokens, the second the means.  Functions return
the losses of single pairs, (n,), of (n,) gaps; `beta` says how much a gap counts: a number, or one for each pair
(`scaled_beta`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from adjudge.reward_models.training.policy_config import BetaScaling, PolicyLossChoice
from adjudge.training.token_logprobs import token_logprobs


def dpo(gap: Tensor, beta: Tensor | float = 0.1, *, smoothing: float = 0.0) -> Tensor:
    """Return -(1 - ε) log σ(β gap) - ε log σ(-β gap): DPO (arXiv 2305.18290), labels being wrong with chance ε."""
    return (1 - smoothing) * softplus(-beta * gap) + smoothing * softplus(beta * gap)


def robust_dpo(gap: Tensor, beta: Tensor | float = 0.1, *, flipped: float = 0.1) -> Tensor:
    """Return the loss whose mean over labels flipped with chance ε is DPO's on clean ones (arXiv 2403.00409).

    -( (1 - ε) log σ(β gap) - ε log σ(-β gap) ) / (1 - 2ε), with ε in [0, 0.5).
    """
    return ((1 - flipped) * softplus(-beta * gap) - flipped * softplus(beta * gap)) / (1 - 2 * flipped)


def ipo(gap: Tensor, beta: Tensor | float = 0.1) -> Tensor:
    """Return (gap - 1 / 2β)²: IPO (arXiv 2310.12036), which does not push a gap beyond 1 / 2β."""
    return (gap - 1 / (2 * beta)) ** 2


def step_apo(gap: Tensor, advantages: Tensor, beta: Tensor | float = 0.1) -> Tensor:
    """Return -log σ(β gap - (A_chosen - A_rejected)): Step-APO (arXiv 2409.08642; keesh0410/CPL-Reasoning at 46f1e2f).

    Pairs are steps from one prefix; the better step should lead by the difference of their advantages.
    """
    return softplus(advantages - beta * gap)


def reward_aware(gap: Tensor, rewards: Tensor, beta: Tensor | float = 0.1, *, scale: float = 1.0) -> Tensor:
    """Return the distance of two beliefs about which response wins: Nemotron's RPO (arXiv 2406.11704, from memory).

    With q = σ(scale (r_chosen - r_rejected)) and p = σ(β gap) it is q log(q / p) + (1 - q) log((1 - q) / (1 - p)):
    a pair that is hardly better pulls the policy hardly apart, and 0 is reached.
    """
    wanted, believed = scale * rewards, beta * gap
    target = torch.sigmoid(wanted)
    cross = target * softplus(-believed) + (1 - target) * softplus(believed)
    return cross - (target * softplus(-wanted) + (1 - target) * softplus(wanted))


def log_odds(logprobs: Tensor) -> Tensor:
    """Return log(p / (1 - p)) of log-probabilities below 0; where p is 1 in 32 bits, of the next number below."""
    held = logprobs.clamp_max(-(2.0**-24))
    return held - torch.log(-torch.expm1(held))


def orpo(gap: Tensor, beta: Tensor | float = 0.1) -> Tensor:
    """Return -β log σ(gap), of the gap in the log-odds of mean log-probabilities: ORPO's odds ratio (arXiv 2403.07691).

    The paper adds it to the chosen responses' negative mean log-probability.
    """
    return beta * softplus(-gap)


def rrhf(gap: Tensor) -> Tensor:
    """Return max(0, -gap), of the gap in mean log-probabilities: the ranking loss of RRHF (arXiv 2304.05302)."""
    return (-gap).clamp_min(0)


def with_likelihood(losses: Tensor, chosen: Tensor, tokens: Tensor, *, weight: float = 0.05) -> Tensor:
    """Return losses + η times the negative mean log-probability of the chosen responses: RPO's supervised term.

    Without it DPO may lower both responses' probabilities (arXiv 2404.19733; weights of 0.005 to 1 are in use).
    `chosen` are the policy's summed log-probabilities of so many tokens, at least 1.
    """
    return losses - weight * chosen / tokens


def scaled_beta(margins: Tensor, beta: float = 0.1, *, weight: float = 0.1, rate: float = 0.5) -> Tensor:
    """Return β (1 + w (1 - e^{-k m})) for the margins m of pairs, (n,): MM-RLHF's dynamic reward scaling.

    Pairs with a clear difference count more, by at most the factor 1 + w.  arXiv 2502.10391; the code published with it
    has w = 0.1 and replaces this rule by one on whole batches; k = 0.5, in inverse units of rewards, is from memory.
    A negative margin (the reward model disagrees with the label) lowers β; it is kept at 0 or above, as a negative β
    would turn the preference round.
    """
    return (beta * (1 + weight * (1 - torch.exp((-rate * margins).clamp_max(60.0))))).clamp_min(0)


class SpanModel(nn.Module):
    """A causal language model of `transformers` that says how likely responses are; it may compute in bfloat16."""

    def __init__(self, model: Any, *, bf16: bool = False) -> None:
        super().__init__()
        self.model = model
        self._bf16 = bf16

    @property
    def config(self) -> Any:
        """The model's configuration, which the Trainer looks at."""
        return self.model.config

    def logprobs(self, input_ids: Tensor, attention_mask: Tensor, tokens: Tensor) -> Tensor:
        """Return the summed log-probabilities of `tokens`, (2, m) rows and columns, of each row, (rows,).

        Rows are padded on the right, and no token is in column 0; see `rows.response_tokens`.
        """
        places = tokens[0] * input_ids.shape[1] + tokens[1]
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self._bf16):
            said, _ = token_logprobs(self.model, inputs, places, columns=input_ids.shape[1] - 1)
        return said.new_zeros(input_ids.numel()).index_copy(0, places, said).view_as(input_ids).sum(1)


class PolicyObjective(SpanModel):
    """Preferences between two responses, learnt by the model that would write them.

    Beta grows with a pair's margin by `scaling`; `likelihood` weighs the chosen responses' negative mean
    log-probability.  With `bf16` the model computes in bfloat16; log-probabilities and the loss stay in 32 bits.
    """

    def __init__(
        self,
        model: Any,
        loss: PolicyLossChoice,
        *,
        scaling: BetaScaling | None = None,
        likelihood: float = 0.0,
        bf16: bool = False,
    ) -> None:
        super().__init__(model, bf16=bf16)
        self._loss = loss
        self._scaling = scaling
        self._likelihood = likelihood

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        tokens: Tensor,
        sizes: Tensor,
        reference: Tensor,
        margins: Tensor,
        weights: Tensor,
    ) -> dict[str, Any]:
        """Return the shares of the loss and of the numbers; rows 2i and 2i + 1 are chosen and rejected of pair i.

        `tokens` are as for `logprobs`, and `sizes`, (2 pairs,), how many each row has.
        `reference` are summed log-probabilities under the reference, (2 pairs,), zeros for none; `margins` of rewards
        or advantages, (pairs,), are not numbers where the loss reads none.
        """
        policy = said = self.logprobs(input_ids, attention_mask, tokens)
        if self._loss.per_token:
            policy = log_odds(said / sizes) if self._loss.name == "orpo" else said / sizes
        chosen, rejected = policy[0::2], policy[1::2]
        gap = chosen - rejected - (reference[0::2] - reference[1::2])
        losses = self._losses(gap, margins)
        if self._likelihood:
            losses = with_likelihood(losses, said[0::2], sizes[0::2], weight=self._likelihood)
        moved = chosen.detach() - reference[0::2]
        return {
            "loss": (losses * weights).sum(),
            "numbers": {
                "accuracy": ((gap.detach() > 0) * weights).sum(),
                "gap": (gap.detach() * weights).sum(),
                "chosen_moved": (moved * weights).sum(),
            },
        }

    def _losses(self, gap: Tensor, margins: Tensor) -> Tensor:
        loss, scaling = self._loss, self._scaling
        beta: Tensor | float = loss.beta
        if scaling is not None:
            beta = scaled_beta(margins, loss.beta, weight=scaling.weight, rate=scaling.rate)
        match loss.name:
            case "robust_dpo":
                return robust_dpo(gap, beta, flipped=loss.noise)
            case "ipo":
                return ipo(gap, beta)
            case "step_apo":
                return step_apo(gap, margins, beta)
            case "reward_aware":
                return reward_aware(gap, margins, beta, scale=loss.scale)
            case "orpo":
                return orpo(gap, beta)
            case "rrhf":
                return rrhf(gap)
        return dpo(gap, beta, smoothing=loss.noise)
