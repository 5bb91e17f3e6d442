"""The policy-gradient loss: one surrogate, its weights, the KL divergence and the entropy, summed up; and its rivals.

    L = aggregate( w_stale * w_token * surrogate + beta * KL ) - entropy_coef * mean entropy

Weights do not touch the divergence, and what they sum to is not divided by, as in TRL.  ρ is the ratio of the policy to
the one that the update began with, x = logp_reference - logp, cut at 20 in size.

| surrogate | loss of a token with the advantage A | used by |
|---|---|---|
| `clipped` | -min(ρA, clip(ρ, 1 - low, 1 + high) A); high > low is DAPO's clip-higher | PPO, GRPO, DAPO, GSPO, RLOO |
| `detached` | -sg[min(ρ, clip_ratio_c)] A logp: a clipped token keeps its gradient | CISPO (arXiv 2506.13585) |
| `masked` | -A logp, and 0 where ρ has left [1 - low, 1 + high] the way that A pulls | REC (arXiv 2509.24203) |
| `plain` | -A logp / (1 + tau) | REINFORCE, PSR/NSR, AsymRE; OPMD with its tau |
| `Injected` | -A f(p), f(p) = p / (p + gamma): for tokens that were written to another prompt | arXiv 2506.03106 |

With `clip_ratio_c`, the clipped loss uses min(ρ, clip_ratio_c), which is dual clipping (arXiv 1912.09729; so called in
verl, TRL's `delta`).  CISPO's paper clips from below too, at a bound that it leaves without effect; TRL and we do not.
`Injected` learns most from tokens at p = gamma; 0.1 as in the released code and in LUFFY (arXiv 2504.14945).  Its
form "mixture" is RL-PLUS's (arXiv 2508.00222; its code at 13318ff), with q the probability when the update began, and
(q + 1) / 2 for that of the demonstration's writer, of which nothing is known: -A (1 - sg p)^0.5 2p / (q + (q + 1) / 2).

| KL | estimate | in expectation | its gradient alone, on average |
|---|---|---|---|
| `k1` | -x | unbiased, may be negative | 0 |
| `k2` | x² / 2 | biased, low variance | that of the divergence |
| `k3` | exp(x) - x - 1 | unbiased, never negative | that of KL(reference || policy) |
| `forward` | x exp(x) - exp(x) + 1 | unbiased of KL(reference || policy), never negative | of neither |

After J. Schulman, "Approximating KL divergence" (2020); gradients, arXiv 2510.01555.  Multiplied by the ratio
(`use_bias_correction_kl`), k1 and k3 get the gradient of KL(policy || reference), and `forward` that of
KL(reference || policy) as in RAPO (arXiv 2510.03865), also for an older policy's tokens
(arXiv 2512.02556), as in TRL 1.16; verl takes k3 alone (`low_var_kl`, cut to [-10, 10]).

`Rover` (arXiv 2509.24981) fits the values of a policy that picks tokens at random, in the log-ratio of the policy; next
of a response's last token is 0, and its released math code divides A by s and centres logits, which we do not:

    q_t = tau * (logp_t - old_t),   L = mean over responses of the mean over tokens of ( q_t - sg[ A + tau * next_t ] )²
    next_t = the vocabulary's mean of logp - old at the next token

`Preference` sets the best of a group against its worst, the first of equals; a group of one advantage adds 0.  eta = 0
is DPO (arXiv 2305.18290), eta > 0 RPO (arXiv 2404.19733, 2405.16436; TRL's `rpo_alpha`):

    z = beta * ( log-ratio of the chosen - log-ratio of the rejected ),   log-ratio = Σ_t logp - logp_reference
    L = mean over groups of  -log σ(z)  +  eta * (-mean over the chosen's tokens of logp)

Not covered: SAPO's and VESPO's soft weights, and divergences over the whole vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from adjudge.options import Count, Options, Range, Share
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import (
    LARGEST_LOG,
    Aggregation,
    ImportanceSampling,
    Level,
    LossValue,
    RelativeEntropy,
    Steer,
    TokenBatch,
    TopEntropy,
    aggregate,
    ratio,
    sampling_logp_difference,
)
from adjudge.rl_integration.trainer.data.arrays import check_kind, check_number


@dataclass(frozen=True, kw_only=True)
class Preference(Options):
    """The loss of pairs of a group's best and worst; see the module.

    Attributes:
        beta: how strongly log-ratios count; small allows to leave the reference policy further.
        eta: weight of the chosen's likelihood; 0 for DPO.
    """

    beta: Annotated[float, Range(gt=0)] = 0.1
    eta: Annotated[float, Range(ge=0)] = 0.0

    def __call__(self, tokens: TokenBatch) -> LossValue:
        """Return the loss and its metrics; metrics are means over groups.

        Raises:
            ValueError: `reference_logp` or `group` is not there.
        """
        reference = tokens.needs("reference_logp", "a preference loss").detach()
        chosen, rejected = pairs(tokens)
        ratios = (tokens.logp - reference).sum(dim=1)
        margin = self.beta * (ratios[chosen] - ratios[rejected])
        likelihood = tokens.logp.sum(dim=1) / tokens.mask.sum(dim=1).clamp(min=1)
        losses = -logsigmoid(margin) - self.eta * likelihood[chosen]
        count = max(1, tokens.total.groups)
        loss = losses.sum() / count + 0.0 * tokens.logp.sum()  # differentiable without a pair, too
        metrics = {
            "margin": margin.detach().sum() / count,
            "right": (margin.detach() > 0).to(margin.dtype).sum() / count,
            "pairs": torch.full_like(loss.detach(), len(margin) / count),
        }
        return LossValue(loss=loss, metrics=metrics)


def pairs(tokens: TokenBatch) -> tuple[Tensor, Tensor]:
    """Return the rows of the chosen and of the rejected, one pair for each group whose advantages differ.

    Raises:
        ValueError: `group` is not there.
    """
    group = tokens.needs("group", "a preference loss")
    # Differences to the first token, so that equal advantages give equal means, whatever the lengths.
    first = tokens.advantages.gather(1, tokens.mask.int().argmax(dim=1, keepdim=True)) if tokens.mask.numel() else 0.0
    above = ((tokens.advantages - first) * tokens.mask).sum(dim=1, keepdim=True)
    worth = (first + above / tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)).flatten().tolist()
    members: dict[int, list[int]] = {}
    for row, (name, usable) in enumerate(zip(group.tolist(), tokens.mask.any(dim=1).tolist(), strict=True)):
        if usable:
            members.setdefault(name, []).append(row)
    ends = [(max(rows, key=worth.__getitem__), min(rows, key=worth.__getitem__)) for rows in members.values()]
    ranked_pairs = [(best, worst) for best, worst in ends if worth[best] > worth[worst]]
    chosen, rejected = torch.tensor(ranked_pairs, dtype=torch.long, device=group.device).reshape(-1, 2).unbind(dim=1)
    return chosen, rejected


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


Estimator: TypeAlias = Literal["k1", "k2", "k3", "forward"]
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
        case "forward":
            return (x - 1) * x.exp() + 1


@dataclass(frozen=True, kw_only=True)
class Injected(Options):
    """-A p / (p + gamma), or RL-PLUS's loss; see the module.

    Attributes:
        form: "shaped", or "mixture" for RL-PLUS's multiple importance sampling.
        gamma: of "shaped", above 0; the probability whose tokens are learnt from most.
        exploration: of "mixture", how much more unlikely tokens count; 0 for all alike.
    """

    form: Literal["shaped", "mixture"] = "shaped"
    gamma: Annotated[float, Range(gt=0)] = 0.1
    exploration: Annotated[float, Range(ge=0)] = 0.5

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return (n, t) losses."""
        chance = tokens.logp.exp()
        if self.form == "shaped":
            return -tokens.advantages * chance / (chance + self.gamma)
        old = tokens.old.exp()
        worth = tokens.advantages * (1 - chance.detach()) ** self.exploration
        return -worth * 2 * chance / (old + (old + 1) / 2)


Surrogate: TypeAlias = Literal["clipped", "detached", "masked", "plain"]


@dataclass(frozen=True, kw_only=True)
class PolicyLoss(Options):
    """A policy-gradient loss; see the modules of the parts for their formulas.

    Attributes:
        surrogate: the loss of a token; see the module.
        level: what the ratio is taken over (`tokens.ratio`); not read by `plain`.
        clip_ratio_low: how far below 1 the ratio may fall, in [0, 1]; read by `clipped` and `masked`.
        clip_ratio_high: how far above 1 it may rise; read by `clipped` and `masked`.
        clip_ratio_c: the largest ratio that counts; None for no bound.  `detached` needs one.
        tau: what `plain` is tempered by.
        log_ratio_coef: weight of the squared log-ratio to the policy that the update began with, by token; with
            `plain`, half of the tau of Kimi k1.5's mirror descent (arXiv 2501.12599), as in Trinity-RFT.
        aggregation: from tokens to one number (`tokens.aggregate`).
        length: tokens that `constant` divides by: the longest response that may be sampled.
        beta: weight of the divergence from the reference policy.
        kl_estimator: of that divergence (`kl_estimate`).
        use_bias_correction_kl: whether the divergence is multiplied by the ratio, which corrects its gradient.
        entropy_coef: weight of the mean entropy, in nats.
        importance_sampling: how tokens of another policy are weighed.
        weighting: which tokens count how much.
        injected: the loss of tokens that were written to another prompt; it has neither ratio nor weights.
    """

    surrogate: Surrogate = "clipped"
    level: Level = "token"
    clip_ratio_low: Share = 0.2
    clip_ratio_high: Annotated[float, Range(ge=0)] = 0.2
    clip_ratio_c: float | None = None
    tau: Annotated[float, Range(ge=0)] = 0.0
    log_ratio_coef: Annotated[float, Range(ge=0)] = 0.0
    aggregation: Aggregation = "token_mean"
    length: Count = 1024
    beta: Annotated[float, Range(ge=0)] = 0.0
    kl_estimator: Estimator = "k3"
    use_bias_correction_kl: bool = True
    entropy_coef: Annotated[float, Range(ge=0)] = 0.0
    importance_sampling: ImportanceSampling = field(default_factory=ImportanceSampling)
    weighting: TopEntropy | Steer | RelativeEntropy | None = None
    injected: Injected = field(default_factory=Injected)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("importance_sampling", self.importance_sampling, ImportanceSampling)
        check_kind("injected", self.injected, Injected)
        check_kind("weighting", self.weighting, TopEntropy, Steer, RelativeEntropy, type(None))
        if self.surrogate == "detached" and self.clip_ratio_c is None:
            raise ValueError("the surrogate 'detached' needs clip_ratio_c, the largest ratio; CISPO's examples take 5")
        if self.clip_ratio_c is not None:
            check_number(
                "clip_ratio_c",
                self.clip_ratio_c,
                Range(ge=1 + self.clip_ratio_high if self.surrogate == "clipped" else 0),
            )

    def __call__(self, tokens: TokenBatch) -> LossValue:
        """Return the loss and its metrics.

        Raises:
            ValueError: a tensor that the options need is not there.
        """
        rho = ratio(tokens, self.level)
        advantages = tokens.advantages
        if self.weighting is not None:  # in front of the clip, which a weight below 0 turns round
            advantages = advantages * (self.weighting(tokens) if tokens.weight is None else tokens.weight.detach())
        losses = self._surrogate(tokens, rho, advantages) * self.importance_sampling(tokens)
        if tokens.injected is not None:
            losses = torch.where(tokens.injected.unsqueeze(1), self.injected(tokens), losses)
        metrics = self._metrics(tokens, rho, advantages)
        if self.log_ratio_coef:
            losses = losses + self.log_ratio_coef * (tokens.logp - tokens.old) ** 2
        if self.beta:
            reference = tokens.needs("reference_logp", f"beta={self.beta}")
            kl = kl_estimate(tokens.logp, reference, self.kl_estimator)
            kl = kl * rho if self.use_bias_correction_kl else kl
            losses = losses + self.beta * kl
            metrics["kl"] = tokens.mean(kl.detach())
        loss = aggregate(losses, tokens, self.aggregation, length=self.length)
        if self.entropy_coef:
            entropy = tokens.needs("entropy", f"entropy_coef={self.entropy_coef}")
            loss = loss - self.entropy_coef * tokens.mean(entropy)
        if tokens.entropy is not None:
            metrics["entropy"] = tokens.mean(tokens.entropy.detach())
        return LossValue(loss=loss, metrics=metrics)

    def _surrogate(self, tokens: TokenBatch, rho: Tensor, advantages: Tensor) -> Tensor:
        low, high = 1 - self.clip_ratio_low, 1 + self.clip_ratio_high
        match self.surrogate:
            case "clipped":
                bounded = rho if self.clip_ratio_c is None else rho.clamp(max=self.clip_ratio_c)
                return -torch.minimum(bounded * advantages, rho.clamp(low, high) * advantages)
            case "detached":
                return -rho.detach().clamp(max=self.clip_ratio_c) * advantages * tokens.logp
            case "masked":
                beyond = torch.where(advantages >= 0, rho.detach() > high, rho.detach() < low)
                return -advantages * tokens.logp * ~beyond
            case "plain":
                return -advantages * tokens.logp / (1 + self.tau)

    @torch.no_grad()
    def _metrics(self, tokens: TokenBatch, rho: Tensor, advantages: Tensor) -> dict[str, Tensor]:
        metrics = {"ratio": tokens.mean(rho)}
        match self.surrogate:
            case "clipped" | "masked":
                metrics["clip_ratio_low"] = tokens.mean((rho < 1 - self.clip_ratio_low) & (advantages < 0))
                metrics["clip_ratio_high"] = tokens.mean((rho > 1 + self.clip_ratio_high) & (advantages > 0))
            case "detached":
                metrics["clip_ratio_high"] = tokens.mean((rho > (self.clip_ratio_c or 0.0)) & (advantages > 0))
            case "plain":
                pass
        if tokens.sampler_logp is not None:
            metrics["importance_sampling_ratio"] = tokens.mean(self.importance_sampling(tokens))
            metrics["sampling_logp_difference"] = tokens.mean(sampling_logp_difference(tokens))
        return metrics
