"""The curves of best-of-n: what is chosen is worth so much in truth and to the chooser.

They are of each prompt, and of all with bounds; then what they say of over-optimisation, and the law that fits them.

Responses that nobody could judge in truth are not among those that are chosen from.  A response without a proxy is
chosen only where none of the n has one.

Everything is a function of sums over prompts, so that one bootstrap serves it all: 2,000 resamples of a curve are one
product of matrices.

Not covered: what is shown of it (`evaluating`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.evals.best_of_n.candidates import Group
from adjudge.evals.best_of_n.estimators import chances, kl_of_best_of_n
from adjudge.evals.best_of_n.laws import fit_law, refusal
from adjudge.evals.statistics.bootstrap import cluster_bootstrap
from adjudge.evals.statistics.draws import Draws
from adjudge.intervals import Interval

if TYPE_CHECKING:
    from adjudge.evals.best_of_n.estimators import Floats


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
    """Return the curves of prompts whose responses all have a gold.

    Args:
        groups: of each prompt.
        ns: how many responses are chosen from.
    """
    import numpy as np

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
        ns: how many responses are chosen from.
        prompts: how many prompts have as many, for each n.
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
    import numpy as np

    return np.array([math.sqrt(kl_of_best_of_n(n)) for n in ns])


def bounded(curves: PromptCurves, spreads: Floats, names: Sequence[str], draws: Draws) -> Bounded:
    """Return the numbers of all prompts with their bounds.

    Args:
        curves: of each prompt.
        spreads: (prompts, 4) sum of squares of the proxy around the prompt's mean, as many responses, and the same of
            gold.
        names: of the prompts.
        draws: how bounds are drawn.
    """
    import numpy as np

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
        gold, gained, regret, proxy, risen = (
            gold / known,
            gained / known,
            regret / known,
            proxy / proxied,
            risen / proxied,
        )
        spread_proxy = np.sqrt(squares[:, 0:1] / squares[:, 1:2])
        spread_gold = np.sqrt(squares[:, 2:3] / squares[:, 3:4])
        gap = risen / spread_proxy - gained / spread_gold
        reached = np.where(np.isnan(gained), -np.inf, gained)
        peak = np.array(ns, dtype=float)[reached.argmax(axis=1)][:, None]
        lost = (reached.max(axis=1) - gained[:, -1])[:, None]
        found = [gold, proxy, regret, gap, gained, peak, lost]
        if not refused:
            fit = fit_law(d[1:], gained[:, 1:], "best_of_n", check=False)
            found.append(np.column_stack([fit.alpha, fit.beta, fit.peak(), fit.residual, fit.explained]))
        return np.concatenate(found, axis=1)

    here = [int(number) for number in curves.known.sum(axis=0)]
    proxied = [int(number) for number in curves.proxy_known.sum(axis=0)]
    singles = [*SINGLE, *(() if refused else LAW)]
    counts = [*here, *proxied, *here, *proxied, *here, *[here[0]] * len(singles)]
    found = cluster_bootstrap(names, columns, combine, draws, counts=counts)
    named = ("gold", "proxy", "regret", "gap", "gain")
    return Bounded(
        ns=ns,
        prompts=tuple(here),
        curves={name: found[at * count : (at + 1) * count] for at, name in enumerate(named)},
        single=dict(zip(singles, found[len(named) * count :], strict=True)),
        others={
            name: [total / size if size else None for total, size in zip(each.sum(axis=0).tolist(), here, strict=True)]
            for name, each in curves.others.items()
        },
        refused=refused,
    )
