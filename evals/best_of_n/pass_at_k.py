"""`adjudge eval pass_at_k`: how many prompts are solved by one of k attempts, by all of them, and by their majority.

A response that nobody could judge is not right, and is counted.  A prompt with fewer than k responses says nothing
about k, and is left out there, with a note that says how many are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.evals.best_of_n.candidates import Group
from adjudge.evals.best_of_n.config import PassAtKConfig, options_of
from adjudge.evals.best_of_n.loading import load_candidates
from adjudge.evals.best_of_n.report import prompt_means, read_groups, share_curves, short_prompts
from adjudge.evals.best_of_n.votes import numbered_answers, vote_worth
from adjudge.evals.reports.figures import Bar, Bars
from adjudge.evals.reports.result import Measure, ReadCase, Result
from adjudge.io.jobs.report import JobProgress
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.intervals import Interval
from adjudge.statistics.subsets import pass_all_k, pass_at_k, powers_of_two

MAX_K = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """What k attempts at each prompt are worth, (prompts, ks); 0 where a prompt has fewer than k responses.

    Attributes:
        known: 1 where there are as many responses.
        rates: by name: "pass@k", "pass^k" and, with answers, "maj@k".
        errors: standard error of what was drawn for maj@k.
    """

    ks: tuple[int, ...]
    known: Floats
    rates: dict[str, Floats]
    errors: Floats


def run_pass_at_k(config: PassAtKConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure pass@k, pass^k and maj@k.

    Raises:
        ValueError: a column, file or scorer is no good, or no prompt has as many responses as the smallest k.
        JobError: the model behind the scorer is gone.
        BrokenScorer: the scorer raised.
    """
    started = time.monotonic()
    found = load_candidates(config, {"gold": config.gold}, answers=config.answers, progress=progress)
    sizes = [len(group) for group in found.groups]
    ks = tuple(sorted(set(config.k))) or tuple(k for k in powers_of_two(min(MAX_K, max(sizes))))
    if ks[0] > max(sizes):
        raise ValueError(f"k is {ks[0]}, and no prompt of {config.input} has more than {max(sizes)} responses")
    attempts = attempts_of(found.groups, ks, config)
    means = prompt_means(attempts.known, attempts.rates, [group.name for group in found.groups], config.draws)
    notes = [*found.notes, *_notes(attempts, config)]
    unjudged = sum(one.value("gold") is None for one in found.all())
    if unjudged:
        notes.append(f"{unjudged} responses could not be judged; they count as not right")
    return Result(
        kind="pass_at_k",
        title="pass@k",
        scorer=found.scorers["gold"],
        source=found.source,
        measures=tuple(
            Measure(name=name, part=f"k={k}", interval=one, published=True)
            for name, intervals in means.items()
            for k, one in zip(ks, intervals, strict=True)
            if one.value is not None
        ),
        counts=found.counts(("gold",)),
        figures=(share_curves("Solved in k attempts", ks, means), _shares(found.groups, config.pass_at)),
        worst=_unsolved(config, found.groups),
        notes=tuple(notes),
        options=options_of(config),
        seconds=time.monotonic() - started,
        cost=found.cost,
    )


def attempts_of(groups: Sequence[Group], ks: Sequence[int], config: PassAtKConfig) -> Attempts:
    """Return what k attempts at each prompt are worth."""
    shape = (len(groups), len(ks))
    names = ["pass@k", "pass^k", *(["maj@k"] if config.answers else [])]
    rates = {name: np.zeros(shape) for name in names}
    known, errors = np.zeros(shape), np.zeros(shape)
    kept: dict[tuple[int, int, int], tuple[float, float]] = {}
    for row, group in enumerate(groups):
        right = group.right("gold", config.pass_at)
        count, total = int(right.sum()), len(group)
        answers = numbered_answers([one.answer for one in group.members])
        for column, k in enumerate(ks):
            if k > total:
                continue
            known[row, column] = 1.0
            key = (total, count, k)
            if key not in kept:
                kept[key] = pass_at_k(*key), pass_all_k(*key)
            rates["pass@k"][row, column], rates["pass^k"][row, column] = kept[key]
            if config.answers:
                worth = vote_worth(
                    answers, np.ones((1, total)), right, k, most=config.subsets, seed=(config.seed, row, k)
                )
                rates["maj@k"][row, column], errors[row, column] = worth.values[0], worth.errors[0]
    return Attempts(ks=tuple(ks), known=known, rates=rates, errors=errors)


def _notes(attempts: Attempts, config: PassAtKConfig) -> list[str]:
    notes = short_prompts(attempts.ks, attempts.known)
    here = attempts.known.sum(axis=0)
    drawn = int((attempts.errors > 0).any(axis=1).sum())
    if drawn:
        at = int((attempts.errors**2).sum(axis=0).argmax())
        error = math.sqrt(float((attempts.errors[:, at] ** 2).sum())) / max(int(here[at]), 1)
        notes.append(
            f"maj@k of {drawn} prompts is of {config.subsets} drawn sets of k responses; this adds a standard error of "
            f"{error:.2g} at most (k={attempts.ks[at]})"
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
    bars = tuple(
        Bar(name=name, interval=Interval(value=float(number)), baselines={}) for name, number in counts.items()
    )
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
