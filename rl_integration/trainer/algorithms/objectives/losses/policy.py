"""The policy-gradient loss: one surrogate, its weights, the divergence and the entropy, summed up.

    L = aggregate( w_stale * w_token * surrogate + beta * KL ) - entropy_coef * mean entropy

Weights do not touch the divergence, and what they sum to is not divided by, as in TRL.

Not covered: values (`value`), preferences (`preference`), and ROVER's squared loss (`rover`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.aggregation import AGGREGATIONS, Aggregation, aggregate
from adjudge.rl_integration.trainer.algorithms.objectives.losses.importance_sampling import (
    ImportanceSampling,
    sampling_logp_difference,
)
from adjudge.rl_integration.trainer.algorithms.objectives.losses.injected import Injected
from adjudge.rl_integration.trainer.algorithms.objectives.losses.kl import ESTIMATORS, Estimator, kl_estimate
from adjudge.rl_integration.trainer.algorithms.objectives.losses.ratio import LEVELS, Level, ratio
from adjudge.rl_integration.trainer.algorithms.objectives.losses.surrogates import clipped, detached, plain
from adjudge.rl_integration.trainer.algorithms.objectives.losses.token_weights import Steer, TopEntropy
from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import LossValue, TokenBatch
from adjudge.rl_integration.trainer.contract.options import (
    check_between,
    check_choice,
    check_flag,
    check_kind,
    check_min,
    check_whole,
)

Surrogate: TypeAlias = Literal["clipped", "detached", "plain"]


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """A policy-gradient loss; see the modules of the parts for their formulas.

    Attributes:
        surrogate: the loss of a token (`surrogates`).
        level: what the ratio is taken over (`ratio`); not read by `plain`.
        clip_ratio_low: how far below 1 the ratio may fall, in [0, 1]; read by `clipped`.
        clip_ratio_high: how far above 1 it may rise; read by `clipped`.
        clip_ratio_c: the largest ratio that counts; None for no bound.  `detached` needs one.
        tau: what `plain` is tempered by.
        aggregation: from tokens to one number (`aggregation`).
        length: tokens that `constant` divides by: the longest response that may be sampled.
        beta: weight of the divergence from the reference policy.
        kl_estimator: of that divergence (`divergence`).
        use_bias_correction_kl: whether the divergence is multiplied by the ratio, which corrects its gradient.
        entropy_coef: weight of the mean entropy, in nats.
        importance_sampling: how tokens of another policy are weighed.
        weighting: which tokens count how much.
        injected: the loss of tokens that were written to another prompt; it has neither ratio nor weights.
    """

    surrogate: Surrogate = "clipped"
    level: Level = "token"
    clip_ratio_low: float = 0.2
    clip_ratio_high: float = 0.2
    clip_ratio_c: float | None = None
    tau: float = 0.0
    aggregation: Aggregation = "token_mean"
    length: int = 1024
    beta: float = 0.0
    kl_estimator: Estimator = "k3"
    use_bias_correction_kl: bool = True
    entropy_coef: float = 0.0
    importance_sampling: ImportanceSampling = field(default_factory=ImportanceSampling)
    weighting: TopEntropy | Steer | None = None
    injected: Injected = field(default_factory=Injected)

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("surrogate", self.surrogate, get_args(Surrogate))
        check_choice("level", self.level, LEVELS)
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_choice("kl_estimator", self.kl_estimator, ESTIMATORS)
        check_between("clip_ratio_low", self.clip_ratio_low, 0.0, 1.0)
        for option in ("clip_ratio_high", "tau", "beta", "entropy_coef"):
            check_min(option, getattr(self, option), 0.0)
        check_whole("length", self.length, 1)
        check_flag("use_bias_correction_kl", self.use_bias_correction_kl)
        check_kind("importance_sampling", self.importance_sampling, ImportanceSampling)
        check_kind("injected", self.injected, Injected)
        check_kind("weighting", self.weighting, TopEntropy, Steer, type(None))
        if self.surrogate == "detached" and self.clip_ratio_c is None:
            raise ValueError("the surrogate 'detached' needs clip_ratio_c, the largest ratio; CISPO's examples take 5")
        if self.clip_ratio_c is not None:
            check_min(
                "clip_ratio_c", self.clip_ratio_c, 1 + self.clip_ratio_high if self.surrogate == "clipped" else 0.0
            )

    def __call__(self, tokens: TokenBatch) -> LossValue:
        """Return the loss and its metrics.

        Raises:
            ValueError: a tensor that the options need is not there.
        """
        rho = ratio(tokens, self.level)
        losses = self._surrogate(tokens, rho) * self.importance_sampling(tokens)
        if self.weighting is not None:
            losses = losses * self.weighting(tokens)
        if tokens.injected is not None:
            losses = torch.where(tokens.injected.unsqueeze(1), self.injected(tokens), losses)
        metrics = self._metrics(tokens, rho)
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

    def _surrogate(self, tokens: TokenBatch, rho: Tensor) -> Tensor:
        match self.surrogate:
            case "clipped":
                return clipped(
                    rho,
                    tokens.advantages,
                    low=self.clip_ratio_low,
                    high=self.clip_ratio_high,
                    ceiling=self.clip_ratio_c,
                )
            case "detached":
                return detached(rho, tokens.advantages, tokens.logp, ceiling=self.clip_ratio_c or 0.0)
            case "plain":
                return plain(tokens.advantages, tokens.logp, tau=self.tau)

    @torch.no_grad()
    def _metrics(self, tokens: TokenBatch, rho: Tensor) -> dict[str, Tensor]:
        found = {"ratio": tokens.mean(rho)}
        match self.surrogate:
            case "clipped":
                found["clip_ratio_low"] = tokens.mean((rho < 1 - self.clip_ratio_low) & (tokens.advantages < 0))
                found["clip_ratio_high"] = tokens.mean((rho > 1 + self.clip_ratio_high) & (tokens.advantages > 0))
            case "detached":
                found["clip_ratio_high"] = tokens.mean((rho > (self.clip_ratio_c or 0.0)) & (tokens.advantages > 0))
            case "plain":
                pass
        if tokens.sampler_logp is not None:
            found["importance_sampling_ratio"] = tokens.mean(self.importance_sampling(tokens))
            found["sampling_logp_difference"] = tokens.mean(sampling_logp_difference(tokens))
        return found
