"""GiGPO (arXiv 2505.10978): episodes beside episodes, and steps beside the steps that were taken in the same state.

    A_ik = A_i + w * ( R_ik - mean of R over the steps of the group with the same anchor )
    R_ik = Σ_{j>=k} gamma^(j-k) r_ij

An anchor is the state that a step was taken in, such as the observation; steps of one episode may share one.  A state
that was met once has no peer, and its step term is 0.  Both terms may be divided by standard deviations (`scale`); the
released code does not by default.  gamma 0.95 is from memory of the paper.

In the loop a step is a turn of the answer, and its anchor is what a tool said before it; first turns share the prompt.
The reward is the answer's, on its last turn, or with `rewards="steps"` what the scorer gave each turn.

Not covered: anchors that are similar and not the same; give those one name.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers, rows_of_tokens
from adjudge.rl_integration.trainer.algorithms.credit.step_credit import known, to_go
from adjudge.rl_integration.trainer.algorithms.objectives.group_advantages import GroupRelative
from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats, Integers, same_shape
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.rewards.groups import Groups

Rewards: TypeAlias = Literal["outcome", "steps"]


@dataclass(frozen=True, kw_only=True)
class Gigpo(Options):
    """Advantages of the steps of episodes; see the module.

    Attributes:
        weight: w, of the step term.
        gamma: the discount of later steps' rewards.
        rewards: of turns in the loop: the answer's on its last one ("outcome"), or the scorer's of each ("steps").
        scale: whether to divide by standard deviations.
        eps: what is added to those.
    """

    weight: Annotated[float, Range(ge=0)] = 1.0
    gamma: Annotated[float, Range(ge=0, le=1)] = 0.95
    rewards: Rewards = "outcome"
    scale: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-6

    def __call__(
        self, rewards: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups
    ) -> list[Floats]:
        """Return the advantages of the steps of each episode; 0 for episodes that take no part.

        Args:
            rewards: n arrays, the rewards of each episode's steps.
            anchors: n rows, the state of each step.
            groups: of n episodes, with their rewards.

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
        episodes = self._relative(replace(groups, valid=counted))
        parts = self._of_steps(rewards, anchors, groups)
        return [
            (worth + self.weight * part) * valid for worth, part, valid in zip(episodes, parts, counted, strict=True)
        ]

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
        parts = self._of_steps(rewards, anchors, groups)
        places = [
            turns if len(part) else np.full_like(turns, -1) for turns, part in zip(answers.turns, parts, strict=True)
        ]
        spread = rows_of_tokens(parts, np.reshape(places, answers.turns.shape))
        return np.where(groups.valid[:, None], np.asarray(outcome)[:, None] + self.weight * spread, 0.0)

    def _of_steps(
        self, rewards: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups
    ) -> list[Floats]:
        """The steps' term, for each episode."""
        counted = groups.counted(2)
        returns = [
            to_go(known(row), self.gamma) if valid else np.zeros(len(row))
            for row, valid in zip(rewards, counted, strict=True)
        ]
        steps = self._relative(_by_anchor(returns, anchors, groups, counted))
        edges = np.cumsum([len(row) for row in returns])[:-1]
        return np.split(steps, edges) if len(returns) else []

    def _relative(self, groups: Groups) -> Floats:
        return GroupRelative(scale="group" if self.scale else "none", eps=self.eps)(groups)


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
