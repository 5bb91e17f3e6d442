"""The objective of a run, as its configuration names it.

Not covered: what the names mean (`table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
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

        Raises:
            ValueError: there is none of this name, or an option is none of its.
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
