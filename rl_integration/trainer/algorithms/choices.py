"""The objective and the credit of a run, as its configuration names them; neither imports torch before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.algorithms.credit.credit import Credit
    from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True)
class ObjectiveChoice:
    """What is learnt from rewards.

    Attributes:
        name: of a published objective: grpo, dr_grpo, dapo, gspo, ppo, ... (docs/objectives.md).
        set: options that differ from the published ones, with dots: {"policy.beta": 0.04, "policy.clip_ratio_high":
            0.28}.
    """

    shorthand: ClassVar[str] = "name"

    name: str = "grpo"
    set: Mapping[str, Any] = field(default_factory=dict)

    def made(self, *, max_new_tokens: int) -> Objective:
        """Return the objective.

        Args:
            max_new_tokens: most tokens of an answer: what lengths are measured by, unless the options say otherwise.
        """
        from adjudge.rl_integration.trainer.algorithms.objectives.table import (
            objective,  # imports torch, behind a file's keys
        )

        published = objective(self.name)
        sizes: dict[str, Any] = {}
        if getattr(published.policy, "aggregation", "") == "constant":
            sizes["policy.length"] = max_new_tokens
        if published.overlong is not None:  # DAPO's penalty begins at four fifths of its limit
            buffer = max(1, max_new_tokens // 5)
            sizes["overlong"] = replace(published.overlong, limit=max_new_tokens, buffer=buffer)
        return published.but(sizes).but(self.set)


@dataclass(frozen=True, kw_only=True)
class CreditChoice:
    """How credit is given within answers.

    Attributes:
        name: of a published way: steps, capo, gigpo, tree_rl, ... (docs/objectives.md).
        set: options that differ from the published ones, with dots: {"rule.share": 0.3, "shape.eta": 0.7}.
        part: whose steps are read where the reward is made of several scorers: the name of one of the score's parts,
            with dots for parts of parts; "" for the score's own steps.
    """

    shorthand: ClassVar[str] = "name"

    name: str
    set: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""

    def __post_init__(self) -> None:
        self.made()

    def made(self) -> Credit:
        """Return the credit."""
        from adjudge.rl_integration.trainer.algorithms.credit.credit import credit  # imports torch

        return credit(self.name).but(self.set)
