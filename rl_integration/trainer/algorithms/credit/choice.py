"""The credit of a run, as its configuration names it.

Not covered: what the names mean (`table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.algorithms.credit.credit import Credit


@dataclass(frozen=True, kw_only=True)
class CreditChoice:
    """How credit is given within answers.

    Attributes:
        name: of a published way: steps, capo, gigpo, tree_rl, ... (docs/credit.md).
        set: options that differ from the published ones, with dots: {"rule.share": 0.3, "shape.eta": 0.7}.
        part: whose steps are read where the reward is made of several scorers: the name of one of the score's parts,
            with dots for parts of parts; "" for the score's own steps.
    """

    shorthand: ClassVar[str] = "name"

    name: str
    set: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""

    def __post_init__(self) -> None:
        """Reject what is none."""
        self.made()

    def made(self) -> Credit:
        """Return the credit."""
        from adjudge.rl_integration.trainer.algorithms.credit.table import credit  # imports torch

        return credit(self.name).but(self.set)
