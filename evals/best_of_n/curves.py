"""The curves of best-of-n, in truth and to the chooser, and the published laws of over-optimisation.

The laws are those of Gao, Schulman and Hilton 2022 (arXiv 2210.10760), with d = sqrt(KL) and R the gain over the policy
that nothing was optimised for:

| law | R(d) | highest at |
|---|---|---|
| best-of-n | d (alpha - beta d) | d* = alpha / (2 beta) |
| reinforcement learning | d (alpha - beta log d) | d* = exp(alpha / beta - 1) |

Both are straight in alpha and beta, so the fit is exact linear algebra.  Everything is a function of sums over prompts:
2,000 resamples of a curve are one product of matrices.

Responses that nobody could judge in truth are not among those that are chosen from.  A response without a proxy is
chosen only where none of the n has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjudge.evals.best_of_n.candidates import Group
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.subsets import chances, kl_of_best_of_n

Law: TypeAlias = Literal["best_of_n", "rl"]

MIN_POINTS = 3
"""Places with d > 0 that a fit of two numbers needs, so that something is left to see whether the law fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law fitted to curves.

    Attributes:
        alpha: (b,) slope at the start.
        beta: (b,) what over-optimisation takes away.
        start: (b,) R at d = 0; 0 where gains were given.
        residual: (b,) root mean square of what the law leaves, in the unit of R.
        explained: (b,) R² of the fit, NaN where the curve is level.
    """

    law: Law
    alpha: Floats
    beta: Floats
    start: Floats
    residual: Floats
    explained: Floats

    def peak(self) -> Floats:
        """Return (b,) the d at which the law is highest; NaN where it never falls, or falls from the start."""
        with np.errstate(all="ignore"):
            if self.law == "best_of_n":
                peak, falls = self.alpha / (2 * self.beta), (self.beta > 0) & (self.alpha > 0)
            else:
                peak, falls = np.exp(self.alpha / self.beta - 1), self.beta > 0
        return np.where(falls & np.isfinite(peak), peak, np.nan)


def law_curve(law: Law, d: Floats, alpha: Floats | float, beta: Floats | float, start: Floats | float = 0.0) -> Floats:
    """Return a law at places d, (m,), all at least 0."""
    return np.asarray(start + alpha * d - beta * _bends(d, law), dtype=float)


def fit_law(d: Floats, gains: Floats, law: Law, *, weights: Floats | None = None, from_start: bool = True) -> Fit:
    """Fit a law to curves by least squares; `refusal` says whether they can be fitted.

    Args:
        d: (m,) square roots of divergences in nats, above 0.
        gains: (b, m) of as many curves, NaN nowhere.
        law: which.
        weights: (m,) how much each place counts, or (b, m); all the same without it.
        from_start: whether R is 0 at d = 0; else it is fitted too.
    """
    design = np.column_stack([d, -_bends(d, law)] + ([] if from_start else [np.ones(len(d))]))
    if weights is None:
        fitted = gains @ np.linalg.pinv(design).T
        counted = np.ones_like(gains)
    else:
        counted = np.broadcast_to(weights, gains.shape)
        fitted = np.array([_weighted(design, row, weight) for row, weight in zip(gains, counted, strict=True)])
    left = gains - fitted @ design.T
    total = counted.sum(axis=1)
    mean = (counted * gains).sum(axis=1) / total
    spread = (counted * (gains - (0.0 if from_start else mean[:, None])) ** 2).sum(axis=1)
    wrong = (counted * left**2).sum(axis=1)
    with np.errstate(all="ignore"):
        explained = np.where(spread > 0, 1 - wrong / spread, np.nan)
    return Fit(
        law=law,
        alpha=fitted[:, 0],
        beta=fitted[:, 1],
        start=np.zeros(len(gains)) if from_start else fitted[:, 2],
        residual=np.sqrt(wrong / total),
        explained=explained,
    )


def refusal(d: Sequence[float] | Floats, gains: Floats, law: Law, *, from_start: bool = True) -> str:
    """Return why curves, gains (b, m) at places d (m,) above 0, cannot be fitted; "" if they can."""
    places = np.asarray(d, dtype=float)
    needed = MIN_POINTS + (not from_start)
    if len(np.unique(places)) < needed:
        return f"a fit needs {needed} places with a divergence above 0, and there are {len(np.unique(places))}"
    size = float(np.abs(gains).max(initial=0.0))
    level = np.zeros(len(gains)) if from_start else gains.mean(axis=1)
    if not np.isfinite(gains).all() or (np.abs(gains - level[:, None]) <= 1e-12 * max(size, 1e-300)).all():
        return "gold is the same everywhere, so there is nothing to fit"
    columns = [places, _bends(places, law)] + ([] if from_start else [np.ones(len(places))])
    design = np.column_stack([column / np.linalg.norm(column) for column in columns])
    if np.linalg.cond(design) > 1e6:
        return "the divergences lie too close together to tell the law's two numbers apart"
    return ""


def _bends(d: Floats, law: Law) -> Floats:
    """What beta multiplies: d² or d log d, which is 0 at 0."""
    if law == "best_of_n":
        return np.asarray(d**2, dtype=float)
    return np.asarray(d * np.log(np.where(d > 0, d, 1.0)), dtype=float)


def _weighted(design: Floats, values: Floats, weights: Floats) -> Floats:
    """Weighted least squares; NaN where the places that count do not determine it."""
    if len(np.unique(design[weights > 0, 0])) < design.shape[1]:
        return np.full(design.shape[1], np.nan)
    root = np.sqrt(weights)
    return np.asarray(np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0], dtype=float)


ORACLE = "oracle"
"""Who always takes the best of n: no baseline, but the most that could be had."""

CHOOSERS = ("random", ORACLE, "longest", "shortest")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCurves:
    """Of all prompts, (prompts, ns); where a prompt has fewer than n responses, and is not `known`, numbers are 0.

    Attributes:
        ns: how many responses are chosen from, ascending, 1 first.
        known: 1 where the prompt has as many responses.
        gold: expected gold of the one with the highest proxy.
        proxy: its expected proxy.
        proxy_known: 1 where the prompt has n responses and one of those chosen may have a proxy.
        others: the expected gold of trivial choosers; none where the data do not allow them.
    """

    ns: tuple[int, ...]
    known: Floats
    gold: Floats
    proxy: Floats
    proxy_known: Floats
    others: dict[str, Floats]


def prompt_curves(groups: Sequence[Group], ns: Sequence[int]) -> PromptCurves:
    """Return the curves of prompts whose responses all have a gold."""
    shape = (len(groups), len(ns))
    known, gold, proxy, proxy_known = (np.zeros(shape) for _ in range(4))
    sized = all(group.sizes() is not None for group in groups)
    others = {name: np.zeros(shape) for name in CHOOSERS if sized or name in ("random", ORACLE)}
    for row, group in enumerate(groups):
        truth, keys, sizes = group.values("gold"), group.values("proxy"), group.sizes()
        reached = [n for n in ns if n <= len(group)]
        here = slice(0, len(reached))
        chosen = chances(keys, reached)
        has = ~np.isnan(keys)
        share = chosen @ has
        known[row, here] = 1.0
        gold[row, here] = chosen @ truth
        proxy_known[row, here] = share > 0
        proxy[row, here] = np.where(share > 0, chosen @ np.where(has, keys, 0.0) / np.where(share > 0, share, 1.0), 0.0)
        others["random"][row, here] = truth.mean()
        others[ORACLE][row, here] = chances(truth, reached) @ truth
        if sized and sizes is not None:
            others["longest"][row, here] = chances(sizes, reached) @ truth
            others["shortest"][row, here] = chances(-sizes, reached) @ truth
    return PromptCurves(ns=tuple(ns), known=known, gold=gold, proxy=proxy, proxy_known=proxy_known, others=others)


SINGLE = ("n of the highest gold", "gold lost behind its peak")
LAW = ("alpha", "beta", "d of the peak", "residual", "R² of the law")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """The numbers of all prompts.

    Attributes:
        curves: "gold", "proxy", "regret", "gap" and "gain": an interval for each n.
        single: those of `SINGLE`, and those of `LAW` where there is a fit.
        others: the mean gold of trivial choosers for each n.
        refused: why the law was not fitted; "" if it was.
    """

    ns: tuple[int, ...]
    prompts: tuple[int, ...]
    curves: dict[str, list[Interval]]
    single: dict[str, Interval]
    others: dict[str, list[float | None]]
    refused: str


def distances(ns: Sequence[int]) -> Floats:
    """Return (ns,) the square roots of the divergences of best-of-n from the policy."""
    return np.array([math.sqrt(kl_of_best_of_n(n)) for n in ns])


def bounded(curves: PromptCurves, spreads: Floats, names: Sequence[str], draws: Draws) -> Bounded:
    """Return the numbers of all prompts, so named, with their bounds.

    `spreads` are (prompts, 4): the sum of squares of the proxy around the prompt's mean, how many, and both of gold.
    """
    ns, count = curves.ns, len(curves.ns)
    gain = (curves.gold - curves.gold[:, :1]) * curves.known
    proxy_gain = (curves.proxy - curves.proxy[:, :1]) * curves.proxy_known
    blocks = [
        curves.known,
        curves.gold,
        gain,
        (curves.others[ORACLE] - curves.gold) * curves.known,
        curves.proxy_known,
        curves.proxy,
        proxy_gain,
    ]
    columns = np.concatenate([*blocks, spreads], axis=1)
    d = distances(ns)
    with np.errstate(all="ignore"):
        means = gain.sum(axis=0) / curves.known.sum(axis=0)
    refused = refusal(d[1:], means[None, 1:], "best_of_n")

    def combine(sums: Floats) -> Floats:
        known, gold, gained, regret, proxied, proxy, risen = (
            sums[:, at * count : (at + 1) * count] for at in range(len(blocks))
        )
        squares = sums[:, len(blocks) * count :]
        gold, gained, regret = (block / known for block in (gold, gained, regret))
        proxy, risen = proxy / proxied, risen / proxied
        spread_proxy = np.sqrt(squares[:, 0:1] / squares[:, 1:2])
        spread_gold = np.sqrt(squares[:, 2:3] / squares[:, 3:4])
        gap = risen / spread_proxy - gained / spread_gold
        reached = np.where(np.isnan(gained), -np.inf, gained)
        peak = np.array(ns, dtype=float)[reached.argmax(axis=1)][:, None]
        lost = (reached.max(axis=1) - gained[:, -1])[:, None]
        numbers = [gold, proxy, regret, gap, gained, peak, lost]
        if not refused:
            fit = fit_law(d[1:], gained[:, 1:], "best_of_n")
            numbers.append(np.column_stack([fit.alpha, fit.beta, fit.peak(), fit.residual, fit.explained]))
        return np.concatenate(numbers, axis=1)

    here = [int(number) for number in curves.known.sum(axis=0)]
    proxied = [int(number) for number in curves.proxy_known.sum(axis=0)]
    singles = [*SINGLE, *(() if refused else LAW)]
    counts = [*here, *proxied, *here, *proxied, *here, *[here[0]] * len(singles)]
    intervals = cluster_bootstrap(names, columns, combine, draws, counts=counts)
    named = ("gold", "proxy", "regret", "gap", "gain")
    return Bounded(
        ns=ns,
        prompts=tuple(here),
        curves={name: intervals[at * count : (at + 1) * count] for at, name in enumerate(named)},
        single=dict(zip(singles, intervals[len(named) * count :], strict=True)),
        others={
            name: [total / size if size else None for total, size in zip(each.sum(axis=0).tolist(), here, strict=True)]
            for name, each in curves.others.items()
        },
        refused=refused,
    )
