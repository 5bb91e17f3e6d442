"""What helps where answers are wrong: refinements (Critique-GRPO), demonstrations (LUFFY); and answers to proposals.

Scorers see every task as it stands in the data, and evaluations are never helped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from adjudge.options import Count, Options
from adjudge.protocol import Message, Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Improved:
    """Groups as they are learnt from, in the order given; and counts of what was done, for the log."""

    groups: list[Answered]
    counts: Mapping[str, int]


Rule = TypeVar("Rule")


class Improver(ABC, Generic[Rule]):
    """Helps with a batch, in each process with its own groups; what it returns depends on nothing but these."""

    def __init__(self, rule: Rule, policy: Policy) -> None:
        self._rule = rule
        self._policy = policy

    @abstractmethod
    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups as they are learnt from, once all their scores are there."""

    def close(self) -> None:
        """End what it holds, if it holds anything."""


def is_unsolved(group: Answered, right_above: float) -> bool:
    """Return whether some answer of a group was judged, and none is right."""
    return any(value is not None for value in group.values) and not is_solved(group, right_above)


def is_solved(group: Answered, right_above: float) -> bool:
    """Return whether some answer of a group is right."""
    return any(value is not None and value > right_above for value in group.values)


def gold_text(task: Task) -> str | None:
    """Return a task's right answer as text; None where the reference is not one.

    It is the reference itself, the first of a list of accepted ones, or the "answer" of a mapping.
    """
    gold: Any = task.reference
    if isinstance(gold, Mapping):
        gold = gold.get("answer")
    if isinstance(gold, Sequence) and not isinstance(gold, str) and gold:
        gold = gold[0]
    return str(gold) if isinstance(gold, str | int | float) and not isinstance(gold, bool) and gold != "" else None


def quoted(policy: Policy, text: str) -> str:
    """Return text with the tokenizer's special tokens spelled so that it does not read them as such."""
    for token in sorted(policy.tokens.special_tokens, key=len, reverse=True):
        text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text


def with_more(prompt: str | Sequence[Message], text: str) -> str | list[Message]:
    """Return a prompt with more text at the end of what the user says last."""
    if isinstance(prompt, str):
        return prompt + text
    turns: list[Message] = [dict(turn) for turn in prompt]
    if not turns or turns[-1].get("role") != "user" or not isinstance(turns[-1].get("content"), str):
        return [*turns, {"role": "user", "content": text.strip()}]
    return [*turns[:-1], {**turns[-1], "content": turns[-1]["content"] + text}]


def probe(policy: Policy, tasks: Sequence[Task], shown: Callable[[Task], str | Sequence[Message]]) -> None:
    """Write one prompt of each kind that a run may come to; `ValueError` where the chat template refuses the turns."""
    kinds: set[tuple[str, ...]] = set()
    for task in tasks:
        kind = () if isinstance(task.prompt, str) else tuple(str(turn.get("role")) for turn in task.prompt)
        if kind not in kinds:
            kinds.add(kind)
            policy.encode(Task(id=task.id, prompt=shown(task)))


def fits(policy: Policy, task: Task, max_new_tokens: int) -> bool:
    """Return whether a prompt leaves room for an answer in the policy's window."""
    return len(policy.encode(task)) + max_new_tokens <= policy.tokens.window


Critique: TypeAlias = Literal["verdict", "gold", "evidence"]

_WRONG = "The answer above is wrong."
_SHOWN = 2_000  # characters of a rationale or of the facts; its end, where judges conclude


def critique(kind: Critique, task: Task, score: Score, column: str = "") -> str | None:
    """Return what is said of a wrong answer, with what a column of the task holds in the place of its reference.

    None where there is nothing to say beyond that it is wrong.
    """
    match kind:
        case "verdict":
            return _WRONG
        case "gold":
            gold = _told(task, column)
            return None if gold is None else f"{_WRONG} The right answer is: {gold}"
        case "evidence":
            if score.status == "failed":  # then the evidence is about the scorer, not about the answer
                return None
            rationale = score.evidence.get("rationale")
            detail = (rationale.strip()[-_SHOWN:] if isinstance(rationale, str) else "") or _facts(score)
            return f"{_WRONG}\n\n{detail}" if detail else None


def _told(task: Task, column: str) -> str | None:
    return gold_text(replace(task, reference=task.extra.get(column)) if column else task)


def _facts(score: Score) -> str:
    """The reason, and what of the evidence is plain."""
    lines = [score.reason.replace("_", " ")] if score.reason else []
    for name, value in score.evidence.items():
        if isinstance(value, str | int | float) and str(value).strip():
            lines.append(f"{name}: {value}")
    return "\n".join(lines)[-_SHOWN:]


@dataclass(frozen=True, kw_only=True)
class RefinementsRule(Options):
    """Critique-GRPO (arXiv 2506.03106): wrong answers are criticised and written again; a refinement joins the group.

    Of the refinements of a group the first right one joins it, or, where none is right, the best.  It is learnt as an
    answer to the plain prompt, for which the learner asks the policy's probabilities anew (`policy_loss.Injected`).

    Attributes:
        critique: "verdict" says that the answer is wrong, "gold" the right one, too (`simple_gt`, the default of the
            released code), "evidence" a judge's rationale, or what else the scorer's evidence says.
        column: field of a task's `extra` that "gold" tells in the place of the reference, such as a whole solution.
        critic: a scorer whose evidence criticises, such as a judge; None for the reward's own.
        request: what the policy is asked after the critique.
        decompose: a request at the end of the plain prompt, which wrong answers are written anew to before any critique
            (Cog-Rethinker, arXiv 2510.15979); "" for none.
        keep: refinements that join a group.
        only_right: whether wrong refinements stay out; the paper takes the best one even so, to learn from as wrong.
        replace: whether a refinement takes the place of the answer that it refines, instead of being added.
        only_unsolved: whether groups with a right answer are left as they are, which saves most of the cost.
        right_above: a score above it is right.
    """

    critique: Critique = "gold"
    column: str = ""
    critic: RewardConfig | None = None
    request: str = "Answer the question again, and answer it right."
    decompose: str = ""
    keep: Count = 1
    only_right: bool = False
    replace: bool = False
    only_unsolved: bool = False
    right_above: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.critic is not None and self.critique != "evidence":
            raise ValueError(
                f"critic is given, which the critique {self.critique!r} does not read; set critique to evidence"
            )

    def made(self, policy: Policy, tasks: Sequence[Task]) -> Refinements:
        """Return what refines.

        Raises:
            ValueError: the right answer of a task cannot be told, and critiques are to tell it; or the chat template
                refuses the turns.
        """
        if self.critique == "gold":
            for task in tasks:
                if _told(task, self.column) is None:
                    where = f"extra[{self.column!r}]" if self.column else "reference"
                    held = task.extra.get(self.column) if self.column else task.reference
                    raise ValueError(
                        f"the task {task.id!r} has no right answer that a critique could tell: its {where} is "
                        f"{str(held)[:80]!r}; set critique to verdict or evidence"
                    )
        probe(policy, tasks, lambda task: self.prompt(task, "0", ({"role": "assistant", "content": "0"},), "0"))
        return Refinements(self, policy)

    def prompt(self, task: Task, text: str, turns: Sequence[Message], said: str) -> str | list[Message]:
        """Return what the policy is shown: the task, its answer as a text and as turns, a critique and the request."""
        if isinstance(task.prompt, str):
            return f"{task.prompt}{text}\n\n{said}\n\n{self.request}\n\n"
        return [*task.prompt, *turns, {"role": "user", "content": f"{said}\n\n{self.request}"}]


class Refinements(Improver[RefinementsRule]):
    """Refines wrong answers."""

    def __init__(self, rule: RefinementsRule, policy: Policy) -> None:
        super().__init__(rule, policy)
        self._critic = Rewards(rule.critic) if rule.critic is not None else None

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, each with its best refinements, if it has any."""
        improved, counts = list(groups), Counter[str]()
        for request in (self._rule.decompose, "") if self._rule.decompose else ("",):
            counts.update(self._written_again(improved, answering, request))
        return Improved(groups=improved, counts=dict(counts))

    def _written_again(self, groups: list[Answered], answering: Answering, request: str) -> dict[str, int]:
        """Let refinements join the groups, to a request or else to critiques; return what was done."""
        wrong = [(at, place) for at, group in enumerate(groups) for place in self._wrong(group)]
        asked: list[tuple[int, int, Ask]] = []
        for (at, place), score in zip(wrong, self._heard(groups, wrong, request), strict=True):
            ask = self._ask(groups[at].rollouts[place], score, request, answering.max_new_tokens)
            if ask is not None:
                asked.append((at, place, ask))
        refined: dict[int, list[tuple[int, Rollout, Score]]] = {}
        for (at, place, _), one in zip(asked, answering.scored([ask for _, _, ask in asked]), strict=True):
            refined.setdefault(at, []).append((place, one.rollouts[0], one.scores[0]))
        joined = right = 0
        for at, refinements in refined.items():
            chosen = self._chosen(refinements)
            if chosen:
                groups[at] = self._with(groups[at], chosen, answering)
            joined += len(chosen)
            right += sum(score.value is not None and score.value > self._rule.right_above for _, _, score in chosen)
        return {"refined": len(asked), "refinements_joined": joined, "refinements_right": right}

    def close(self) -> None:
        """End the critic."""
        if self._critic is not None:
            self._critic.close()

    def _wrong(self, group: Answered) -> list[int]:
        if self._rule.only_unsolved and is_solved(group, self._rule.right_above):
            return []
        return [at for at, value in enumerate(group.values) if value is not None and value <= self._rule.right_above]

    def _heard(self, groups: Sequence[Answered], wrong: Sequence[tuple[int, int]], request: str) -> list[Score]:
        if self._critic is None or request:
            return [groups[at].scores[place] for at, place in wrong]
        futures = [self._critic.ask([groups[at].rollouts[place].sample()]) for at, place in wrong]
        return [future.result()[0] for future in futures]

    def _ask(self, answer: Rollout, score: Score, request: str, max_new_tokens: int) -> Ask | None:
        """What the policy is shown; None where there is no critique, or no room for it."""
        task = answer.task
        if request:
            prompt = with_more(task.prompt, request)
        else:
            said = critique(self._rule.critique, task, score, self._rule.column)
            if said is None:
                return None
            text = quoted(self._policy, answer.text)
            turns = answer.turns or ({"role": "assistant", "content": text},)
            prompt = self._rule.prompt(task, text, turns, quoted(self._policy, said))
        if not fits(self._policy, Task(id=task.id, prompt=prompt), max_new_tokens):
            return None
        return Ask(task=task, count=1, prompt=prompt, origin="refined", learnt_after=answer.prompt_ids)

    def _chosen(self, refinements: Sequence[tuple[int, Rollout, Score]]) -> list[tuple[int, Rollout, Score]]:
        """The first right ones, then the best of the others; what could not be judged never."""
        judged = [one for one in refinements if one[2].value is not None]
        right = [one for one in judged if (one[2].value or 0.0) > self._rule.right_above]
        if self._rule.only_right or len(right) >= self._rule.keep:
            return right[: self._rule.keep]
        others = sorted((one for one in judged if one not in right), key=lambda one: -(one[2].value or 0.0))
        return [*right, *others][: self._rule.keep]

    def _with(self, group: Answered, chosen: Sequence[tuple[int, Rollout, Score]], answering: Answering) -> Answered:
        gone = {place for place, _, _ in chosen} if self._rule.replace else set()
        stay = [place for place in range(len(group.rollouts)) if place not in gone]
        remaining = Answered(
            rollouts=[group.rollouts[place] for place in stay], scores=[group.scores[place] for place in stay]
        )
        more = Answered(rollouts=[one for _, one, _ in chosen], scores=[score for _, _, score in chosen])
        return answering.joined(remaining, more)


@dataclass(frozen=True, kw_only=True)
class DemonstrationsRule(Options):
    """LUFFY (arXiv 2504.14945): an answer that somebody else wrote joins the group, and is learnt from as one of it.

    It is judged like the others, and has a vote in the group's mean.  How likely its writer found it is not known, so
    its loss is -A p / (p + 0.1) (`policy_loss.Injected`), which is the paper's policy shaping.

    Attributes:
        column: the field of a task's `extra` that holds the answer, a text.
        only_unsolved: whether groups with a right answer are left as they are; the paper helps all.
        right_above: a score above it is right.
    """

    column: str = "demonstration"
    only_unsolved: bool = False
    right_above: float = 0.5

    def made(self, policy: Policy, tasks: Sequence[Task]) -> Demonstrations:
        """Return what joins demonstrations to groups.

        Raises:
            ValueError: no task has one, or one is not text.
        """
        for task in tasks:
            if not isinstance(task.extra.get(self.column, ""), str):
                raise ValueError(
                    f"the task {task.id!r} has a demonstration that is not text: {task.extra[self.column]!r:.80}"
                )
        if not any(task.extra.get(self.column) for task in tasks):
            raise ValueError(
                f"no task has a demonstration in the extra field {self.column!r}; name the column (data.extra, and the "
                "option column)"
            )
        return Demonstrations(self, policy)


class Demonstrations(Improver[DemonstrationsRule]):
    """Joins demonstrations to groups."""

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, each with its task's demonstration, if there is one that is short enough."""
        found = {at: one for at, group in enumerate(groups) if (one := self._of(group, answering)) is not None}
        improved = list(groups)
        for at, more in zip(found, answering.judged([*found.values()]), strict=True):
            improved[at] = answering.joined(groups[at], more)
        right = sum(is_solved(improved[at], self._rule.right_above) for at in found)
        return Improved(groups=improved, counts={"demonstrated": len(found), "demonstrated_solved": right})

    def _of(self, group: Answered, answering: Answering) -> Rollout | None:
        first = group.rollouts[0]
        text = quoted(self._policy, str(first.task.extra.get(self._rule.column, "")))
        text = text.removeprefix(first.task.begun)
        if not text or (self._rule.only_unsolved and is_solved(group, self._rule.right_above)):
            return None
        ids = (*self._policy.tokens.text(text), min(self._policy.ends))
        if len(ids) > answering.max_new_tokens:
            return None
        return replace(
            first,
            id=f"{first.id}:shown",
            ids=ids,
            logprobs=np.full(len(ids), np.nan, dtype=np.float32),
            own=np.ones(len(ids), dtype=np.bool_),
            text=text,
            finish_reason="stop",
            turns=(),
            path=(),
            fault="",
            origin="demonstration",
        )


@dataclass(frozen=True, kw_only=True)
class SelfPlayRule(Options):
    """Search Self-play (Alibaba-Quark/SSP at 7b083da): tasks that the policy proposes are answered in the same step.

    Each that `proposed_task` did not refuse is answered as often as its proposer's, and learnt from beside it.  Its
    reference is the proposer's, its prompt what stood before the proposer's, as the system's turn, and the task.

    Attributes:
        column: the field of `extra` that says of which kind a task is.
        kind: what it says of one that was proposed.
    """

    column: str = "kind"
    kind: str = "solve"

    def made(self, policy: Policy, tasks: Sequence[Task]) -> SelfPlay:
        """Return what has proposals answered.

        Raises:
            ValueError: no task is of a kind.
        """
        if not any(self.column in task.extra for task in tasks):
            raise ValueError(f"no task has the extra field {self.column!r}; name the column (data.extra, column)")
        return SelfPlay(self, policy)


class SelfPlay(Improver[SelfPlayRule]):
    """Has proposals answered."""

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, and one for each task that was proposed."""
        proposed: dict[str, tuple[Task, int]] = {}
        for group in groups:
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                if "solved" in score.evidence:
                    task = self._made(rollout, quoted(self._policy, str(score.evidence["task"])))
                    proposed.setdefault(repr((task.prompt, task.reference)), (task, len(group.rollouts)))
        asks = [
            Ask(task=task, count=count, origin="proposed")
            for task, count in proposed.values()
            if fits(self._policy, task, answering.max_new_tokens)
        ]
        return Improved(groups=[*groups, *answering.scored(asks)], counts={"proposed": len(asks)})

    def _made(self, rollout: Rollout, text: str) -> Task:
        of, extra = rollout.task, {**rollout.task.extra, self._rule.column: self._rule.kind}
        prompt = text if isinstance(of.prompt, str) else [*of.prompt[:-1], {"role": "user", "content": text}]
        return Task(id=f"{of.id}:{rollout.id}", prompt=prompt, reference=of.reference, extra=extra)
