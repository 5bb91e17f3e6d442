"""Hints where answers are wrong: GHPO, NuRL, and SEELE's, which are as long as a task needs.

SEELE (arXiv 2509.06923) is from its abstract and a summary; no code was found.  After each round of answers a
model of item response says how likely an answer is right behind a share h of a solution,

    P(right | h) = c + (1 - c) / (1 + exp(-k (h - b))),

and the next round gets the share where that is the target.  The paper fits the three parameters to the rounds' pairs of
share and accuracy.  A first round pins none of them, so here c is an option, and the share is the mean over a grid of
k and b, weighed by how likely they make the rounds; grid and rounds are ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.data.arrays import check_number
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import (
    Improved,
    Improver,
    fits,
    gold_text,
    is_solved,
    is_unsolved,
    probe,
    quoted,
    with_more,
)
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy

_EXPLAIN = "\n\nThe right answer is: {gold}\nExplain in a few sentences why it is right."
_ABSTRACT = (
    "\n\nAn explanation of its right answer:\n{explanation}\n\n"
    "Write one sentence that names the idea one needs, without any step and without the answer."
)


@dataclass(frozen=True, kw_only=True)
class HintsRule(Options):
    """Hints for tasks that no answer solved: GHPO (arXiv 2507.10628) and NuRL (arXiv 2509.25666).

    A group without a right answer is written anew to a prompt with help at its end, and takes the old group's place:
    GHPO gives 25, 50, 75 % of a right solution, each while nothing is right; NuRL an abstract hint to all answers but
    one.  The answers are learnt with the help in their prompt, as GHPO's code does; of NuRL we found no code.

    Attributes:
        column: the field of a task's `extra` that holds the help.
        shares: how much of it each stage gives, by characters, in (0, 1].
        plain: answers of a group that are written without it.
        lead: what stands between the prompt and the help.
        learnt_with: which prompt the answers are learnt with, "hint" or "plain".
        written: whether the policy writes the help for tasks that have none.
        right_above: a score above it is right.
    """

    column: str = "solution"
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    plain: Annotated[int, Range(ge=0)] = 0
    lead: str = "\n\nA right solution begins like this:\n"
    learnt_with: Literal["hint", "plain"] = "hint"
    written: bool = False
    right_above: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shares:
            raise ValueError("shares is empty; give at least one share of the help, such as 0.5")
        for share in self.shares:
            check_number("shares", share, Range(gt=0, le=1))

    def made(self, policy: Policy, tasks: Sequence[Task]) -> Hints:
        """Return what helps.

        Raises:
            ValueError: no task has any help, a task's help is not text, or the chat template refuses a hinted prompt.
        """
        for task in tasks:
            if not isinstance(task.extra.get(self.column, ""), str):
                raise ValueError(f"the task {task.id!r} has help that is not text: {task.extra[self.column]!r:.80}")
        if not any(task.extra.get(self.column) or (self.written and gold_text(task) is not None) for task in tasks):
            raise ValueError(
                f"no task can be helped: none has an extra field {self.column!r}; name the one that holds the help "
                "(the option column), or let the policy write it from right answers (the option written)"
            )
        probe(policy, tasks, lambda task: with_more(task.prompt, self.lead))
        return Hints(self, policy)


class Hints(Improver[HintsRule]):
    """Helps where nothing is right."""

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, those that nothing solved written anew with help."""
        improved = list(groups)
        hinted: set[int] = set()
        unsolved = [at for at, group in enumerate(groups) if is_unsolved(group, self._rule.right_above)]
        helps = self._helps([groups[at].rollouts[0].task for at in unsolved], answering)
        helped = {at: text for at, text in zip(unsolved, helps, strict=True) if text}
        for share in self._rule.shares:
            asks = {at: self._asks(groups[at], text, share, answering) for at, text in helped.items()}
            parts = [(at, ask) for at, asked in asks.items() for ask in asked]
            written: dict[int, Answered] = {}
            for (at, _), part in zip(parts, answering.scored([ask for _, ask in parts]), strict=True):
                written[at] = answering.joined(written[at], part) if at in written else part
            improved = [written.get(at, group) for at, group in enumerate(improved)]
            hinted |= written.keys()
            helped = {at: text for at, text in helped.items() if is_unsolved(improved[at], self._rule.right_above)}
        solved = sum(is_solved(improved[at], self._rule.right_above) for at in hinted)
        return Improved(
            groups=improved, counts={"unsolved": len(unsolved), "hinted": len(hinted), "hint_solved": solved}
        )

    def _helps(self, tasks: Sequence[Task], answering: Answering) -> list[str]:
        """The whole help of each task; "" where there is none."""
        given = [str(task.extra.get(self._rule.column, "")) for task in tasks]
        lacking = [at for at, text in enumerate(given) if not text and gold_text(tasks[at]) is not None]
        if self._rule.written and lacking:
            for at, text in zip(lacking, self._written([tasks[at] for at in lacking], answering), strict=True):
                given[at] = text
        return given

    def _written(self, tasks: Sequence[Task], answering: Answering) -> list[str]:
        """Hints by the policy; "" where one gives the answer away, or has no room."""
        golds = [gold_text(task) or "" for task in tasks]
        asked = [_EXPLAIN.replace("{gold}", quoted(self._policy, gold)) for gold in golds]
        explanations = self._texts(tasks, asked, answering)
        asked = [_ABSTRACT.replace("{explanation}", quoted(self._policy, text)) for text in explanations]
        hints = self._texts(
            tasks, [text if told else "" for text, told in zip(asked, explanations, strict=True)], answering
        )
        return [
            "" if _holds(hint, gold) else quoted(self._policy, hint.strip())
            for hint, gold in zip(hints, golds, strict=True)
        ]

    def _texts(self, tasks: Sequence[Task], requests: Sequence[str], answering: Answering) -> list[str]:
        """What the policy writes to prompts with a request at their end; "" where that is "" or too long."""
        asks: dict[int, Ask] = {}
        for at, (task, request) in enumerate(zip(tasks, requests, strict=True)):
            prompt = with_more(task.prompt, request)
            if request and fits(self._policy, Task(id=task.id, prompt=prompt), answering.max_new_tokens):
                asks[at] = Ask(task=task, count=1, prompt=prompt)
        texts = dict(zip(asks, answering.texts(list(asks.values())) if asks else (), strict=True))
        return [texts.get(at, "") for at in range(len(tasks))]

    def _asks(self, group: Answered, text: str, share: float, answering: Answering) -> list[Ask]:
        """What is written in the place of a group; nothing where the help leaves no room for an answer."""
        first = group.rollouts[0]
        shown = text[: max(1, round(share * len(text)))]
        prompt = with_more(first.task.prompt, f"{self._rule.lead}{shown}")
        if not fits(self._policy, Task(id=first.task.id, prompt=prompt), answering.max_new_tokens):
            return []
        plain = min(self._rule.plain, len(group.rollouts) - 1)
        after = first.prompt_ids if self._rule.learnt_with == "plain" else None
        asks = [
            Ask(task=first.task, count=len(group.rollouts) - plain, prompt=prompt, origin="hinted", learnt_after=after)
        ]
        return [*asks, Ask(task=first.task, count=plain)] if plain else asks


def _holds(hint: str, gold: str) -> bool:
    """Whether a hint has the right answer in it, as words of its own."""
    return bool(gold) and re.search(rf"(?<!\w){re.escape(gold.strip())}(?!\w)", hint, re.IGNORECASE) is not None


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


class AdaptiveHints(Improver[AdaptiveHintsRule]):
    """Helps where too little is right."""

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
