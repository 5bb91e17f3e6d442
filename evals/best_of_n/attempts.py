"""k attempts at each prompt: how many are solved by one, by all, by their majority, and by votes that a scorer weighs.

`adjudge eval pass_at_k` and `adjudge eval voting`.  A response that nobody could judge is not right, and is counted.
A prompt with fewer than k responses says nothing about k, and is left out there, with a note that says how many are.

| rule of a vote | an answer gets | source |
|---|---|---|
| majority | 1 for each response | self-consistency, arXiv 2203.11171 |
| value, vote | the sum of its responses' values | arXiv 2206.02336 |
| softmax, vote | the sum of exp(value / T) | |
| min, vote (product, last, mean, ..) | the sum of the aggregates of its responses' steps | arXiv 2312.08935 |
| value, best (min, best, ..) | nothing: the response with the highest value wins | arXiv 2110.14168 |

The "best" rules are exact for every k; votes are where all ways to draw k are looked at.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.evals.best_of_n.candidates import (
    TEXT,
    Candidate,
    Candidates,
    Classes,
    Group,
    classes_by_scorer,
    classes_by_text,
    numbered_answers,
    said_by_steps,
    vote_worth,
)
from adjudge.evals.best_of_n.config import CandidatesConfig, PassAtKConfig, VotingConfig
from adjudge.evals.best_of_n.loading import load_candidates, samples_again
from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Comparison, Measure, ReadCase, ReadResponse, Result, as_text, cut, paired
from adjudge.io.jobs.report import JobProgress
from adjudge.pages.figures import Bar, Bars, Curves, Series
from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.significance import NOTE
from adjudge.statistics.subsets import chances, pass_all_k, pass_at_k, powers_of_two


@dataclass(frozen=True, slots=True)
class Shares:
    """What k of a prompt's responses get, for several k: (prompts, ks) by name; 0 where a prompt has fewer.

    Attributes:
        known: 1 where a prompt has as many responses.
        errors: standard errors of what was drawn.
    """

    ks: tuple[int, ...]
    known: Floats
    rates: dict[str, Floats]
    errors: dict[str, Floats]

    @classmethod
    def of(cls, groups: Sequence[Group], ks: Sequence[int], names: Sequence[str], drawn: Sequence[str]) -> Shares:
        """Return zeros for rates of these names, and for the errors of those that are drawn."""
        shape = (len(groups), len(ks))
        known = np.array([[float(k <= len(group)) for k in ks] for group in groups])
        rates, errors = ({name: np.zeros(shape) for name in some} for some in (names, drawn))
        return cls(tuple(ks), known, rates, errors)

    def means(self, names: Sequence[str], draws: Draws) -> dict[str, list[Interval]]:
        """Return, for each k, the mean over the prompts, so named, that have as many responses.

        Where all are 0, or all 1, resamples show no spread, and the bounds are Wilson's.
        """
        count = len(self.ks)
        columns = np.concatenate([self.known, *self.rates.values()], axis=1)

        def combine(sums: Floats) -> Floats:
            return np.asarray(sums[:, count:] / np.tile(sums[:, :count], len(self.rates)), dtype=float)

        here = [int(number) for number in self.known.sum(axis=0)]
        means = cluster_bootstrap(names, columns, combine, draws, counts=here * len(self.rates))
        if draws.rounds:
            means = [
                wilson(round(one.value * one.n), one.n, level=draws.level) if one.value in (0, 1) and one.n > 1 else one
                for one in means
            ]
        return {name: means[at * count : (at + 1) * count] for at, name in enumerate(self.rates)}

    def short(self) -> list[str]:
        """Return a sentence on the prompts that say nothing of some k, if there are any."""
        left = {k: len(self.known) - int(n) for k, n in zip(self.ks, self.known.sum(axis=0), strict=True)}
        listed = ", ".join(f"k={k}: {count}" for k, count in left.items() if count)
        return [f"prompts with fewer than k responses, which are left out there: {listed}"] if listed else []


def share_curves(title: str, ks: Sequence[int], means: Mapping[str, Sequence[Interval]]) -> Curves:
    """Return shares of prompts over numbers of responses."""
    lines = tuple(Series.of(name, ks, intervals) for name, intervals in means.items())
    return Curves(title=title, x_axis="k", y_axis="share of prompts", series=lines, log_x=True)


_MAX_RESPONSES = 8


def typical_size(groups: Sequence[Group]) -> int:
    """Return the largest number of responses that at least half of the prompts have."""
    sizes = sorted(map(len, groups), reverse=True)
    return sizes[(len(sizes) - 1) // 2]


def unjudged(candidates: Candidates) -> list[str]:
    """Return a sentence on responses that have no gold, if there are any."""
    count = sum(one.value("gold") is None for one in candidates.all())
    return [f"{count} responses could not be judged; they count as not right"] if count else []


def read_groups(config: CandidatesConfig, chosen: Sequence[tuple[Group, float, str]], who: str) -> tuple[ReadCase, ...]:
    """Return prompts to read, given with weights and verdicts; their responses are ranked by what `who` says.

    Their texts are read once more from the input; where it has none, ids stand for them.
    """
    shown = [_ranked(group, who)[:_MAX_RESPONSES] for group, _, _ in chosen]
    texts = samples_again(config, {(one.row, one.place) for members in shown for one in members})
    return tuple(
        _read_case(group.name, members, [texts.get((one.row, one.place)) for one in members], weight, verdict, who)
        for (group, weight, verdict), members in zip(chosen, shown, strict=True)
    )


def _ranked(group: Group, who: str) -> list[Candidate]:
    """The responses, the highest number first; those without one are last, and the best in truth is second."""
    members = sorted(group.members, key=lambda one: (one.value(who) is None, -(one.value(who) or 0.0)))
    best = max(members, key=lambda one: one.value("gold") or 0.0)
    return list({id(one): one for one in (members[0], best, *members)}.values())


def _read_case(
    name: str, members: Sequence[Candidate], samples: Sequence[Sample | None], weight: float, verdict: str, who: str
) -> ReadCase:
    first = next((sample for sample in samples if sample is not None), None)
    reference = None if first is None else first.reference
    return ReadCase(
        id=name,
        part="",
        verdict=verdict,
        weight=weight,
        prompt="" if first is None else cut(as_text(first.prompt)),
        responses=tuple(
            ReadResponse(
                text=cut(as_text(sample.response)) if sample is not None else f"(no text; id {one.id})",
                said=", ".join(f"{name} {_said(one, name)}" for name in one.said),
                value=one.value(who),
                note=f"answer {one.answer}" if one.answer else "",
            )
            for one, sample in zip(members, samples, strict=True)
        ),
        gold="" if reference is None else cut(str(reference)),
    )


def _said(one: Candidate, who: str) -> str:
    said = one.said[who]
    return f"{said.value:.4g}" if said.value is not None else f"{said.status} ({said.reason})"


MAX_K = 1024


@timed
def run_pass_at_k(config: PassAtKConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure pass@k, pass^k and maj@k.

    Raises:
        ValueError: a column, file or scorer is no good, or no prompt has as many responses as the smallest k.
        JobError: the model behind the scorer is gone.
        BrokenScorer: the scorer raised.
    """
    candidates = load_candidates(config, {"gold": config.gold}, answers=config.answers, progress=progress)
    sizes = [len(group) for group in candidates.groups]
    ks = tuple(sorted(set(config.k))) or powers_of_two(min(MAX_K, max(sizes)))
    if ks[0] > max(sizes):
        raise ValueError(f"k is {ks[0]}, and no prompt of {config.input} has more than {max(sizes)} responses")
    attempts = attempts_of(candidates.groups, ks, config)
    means = attempts.means([group.name for group in candidates.groups], config.draws)
    return Result(
        kind="pass_at_k",
        title="pass@k",
        scorer=candidates.scorers["gold"],
        source=candidates.source,
        measures=tuple(
            Measure(name=name, part=f"k={k}", interval=one, published=True)
            for name, intervals in means.items()
            for k, one in zip(ks, intervals, strict=True)
            if one.value is not None
        ),
        counts=candidates.counts(("gold",)),
        figures=(share_curves("Solved in k attempts", ks, means), _shares(candidates.groups, config.pass_at)),
        worst=_unsolved(config, candidates.groups),
        notes=(*candidates.notes, *_notes(attempts, config), *unjudged(candidates)),
        options=config.told(),
        cost=candidates.cost,
    )


def attempts_of(groups: Sequence[Group], ks: Sequence[int], config: PassAtKConfig) -> Shares:
    """Return what k attempts at each prompt are worth: pass@k, pass^k and, with answers, maj@k."""
    drawn = ["maj@k"] if config.answers else []
    attempts = Shares.of(groups, ks, ["pass@k", "pass^k", *drawn], drawn)
    exact = functools.cache(lambda n, right, k: (pass_at_k(n, right, k), pass_all_k(n, right, k)))
    for row, group in enumerate(groups):
        right = group.right("gold", config.pass_at)
        answers = numbered_answers([one.answer for one in group.members])
        for column, k in enumerate(ks):
            if k > len(group):
                continue
            one, every = exact(len(group), int(right.sum()), k)
            attempts.rates["pass@k"][row, column], attempts.rates["pass^k"][row, column] = one, every
            for name in drawn:
                weights = np.ones((1, len(group)))
                worth = vote_worth(answers, weights, right, k, most=config.subsets, seed=(config.seed, row, k))
                attempts.rates[name][row, column] = worth.values[0]
                attempts.errors[name][row, column] = worth.errors[0]
    return attempts


def _notes(attempts: Shares, config: PassAtKConfig) -> list[str]:
    notes = attempts.short()
    here = attempts.known.sum(axis=0)
    for name, errors in attempts.errors.items():
        if drawn := int((errors > 0).any(axis=1).sum()):
            at = int((errors**2).sum(axis=0).argmax())
            error = math.sqrt(float((errors[:, at] ** 2).sum())) / max(int(here[at]), 1)
            notes.append(
                f"{name} of {drawn} prompts is of {config.subsets} drawn sets of k responses; this adds a standard "
                f"error of {error:.2g} at most (k={attempts.ks[at]})"
            )
    return notes


def _shares(groups: Sequence[Group], least: float) -> Bars:
    """How many prompts have which share of right responses, in tenths, with none and all apart."""
    edges = ["none", *(f"{low} % to {low + 10} %" for low in range(0, 100, 10)), "all"]
    counts = dict.fromkeys(edges, 0)
    for group in groups:
        share = float(group.right("gold", least).mean())
        name = "none" if share == 0 else "all" if share == 1 else edges[1 + min(int(share * 10), 9)]
        counts[name] += 1
    bars = tuple(Bar(name=name, interval=Interval(value=float(n)), baselines={}) for name, n in counts.items())
    return Bars(title="Prompts by their share of right responses", unit="prompts", bars=bars)


def _unsolved(config: PassAtKConfig, groups: Sequence[Group]) -> tuple[ReadCase, ...]:
    """Prompts that nothing solves, those with most responses first, and then those with the smallest share of right."""
    shares = [(float(group.right("gold", config.pass_at).mean()), -len(group), at) for at, group in enumerate(groups)]
    chosen = [
        (groups[at], 1 - share, "unsolved" if share == 0 else "rarely solved")
        for share, _, at in sorted(shares)[: config.worst]
        if share < 1
    ]
    return read_groups(config, chosen, "gold")


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
        said = {
            name: [said_by_steps(one.said["scorer"], name.removeprefix("value")).value for one in group.members]
            for name in scales
        }
        values = {name: np.array(each, dtype=float) for name, each in said.items()}  # NaN where there is none
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


@timed
def run_voting(config: VotingConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure votes.

    Raises:
        ValueError: a column, file or scorer is no good, or no response has an answer.
        JobError: the model behind a scorer is gone.
        BrokenScorer: a scorer raised.
    """
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
        notes=tuple(_vote_notes(candidates, classes, rules, config)),
        options=config.told(),
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


def _vote_notes(candidates: Candidates, classes: Classes, rules: Shares, config: VotingConfig) -> list[str]:
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
