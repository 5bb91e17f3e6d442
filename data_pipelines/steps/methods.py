"""One solution, one method: the searches put to work on what a row holds.

Quality values are those of ReST-MCTS* (arXiv 2406.03816): how far a prefix has come on the way to a right answer.

    v_0 = 0,  v_k = max(0, v_{k-1} + (1 - v_{k-1}) / m_k * s_k)

s_k is 1 if a right answer lies below prefix k, else -1.  m_k is the fewest steps from there to a right answer, step k
included; a prefix with no right answer below it has the m of the last one that has.  Rollouts from longer prefixes, and
the solution itself, lie below shorter ones.  The paper writes m_k for the steps that are left and divides by m_k + 1;
its code counts step k, as here.

By consensus, solutions are kept on whose first error rollouts and a judge agree (arXiv 2501.07301): rollouts call a
wrong step right where the answer can still be guessed, and a judge overlooks things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from adjudge.data_pipelines.steps.arithmetic import checked, results_of, worked_labels
from adjudge.data_pipelines.steps.config import Opinion, StepsConfig
from adjudge.data_pipelines.steps.rollouts import (
    Ends,
    EngineCompleter,
    Oracle,
    Prefix,
    Rollout,
    Spending,
    StepLabels,
    certain,
    estimate_of,
    first_unreached,
    label_of,
    monte_carlo,
    shares,
)
from adjudge.data_pipelines.steps.searches import advantages, binary_search
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces, Problem, Solution
from adjudge.engines.interface import Fault, Generation
from adjudge.io.jobs.engines import scores_of
from adjudge.protocol import Scorer
from adjudge.responses.refine import quality_values
from adjudge.training.step_data import Label, error_labels, first_error

Disagreement: TypeAlias = Literal["disagreed", "rollouts_unclear", "judge_unclear"]
"""Why a solution is left out: two different places, or one side leaves the place open."""


def agreement(rollouts: int | None, judge: Sequence[Label], *, threshold: float = 0.5) -> StepLabels | Disagreement:
    """Return hard labels up to the first error that rollouts and a judge both name, or why there are none."""
    if rollouts is None:
        return "rollouts_unclear"
    place = first_error(judge, threshold=threshold)
    if place is None:
        return "judge_unclear"
    if place != rollouts:
        return "disagreed"
    return StepLabels(first_error=place, labels=error_labels(len(judge), place))


async def quality(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None) -> StepLabels:
    """Return the quality values of a solution; n k calls for n steps, one prefix of them before the first step."""
    drawn = await asyncio.gather(*[oracle.rollouts(pieces[:length], k) for length in range(len(pieces))])
    estimates = (*map(estimate_of, drawn[1:]), certain(outcome))
    values = values_of([*drawn, [Rollout(pieces=(), right=outcome)]])
    return StepLabels(labels=values, estimates=estimates, start=0.0, first_error=first_unreached(estimates))


def values_of(rollouts: Sequence[Sequence[Rollout]]) -> tuple[float | None, ...]:
    """Return v_k of a solution."""
    left = _steps_left(rollouts)
    if left[0] is None:
        return (None,) * (len(rollouts) - 1)  # the problem was never solved, so nothing is known about its steps
    signs: list[float] = []
    remaining: list[int] = []
    for place in range(1, len(rollouts)):
        mine = left[place]
        if mine is None and estimate_of(rollouts[place]).judged == 0:
            break
        signs.append(-1.0 if mine is None else 1.0)
        remaining.append(1 + next(one for one in reversed(left[: place + 1]) if one is not None))
    values = quality_values(signs, remaining) if signs else ()
    return (*values, *[None] * (len(rollouts) - 1 - len(values)))


def _steps_left(rollouts: Sequence[Sequence[Rollout]]) -> list[int | None]:
    """The fewest steps behind each prefix to a right answer below it; None where there is none."""
    left: list[int | None] = []
    below: int | None = None
    for mine in reversed(rollouts):
        ways = [len(rollout.pieces) for rollout in mine if rollout.right]
        below = min([*ways, *([] if below is None else [below + 1])], default=None)
        left.append(below)
    return left[::-1]


class _ProblemOracle:
    """See `rollouts.Oracle`."""

    def __init__(self, problem: Problem, tools: Tools, spending: Spending):
        self._problem = problem
        self._tools = tools
        self._spending = spending
        self._kept: dict[Prefix, list[Rollout]] = {}
        self._unreadable: set[Prefix] = set()

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        kept = self._kept.setdefault(prefix, [])
        lacking = n - len(kept)
        if lacking > 0 and prefix not in self._unreadable and self._spending.take(lacking):
            completer = self._tools.prover or self._tools.completer
            assert completer is not None, "a method with rollouts has an engine"
            drawn = await completer.complete(self._problem.prompt, "".join(prefix), first=len(kept), n=lacking)
            if isinstance(drawn, Fault):
                self._spending.counts["too_long" if drawn.too_long else "engine_errors"] += 1
                self._unreadable.add(prefix)
            else:
                kept += await self._judged(prefix, drawn)
        return kept[:n]

    async def _judged(self, prefix: Prefix, drawn: Generation) -> list[Rollout]:
        self._spending.cost += drawn.cost
        self._spending.counts["cut_off"] += sum(one.finish_reason == "length" for one in drawn.completions)
        begun = "".join(prefix)
        samples = [self._problem.sample(begun + one.text, finish_reason=one.finish_reason) for one in drawn.completions]
        right = await self._tools.ends.right(samples, self._spending)
        return [
            Rollout(pieces=self._tools.cut(one.text), right=verdict, length=one.tokens)
            for one, verdict in zip(drawn.completions, right, strict=True)
        ]


async def critique(critic: Scorer, solution: Solution, spending: Spending) -> tuple[Label, ...] | None:
    """Return a judge's value of each step; None for a step it did not judge, and for all if it judged other steps."""
    sample = solution.problem.sample(solution.text, extra={"steps": list(solution.cut.steps)})
    (score,) = await scores_of(critic, [sample])
    spending.cost += score.cost
    if len(score.steps) != len(solution.cut):
        return None
    return tuple(step.value for step in score.steps)


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What methods work with."""

    config: StepsConfig
    ends: Ends
    completer: EngineCompleter | None = None
    prover: EngineCompleter | None = None
    critic: Scorer | None = None

    def oracle(self, problem: Problem, spending: Spending) -> Oracle:
        """Return who goes on from prefixes of a problem: the prover, where there is one."""
        return _ProblemOracle(problem, self, spending)

    def cut(self, text: str) -> Prefix:
        """Return a text's pieces."""
        return Pieces.of(text, self.config.splitting, self.config.max_steps).pieces


async def labelled(
    solution: Solution, outcome: bool | None, oracle: Oracle, tools: Tools, spending: Spending
) -> StepLabels | str:
    """Return the labels of a solution, or why there are none; its `outcome` is None where nobody knows."""
    config, cut = tools.config, solution.cut
    match config.method:
        case "arithmetic":
            return await checked(tools.ends, cut.steps, spending)
        case "worked":
            reference = solution.problem.reference
            worked = results_of(reference) if isinstance(reference, str) else frozenset()
            if not worked:
                return "no_worked_results"
            labels, place = worked_labels(cut.steps, worked, outcome=outcome)
            return StepLabels(labels=labels, first_error=place)
        case "consensus":
            return await _consensus(solution, outcome, oracle, tools, spending)
        case "pav":
            return await advantages(
                oracle,
                cut.pieces,
                k=config.rollouts,
                best_of=config.best_of,
                outcome=outcome,
                first_pit=config.first_pit,
            )
        case "rest_mcts":
            return await quality(oracle, cut.pieces, k=config.rollouts, outcome=outcome)
        case "mc" | "binary":
            return await _searched(oracle, cut.pieces, outcome, config, config.method)
    raise AssertionError(f"no solution is labelled by {config.method}")


async def _searched(
    oracle: Oracle, pieces: Prefix, outcome: bool | None, config: StepsConfig, method: Opinion
) -> StepLabels:
    if method == "binary":
        return await binary_search(oracle, pieces, k=config.rollouts, outcome=outcome, verify=config.verify)
    estimates = await monte_carlo(oracle, pieces, k=config.rollouts, outcome=outcome)
    return StepLabels(
        labels=tuple(label_of(estimate, config.labels) for estimate in estimates),
        values=shares(estimates),
        estimates=estimates,
        first_error=first_unreached(estimates),
    )


async def _consensus(
    solution: Solution, outcome: bool | None, oracle: Oracle, tools: Tools, spending: Spending
) -> StepLabels | str:
    assert tools.critic is not None, "consensus has a critic"
    threshold = tools.config.critic_threshold
    said = await critique(tools.critic, solution, spending)
    if said is None or first_error(said, threshold=threshold) is None:
        return "judge_unclear"  # no rollout is spent on what cannot agree
    search = await _searched(oracle, solution.cut.pieces, outcome, tools.config, tools.config.opinion)
    agreed = agreement(search.first_error, said, threshold=threshold)
    if isinstance(agreed, str):
        return agreed
    return replace(search, labels=agreed.labels, first_error=agreed.first_error)
