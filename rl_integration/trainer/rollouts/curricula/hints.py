"""Hints for tasks that no answer solved: GHPO (arXiv 2507.10628) and NuRL (arXiv 2509.25666).

A group without a right answer is written anew to a prompt with help at its end, and takes the old group's place: GHPO
gives 25, 50, 75 % of a right solution, each while nothing is right; NuRL an abstract hint to all answers but one.
The answers are learnt as ones to the prompt that they were written to, help included, as GHPO's code does; of NuRL we
found no code.  Scorers see the task as it stands in the data, and evaluations never see hints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.contract.arrays import check_number
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.curricula.improver import (
    Improved,
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
    """How unsolved tasks are helped; see the module.

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
            ValueError: no task has any help, a task's help is no text, or the chat template refuses a hinted prompt.
        """
        for task in tasks:
            if not isinstance(task.extra.get(self.column, ""), str):
                raise ValueError(f"the task {task.id!r} has help that is no text: {task.extra[self.column]!r:.80}")
        if not any(task.extra.get(self.column) or (self.written and gold_text(task) is not None) for task in tasks):
            raise ValueError(
                f"no task can be helped: none has an extra field {self.column!r}; name the one that holds the help "
                "(the option column), or let the policy write it from right answers (the option written)"
            )
        probe(policy, tasks, lambda task: with_more(task.prompt, self.lead))
        return Hints(self, policy)


class Hints:
    """Helps where nothing is right; see the module."""

    def __init__(self, rule: HintsRule, policy: Policy) -> None:
        self._rule = rule
        self._policy = policy

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, those that nothing solved written anew with help."""
        found = list(groups)
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
            found = [written.get(at, group) for at, group in enumerate(found)]
            hinted |= written.keys()
            helped = {at: text for at, text in helped.items() if is_unsolved(found[at], self._rule.right_above)}
        solved = sum(is_solved(found[at], self._rule.right_above) for at in hinted)
        return Improved(groups=found, counts={"unsolved": len(unsolved), "hinted": len(hinted), "hint_solved": solved})

    def close(self) -> None:
        """Do nothing: it holds nothing."""

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
