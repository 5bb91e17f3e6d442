"""How a tree grows that a guide leads: the rules with their published numbers, and the options of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from adjudge.options import Options, Range

Rule: TypeAlias = Literal["puct", "uct", "vm_mcts", "best_first"]
"""Which child is followed; `tree_search` has the formulas and their sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a tree grows; `GrowthOptions` says what each is, `c_puct` of `c`."""

    rule: Rule
    c: float
    expand: int
    keep: int = 0
    roll_steps: int = 0
    roll_weight: float = 0.5
    stop_at: float | None = None


GROWTHS: Mapping[Rule, Growth] = {
    "puct": Growth(rule="puct", c=0.5, expand=4),
    "uct": Growth(rule="uct", c=0.7, expand=3, roll_steps=3),
    "vm_mcts": Growth(rule="vm_mcts", c=0.2, expand=5, keep=3),
    "best_first": Growth(rule="best_first", c=0.0, expand=4),
}
"""The rules with their published numbers; those of `puct`, and the steps of `best_first`, are ours."""


@dataclass(frozen=True, kw_only=True)
class GrowthOptions(Options):
    """Options of a tree that a guide leads, as commands have them."""

    tree_rule: Rule = "puct"
    """Which step is followed (mcts): puct (AlphaZero), uct (ReST-MCTS*), vm_mcts (ReST-RL), or best_first,
    the one with the largest value of all that were drawn."""

    c_puct: Annotated[float | None, Range(ge=0)] = None
    """Weight of prefixes that were seldom visited (mcts); without it 0.5 for puct, 0.7 for uct, 0.2 for vm_mcts."""

    expand: Annotated[int | None, Range(ge=1)] = None
    """Next steps that are drawn behind each prefix; without it 4, but 3 for uct and 5 for vm_mcts."""

    keep: Annotated[int | None, Range(ge=0)] = None
    """How many of them are followed (mcts), the best by value; 0 for all. Without it, 3 for vm_mcts, else all."""

    roll_steps: Annotated[int | None, Range(ge=0)] = None
    """uct: steps that are drawn behind the best new one, for a look ahead; without it, 3."""

    roll_weight: Annotated[float, Range(ge=0, le=1)] = 0.5
    """uct: weight of the highest value of the look ahead, beside the step's own."""

    stop_at: float | None = None
    """A finished solution with this value ends the search (mcts); ReST-MCTS* takes 0.9 where it answers."""

    def growth(self) -> Growth:
        """Return how the tree grows."""
        named = {"c": self.c_puct, "expand": self.expand, "keep": self.keep, "roll_steps": self.roll_steps}
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        return replace(GROWTHS[self.tree_rule], **given, roll_weight=self.roll_weight, stop_at=self.stop_at)
