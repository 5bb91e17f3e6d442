"""The maker of step data: a row's solutions, or the tree of its problem, become rows with a label for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from adjudge.data_pipelines.steps.collecting import collected
from adjudge.data_pipelines.steps.config import WITHOUT_SOLUTIONS, Method, StepsConfig
from adjudge.data_pipelines.steps.methods import Tools, labelled
from adjudge.data_pipelines.steps.rollouts import UNKNOWN, Estimate, Rollout, Spending, StepLabels, label_of, shares
from adjudge.data_pipelines.steps.searches import Path, grow
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces, Problem, Solution, SolutionReader
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.io.jobs.row_maker import fingerprint_of
from adjudge.runtime.contract import validate_sample

FIELDS: Final[Mapping[str, Kind]] = {
    "id": "text", "prompt": "chat", "response": "text", "steps": "texts", "labels": "numbers", "outcome": "number",
    "first_error": "whole", "unknown": "whole", "start": "number", "values": "numbers", "right": "wholes",
    "judged": "wholes", "calls": "whole", "method": "text", "group": "text", "source": "text",
}  # fmt: skip
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
        config, critic = self._tools.config, self._tools.critic
        if config.method == "mcts" and critic is not None:
            try:
                validate_sample(critic, Problem(prompt="x", reference=None, id="", group="").sample("x"))
            except ValueError as error:
                raise ValueError(
                    f"--critic: {error}.  A guide never sees the reference; name one that needs none"
                ) from error
        if config.method == "arithmetic" or (config.method == "worked" and config.outcome_column):
            return ()
        problems = [self._reader.problem(row, number) for number, row in enumerate(first)]
        if first and not any(isinstance(one, Problem) and one.reference is not None for one in problems):
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
        for solution in self._reader.solutions(row, problem):
            if not isinstance(solution, str):
                solutions.append(solution)
            elif solution != "bad_response" or self._tools.config.method not in WITHOUT_SOLUTIONS:
                spending.drop(solution)
        try:
            return made_of(await self._rows(problem, solutions, spending), spending)
        except DroppedError as error:
            spending.drop(error.reason)
            return made_of([], spending)

    async def _rows(
        self, problem: Problem, solutions: Sequence[Solution], spending: Spending
    ) -> list[Mapping[str, Any]]:
        tools, method = self._tools, self._tools.config.method
        finds = method in ("mcts", "rmax_ts")
        outcomes = await self._outcomes(problem, [] if finds else solutions, spending)
        if method == "tree":
            return _rows_of_tree(await self._grown(problem, solutions, outcomes, spending), method, spending)
        if finds:
            found = await collected(problem, tools, spending)
            if not any(right for _, _, right in found):
                raise DroppedError("never_solved" if found else "nothing_found")
            return _rows_of_tree(found, method, spending)
        oracle = tools.oracle(problem, spending)
        rows: list[Mapping[str, Any]] = []
        for solution, outcome in zip(solutions, outcomes, strict=True):
            if outcome is None and method != "arithmetic":
                spending.drop("outcome_unknown")
                continue
            before = int(spending.counts["calls"])
            steps = await labelled(solution, outcome, oracle, tools, spending)
            if isinstance(steps, str):
                spending.drop(steps)
            elif all(label is None for label in steps.labels):
                spending.drop("no_label")
            else:
                calls = int(spending.counts["calls"]) - before
                rows.append(row_of(solution, steps, outcome=outcome, calls=calls, method=method))
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

    async def _grown(
        self, problem: Problem, solutions: Sequence[Solution], outcomes: Sequence[bool | None], spending: Spending
    ) -> list[tuple[Solution, StepLabels, bool | None]]:
        """The wrong solutions that a tree of the problem searched."""
        given = [
            Rollout(pieces=solution.cut.pieces, right=outcome, length=len(solution.text.split()))
            for solution, outcome in zip(solutions, outcomes, strict=True)
        ]
        tree = await grow(self._tools.oracle(problem, spending), self._tools.config.tree(), given=given)
        root = tree.states[()].estimate
        if not tree.paths:
            reasons = {1.0: "always_solved", 0.0: "never_solved", None: "no_label"}
            spending.drop(reasons.get(root.value, "nothing_to_search"))  # wrong rollouts without a step, say
        found: list[tuple[Solution, StepLabels, bool | None]] = []
        for at, path in enumerate(tree.paths):
            cut = Pieces(steps=tuple(piece.strip() for piece in path.pieces), pieces=path.pieces)
            text = "".join(path.pieces)
            solution = Solution(problem=problem, id=f"{problem.id}/{at}", text=text, cut=cut, outcome=None)
            found.append((solution, self._of(path, root), False))
        return found

    def _of(self, path: Path, root: Estimate) -> StepLabels:
        """The labels of a path; steps that an earlier path shows have values and no labels, so none counts twice."""
        places = range(1, len(path.pieces) + 1)
        estimates = tuple(path.estimates.get(length, UNKNOWN) for length in places)
        return StepLabels(
            labels=tuple(
                label_of(estimate, self._tools.config.labels) if length in path.fresh else None
                for length, estimate in zip(places, estimates, strict=True)
            ),
            values=shares(estimates),
            estimates=estimates,
            start=root.value,
            first_error=path.error,
        )


def _rows_of_tree(
    found: Sequence[tuple[Solution, StepLabels, bool | None]], method: Method, spending: Spending
) -> list[Mapping[str, Any]]:
    """The rows of all that was found in a tree, whose rollouts belong to all of them."""
    calls, parts = int(spending.counts["calls"]), len(found)
    return [
        row_of(solution, labels, outcome=right, calls=calls * (at + 1) // parts - calls * at // parts, method=method)
        for at, (solution, labels, right) in enumerate(found)
    ]


def row_of(
    solution: Solution, labels: StepLabels, *, outcome: float | None, calls: int, method: Method
) -> Mapping[str, Any]:
    """Return a solution's row, with exactly `FIELDS`."""
    blank = [None] * len(solution.cut)
    return {
        "id": solution.id,
        "prompt": solution.problem.prompt,
        "response": solution.text,
        "steps": list(solution.cut.steps),
        "labels": list(labels.labels),
        "outcome": None if outcome is None else float(outcome),
        "first_error": labels.first_error,
        "unknown": labels.labels.count(None),
        "start": labels.start,
        "values": list(labels.values or labels.labels),
        "right": [estimate.right for estimate in labels.estimates] or blank,
        "judged": [estimate.judged for estimate in labels.estimates] or blank,
        "calls": calls,
        "method": method,
        "group": solution.problem.group or None,
        "source": f"adjudge steps, {method}",
    }


def made_of(rows: Sequence[Mapping[str, Any]], spending: Spending) -> Made:
    """Return what a unit came to, with counts of steps."""
    counts = spending.counts
    counts["solutions"] += len(rows)
    counts["steps"] += sum(len(row["steps"]) for row in rows)
    counts["labelled_steps"] += sum(len(row["steps"]) - row["unknown"] for row in rows)
    counts["first_errors"] += sum(row["first_error"] is not None and row["first_error"] >= 0 for row in rows)
    return replace(spending.made(rows), counts={name: float(count) for name, count in counts.items() if count})


def steps_fingerprint(config: StepsConfig, models: Sequence[str]) -> str:
    """Return text that changes with every option that could change a label, and with every model and scorer."""
    named = ("engine", "prover", "scorer", "critic")  # as `models`
    options = {name: value for name, value in config.own_options().items() if name not in named}
    return fingerprint_of("steps", _VERSION, options, list(models))
