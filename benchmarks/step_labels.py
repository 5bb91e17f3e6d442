"""What a labelled step costs: rollouts for plain Monte-Carlo, halving and a tree, at the same accuracy.

The policy is simulated, so the truth is known.  It writes solutions of so many steps and slips at each with the same
chance; from a slip on the answer is wrong but for some luck.  Every search gets wrong solutions of that policy and must
name the first slip.  For each search, the fewest rollouts for a prefix are looked up with which it names the right step
often enough; then its rollouts are counted for each step that got a label, up to the first error: behind it all are
equally wrong, and labels there teach nothing.

A tree makes its solutions itself, and the steps that two of them share count once.

Not covered: tokens, which longer prefixes take more of, and rounds: Monte-Carlo asks all prefixes at once.

    python benchmarks/step_labels.py
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.data_pipelines.steps.rollouts import Prefix, Rollout, label_of, monte_carlo
from adjudge.data_pipelines.steps.searches import TreeOptions, binary_search, grow
from adjudge.statistics.intervals import Interval, wilson
from adjudge.training.step_data import first_error

METHODS = ("plain", "halving", "halving, verified", "tree")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is measured.

    Attributes:
        solutions: wrong solutions that each search gets.
        steps: of a solution.
        slip: chance of an error at each step.
        luck: chance of a right answer behind an error.
        accuracy: share of first errors that a search must name.
        most: rollouts for a prefix, at most; a search that needs more is given up.
        searches: wrong rollouts that one tree searches.
        seed: of the simulation.
        json: print one JSON object instead of the table.
    """

    solutions: int = 1000
    steps: int = 16
    slip: float = 0.05
    luck: float = 0.0
    accuracy: float = 0.95
    most: int = 64
    searches: int = 10
    seed: int = 0
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a search came to.

    Attributes:
        rollouts: for a prefix.
        named: share of solutions whose first error was named, with Wilson's interval.
        calls: rollouts for a solution.
        labelled: steps of a solution that got a label, up to the first error.
        calls_per_step: rollouts for a labelled step.
    """

    rollouts: int
    named: Interval
    calls: float
    labelled: float
    calls_per_step: float


class Policy:
    """Writes steps "good" until it slips, "bad" from there on; the same draw of a prefix is always the same."""

    def __init__(self, options: Options, problem: int):
        self._options = options
        self._problem = problem
        self._drawn: dict[Prefix, int] = {}
        self.calls = 0

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        """Return the first `n` rollouts of a prefix."""
        drawn = self._drawn.get(prefix, 0)
        self.calls += max(0, n - drawn)
        self._drawn[prefix] = max(n, drawn)
        return [self.draw(prefix, index) for index in range(n)]

    def draw(self, prefix: Prefix, index: int) -> Rollout:
        """Return one rollout."""
        chance = random.Random(f"{self._options.seed} {self._problem} {prefix} {index}")
        bad, pieces = bool(prefix) and prefix[-1].startswith("bad"), []
        for _ in range(self._options.steps - len(prefix)):
            bad = bad or chance.random() < self._options.slip
            pieces.append(f"{'bad' if bad else 'good'} {chance.randrange(1_000_000)}")
        right = chance.random() < self._options.luck if bad else True
        return Rollout(pieces=tuple(pieces), right=right, length=30 * len(pieces))

    def wrong(self) -> Prefix:
        """Return a wrong solution."""
        drawn = (self.draw((), -1 - index) for index in range(100_000))
        return next(one.pieces for one in drawn if not one.right)


def slip_of(pieces: Prefix) -> int:
    """Return the place of the first error."""
    return next(at for at, piece in enumerate(pieces) if piece.startswith("bad"))


async def measured(method: str, k: int, options: Options) -> Measured:
    """Return what a search comes to with k rollouts for a prefix."""
    hits = calls = labelled = solutions = problem = 0
    while solutions < options.solutions:
        policy = Policy(options, problem)
        problem += 1
        found = await (_tree(policy, k, options) if method == "tree" else _given(method, policy, k))
        calls += policy.calls
        for truth, error, steps in found:
            solutions += 1
            hits += error == truth
            labelled += steps
    share = wilson(hits, solutions)
    return Measured(
        rollouts=k,
        named=share,
        calls=calls / solutions,
        labelled=labelled / solutions,
        calls_per_step=calls / labelled if labelled else float("inf"),
    )


async def _given(method: str, policy: Policy, k: int) -> list[tuple[int, int | None, int]]:
    """The true error of a wrong solution, the one that was named, and how many steps up to it have labels."""
    pieces = policy.wrong()
    if method == "plain":
        estimates = await monte_carlo(policy, pieces, k=k, outcome=False)
        error = first_error([label_of(estimate, "hard") for estimate in estimates])
    else:
        verify = 1 if method == "halving, verified" else 0
        error = (await binary_search(policy, pieces, k=k, outcome=False, verify=verify)).first_error
    return [(slip_of(pieces), error, 0 if error is None else error + 1)]


async def _tree(policy: Policy, k: int, options: Options) -> list[tuple[int, int | None, int]]:
    tree = await grow(policy, TreeOptions(rollouts=k, searches=options.searches))
    return [
        (
            slip_of(path.pieces),
            path.error,
            0 if path.error is None else sum(length <= path.error + 1 for length in path.fresh),
        )
        for path in tree.paths
    ]


def cheapest(method: str, options: Options) -> Measured | None:
    """Return the search with the fewest rollouts for a prefix that is accurate enough; None if none is."""
    for k in range(1, options.most + 1):
        if method == "tree" and k == 1:
            continue  # a state with one rollout is never between hopeless and sure
        found = asyncio.run(measured(method, k, options))
        if found.named.known >= options.accuracy:
            return found
    return None


def main(options: Options) -> None:
    """Measure and print."""
    found = {method: cheapest(method, options) for method in METHODS}
    if options.json:
        rows: dict[str, Any] = {method: asdict(one) if one else None for method, one in found.items()}
        print(json.dumps({"options": asdict(options), "searches": rows}))
        return
    title = (
        f"{options.solutions} wrong solutions of {options.steps} steps, slips {options.slip:g}, luck {options.luck:g}: "
        f"the cheapest search that names {options.accuracy:.0%} of first errors"
    )
    table = Table(title=title)
    for column in ("search", "rollouts a prefix", "named", "rollouts a solution", "labelled steps", "rollouts a step"):
        table.add_column(column, justify="left" if column == "search" else "right")
    for method, one in found.items():
        if one is None:
            table.add_row(method, f"more than {options.most}", "", "", "", "")
            continue
        numbers = (f"{one.calls:.1f}", f"{one.labelled:.1f}", f"{one.calls_per_step:.1f}")
        table.add_row(method, str(one.rollouts), str(one.named), *numbers)
    Console(width=140).print(table)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
