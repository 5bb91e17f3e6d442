"""Hints as long as a task needs: SEELE (arXiv 2509.06923), from its abstract and a summary; no code was found.

After each round of answers a model of item response says how likely an answer is right behind a share h of a solution,

    P(right | h) = c + (1 - c) / (1 + exp(-k (h - b))),

and the next round gets the share where that is the target.  The paper fits the three parameters to the rounds' pairs of
share and accuracy.  A first round pins none of them, so here c is an option, and the share is the mean over a grid of
k and b, weighed by how likely they make the rounds; grid and rounds are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import (
    HintsRule,
    Improved,
    fits,
    is_solved,
    with_more,
)
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy

_SLOPES = np.array([5.0, 10.0, 20.0])[:, None]
_PLACES = np.linspace(0.0, 1.0, 101)[None, :]


def needed_share(rounds: Sequence[tuple[float, int, int]], *, target: float, guess: float) -> float:
    """Return the share of a solution, in [0, 1], behind which about the target of answers is right.

    Args:
        rounds: share, right answers and judged answers of each.
        target: the wanted pass rate, above `guess` and below 1.
        guess: c, the pass rate that no hint goes below.
    """
    likely = np.zeros(np.broadcast_shapes(_SLOPES.shape, _PLACES.shape))
    for share, right, judged in rounds:
        chance = guess + (1 - guess) / (1 + np.exp(-_SLOPES * (share - _PLACES)))
        chance = chance.clip(1e-9, 1 - 1e-9)
        likely += right * np.log(chance) + (judged - right) * np.log(1 - chance)
    weights = np.exp(likely - likely.max())
    wanted = (target - guess) / (1 - guess)
    shares = (_PLACES + math.log(wanted / (1 - wanted)) / _SLOPES).clip(0.0, 1.0)
    return float((weights * shares).sum() / weights.sum())


@dataclass(frozen=True, kw_only=True)
class AdaptiveHintsRule(Options):
    """SEELE: tasks that are solved too seldom get as much of a solution as makes them half as hard; see the module.

    A group whose pass rate is below the target is written anew, behind the share that is expected to meet it, until one
    is within half an answer of the target or the rounds are used up.  The last round takes the group's place, and is
    learnt with the hint in its prompt.

    Attributes:
        column: the field of a task's `extra` that holds a solution.
        target: the wanted pass rate; where learning is quickest by the paper.
        guess: the pass rate of guesses.
        rounds: the most rounds after the first one.
        lead: what stands between the prompt and the solution.
        right_above: a score above it is right.
    """

    column: str = "solution"
    target: Annotated[float, Range(gt=0, lt=1)] = 0.5
    guess: Annotated[float, Range(ge=0, lt=1)] = 0.0
    rounds: Count = 3
    lead: str = "\n\nA right solution begins like this:\n"
    right_above: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guess >= self.target:
            raise ValueError(f"guess={self.guess}, target={self.target}; guesses must be right more seldom than wanted")

    def made(self, policy: Policy, tasks: Sequence[Task]) -> AdaptiveHints:
        """Return what helps.

        Raises:
            ValueError: no task has a solution, one is not text, or the chat template refuses a hinted prompt.
        """
        HintsRule(column=self.column, lead=self.lead).made(policy, tasks)
        return AdaptiveHints(self, policy)


class AdaptiveHints:
    """Helps where too little is right."""

    def __init__(self, rule: AdaptiveHintsRule, policy: Policy) -> None:
        self._rule = rule
        self._policy = policy

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, those that were solved too seldom written anew with help."""
        improved = list(groups)
        hinted: set[int] = set()
        seen = {at: [(0.0, *self._counts(group))] for at, group in enumerate(groups) if self._hard(group)}
        open_ = list(seen)
        for _ in range(self._rule.rounds):
            shares = {at: needed_share(seen[at], target=self._rule.target, guess=self._rule.guess) for at in open_}
            asks = {at: ask for at in open_ if (ask := self._ask(groups[at], shares[at], answering)) is not None}
            for at, group in zip(asks, answering.scored([*asks.values()]), strict=True):
                improved[at] = group
                seen[at].append((shares[at], *self._counts(group)))
            hinted |= asks.keys()
            open_ = [at for at in asks if not self._met(improved[at])]
        solved = sum(is_solved(improved[at], self._rule.right_above) for at in hinted)
        rounds = sum(len(one) - 1 for one in seen.values())
        return Improved(groups=improved, counts={"hinted": len(hinted), "hint_rounds": rounds, "hint_solved": solved})

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def _counts(self, group: Answered) -> tuple[int, int]:
        """How many answers are right, and how many were judged."""
        judged = [value for value in group.values if value is not None]
        return sum(value > self._rule.right_above for value in judged), len(judged)

    def _hard(self, group: Answered) -> bool:
        right, judged = self._counts(group)
        return judged > 0 and right < self._rule.target * judged

    def _met(self, group: Answered) -> bool:
        right, judged = self._counts(group)
        return abs(right - self._rule.target * judged) <= 0.5

    def _ask(self, group: Answered, share: float, answering: Answering) -> Ask | None:
        """What is written in the place of a group; None where there is no solution, or no room behind it."""
        task = group.rollouts[0].task
        solution = str(task.extra.get(self._rule.column, ""))
        if not solution:
            return None
        shown = solution[: max(1, round(share * len(solution)))]
        prompt = with_more(task.prompt, f"{self._rule.lead}{shown}")
        if not fits(self._policy, Task(id=task.id, prompt=prompt), answering.max_new_tokens):
            return None
        return Ask(task=task, count=len(group.rollouts), prompt=prompt, origin="hinted")
