"""How the answers to one prompt branch.

Not covered: writing them (`tree_writer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["segments", "uncertain"]


@dataclass(frozen=True, kw_only=True)
class TreeConfig:
    """How the answers to one prompt branch.

    Attributes:
        kind: "segments" forks after every so many tokens (TreePO, arXiv 2508.17445); "uncertain" forks finished answers
            at the tokens that were least likely (TreeRL, arXiv 2506.11902).
        trees: answers that begin at the prompt.
        segment: tokens between two forks; of "segments".
        width: most branches of a fork; of "segments".
        forks: tokens at which each of the first answers is forked; of "uncertain".
        copies: answers that go on from each of those; of "uncertain".
    """

    shorthand: ClassVar[str] = "kind"

    kind: Kind = "segments"
    trees: int = 1
    segment: int = 64
    width: int = 2
    forks: int = 2
    copies: int = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"rollouts.tree.kind is {self.kind!r}; give one of {', '.join(get_args(Kind))}")
        for option, bound in (("trees", 1), ("segment", 1), ("width", 2), ("forks", 1), ("copies", 1)):
            if getattr(self, option) < bound:
                raise ValueError(f"rollouts.tree.{option} is {getattr(self, option)!r}; it must be at least {bound}")

    def check(self, num_generations: int) -> None:
        """Raise `ValueError` if groups of that size cannot branch so."""
        if self.kind == "uncertain" and num_generations != self.trees * (1 + self.forks * self.copies):
            size = self.trees * (1 + self.forks * self.copies)
            raise ValueError(
                f"rollouts.num_generations is {num_generations}, and trees * (1 + forks * copies) of "
                f"rollouts.tree is {size}; make them equal"
            )
        if self.trees > num_generations:
            raise ValueError(
                f"rollouts.tree.trees is {self.trees}; a group of {num_generations} has no room for so many"
            )
