"""`adjudge eval pass_at_k`: how many prompts are solved by one of k attempts, by all of them, and by their majority.

A response that nobody could judge is not right, and is counted.  A prompt with fewer than k responses says nothing
about k, and is left out there, with a note that says how many are.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence

from adjudge.evals.best_of_n.candidates import Group
from adjudge.evals.best_of_n.config import PassAtKConfig, options_of
from adjudge.evals.best_of_n.loading import load_candidates
from adjudge.evals.best_of_n.report import Shares, read_groups, share_curves, unjudged
from adjudge.evals.best_of_n.votes import numbered_answers, vote_worth
from adjudge.evals.reports.result import Measure, ReadCase, Result
from adjudge.io.jobs.report import JobProgress
from adjudge.pages.figures import Bar, Bars
from adjudge.statistics.arrays import np
from adjudge.statistics.intervals import Interval
from adjudge.statistics.subsets import pass_all_k, pass_at_k, powers_of_two

MAX_K = 1024


def run_pass_at_k(config: PassAtKConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure pass@k, pass^k and maj@k.

    Raises:
        ValueError: a column, file or scorer is no good, or no prompt has as many responses as the smallest k.
        JobError: the model behind the scorer is gone.
        BrokenScorer: the scorer raised.
    """
    started = time.monotonic()
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
        options=options_of(config),
        seconds=time.monotonic() - started,
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
