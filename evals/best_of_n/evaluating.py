"""`adjudge eval best_of_n`: what choosing by a proxy is worth, for each n."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.evals.best_of_n.attempts import read_groups, typical_size
from adjudge.evals.best_of_n.candidates import Candidates, Group, numbered_answers, said_by_steps, vote_worth
from adjudge.evals.best_of_n.config import BestOfNConfig
from adjudge.evals.best_of_n.curves import LAW, ORACLE, SINGLE, Bounded, bounded, distances, law_curve, prompt_curves
from adjudge.evals.best_of_n.loading import load_candidates
from adjudge.evals.best_of_n.run_log import run_of_log
from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Check, Measure, ReadCase, Result
from adjudge.io.jobs.report import JobProgress
from adjudge.pages.figures import Curves, Figure, Series
from adjudge.response_weights import KEEPING, explained, response_weights
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.ranks import spearman
from adjudge.statistics.subsets import chances, kl_of_best_of_n, powers_of_two


def agreement_measures(groups: Sequence[Group], draws: Draws) -> list[Measure]:
    """Return R² of gold by the proxy within prompts, and the mean rank correlation of prompts.

    R² is that of one slope with a level for each prompt.  A prompt whose golds or proxies are all the same has no rank
    correlation and no say in R² but by the spread it has.
    """
    if not groups:
        return []
    columns = np.zeros((len(groups), 5))
    for row, group in enumerate(groups):
        proxy, gold = group.values("proxy"), group.values("gold")
        x, y = proxy - proxy.mean(), gold - gold.mean()
        rank = spearman(proxy, gold)
        columns[row] = [x @ x, y @ y, x @ y, rank or 0.0, rank is not None]
    scale = columns[:, :2].max(axis=0, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    columns[:, 0] /= scale[0]
    columns[:, 1] /= scale[1]
    columns[:, 2] /= np.sqrt(scale[0]) * np.sqrt(scale[1])

    def combine(sums: Floats) -> Floats:
        return np.column_stack([sums[:, 2] ** 2 / (sums[:, 0] * sums[:, 1]), sums[:, 3] / sums[:, 4]])

    names = [group.name for group in groups]
    ranked = int(columns[:, 4].sum())
    r2, correlation = cluster_bootstrap(names, columns, combine, draws, counts=[sum(map(len, groups)), ranked])
    return [
        Measure(name="rank correlation within prompts", interval=correlation, baselines={"random": 0.0}),
        Measure(name="R² within prompts", interval=r2, baselines={"random": 0.0}),
    ]


def filter_measures(groups: Sequence[Group]) -> list[Measure]:
    """Return R² of a line in the proxy among the responses that each filter of PF-PPO keeps, and among all.

    The filter to take is the one with the largest (arXiv 2409.06957).
    """
    if not groups:
        return []
    proxy = np.concatenate([group.values("proxy") for group in groups])
    gold = np.concatenate([group.values("gold") for group in groups])
    owners = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    shares = {"all": explained(proxy, gold, np.ones(len(proxy)))}
    shares |= {policy: explained(proxy, gold, response_weights(proxy, owners, policy)) for policy in KEEPING}
    return [
        Measure(
            name="R² of what a filter keeps",
            part=name,
            interval=Interval(value=value, n=len(proxy)),
            baselines={} if name == "all" else {"all": shares["all"]},
            published=name != "all",
        )
        for name, value in shares.items()
    ]


def reliability(groups: Sequence[Group], bins: int, draws: Draws) -> Curves | None:
    """Return the mean of gold in bins of the proxy, equally full; None where the proxy is the same everywhere.

    Equal proxies are never divided, so there may be fewer bins.
    """
    if not groups:
        return None
    proxy = np.concatenate([group.values("proxy") for group in groups])
    gold = np.concatenate([group.values("gold") for group in groups])
    clusters = [group.name for group in groups for _ in group.members]
    edges = np.unique(np.quantile(proxy, np.linspace(0, 1, bins + 1)[1:-1], method="lower"))
    used, places = np.unique(np.searchsorted(edges, proxy, side="left"), return_inverse=True)
    if len(used) < 2:
        return None
    inside = np.eye(len(used))[places]
    columns = np.column_stack([inside, inside * gold[:, None], inside * proxy[:, None]])
    width = len(used)
    means = cluster_bootstrap(clusters, columns, lambda sums: sums[:, width : 2 * width] / sums[:, :width], draws)
    x = (columns[:, 2 * width :].sum(axis=0) / columns[:, :width].sum(axis=0)).tolist()
    return Curves(
        title="Gold by bins of the proxy",
        x_axis="mean proxy of the bin",
        y_axis="mean gold",
        series=(Series.of("gold", x, means),),
    )


_ROUNDING = 1e-12  # of the largest gold: what chances that sum to 1 lose by being added up
TITLE = "Best-of-n and over-optimisation"
_UNITS = {
    "gold": ("gold of best-of-n", "high", True),
    "proxy": ("proxy of best-of-n", "none", True),
    "regret": ("regret", "low", False),
    "gap": ("gap in standard deviations", "low", False),
}


@timed
def run_best_of_n(config: BestOfNConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure best-of-n under a proxy, or what an RL run gained.

    Raises:
        ValueError: a column, file or scorer is no good, or no response has a gold.
        JobError: the model behind a scorer is gone.
        BrokenScorer: a scorer raised.
    """
    if config.run_log:
        return run_of_log(config)
    candidates = load_candidates(
        config, {"gold": config.gold, "proxy": config.proxy}, answers=config.answers, progress=progress
    )
    for one in candidates.all():
        one.said["proxy"] = said_by_steps(one.said["proxy"], config.aggregate)
    groups = [kept for group in candidates.groups if len(kept := group.keep(lambda one: one.value("gold") is not None))]
    if not groups:
        raise ValueError(f"no response of {config.input} has a gold; {_reasons(candidates)}")
    if all(one.value("proxy") is None for group in groups for one in group.members):
        raise ValueError(f"no response of {config.input} has a proxy; {_reasons(candidates)}")
    ns = powers_of_two(min(config.most or typical_size(groups), max(map(len, groups))))
    numbers = bounded(prompt_curves(groups, ns), _spreads(groups), [group.name for group in groups], config.draws)
    both = [kept for group in groups if len(kept := group.keep(lambda one: one.value("proxy") is not None)) > 1]
    others = dict(numbers.others)
    if config.answers:
        others["majority"] = _majority(groups, ns, config.seed)
    figures: list[Figure] = [*_curves(numbers, others)]
    if (bins := reliability(both, config.bins, config.draws)) is not None:
        figures.append(bins)
    return Result(
        kind="best_of_n",
        title=TITLE,
        scorer=candidates.scorers["proxy"],
        source=candidates.source,
        measures=(*_measures(numbers, others), *agreement_measures(both, config.draws), *filter_measures(both)),
        counts=candidates.counts(("gold", "proxy")),
        checks=tuple(_checks(numbers)),
        figures=tuple(figures),
        worst=_worst_choices(config, groups),
        notes=tuple(_notes(candidates, groups, numbers)),
        options=config.told(),
        cost=candidates.cost,
    )


def _worst_choices(config: BestOfNConfig, groups: Sequence[Group]) -> tuple[ReadCase, ...]:
    """Return the prompts whose chosen response has least of the gold that the best one has."""
    lost = []
    for at, group in enumerate(groups):
        gold = group.values("gold")
        loss = float(gold.max() - chances(group.values("proxy"), [len(group)])[0] @ gold)
        if loss > _ROUNDING * float(abs(gold).max()):
            lost.append((-loss, at))
    chosen = [(groups[at], -loss, "a worse one chosen") for loss, at in sorted(lost)[: config.worst]]
    return read_groups(config, chosen, "proxy")


def _spreads(groups: Sequence[Group]) -> Floats:
    """Sum of squares around the prompt's mean, and as many numbers, of proxy and gold: (prompts, 4)."""
    spreads = np.zeros((len(groups), 4))
    for row, group in zip(spreads, groups, strict=True):
        for at, who in ((0, "proxy"), (2, "gold")):
            values = group.values(who)
            values = values[~np.isnan(values)]
            if len(values):
                row[at : at + 2] = ((values - values.mean()) ** 2).sum(), len(values)
    return spreads


def _majority(groups: Sequence[Group], ns: Sequence[int], seed: int) -> list[float | None]:
    """The mean gold of a majority vote; where nobody has an answer, of any response."""
    means: list[float | None] = []
    for n in ns:
        worth = []
        for at, group in enumerate(groups):
            if len(group) >= n:
                answers = numbered_answers([one.answer for one in group.members])
                truth = group.values("gold")
                weights = np.ones((1, len(group)))
                worth.append(
                    float(vote_worth(answers, weights, truth, n, unanswered=truth, seed=(seed, at, n)).values[0])
                )
        means.append(sum(worth) / len(worth) if worth else None)
    return means


def _measures(numbers: Bounded, others: dict[str, list[float | None]]) -> list[Measure]:
    measures = []
    for curve, (name, better, published) in _UNITS.items():
        for at, n in enumerate(numbers.ns):
            trivial = {who: values[at] for who, values in others.items() if who != ORACLE}
            if curve in ("regret", "gap") and (n == 1 or numbers.curves[curve][at].value is None):
                continue
            measures.append(
                Measure(
                    name=name,
                    part=f"n={n}",
                    interval=numbers.curves[curve][at],
                    baselines=trivial if curve == "gold" else {},
                    better=better,
                    published=published,
                )
            )
    whole = measures.pop(max(at for at, one in enumerate(measures) if one.name == _UNITS["gold"][0]))
    oracle = [
        Measure(
            name="gold of the best response",
            part=f"n={n}",
            interval=Interval(value=others[ORACLE][at], n=numbers.prompts[at]),
            better="none",
        )
        for at, n in enumerate(numbers.ns)
    ]
    single = [
        Measure(name=name, interval=numbers.single[name], better="low" if "lost" in name else "none") for name in SINGLE
    ]
    law = [
        Measure(name=name, part="law of best-of-n", interval=numbers.single[name], better="none", published=True)
        for name in LAW
        if name in numbers.single
    ]
    return [whole, *measures, *oracle, *single, *law]


def _checks(numbers: Bounded) -> list[Check]:
    checks = []
    if numbers.refused:
        checks.append(Check(name="the law of best-of-n can be fitted", passed=None, detail=numbers.refused))
    gain = numbers.curves["gain"][-1]
    n = numbers.ns[-1]
    if n > 1 and gain.value is not None:
        low, high = gain.low, gain.high
        passed = None if low is None or high is None else not high < 0
        bounds = "no bounds were drawn" if passed is None else f"the bounds are {low:+.4g} and {high:+.4g}"
        detail = f"best of {n} has {gain.value:+.4g} gold more than one response; {bounds}"
        checks.append(Check(name="best-of-n is not worse than one response", passed=passed, detail=detail))
    return checks


def _curves(numbers: Bounded, others: dict[str, list[float | None]]) -> list[Curves]:
    ns = tuple(map(float, numbers.ns))
    lines = [Series.of(name, ns, numbers.curves[name]) for name in ("gold", "proxy")]
    rivals = tuple(Series(name=name, x=ns, y=tuple(values)) for name, values in others.items())
    figures = [
        Curves(title="Gold of best-of-n", x_axis="n", y_axis="gold", series=(lines[0], *rivals), log_x=True),
        Curves(title="Proxy of best-of-n", x_axis="n", y_axis="proxy", series=(lines[1],), log_x=True),
    ]
    d = distances(numbers.ns)
    gains = [Series.of("gain of gold", d.tolist(), numbers.curves["gain"], points=True)]
    if not numbers.refused:
        places = np.linspace(0, float(d[-1]), 41)
        law = law_curve("best_of_n", places, numbers.single["alpha"].known, numbers.single["beta"].known)
        gains.append(Series(name="d (alpha - beta d)", x=tuple(places.tolist()), y=tuple(law.tolist())))
    axis = "d = sqrt(KL)"
    return [*figures, Curves(title="Gain over the divergence", x_axis=axis, y_axis="gain of gold", series=tuple(gains))]


def _notes(candidates: Candidates, groups: Sequence[Group], numbers: Bounded) -> list[str]:
    notes = list(candidates.notes)
    without = sum(one.value("gold") is None for one in candidates.all())
    if without:
        left = len(candidates.groups) - len(groups)
        notes.append(
            f"{without} responses have no gold and are not among those that are chosen from"
            + (f"; {left} prompts have no other and are left out" if left else "")
        )
    lacking = sum(one.value("proxy") is None for group in groups for one in group.members)
    if lacking:
        notes.append(f"{lacking} responses have no proxy: they are chosen only where no other one has one either")
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        told = ", ".join(f"n={n}: {count}" for n, count in zip(numbers.ns, numbers.prompts, strict=True))
        notes.append(
            f"prompts have {sizes[0]} to {sizes[-1]} responses; each n is of the prompts with as many ({told}), "
            "and gains compare the same prompts"
        )
    last = numbers.ns[-1]
    notes.append(
        f"KL of best of {last} from the policy: {kl_of_best_of_n(last):.4g} nats, less where proxies are equal"
    )
    return notes


def _reasons(candidates: Candidates) -> str:
    reasons = candidates.counts(("gold", "proxy")).reasons
    return "; ".join(f"{count} x {reason}" for reason, count in list(reasons.items())[:5])
