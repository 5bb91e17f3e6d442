"""Solutions that a guided tree finds, with the quality values of their steps (ReST-MCTS*, arXiv 2406.03816).

The search is that of `tree_search`; the solutions that ended are judged, and v_k is worked out on all of them together
(`methods`): a right answer lies below a step if one of them, right, begins with the steps up to it.  This is
`get_full_value_samples_vm` of THUDM/ReST-MCTS at 643d63b, but for two things: a model reads the answer out of a trace
there, and a prefix that the guide values above 0.9 counts as ended; here only what ended by itself does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adjudge.data_pipelines.steps.config import GAPS
from adjudge.data_pipelines.steps.methods import Tools, values_of
from adjudge.data_pipelines.steps.rollouts import (
    Prefix,
    Rollout,
    Spending,
    StepLabels,
    estimate_of,
    first_unreached,
    shares,
)
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces, Problem, Solution
from adjudge.data_pipelines.steps.tree_search import Account, Finished, Guide, Writer, tree
from adjudge.io.jobs.engines import scores_of
from adjudge.protocol import NO_COST, Cost, Sample, Score

_ANY: Final = 1 << 40  # tokens, or draws, where nothing bounds them


async def collected(
    problem: Problem, tools: Tools, spending: Spending
) -> list[tuple[Solution, StepLabels, bool | None]]:
    """Return the solutions that a search of a problem finds, with labels and whether they are right.

    A step that an earlier solution shows has no label again, so that none counts twice.
    """
    found = await _searched(problem, tools, spending)
    samples = [problem.sample(one.path.text.rstrip()) for one in found]
    verdicts = await tools.ends.right(samples, spending)
    config, solutions, whole, shown = tools.config, list[Solution](), list[Rollout](), set[Prefix]()
    for at, (one, verdict) in enumerate(zip(found, verdicts, strict=True)):
        text = one.path.text.rstrip()
        cut = Pieces.of(text, config.splitting, config.max_steps)
        solutions.append(Solution(problem=problem, id=f"{problem.id}/{at}", text=text, cut=cut, outcome=None))
        whole.append(Rollout(pieces=cut.pieces, right=verdict))
    return [
        (solution, _fresh(labels_among(mine, whole), mine.pieces, shown), mine.right)
        for solution, mine in zip(solutions, whole, strict=True)
    ]


def labels_among(mine: Rollout, whole: Sequence[Rollout]) -> StepLabels:
    """Return v_k of a solution among all that were found; the values are the shares of right ones behind each step."""
    below = [
        [
            Rollout(pieces=one.pieces[length:], right=one.right)
            for one in whole
            if one.pieces[:length] == mine.pieces[:length]
        ]
        for length in range(len(mine.pieces) + 1)
    ]
    estimates = tuple(map(estimate_of, below[1:]))
    return StepLabels(
        labels=values_of(below),
        values=shares(estimates),
        estimates=estimates,
        start=estimate_of(below[0]).value,
        first_error=first_unreached(estimates),
    )


def _fresh(labels: StepLabels, pieces: Prefix, shown: set[Prefix]) -> StepLabels:
    prefixes = [pieces[: at + 1] for at in range(len(pieces))]
    kept = tuple(None if prefix in shown else one for prefix, one in zip(prefixes, labels.labels, strict=True))
    shown.update(prefixes)
    return replace(labels, labels=kept)


async def _searched(problem: Problem, tools: Tools, spending: Spending) -> list[Finished]:
    """The distinct solutions that ended, in the order in which they were found."""
    config = tools.config
    account = Account(budget=_ANY, most=_ANY if spending.most is None else spending.most)
    writer = _writer(problem, tools, account)

    async def by_critic(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        assert tools.critic is not None, "it was asked for"
        return [(_value(one), one.cost) for one in await scores_of(tools.critic, samples, "the critic")]

    async def by_ends(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        verdicts = await tools.ends.right(samples, spending)
        return [(None if verdict is None else float(verdict), NO_COST) for verdict in verdicts]

    if tools.critic is None:
        guide = Guide(problem, ask=by_ends, writer=writer, rollouts=config.rollouts)
    else:
        guide = Guide(replace(problem, reference=None), ask=by_critic, writer=writer, rollouts=0)
    found = await tree(writer, guide, config.growth(), rounds=config.tree_searches)
    spending.cost += account.cost
    spending.counts["calls"] += account.draws
    spending.counts["valued"] += account.valued
    for name, times in account.faults.items():
        spending.counts[{"no value": "unvalued", "too_long": "too_long"}.get(name, "engine_errors")] += times
    ended = list({one.path.text.rstrip(): one for one in found if not one.path.cut and one.path.text.strip()}.values())
    spending.counts["cut_off"] += sum(one.path.cut for one in found)
    least = config.min_value
    kept = [one for one in ended if least is None or (one.value is not None and one.value >= least)]
    spending.drop("small_value", len(ended) - len(kept))
    return kept


def _writer(problem: Problem, tools: Tools, account: Account) -> Writer:
    config, wholes = tools.config, tools.completer
    assert wholes is not None, "the method has an engine"
    gap = GAPS[config.splitting]
    sampling = replace(wholes.sampling, max_tokens=min(config.step_tokens, config.max_tokens), stop=(gap,))
    return Writer(
        problem,
        steps=replace(wholes, sampling=sampling),
        wholes=wholes,
        gap=gap,
        ends=re.compile(config.ends),
        max_steps=config.max_steps,
        max_tokens=config.max_tokens,
        account=account,
    )


def _value(score: Score) -> float | None:
    """What a prefix is worth: the score, or where only its steps have numbers, that of the last one."""
    if score.value is not None or score.status != "scored" or not score.steps:
        return score.value
    return score.steps[-1].value
