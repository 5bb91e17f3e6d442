"""Steps of a search tree by their advantage, for Step-APO (CPL; its form is from memory).

The score of a node is its value.  The advantage of a step is the value of its node less that of the node before, so
for two steps from one node the difference of advantages is the difference of values: that is the margin.  Both texts
begin with the steps before; `adjudge train policy` with `whole: false` and the loss `step_apo` reads them as they are.

Not covered: the search that gives the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from adjudge.data_pipelines.pairs.answers import Answer, ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.data_pipelines.pairs.tree import Tree, name_of
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, kw_only=True)
class StepApo(Rule):
    """Of the steps from one node, the one with the higher value wins.

    Attributes:
        node: column of a node's name.
        parent: column of the name of the node it goes on from; empty for a first step.
        siblings: "extremes" pairs the best with the worst of each node, "all" any two.
        separator: what stands between steps.
    """

    name: ClassVar[str] = "step_apo"

    node: str = "node"
    parent: str = "parent"
    siblings: Literal["extremes", "all"] = "extremes"
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        """Reject another choice of siblings."""
        if self.siblings not in ("extremes", "all"):
            raise ValueError(f"step_apo: siblings is {self.siblings!r}; it must be extremes or all")

    @property
    def needs(self) -> Needs:
        """The tree's columns."""
        return Needs(merged=False, columns=(self.node, self.parent))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step, from 0."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        tree = Tree.of(group, node=self.node, parent=self.parent)
        for _, family in tree.families():
            ranked = [(one, score) for one in family if (score := one.score) is not None]
            ranked.sort(key=lambda one: (-one[1], group.draw(one[0].text)))
            if self.siblings == "extremes":
                ranked = [ranked[0], ranked[-1]] if len(ranked) > 1 else []
            path = tree.path(name_of(family[0].value(self.node)))
            if path is None:
                continue
            prefix = "".join(one.text + self.separator for one in path[:-1])
            for (better, high), (worse, low) in combinations(ranked, 2):
                if high > low:
                    yield _pair(better, worse, high - low, prefix, len(path) - 1)


def _pair(better: Answer, worse: Answer, margin: float, prefix: str, step: int) -> Pair:
    return Pair(
        chosen=better,
        rejected=worse,
        margin=margin,
        chosen_text=prefix + better.text,
        rejected_text=prefix + worse.text,
        more={"prefix": prefix, "step": step},
    )
