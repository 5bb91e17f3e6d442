"""Losses of scalar reward models as pure functions of rewards: one number for each pair, list or row.

Every function returns the losses of single examples, (n,); the caller weighs and averages them.  `better` and `worse`
are (n,) rewards of the two sides of pairs, Δ is their difference, and `tied` is (n,), True where neither was preferred.
`targets` are (n, a) labels of attributes: NaN is a missing one, which has no gradient.  Deviations come as logarithms,
`log_std`.  All losses are finite, with finite gradients, for rewards up to 1e4 in 32 bits.  Behind the losses stand
those of heads that say how sure they are (Gaussian, quantile, histogram), a latent bottleneck, and the terms that are
added to a loss.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid, softplus


def bt(better: Tensor, worse: Tensor) -> Tensor:
    """Return -log σ(Δ): the Bradley-Terry model."""
    return softplus(worse - better)


def margin(better: Tensor, worse: Tensor, margins: Tensor | float) -> Tensor:
    """Return -log σ(Δ - m): the better one should lead by the margin (Llama 2, arXiv 2307.09288)."""
    return softplus(worse - better + margins)


def scaled(better: Tensor, worse: Tensor, strengths: Tensor | float) -> Tensor:
    """Return -d log σ(Δ) with d the strength of the preference (HelpSteer2-Preference, arXiv 2410.01257)."""
    return strengths * softplus(worse - better)


def soft(better: Tensor, worse: Tensor, probability: Tensor | float) -> Tensor:
    """Return -p log σ(Δ) - (1 - p) log σ(-Δ) for the chance p, in [0, 1], that the first is preferred."""
    gap = better - worse
    return probability * softplus(-gap) + (1 - probability) * softplus(gap)


def tempered(better: Tensor, worse: Tensor, temperature: float) -> Tensor:
    """Return -log σ(Δ / τ)."""
    return softplus((worse - better) / temperature)


def hinge(better: Tensor, worse: Tensor, margins: Tensor | float = 1.0) -> Tensor:
    """Return max(0, m - Δ)."""
    return (worse - better + margins).clamp_min(0)


def focal(better: Tensor, worse: Tensor, gamma: float = 2.0) -> Tensor:
    """Return -(1 - 2 max(0, P - ½))^γ log P with P = σ(Δ): pairs that are right count less (InternLM2).

    The factor is min(1, 2σ(-Δ))^γ, which is how it is computed: 1 - P has no digits left where P is near 1.
    """
    loss = softplus(worse - better)
    doubled = torch.log(torch.tensor(2.0, dtype=loss.dtype, device=loss.device)) - softplus(better - worse)
    return torch.exp(gamma * doubled.clamp_max(0)) * loss


def margin_mse(better: Tensor, worse: Tensor, margins: Tensor | float) -> Tensor:
    """Return (Δ - m)²."""
    return (better - worse - margins) ** 2


def rao_kupper(better: Tensor, worse: Tensor, tied: Tensor, threshold: Tensor | float) -> Tensor:
    """Return -log P of the outcome: P(win) = σ(Δ - η), P(tie) = (e^{2η} - 1) σ(Δ - η) σ(-Δ - η) (Rao, Kupper 1967).

    Rewards nearer to each other than the threshold η > 0 are more likely tied than not.
    """
    gap = better - worse
    eta = torch.as_tensor(threshold, dtype=gap.dtype, device=gap.device)
    win = softplus(eta - gap)
    log_room = 2 * eta + torch.log(-torch.expm1(-2 * eta))
    return torch.where(tied, win + softplus(eta + gap) - log_room, win)


def davidson(better: Tensor, worse: Tensor, tied: Tensor, log_nu: Tensor | float) -> Tensor:
    """Return -log P of the outcome: win : loss : tie = e^{Δ/2} : e^{-Δ/2} : ν (Davidson 1970).

    Equal rewards are tied with chance ν / (2 + ν).
    """
    half = (better - worse) / 2
    tie = torch.as_tensor(log_nu, dtype=half.dtype, device=half.device).expand_as(half)
    total = torch.logsumexp(torch.stack([half, -half, tie]), dim=0)
    return total - torch.where(tied, tie, half)


def plackett_luce(rewards: Tensor, ranks: Tensor) -> Tensor:
    """Return Σ over responses of -log( e^r / (e^r + Σ of e^r of all that rank below) ), for each list; 0 without order.

    For a strict order this is the Plackett-Luce model.  Responses of one rank say nothing about each other: neither is
    in the other's denominator, so "one best, the rest unordered" is the softmax of the best.

    Args:
        rewards: (n, k); places beyond a list's end may hold anything finite.
        ranks: (n, k) whole numbers, 0 for the best; -1 beyond the list's end.
    """
    present = ranks >= 0  # (n, k, k): does the second response rank below the first?
    below = (ranks.unsqueeze(2) < ranks.unsqueeze(1)) & present.unsqueeze(2) & present.unsqueeze(1)
    chosen = torch.eye(rewards.shape[1], dtype=torch.bool, device=rewards.device) | below
    others = rewards.unsqueeze(1).expand_as(below).masked_fill(~chosen, -torch.inf)
    terms = torch.logsumexp(others, dim=2) - rewards
    return torch.where(below.any(dim=2), terms, torch.zeros_like(terms)).sum(dim=1)


def regression(predicted: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return Σ_a w_a (r_a - s_a)² over the attributes that have a label (HelpSteer2, arXiv 2406.08673)."""
    known = ~torch.isnan(targets)
    squared = (predicted - torch.where(known, targets, predicted.detach())) ** 2
    return (squared if weights is None else squared * weights).sum(dim=1)


def bce(rewards: Tensor, probability: Tensor) -> Tensor:
    """Return -p log σ(r) - (1 - p) log σ(-r) of labels p in [0, 1]: the reward is the log-odds of a right answer."""
    return probability * softplus(-rewards) + (1 - probability) * softplus(rewards)


def multi_label(logits: Tensor, labels: Tensor, known: Tensor | None = None) -> Tensor:
    """Return log(1 + Σ e^s over labels that are not there) + log(1 + Σ e^-s over those that are), for each row.

    Each logit of a right label is pushed above 0, and each of a wrong one below it: the threshold of all labels is a
    probability of ½, however rare a label is.  The source is DuoGuard (arXiv 2502.05163) and its released code.

    Args:
        logits: (n, a).
        labels: (n, a) of 1 and 0; anything where they are not known.
        known: (n, a) True where there is a label; None where all are known.  What is not known is in neither sum, and
            has no gradient; a row of which nothing is known has the loss 0.
    """
    labelled = torch.ones_like(logits, dtype=torch.bool) if known is None else known
    there = labels > 0.5
    zero = torch.zeros_like(logits[:, :1])
    wrong = torch.cat([zero, logits.masked_fill(there | ~labelled, -torch.inf)], dim=1)
    right = torch.cat([zero, (-logits).masked_fill(~there | ~labelled, -torch.inf)], dim=1)
    return torch.logsumexp(wrong, dim=1) + torch.logsumexp(right, dim=1)


LOG_STD_LIMIT = 10.0
"""Logarithms of standard deviations are cut to [-10, 10], so that their exponentials stay finite in 32 bits."""

_NODES = 64  # of the quadrature: P is right to 1e-5 for standard deviations of the difference up to 5


def gaussian_nll(mean: Tensor, log_std: Tensor, targets: Tensor) -> Tensor:
    """Return Σ_a -log N(s_a; μ_a, σ_a²) of (n, a) means and logs of deviations (URM, arXiv 2410.00847)."""
    known = ~torch.isnan(targets)
    log_std = log_std.clamp(-LOG_STD_LIMIT, LOG_STD_LIMIT)
    off = mean - torch.where(known, targets, mean.detach())
    loss = log_std + off**2 * torch.exp(-2 * log_std) / 2 + math.log(2 * math.pi) / 2
    return torch.where(known, loss, torch.zeros_like(loss)).sum(dim=1)


def purm(better: Tensor, better_log_std: Tensor, worse: Tensor, worse_log_std: Tensor) -> Tensor:
    """Return -log ∫ σ(z) N(z; μ_w - μ_l, σ_w² + σ_l²) dz by Gauss-Hermite quadrature (PURM, arXiv 2503.22480)."""
    logs = torch.stack([better_log_std, worse_log_std]).clamp(-LOG_STD_LIMIT, LOG_STD_LIMIT)
    spread = torch.exp(logs).norm(dim=0)
    nodes, log_weights = (torch.tensor(part, dtype=better.dtype, device=better.device) for part in _quadrature())
    places = (better - worse).unsqueeze(-1) + math.sqrt(2) * spread.unsqueeze(-1) * nodes
    return -torch.logsumexp(log_weights + logsigmoid(places), dim=-1)


def pinball(quantiles: Tensor, targets: Tensor) -> Tensor:
    """Return Σ_a of the mean over levels of max(τu, (τ - 1)u) with u = s_a - q (QRM, arXiv 2409.10164).

    `quantiles` are (n, a, levels), lowest level first: count even steps inside (0, 1).
    """
    levels = torch.linspace(0, 1, quantiles.shape[-1] + 2, dtype=torch.float64)[1:-1].to(quantiles)
    known = ~torch.isnan(targets).unsqueeze(-1)
    over = torch.where(known, targets.unsqueeze(-1), quantiles.detach()) - quantiles
    return torch.maximum(levels * over, (levels - 1) * over).mean(dim=-1).sum(dim=1)


def bins(logits: Tensor, probabilities: Tensor) -> Tensor:
    """Return the cross-entropy of soft labels, (n, bins), each of which sums to 1, with a softmax over bins."""
    return -(probabilities * torch.log_softmax(logits, dim=-1)).sum(dim=-1)


def two_hot(targets: Tensor, centres: Tensor) -> Tensor:
    """Return the soft label of each number, (n, bins): its two neighbouring bins, with the number as expected value.

    Numbers beyond the outer bins count as those; `centres` rise, at least two.
    """
    kept = targets.clamp(centres[0], centres[-1])
    above = torch.searchsorted(centres, kept.contiguous()).clamp(1, len(centres) - 1)
    low, high = centres[above - 1], centres[above]
    share = ((kept - low) / (high - low)).unsqueeze(-1)
    labels = torch.zeros(len(targets), len(centres), dtype=centres.dtype, device=centres.device)
    return labels.scatter(1, (above - 1).unsqueeze(-1), 1 - share).scatter(1, above.unsqueeze(-1), share)


def latent_kl(mean: Tensor, log_std: Tensor) -> Tensor:
    """Return KL( N(μ, σ²) ‖ N(0, I) ) of each row of (n, width): the bottleneck of InfoRM (arXiv 2402.09345)."""
    log_std = log_std.clamp(-LOG_STD_LIMIT, LOG_STD_LIMIT)
    return ((mean**2 + torch.exp(2 * log_std) - 1) / 2 - log_std).sum(dim=-1)


@functools.cache
def _quadrature() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes, and logs of weights that sum to 1, of Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite.hermgauss(_NODES)
    return tuple(nodes.tolist()), tuple((np.log(weights) - math.log(math.pi) / 2).tolist())


def centering(better: Tensor, worse: Tensor) -> Tensor:
    """Return (r_w + r_l)² of each pair: rewards are only known up to a shift, and this fixes it (arXiv 2312.09244)."""
    return (better + worse) ** 2


def l2(rewards: Tensor) -> Tensor:
    """Return the square of each reward."""
    return rewards**2


def consistency(rewards: Tensor, paraphrased: Tensor) -> Tensor:
    """Return (r(x, y) - r(x, y'))² where y' says the same as y in other words (reWordBench, arXiv 2503.11751)."""
    return (rewards - paraphrased) ** 2


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Return Pearson's correlation of two (n,) over the batch; 0, without gradient, where one side is constant."""
    one, other = first - first.mean(), second - second.mean()
    scale = (one.square().sum() * other.square().sum()).clamp_min(torch.finfo(one.dtype).tiny).sqrt()
    share: Tensor = (one * other).sum() / scale
    return torch.where(scale > 1e-12, share, torch.zeros_like(share))


def length_split(quality: Tensor, length: Tensor, lengths: Tensor) -> Tensor:
    """Return (1 - corr(r_L, len)) + |corr(r_Q, len)| over the batch (ODIN, arXiv 2402.07319), lengths in any unit.

    One head is to explain length, so that the other, the only one that scores later, need not.
    """
    lengths = lengths.to(quality.dtype)
    return 1 - correlation(length, lengths) + correlation(quality, lengths).abs()


def orthogonality(first: Tensor, second: Tensor) -> Tensor:
    """Return |cos| of the angle between two heads' weights, (width,) each (ODIN)."""
    scale = (first.norm() * second.norm()).clamp_min(torch.finfo(first.dtype).tiny)
    cosine: Tensor = (first @ second).abs() / scale
    return cosine


def text_loss(logits: Tensor, targets: Tensor, rows: Tensor, count: int) -> Tensor:
    """Return the mean of -log p over the targets of each row: the language model's share of GRM (arXiv 2406.10216).

    Args:
        logits: (n, vocabulary), for the n targets of all rows.
        targets: (n,) token ids.
        rows: (n,) which row each target belongs to.
        count: how many rows there are; one without targets has the loss 0.
    """
    losses = cross_entropy(logits.float(), targets, reduction="none")
    sums = losses.new_zeros(count).index_add(0, rows, losses)
    return sums / torch.bincount(rows, minlength=count).clamp_min(1)
