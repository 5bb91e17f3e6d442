"""The first bad step against a way on from the same place that ends right (RL on Incorrect Synthetic Data).

Of a solution that ends wrong, the first step whose label says so is rejected, with what follows; chosen is another
solution of the group that begins with the same steps, goes on otherwise, and ends right.  Both texts begin with what
they share, so they are read as they are by `adjudge train policy` with `whole: false`, where it cancels.

Not covered: drawing solutions from a prefix, which is what makes those that share one (`adjudge data steps`).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from adjudge.data_pipelines.pairs.answers import ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.data_pipelines.pairs.steps import Solution, solution_of
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, kw_only=True)
class FirstBadStep(Rule):
    """A solution that ends right wins over one that ends wrong, from the first step that is bad.

    The margin is the difference of the two steps' labels, that is of their advantages, since both go on from one
    place.  Where the better step has no label, its solution's score stands in: it is what one rollout from it came to.
    A solution with a step of unknown label before the first bad one is left out.

    Attributes:
        steps: column of the steps: texts, or spans of the response with values.
        labels: column of their labels, where the steps do not hold them.
        bad: a step is bad if its label is at most this.
        right: the score from which a solution ends right; below it, it ends wrong.
        rest: whether what follows the step belongs to the texts; false for the one step.
    """

    name: ClassVar[str] = "first_bad_step"

    steps: str = "steps"
    labels: str = "labels"
    bad: float = 0.0
    right: float = 1.0
    rest: bool = True

    @property
    def needs(self) -> Needs:
        """The steps."""
        return Needs(merged=False, stepped=True, columns=(self.steps,))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step in which they part, from 0."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        right: defaultdict[bytes, list[tuple[Solution, bytes]]] = defaultdict(list)
        wrong: list[Solution] = []
        for answer, score in group.ranked():
            solution = solution_of(answer, steps=self.steps, labels=self.labels)
            if solution is None:
                continue
            if score < self.right:
                wrong.append(solution)
            else:
                for before, after in itertools.pairwise(solution.openings()):
                    right[before].append((solution, after))
        for solution in wrong:
            step = self._first_bad(solution)
            if step is not None:
                before, bad = solution.openings()[step : step + 2]
                for better, after in right[before]:
                    if after != bad:
                        yield self._pair(better, solution, step)

    def _first_bad(self, solution: Solution) -> int | None:
        for step, label in enumerate(solution.labels):
            if label is None:
                return None
            if label <= self.bad:
                return step
        return None

    def _pair(self, better: Solution, worse: Solution, step: int) -> Pair:
        prefix = worse.before(step)
        label = better.labels[step]
        value = better.answer.score if label is None else label
        bad = worse.labels[step]
        # Both begin with the very same characters, though their own white space may have differed.
        chosen, rejected = (
            prefix + (text.text if self.rest else text.through(step))[text.starts[step] :] for text in (better, worse)
        )
        return Pair(
            chosen=better.answer,
            rejected=worse.answer,
            margin=None if value is None or bad is None else value - bad,
            chosen_text=chosen,
            rejected_text=rejected,
            more={"prefix": prefix, "step": step},
        )
