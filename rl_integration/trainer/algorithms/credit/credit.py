"""Credit within answers: from scores with steps to advantages of tokens, or to rewards of tokens for a critic.

`CREDITS` has the published ways by name, and docs/credit.md their sources; `Credit.but` changes single options.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol, Self, TypeAlias

import numpy as np

from adjudge.options import Options, Range, Share, named
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers, at_last_tokens, rows_of_tokens
from adjudge.rl_integration.trainer.algorithms.credit.step_credit import (
    CRITIC_SEARCH,
    IGPO,
    IGPO_PAPER,
    SHAPED,
    TANGO,
    Capo,
    Shape,
    StepCredit,
    known,
    to_go,
)
from adjudge.rl_integration.trainer.algorithms.credit.tree import TreeCredit
from adjudge.rl_integration.trainer.algorithms.objectives.group_advantages import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective, with_options
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import Preference
from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats, Integers, check_kind, check_number, same_shape
from adjudge.rl_integration.trainer.contract.task import Rollout
from adjudge.rl_integration.trainer.rewards.groups import Groups

Rewards: TypeAlias = Literal["outcome", "steps"]


@dataclass(frozen=True, kw_only=True)
class Gigpo(Options):
    """GiGPO (arXiv 2505.10978): episodes beside episodes, and steps beside those that were taken in the same state.

        A_ik = A_i + w * ( R_ik - mean of R over the steps of the group with the same anchor )
        R_ik = Σ_{j>=k} gamma^(j-k) r_ij

    An anchor is the state that a step was taken in; steps of one episode may share one, and one that was met once has
    the step term 0.  In the loop a step is a turn of the answer, and its anchor what a tool said before it; first turns
    share the prompt.  gamma 0.95 is from memory of the paper.

    Attributes:
        weight: w, of the step term.
        gamma: the discount of later steps' rewards.
        rewards: of turns in the loop: the answer's on its last one ("outcome"), or the scorer's of each ("steps").
        scale: whether to divide by standard deviations.
        eps: what is added to those.
    """

    weight: Annotated[float, Range(ge=0)] = 1.0
    gamma: Share = 0.95
    rewards: Rewards = "outcome"
    scale: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-6

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`.  `outcome` stands in the place of A_i.

        With `rewards="steps"`, an answer whose steps are not its turns keeps its outcome.
        """
        rewards: list[Floats] = []
        anchors: list[Sequence[Hashable]] = []
        for row, (turns, values) in enumerate(zip(answers.turns, answers.values, strict=True)):
            states = _states(answers.rollouts[row], turns)
            given = values if self.rewards == "steps" else np.append(np.zeros(len(states)), groups.rewards[row])[1:]
            known_turns = len(states) and len(given) == len(states)
            rewards.append(given if known_turns else np.zeros(0))
            anchors.append(states if known_turns else ())
        parts = self.of_steps(rewards, anchors, groups)
        places = [
            turns if len(part) else np.full_like(turns, -1) for turns, part in zip(answers.turns, parts, strict=True)
        ]
        spread = rows_of_tokens(parts, np.reshape(places, answers.turns.shape))
        return np.where(groups.valid[:, None], np.asarray(outcome)[:, None] + self.weight * spread, 0.0)

    def of_steps(
        self, rewards: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups
    ) -> list[Floats]:
        """Return the steps' term of each episode; 0 for episodes that take no part.

        Raises:
            ValueError: numbers of episodes or of steps differ, or a reward of a valid episode is not finite.
        """
        same_shape("rewards of steps", (len(rewards),), (len(groups),))
        same_shape("anchors", (len(anchors),), (len(groups),))
        for row, (given, states) in enumerate(zip(rewards, anchors, strict=True)):
            if len(given) != len(states):
                raise ValueError(
                    f"episode {row} has {len(given)} rewards and {len(states)} anchors; give one for each step"
                )
        counted = groups.counted(2)
        returns = [
            to_go(known(row), self.gamma) if valid else np.zeros(len(row))
            for row, valid in zip(rewards, counted, strict=True)
        ]
        rule = GroupRelative(scale="group" if self.scale else "none", eps=self.eps)
        steps = rule(_by_anchor(returns, anchors, groups, counted))
        edges = np.cumsum([len(row) for row in returns])[:-1]
        return np.split(steps, edges) if len(returns) else []


def _states(rollout: Rollout, turns: Integers) -> list[Hashable]:
    """What each turn answered: the prompt, or the tokens between it and the turn before."""
    found: list[Hashable] = []
    for turn in range(int(turns.max(initial=-1)) + 1):
        begin = int(np.flatnonzero(turns == turn)[0])
        after = int(np.flatnonzero(turns == turn - 1)[-1]) + 1 if turn else 0
        found.append((turn == 0, rollout.ids[after:begin] if turn else rollout.prompt_ids))
    return found


def _by_anchor(
    returns: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups, counted: Bools
) -> Groups:
    """All steps as one batch, whose groups are the anchors of each group."""
    names: dict[tuple[int, Hashable], int] = {}
    ids = [
        names.setdefault((group, state), len(names))
        for group, states in zip(groups.ids.tolist(), anchors, strict=True)
        for state in states
    ]
    return Groups(
        rewards=np.concatenate([*returns, np.zeros(0)]),
        ids=np.array(ids, dtype=np.int64),
        valid=np.repeat(counted, [len(row) for row in returns]),
    )


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
        """Return the same with other options; `rule.share` reaches into parts."""
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
        """Return (n, t) advantages of tokens, 0 where the policy did not write."""
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
    """Return a published way to give credit, or raise `ValueError`."""
    return named(CREDITS, name, "credit")
