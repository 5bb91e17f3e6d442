"""The maker of SPA-RL's contributions: final rewards, explained turn by turn; it must see all rows first.

`values` are the contributions.  By regression, the sum of those up to a turn is the reward that the trajectory so far
lets expect; where all rewards lie in [0, 1] it is the turn's label, cut off at 0 and 1.  Of other rewards, as of -1 and
1, it is no probability, and neither is what `centred` gives; those have no labels.

Not covered: the regression itself (`contributions`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adjudge.data_pipelines.jobs.maker import Made, Unit
from adjudge.data_pipelines.step_labels.config import StepsConfig
from adjudge.data_pipelines.step_labels.contributions import Centred, Contributions
from adjudge.data_pipelines.step_labels.labelled import Labelled
from adjudge.data_pipelines.step_labels.solutions_in_rows import Problem, Solution, SolutionReader
from adjudge.data_pipelines.step_labels.spending import Spending
from adjudge.data_pipelines.step_labels.step_labeller import FIELDS, fingerprint_of, made_of, row_of


class TurnLabeller:
    """See `adjudge.data_pipelines.jobs.maker.Maker` and `Prepares`.

    Args:
        config: the options; `method` is "spa".
    """

    name = "steps"
    grouped = False
    fields = FIELDS

    def __init__(self, config: StepsConfig):
        self._config = config
        self._reader = SolutionReader(config)
        self._begin()

    def _begin(self) -> None:
        self._contributions, self._centred = Contributions(self._config.ridge), Centred()
        self._shares = True  # all rewards so far lie in [0, 1]

    @property
    def fingerprint(self) -> str:
        """The options; there are no models."""
        return fingerprint_of(self._config, [])

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look for the columns."""
        self._reader.check(columns, first)
        return ()

    def prepare(self, units: Iterable[Unit]) -> None:
        """Learn from all trajectories that have a reward."""
        self._begin()
        for unit in units:
            for problem, solution in self._found(unit):
                if isinstance(problem, str) or isinstance(solution, str) or solution.outcome is None:
                    continue
                self._shares = self._shares and 0 <= solution.outcome <= 1
                if self._config.rule == "centred":
                    self._centred.add(problem.text, solution.outcome)
                else:
                    self._contributions.add(problem.text, solution.cut.steps, solution.outcome)

    async def make(self, unit: Unit) -> Made:
        """Return a row's trajectories with what each turn contributed."""
        spending = Spending()
        rows: list[Mapping[str, Any]] = []
        for problem, solution in self._found(unit):
            if isinstance(problem, str) or isinstance(solution, str):
                spending.dropped[problem if isinstance(problem, str) else str(solution)] += 1
                continue
            found = self._labelled(problem, solution)
            if isinstance(found, str):
                spending.dropped[found] += 1
            else:
                rows.append(row_of(problem, solution.id, solution.text, found, calls=0, method="spa"))
        return made_of(rows, spending)

    def _found(self, unit: Unit) -> Iterable[tuple[Problem | str, Solution | str]]:
        (row,) = unit.rows
        problem = self._reader.problem(row, unit.first)
        if isinstance(problem, str):
            yield problem, ""
            return
        for solution in self._reader.solutions(row, problem):
            yield problem, solution

    def _labelled(self, problem: Problem, solution: Solution) -> Labelled | str:
        reward, steps = solution.outcome, solution.cut.steps
        if reward is None:
            return "no_reward"
        outcome = reward if 0 <= reward <= 1 else None
        if self._config.rule == "centred":
            gained = self._centred.of(problem.text, reward)
            if gained is None:
                return "alone"
            return Labelled(steps=steps, labels=(None,) * len(steps), outcome=outcome, values=(gained,) * len(steps))
        values = self._contributions.of(problem.text, steps)
        if values is None:
            return "alone"
        progress = itertools.accumulate(values)
        return Labelled(
            steps=steps,
            labels=tuple(min(max(one, 0.0), 1.0) if self._shares else None for one in progress),
            outcome=outcome,
            values=tuple(values),
            start=0.0,
        )
