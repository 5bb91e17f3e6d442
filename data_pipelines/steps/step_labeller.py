"""The maker of step data: a row's solutions, or the tree of its problem, become rows with a label for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.methods import Case, Tools, labelled
from adjudge.data_pipelines.steps.rollouts import Estimate, Labelled, Rollout, Spending, label_of
from adjudge.data_pipelines.steps.searches import Path, grow
from adjudge.data_pipelines.steps.solutions_in_rows import Problem, Solution, SolutionReader
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.io.jobs.row_maker import fingerprint_of
from adjudge.runtime.contract import validate_sample

FIELDS: Final[Mapping[str, Kind]] = {
    "id": "text",
    "prompt": "chat",
    "response": "text",
    "steps": "texts",
    "labels": "numbers",
    "outcome": "number",
    "first_error": "whole",
    "unknown": "whole",
    "start": "number",
    "values": "numbers",
    "right": "wholes",
    "judged": "wholes",
    "calls": "whole",
    "method": "text",
    "group": "text",
    "source": "text",
}
"""The columns of step data; `adjudge train prm` reads `prompt`, `steps`, `labels`, `outcome`, `group` and `source`."""

_VERSION = "2"  # goes up whenever the same row could get other labels


class StepLabeller:
    """See `adjudge.io.jobs.maker.Maker`."""

    name = "steps"
    grouped = False
    fields = FIELDS

    def __init__(self, tools: Tools):
        self._tools = tools
        self._reader = SolutionReader(tools.config)

    @property
    def fingerprint(self) -> str:
        """The options, the models and the scorers."""
        tools = self._tools
        models = [one.fingerprint for one in (tools.completer, tools.prover, tools.critic) if one is not None]
        return steps_fingerprint(tools.config, [tools.ends.scorer.fingerprint, *models])

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look for the columns, and whether the scorer can judge with what they hold."""
        self._reader.check(columns, first)
        config = self._tools.config
        if config.method == "arithmetic" or (config.method == "worked" and config.outcome_column):
            return ()
        found = [self._reader.problem(row, number) for number, row in enumerate(first)]
        if first and not any(isinstance(one, Problem) and one.reference is not None for one in found):
            bare = Problem(prompt="", reference=None, id="", group="")
            validate_sample(self._tools.ends.scorer, bare.sample(""))  # raises if it needs what no row has
        return ()

    async def make(self, unit: Unit) -> Made:
        """Return the labelled solutions of a row."""
        (row,) = unit.rows
        spending = Spending(most=self._tools.config.max_calls_per_row)
        problem = self._reader.problem(row, unit.first)
        if isinstance(problem, str):
            spending.drop(problem)
            return made_of([], spending)
        solutions: list[Solution] = []
        for found in self._solutions(row, problem):
            if isinstance(found, str):
                spending.drop(found)
            else:
                solutions.append(found)
        try:
            rows = await self._rows(problem, solutions, spending)
        except DroppedError as error:
            spending.drop(error.reason)
            return made_of([], spending)
        return made_of(rows, spending)

    def _solutions(self, row: Mapping[str, Any], problem: Problem) -> Sequence[Solution | str]:
        found = list(self._reader.solutions(row, problem))
        optional = self._tools.config.method == "tree"
        return [one for one in found if one != "bad_response"] if optional else found

    async def _rows(
        self, problem: Problem, solutions: Sequence[Solution], spending: Spending
    ) -> list[Mapping[str, Any]]:
        tools = self._tools
        outcomes = await self._outcomes(problem, solutions, spending)
        if tools.config.method == "tree":
            return await self._tree_rows(problem, list(zip(solutions, outcomes, strict=True)), spending)
        oracle = None
        if tools.completer is not None:
            oracle = tools.oracle(problem, spending, of_prover=True)
        rows: list[Mapping[str, Any]] = []
        for solution, outcome in zip(solutions, outcomes, strict=True):
            if outcome is None and tools.config.method != "arithmetic":
                spending.drop("outcome_unknown")
                continue
            before = int(spending.counts["calls"])
            case = Case(solution=solution, outcome=outcome, oracle=oracle, spending=spending)
            found = await labelled(case, tools)
            if isinstance(found, str):
                spending.drop(found)
                continue
            if not found.known:
                spending.drop("no_label")
                continue
            rows.append(self._row(problem, solution.id, solution.text, found, int(spending.counts["calls"]) - before))
        return rows

    async def _outcomes(self, problem: Problem, solutions: Sequence[Solution], spending: Spending) -> list[bool | None]:
        """Whether each solution is right, by the data or by the scorer."""
        tools, known = self._tools, bool(self._tools.config.outcome_column)
        if not known and tools.config.method == "arithmetic":
            return [None] * len(solutions)
        samples = [problem.sample(one.text) for one in solutions]
        if not known or tools.completer is not None:
            for sample in samples or [problem.sample("")]:
                try:
                    validate_sample(tools.ends.scorer, sample)
                except ValueError as error:
                    raise DroppedError("bad_sample") from error
        if known:
            return [None if one.outcome is None else one.outcome >= tools.config.pass_at for one in solutions]
        return await tools.ends.right(samples, spending)

    async def _tree_rows(
        self, problem: Problem, solutions: Sequence[tuple[Solution, bool | None]], spending: Spending
    ) -> list[Mapping[str, Any]]:
        given = [
            Rollout(pieces=solution.cut.pieces, right=outcome, length=len(solution.text.split()))
            for solution, outcome in solutions
        ]
        tree = await grow(self._tools.oracle(problem, spending), self._tools.config.tree(), given=given)
        root = tree.states[()].estimate
        if not tree.paths:
            reasons = {1.0: "always_solved", 0.0: "never_solved", None: "no_label"}
            spending.drop(reasons.get(root.value, "nothing_to_search"))  # wrong rollouts without a step, say
        calls = _shared_out(int(spending.counts["calls"]), len(tree.paths))
        return [
            self._row(problem, f"{problem.id}/{at}", "".join(path.pieces), self._of(path, root), calls[at])
            for at, path in enumerate(tree.paths)
        ]

    def _of(self, path: Path, root: Estimate) -> Labelled:
        """A path as a solution; steps that an earlier path shows have values and no labels, so none counts twice."""
        places = range(1, len(path.pieces) + 1)
        estimates = [path.estimates.get(length, Estimate()) for length in places]
        return Labelled(
            steps=tuple(piece.strip() for piece in path.pieces),
            labels=tuple(
                label_of(estimate, self._tools.config.labels) if length in path.fresh else None
                for length, estimate in zip(places, estimates, strict=True)
            ),
            outcome=0.0,
            values=tuple(estimate.value for estimate in estimates),
            estimates=tuple(estimates),
            start=root.value,
            first_error=path.error,
        )

    def _row(self, problem: Problem, id: str, response: str, found: Labelled, calls: int) -> Mapping[str, Any]:
        return row_of(problem, id, response, found, calls=calls, method=self._tools.config.method)


def row_of(problem: Problem, id: str, response: str, found: Labelled, *, calls: int, method: str) -> Mapping[str, Any]:
    """Return a solution's row, with exactly `FIELDS`."""
    made: Mapping[str, Any] = {
        "id": id,
        "prompt": problem.prompt,
        "response": response,
        **found.row(),
        "calls": calls,
        "method": method,
        "group": problem.group or None,
        "source": f"adjudge steps, {method}",
    }
    return {name: made[name] for name in FIELDS}


def made_of(rows: Sequence[Mapping[str, Any]], spending: Spending) -> Made:
    """Return what a unit came to, with counts of steps."""
    counts = spending.counts
    counts["solutions"] += len(rows)
    counts["steps"] += sum(len(row["steps"]) for row in rows)
    counts["labelled_steps"] += sum(len(row["steps"]) - row["unknown"] for row in rows)
    counts["first_errors"] += sum(row["first_error"] is not None and row["first_error"] >= 0 for row in rows)
    return Made(
        rows=tuple(rows),
        dropped={name: count for name, count in spending.dropped.items() if count},
        counts={name: float(count) for name, count in counts.items() if count},
        cost=spending.cost,
    )


def steps_fingerprint(config: StepsConfig, models: Sequence[str]) -> str:
    """Return text that changes with every option that could change a label, and with every model and scorer."""
    named = ("engine", "prover", "scorer", "critic")  # as `models`
    options = {name: value for name, value in config.own_options().items() if name not in named}
    return fingerprint_of("steps", _VERSION, options, list(models))


def _shared_out(calls: int, parts: int) -> list[int]:
    """Whole numbers that sum to `calls`: the rollouts of a tree belong to all its paths."""
    return [calls * (at + 1) // parts - calls * at // parts for at in range(parts)]
