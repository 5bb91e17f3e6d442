"""Credit within answers: from scores with steps to advantages of tokens, or to rewards of tokens for a critic.

The published ways to give credit within answers by name; `Credit.but` changes single options.

docs/credit.md has the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Protocol, Self

import numpy as np

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers, at_last_tokens
from adjudge.rl_integration.trainer.algorithms.credit.gigpo import Gigpo
from adjudge.rl_integration.trainer.algorithms.credit.step_credit import (
    CRITIC_SEARCH,
    IGPO,
    IGPO_PAPER,
    SHAPED,
    TANGO,
    Capo,
    Shape,
    StepCredit,
)
from adjudge.rl_integration.trainer.algorithms.credit.tree import TreeCredit
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective, with_options
from adjudge.rl_integration.trainer.algorithms.objectives.preference import Preference
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_kind, check_number
from adjudge.rl_integration.trainer.rewards.groups import Groups


class CreditRule(Protocol):
    """One number for each token, from the rewards of all answers and of their steps.

    A rule is a pure function with its options bound.  An answer that was not judged gets 0, and has no vote.
    """

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; what stands at tokens that are not the policy's own is not read.

        Raises:
            ValueError: the rule cannot read these answers.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Credit(Options):
    """One way to give credit within answers; `CREDITS` has the published ones.

    Attributes:
        rule: from rewards of steps to advantages of tokens.
        shape: from the values of steps to their rewards.
        weight: of the steps' rewards beside the answer's, for an objective with a critic, where each stands on the last
            token of its step; None for a rule that gives advantages alone.
        half_life: steps of the run in which the share of the steps' advantages halves; None for one that stays.
    """

    rule: CreditRule
    shape: Shape = field(default_factory=Shape)
    weight: Annotated[float, Range(ge=0)] | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("shape", self.shape, Shape)
        if not callable(getattr(self.rule, "over", None)):
            raise ValueError(f"rule={self.rule!r}; it must be a rule of credit, such as StepCredit()")
        if self.half_life is not None:
            check_number("half_life", self.half_life, Range(gt=0))
            if not isinstance(self.rule, StepCredit):
                raise ValueError(f"half_life={self.half_life!r}; {type(self.rule).__name__} has no share that decays")

    def but(self, changes: Mapping[str, Any]) -> Self:
        """Return the same with other options; `rule.share` reaches into parts.

        Raises:
            ValueError: there is no such option, or it cannot have that value.
        """
        return with_options(self, changes)

    @property
    def needs_tree(self) -> bool:
        """Whether answers must have been written as a tree."""
        return isinstance(self.rule, TreeCredit) and self.rule.needs_writer

    def check(self, objective: Objective) -> None:
        """Raise `ValueError` if an objective has no use for it."""
        if isinstance(objective.policy, Preference):
            raise ValueError("an objective of pairs compares whole answers; credit within them needs another one")
        if objective.critic is not None and self.weight is None:
            raise ValueError(
                "this credit gives advantages, and the objective takes those from a critic; name another objective, or "
                "one of the credits of rewards: steps, clip, delta, clip_delta, pure, step_search"
            )

    def advantages(self, answers: Answers, groups: Groups, outcome: Floats, *, step: int = 0) -> Floats:
        """Return (n, t) advantages of tokens, 0 where the policy did not write.

        Raises:
            ValueError: the rule cannot read these answers.
        """
        rule = self.rule
        if self.half_life is not None and isinstance(rule, StepCredit):
            rule = replace(rule, share=rule.share * 0.5 ** (step / self.half_life))
        found = rule.over(replace(answers, values=self._rewards(answers)), groups, outcome)
        return np.where(answers.own, found, 0.0)

    def token_rewards(self, answers: Answers, groups: Groups) -> Floats:
        """Return (n, t) rewards for a critic, each step's at its last token; 0 for answers without a vote."""
        rows = [
            at_last_tokens(values * (self.weight or 0.0), steps) * valid
            for values, steps, valid in zip(self._rewards(answers), answers.steps, groups.valid, strict=True)
        ]
        return np.stack(rows) if rows else np.zeros(answers.own.shape)

    def _rewards(self, answers: Answers) -> list[Floats]:
        return [self.shape(values) for values in answers.values]


CREDITS: Mapping[str, Credit] = MappingProxyType(
    {
        # Steps beside the steps of the group.
        "tango": Credit(rule=TANGO),
        "critic_search": Credit(rule=CRITIC_SEARCH),
        "igpo_code": Credit(rule=IGPO),
        "igpo": Credit(rule=IGPO_PAPER),
        "capo": Credit(rule=Capo()),
        "gigpo": Credit(rule=Gigpo()),
        # Rewards of steps: for a critic, or as returns to go.
        "steps": Credit(rule=SHAPED, weight=1.0),
        "clip": Credit(rule=SHAPED, shape=Shape(how="clip"), weight=1.0),
        "delta": Credit(rule=SHAPED, shape=Shape(how="delta"), weight=1.0),
        "clip_delta": Credit(rule=SHAPED, shape=Shape(how="clip_delta"), weight=1.0),
        "pure": Credit(rule=SHAPED, shape=Shape(how="min_form"), weight=1.0),
        "step_search": Credit(rule=SHAPED, weight=1.0),
        # Beginnings that answers share.
        "tempo": Credit(rule=TreeCredit(how="tempo")),
        "tree_gains": Credit(rule=TreeCredit(how="gains", nodes="turns")),
        "tree_grpo": Credit(rule=TreeCredit(how="tree_grpo", eps=1e-6)),
        "tree_rl": Credit(rule=TreeCredit(how="tree_rl")),
        "tree_po": Credit(rule=TreeCredit(how="tree_po", nodes="segments")),
    }
)


def credit(name: str) -> Credit:
    """Return a published way to give credit.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in CREDITS:
        raise ValueError(f"there is no credit {name!r}; there are {', '.join(CREDITS)}")
    return CREDITS[name]
