"""One solution, one method: the searches put to work on what a row holds.

Each method returns labels, or a reason in a word why the solution has none.

Quality values are those of ReST-MCTS* (arXiv 2406.03816): how far a prefix has come on the way to a right answer.

    v_0 = 0,  v_k = max(0, v_{k-1} + (1 - v_{k-1}) / m_k * s_k)

s_k is 1 if a right answer lies below prefix k, else -1.  m_k is the fewest steps from there to a right answer, step k
included, so that the last step of a right solution has 1; a prefix with no right answer below it has the m of the last
one that has.  Rollouts from longer prefixes, and the solution itself, lie below shorter ones.  The paper writes m_k for
the steps that are left and divides by m_k + 1; its code counts step k, as here.

Solutions can be kept on whose first error rollouts and a judge agree (arXiv 2501.07301).  Rollouts call a wrong step
right where the answer can still be guessed; a judge overlooks things.  Where both name the same first error, hard
labels teach more than either does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjudge.data_pipelines.steps.arithmetic import checked, results_of, worked_labels
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.rollouts import (
    Completer,
    Ends,
    Estimate,
    Label,
    Labelled,
    Oracle,
    Prefix,
    Rollout,
    Spending,
    certain,
    estimate_of,
    first_error_of,
    label_of,
    labels_until,
    monte_carlo,
    number_of,
)
from adjudge.data_pipelines.steps.searches import advantages, binary_search
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces, Problem, Solution
from adjudge.engines.interface import Fault, Generation
from adjudge.io.jobs.engines import scores_of
from adjudge.protocol import Scorer
from adjudge.responses.refine import quality_values

Disagreement: TypeAlias = Literal["disagreed", "rollouts_unclear", "judge_unclear"]
"""Why a solution is left out: two different places, or one side leaves the place open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What two opinions on one solution come to.

    Attributes:
        first_error: the place both name, from 0; -1 if both find no error.
        labels: 1 before it, 0 at it, None behind it.
    """

    first_error: int
    labels: tuple[Label, ...]


def agreement(rollouts: int | None, judge: Sequence[Label], *, threshold: float = 0.5) -> Agreement | Disagreement:
    """Return what both say, or why there is nothing."""
    if rollouts is None:
        return "rollouts_unclear"
    place = first_error_of(judge, threshold=threshold)
    if place is None:
        return "judge_unclear"
    if place != rollouts:
        return "disagreed"
    return Agreement(first_error=place, labels=labels_until(place, len(judge)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Values of a solution's steps.

    Attributes:
        values: v_k; None from the first prefix on of which nothing is known.
        estimates: the votes behind each step.
    """

    values: tuple[float | None, ...]
    estimates: tuple[Estimate, ...]


async def quality(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None) -> Quality:
    """Return the quality values of a solution; n k calls for n steps, one prefix of them before the first step."""
    found = await asyncio.gather(*[oracle.rollouts(pieces[:length], k) for length in range(len(pieces))])
    estimates = (*map(estimate_of, found[1:]), certain(outcome))
    whole = Rollout(pieces=(), right=outcome)
    return Quality(values=values_of([*found, [whole]]), estimates=estimates)


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


class ProblemOracle:
    """See `rollouts.Oracle`."""

    def __init__(
        self,
        problem: Problem,
        *,
        completer: Completer,
        ends: Ends,
        cut: Callable[[str], Prefix],
        spending: Spending,
    ):
        self._problem = problem
        self._completer = completer
        self._ends = ends
        self._cut = cut
        self._spending = spending
        self._kept: dict[Prefix, list[Rollout]] = {}
        self._unreadable: set[Prefix] = set()

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        """Return the first `n` rollouts of a prefix; see `rollouts.Oracle`."""
        kept = self._kept.setdefault(prefix, [])
        lacking = n - len(kept)
        if lacking > 0 and prefix not in self._unreadable and self._spending.take(lacking):
            found = await self._completer.complete(self._problem.prompt, "".join(prefix), first=len(kept), n=lacking)
            if isinstance(found, Fault):
                self._spending.counts["too_long" if found.too_long else "engine_errors"] += 1
                self._unreadable.add(prefix)
            else:
                kept += await self._judged(prefix, found)
        return kept[:n]

    async def _judged(self, prefix: Prefix, found: Generation) -> list[Rollout]:
        self._spending.cost += found.cost
        self._spending.counts["cut_off"] += sum(one.finish_reason == "length" for one in found.completions)
        begun = "".join(prefix)
        samples = [self._problem.sample(begun + one.text, finish_reason=one.finish_reason) for one in found.completions]
        right = await self._ends.right(samples, self._spending)
        return [
            Rollout(pieces=self._cut(one.text), right=verdict, length=one.tokens)
            for one, verdict in zip(found.completions, right, strict=True)
        ]


async def critique(critic: Scorer, solution: Solution, spending: Spending) -> tuple[Label, ...] | None:
    """Return a judge's value of each step; None for a step it did not judge, and for all if it judged other steps.

    Raises:
        JobError: the judge is broken, or the model behind it is gone.
    """
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
    completer: Completer | None = None
    prover: Completer | None = None
    critic: Scorer | None = None

    def oracle(self, problem: Problem, spending: Spending, *, of_prover: bool = False) -> ProblemOracle:
        """Return an oracle for a problem."""
        completer = self.prover if of_prover and self.prover is not None else self.completer
        assert completer is not None, "a method with rollouts has an engine"
        return ProblemOracle(problem, completer=completer, ends=self.ends, cut=self.cut, spending=spending)

    def cut(self, text: str) -> Prefix:
        """Return a text's pieces."""
        return Pieces.of(text, self.config.splitting, self.config.max_steps).pieces


@dataclass(frozen=True, kw_only=True)
class Case:
    """One solution with all that is known before the method begins."""

    solution: Solution
    outcome: bool | None
    oracle: Oracle | None
    spending: Spending

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps' texts."""
        return self.solution.cut.steps

    @property
    def pieces(self) -> Prefix:
        """The solution's pieces."""
        return self.solution.cut.pieces

    @property
    def rollouts(self) -> Oracle:
        """The oracle of a method that has one."""
        assert self.oracle is not None, "a method with rollouts has an oracle"
        return self.oracle

    def labelled(
        self,
        labels: tuple[Label, ...],
        *,
        first_error: int | None,
        values: tuple[float | None, ...] | None = None,
        estimates: tuple[Estimate, ...] = (),
        start: float | None = None,
    ) -> Labelled:
        """Return the solution with its labels; they are the values too where the method computes no others."""
        return Labelled(
            steps=self.steps,
            labels=labels,
            outcome=number_of(self.outcome),
            values=labels if values is None else values,
            estimates=estimates,
            start=start,
            first_error=first_error,
        )


async def labelled(case: Case, tools: Tools) -> Labelled | str:
    """Return the labels of a solution, or why there are none."""
    match tools.config.method:
        case "mc":
            return await _mc(case, tools.config)
        case "binary":
            return await _binary(case, tools.config)
        case "pav":
            return await _pav(case, tools.config)
        case "rest_mcts":
            return await _rest_mcts(case, tools.config)
        case "consensus":
            return await _consensus(case, tools)
        case "arithmetic":
            return await _arithmetic(case, tools.ends)
        case "worked":
            return _worked(case)
    raise AssertionError(f"no solution is labelled by {tools.config.method}")


def error_in(estimates: Sequence[Estimate]) -> int | None:
    """Return the place of the first step from which no rollout ended right; see `first_error_of`."""
    return first_error_of([label_of(estimate, "hard") for estimate in estimates])


async def _mc(case: Case, config: StepsConfig) -> Labelled:
    estimates = await monte_carlo(case.rollouts, case.pieces, k=config.rollouts, outcome=case.outcome)
    return case.labelled(
        tuple(label_of(estimate, config.labels) for estimate in estimates),
        values=tuple(estimate.value for estimate in estimates),
        estimates=estimates,
        first_error=error_in(estimates),
    )


async def _binary(case: Case, config: StepsConfig) -> Labelled:
    found = await binary_search(
        case.rollouts, case.pieces, k=config.rollouts, outcome=case.outcome, verify=config.verify
    )
    values = tuple(estimate.value for estimate in found.estimates)
    return case.labelled(found.labels, values=values, estimates=found.estimates, first_error=found.first_error)


async def _pav(case: Case, config: StepsConfig) -> Labelled:
    found = await advantages(
        case.rollouts,
        case.pieces,
        k=config.rollouts,
        best_of=config.best_of,
        outcome=case.outcome,
        first_pit=config.first_pit,
    )
    return case.labelled(
        found.chances,
        values=found.advantages,
        estimates=found.estimates,
        start=found.start,
        first_error=error_in(found.estimates),
    )


async def _rest_mcts(case: Case, config: StepsConfig) -> Labelled:
    found = await quality(case.rollouts, case.pieces, k=config.rollouts, outcome=case.outcome)
    first = error_in(found.estimates)
    return case.labelled(found.values, estimates=found.estimates, start=0.0, first_error=first)


async def _consensus(case: Case, tools: Tools) -> Labelled | str:
    assert tools.critic is not None, "consensus has a critic"
    said = await critique(tools.critic, case.solution, case.spending)
    if said is None or first_error_of(said, threshold=tools.config.critic_threshold) is None:
        return "judge_unclear"  # no rollout is spent on what cannot agree
    search = await (_binary if tools.config.opinion == "binary" else _mc)(case, tools.config)
    found = agreement(search.first_error, said, threshold=tools.config.critic_threshold)
    if not isinstance(found, Agreement):
        return found
    return case.labelled(found.labels, values=search.values, estimates=search.estimates, first_error=found.first_error)


async def _arithmetic(case: Case, ends: Ends) -> Labelled:
    labels, estimates = await checked(ends, case.steps, case.spending)
    return case.labelled(labels, estimates=tuple(estimates), first_error=first_error_of(labels))


def _worked(case: Case) -> Labelled | str:
    reference = case.solution.problem.reference
    worked = results_of(reference) if isinstance(reference, str) else frozenset()
    if not worked:
        return "no_worked_results"
    labels, place = worked_labels(case.steps, worked, outcome=case.outcome)
    return case.labelled(labels, first_error=place)
