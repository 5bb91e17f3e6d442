"""`adjudge eval voting`: votes of k responses, each with a weight from a scorer, beside choosing the best of them.

| rule | an answer gets | source |
|---|---|---|
| majority | 1 for each response | self-consistency, arXiv 2203.11171 |
| value, vote | the sum of its responses' values | arXiv 2206.02336 |
| softmax, vote | the sum of exp(value / T) | |
| min, vote (product, last, mean, ..) | the sum of the aggregates of its responses' steps | arXiv 2312.08935 |
| value, best (min, best, ..) | nothing: the response with the highest value wins | arXiv 2110.14168 |

The "best" rules are exact for every k; votes are where all ways to draw k are looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from adjudge.evals.best_of_n.candidates import Candidates, Group
from adjudge.evals.best_of_n.config import VotingConfig, options_of
from adjudge.evals.best_of_n.evaluating import typical_size
from adjudge.evals.best_of_n.loading import load_candidates
from adjudge.evals.best_of_n.report import Shares, read_groups, share_curves, unjudged
from adjudge.evals.best_of_n.votes import TEXT, Classes, classes_by_scorer, classes_by_text, vote_worth
from adjudge.evals.reports.result import Comparison, Measure, ReadCase, Result, paired
from adjudge.io.jobs.report import JobProgress
from adjudge.scoring import registry
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.intervals import Interval
from adjudge.statistics.significance import NOTE
from adjudge.statistics.subsets import chances, pass_at_k, powers_of_two

MAJORITY = "majority"
_LONE = ("random", "oracle")


def rules_of(
    groups: Sequence[Group], answers: Sequence[Sequence[int]], ks: Sequence[int], config: VotingConfig
) -> Shares:
    """Return the chance that the winner is right, by rule, the share of right responses and that of one of k."""
    scales = _scales(groups, config)
    weigh = [MAJORITY, *(f"{name}, vote" for name in scales), *(["softmax, vote"] if scales else [])]
    best = [f"{name}, best" for name in scales]
    rules = Shares.of(groups, ks, [*weigh, *best, *_LONE], weigh)
    for row, group in enumerate(groups):
        right = group.right("gold", config.pass_at)
        values = {name: _values(group, name) for name in scales}
        weights = [np.ones(len(group)), *(np.nan_to_num(each, nan=0.0) for each in values.values())]
        if scales:
            own = next(iter(values.values()))
            weights.append(np.where(np.isnan(own), -np.inf, own / config.temperature))  # logarithms
        reached = [k for k in ks if k <= len(group)]
        for column, k in enumerate(reached):
            worth = vote_worth(
                answers[row],
                np.array(weights),
                right,
                k,
                logs=(len(weights) - 1,) if scales else (),
                most=config.subsets,
                seed=(config.seed, row, k),
            )
            for name, value, error in zip(weigh, worth.values.tolist(), worth.errors.tolist(), strict=True):
                rules.rates[name][row, column], rules.errors[name][row, column] = value, error
            rules.rates["random"][row, column] = right.mean()
            rules.rates["oracle"][row, column] = pass_at_k(len(group), int(right.sum()), k)
        for name, each in zip(best, values.values(), strict=True):
            rules.rates[name][row, : len(reached)] = chances(each, reached) @ right
    return rules


def _scales(groups: Sequence[Group], config: VotingConfig) -> list[str]:
    """What can weigh: the scorer's own value, if it has any, and aggregates of its steps."""
    if not config.scorer:
        return []
    said = [one.said["scorer"] for group in groups for one in group.members]
    own = ["value"] if any(one.value is not None for one in said) else []
    scales = [*own, *(config.aggregate if any(len(one.steps) > 1 for one in said) else ())]
    if not scales:
        raise ValueError(f"the scorer gave no response of {config.input} a number; see the reasons in the counts")
    return scales


def _values(group: Group, scale: str) -> Floats:
    """The values of a scale, NaN where there is none."""
    said = [one.said["scorer"].by("" if scale == "value" else scale) for one in group.members]
    return np.array([np.nan if one.value is None else one.value for one in said])


def run_voting(config: VotingConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure votes.

    Raises:
        ValueError: a column, file or scorer is no good, or no response has an answer.
        JobError: the model behind a scorer is gone.
        BrokenScorer: a scorer raised.
    """
    started = time.monotonic()
    equal = None if config.equality == TEXT else registry.load(config.equality)
    specs = {"gold": config.gold} | ({"scorer": config.scorer} if config.scorer else {})
    candidates = load_candidates(config, specs, answers=config.answers, progress=progress)
    if not config.answers:
        for one in candidates.all():
            one.answer = one.said["gold"].answer
    answers = [[one.answer for one in group.members] for group in candidates.groups]
    if not any(map(any, answers)):
        raise ValueError(
            f"no response of {config.input} has an answer that could be voted for; name their column with --answers, "
            "or give a --gold that finds answers, such as math"
        )
    classes = classes_by_text(answers) if equal is None else classes_by_scorer(answers, equal, equal_at=config.equal_at)
    ks = tuple(sorted(set(config.k))) or powers_of_two(typical_size(candidates.groups))
    if ks[0] > max(map(len, candidates.groups)):
        raise ValueError(f"k is {ks[0]}, and no prompt of {config.input} has as many responses")
    rules = rules_of(candidates.groups, classes.numbers, ks, config)
    names = [group.name for group in candidates.groups]
    means = rules.means(names, config.draws)
    return Result(
        kind="voting",
        title="Votes among responses",
        scorer=candidates.scorers.get("scorer", {"name": MAJORITY, "fingerprint": MAJORITY}),
        source=candidates.source,
        measures=tuple(_measures(rules, means)),
        counts=candidates.counts(tuple(specs)),
        comparisons=tuple(_comparisons(rules, names, config)),
        figures=(share_curves("Right winners", ks, means),),
        worst=_lost(config, candidates.groups, rules),
        notes=tuple(_notes(candidates, classes, rules, config)),
        options=options_of(config),
        seconds=time.monotonic() - started,
        cost=candidates.cost + classes.cost,
    )


def _measures(rules: Shares, means: dict[str, list[Interval]]) -> list[Measure]:
    """The means over prompts, those of the largest k first."""
    measures = []
    for at in sorted(range(len(rules.ks)), reverse=True):
        part = f"k={rules.ks[at]}"
        for name in _rules(rules):
            trivial = {other: means[other][at].value for other in ("random", MAJORITY) if other != name}
            measures.append(Measure(name=name, part=part, interval=means[name][at], baselines=trivial, published=True))
        measures.append(Measure(name="one of k is right", part=part, interval=means["oracle"][at], better="none"))
    return [one for one in measures if one.interval.value is not None]


def _rules(rules: Shares) -> list[str]:
    return [name for name in rules.rates if name not in _LONE]


def _comparisons(rules: Shares, names: Sequence[str], config: VotingConfig) -> list[Comparison]:
    """Every other rule against the majority, at the largest k that a prompt reaches."""
    at = max(column for column in range(len(rules.ks)) if rules.known[:, column].any())
    here = rules.known[:, at] > 0
    clusters = [name for name, known in zip(names, here.tolist(), strict=True) if known]
    rates = {name: rules.rates[name][here, at].tolist() for name in _rules(rules)}
    return paired(rates, MAJORITY, clusters, config.draws, of="prompts", part=f"k={rules.ks[at]}")


def _notes(candidates: Candidates, classes: Classes, rules: Shares, config: VotingConfig) -> list[str]:
    notes = list(candidates.notes)
    silent = sum(number < 0 for numbers in classes.numbers for number in numbers)
    if silent:
        notes.append(f"{silent} responses have no answer that can be read; they vote for nothing")
    if classes.compared:
        notes.append(
            f"{classes.compared} pairs of answers were compared by {config.equality}"
            + (f"; {classes.undecided} of them stayed undecided and are not equal" if classes.undecided else "")
        )
    notes += unjudged(candidates)
    if config.scorer and any((one.value("scorer") or 0.0) < 0 for one in candidates.all()):
        notes.append("some values are below 0: in a sum they count against their answer; softmax has no such values")
    notes += rules.short()
    squares = np.array([(each**2).sum(axis=0) for each in rules.errors.values()])
    if squares.any():
        worst = math.sqrt(float((squares / np.maximum(rules.known.sum(axis=0), 1) ** 2).max()))
        notes.append(
            f"votes are over {config.subsets} drawn sets where there are more; standard error {worst:.2g} at most"
        )
    if len(_rules(rules)) > 2:
        notes.append(NOTE)
    return notes


def _lost(config: VotingConfig, groups: Sequence[Group], rules: Shares) -> tuple[ReadCase, ...]:
    """Prompts that have right responses and whose vote finds them least, by the last rule but those of the best."""
    rule = list(rules.errors)[min(1, len(rules.errors) - 1)]
    who = "scorer" if config.scorer else "gold"
    losses = []
    for row in range(len(groups)):
        reached = int(rules.known[row].sum())
        if reached and rules.rates["oracle"][row, reached - 1] > 0:
            loss = float(rules.rates["oracle"][row, reached - 1] - rules.rates[rule][row, reached - 1])
            if loss > 1e-12:
                losses.append((-loss, row))
    chosen = [(groups[row], -loss, f"lost by {rule}") for loss, row in sorted(losses)[: config.worst]]
    return read_groups(config, chosen, who)
