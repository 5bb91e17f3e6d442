"""Critique-GRPO (arXiv 2506.03106): wrong answers are criticised and written again, and a refinement joins the group.

| critique | says | source |
|---|---|---|
| `verdict` | that the answer is wrong | Critique-GRPO |
| `gold` | that it is wrong, and the right answer | Critique-GRPO's `simple_gt`, the default of its code |
| `evidence` | a judge's rationale, or what else the scorer's evidence says | Critique-GRPO's full text |

Of the refinements of a group the first right one joins it, or, where none is right, the best.  It is learnt as an
answer to the plain prompt, for which the learner asks the policy's probabilities anew (`policy_loss.Injected`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from adjudge.options import Count, Options
from adjudge.protocol import Message, Score
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.curricula.improver import (
    Improved,
    fits,
    gold_text,
    is_solved,
    probe,
    quoted,
)
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


Critique: TypeAlias = Literal["verdict", "gold", "evidence"]

_WRONG = "The answer above is wrong."
_SHOWN = 2_000  # characters of a rationale or of the facts; its end, where judges conclude


def critique(kind: Critique, task: Task, score: Score) -> str | None:
    """Return what is said of a wrong answer (see the module); None where there is nothing to say beyond that."""
    match kind:
        case "verdict":
            return _WRONG
        case "gold":
            gold = gold_text(task)
            return None if gold is None else f"{_WRONG} The right answer is: {gold}"
        case "evidence":
            if score.status == "failed":  # then the evidence is about the scorer, not about the answer
                return None
            rationale = score.evidence.get("rationale")
            found = (rationale.strip()[-_SHOWN:] if isinstance(rationale, str) else "") or _facts(score)
            return f"{_WRONG}\n\n{found}" if found else None


def _facts(score: Score) -> str:
    """The reason, and what of the evidence is plain."""
    lines = [score.reason.replace("_", " ")] if score.reason else []
    for name, value in score.evidence.items():
        if isinstance(value, str | int | float) and str(value).strip():
            lines.append(f"{name}: {value}")
    return "\n".join(lines)[-_SHOWN:]


@dataclass(frozen=True, kw_only=True)
class RefinementsRule(Options):
    """How wrong answers are refined; see the module.

    Attributes:
        critique: "gold", "verdict" or "evidence" (`critiques`).
        critic: a scorer whose evidence criticises, such as a judge; None for the reward's own.
        request: what the policy is asked after the critique.
        keep: refinements that join a group.
        only_right: whether wrong refinements stay out; the paper takes the best one even so, to learn from as wrong.
        replace: whether a refinement takes the place of the answer that it refines, instead of being added.
        only_unsolved: whether groups with a right answer are left as they are, which saves most of the cost.
        right_above: a score above it is right.
    """

    critique: Critique = "gold"
    critic: RewardConfig | None = None
    request: str = "Answer the question again, and answer it right."
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
                if gold_text(task) is None:
                    raise ValueError(
                        f"the task {task.id!r} has no right answer that a critique could tell: its reference is "
                        f"{str(task.reference)[:80]!r}; set critique to verdict or evidence"
                    )
        probe(policy, tasks, lambda task: self.prompt(task, "0", ({"role": "assistant", "content": "0"},), "0"))
        return Refinements(self, policy)

    def prompt(self, task: Task, text: str, turns: Sequence[Message], said: str) -> str | list[Message]:
        """Return what the policy is shown: the task, its answer as a text and as turns, a critique and the request."""
        if isinstance(task.prompt, str):
            return f"{task.prompt}{text}\n\n{said}\n\n{self.request}\n\n"
        return [*task.prompt, *turns, {"role": "user", "content": f"{said}\n\n{self.request}"}]


class Refinements:
    """Refines wrong answers; see the module."""

    def __init__(self, rule: RefinementsRule, policy: Policy) -> None:
        self._rule = rule
        self._policy = policy
        self._critic = Rewards(rule.critic) if rule.critic is not None else None

    def improve(self, groups: Sequence[Answered], answering: Answering) -> Improved:
        """Return the groups, each with its best refinements, if it has any."""
        wrong = [(at, place) for at, group in enumerate(groups) for place in self._wrong(group)]
        asked: list[tuple[int, int, Ask]] = []
        for (at, place), score in zip(wrong, self._criticised(groups, wrong), strict=True):
            ask = self._ask(groups[at].rollouts[place], score, answering.max_new_tokens)
            if ask is not None:
                asked.append((at, place, ask))
        refined: dict[int, list[tuple[int, Rollout, Score]]] = {}
        for (at, place, _), one in zip(asked, answering.scored([ask for _, _, ask in asked]), strict=True):
            refined.setdefault(at, []).append((place, one.rollouts[0], one.scores[0]))
        found = list(groups)
        joined = right = 0
        for at, refinements in refined.items():
            chosen = self._chosen(refinements)
            if chosen:
                found[at] = self._with(groups[at], chosen, answering)
            joined += len(chosen)
            right += sum(score.value is not None and score.value > self._rule.right_above for _, _, score in chosen)
        return Improved(
            groups=found, counts={"refined": len(asked), "refinements_joined": joined, "refinements_right": right}
        )

    def close(self) -> None:
        """End the critic."""
        if self._critic is not None:
            self._critic.close()

    def _wrong(self, group: Answered) -> list[int]:
        if self._rule.only_unsolved and is_solved(group, self._rule.right_above):
            return []
        return [at for at, value in enumerate(group.values) if value is not None and value <= self._rule.right_above]

    def _criticised(self, groups: Sequence[Answered], wrong: Sequence[tuple[int, int]]) -> list[Score]:
        if self._critic is None:
            return [groups[at].scores[place] for at, place in wrong]
        futures = [self._critic.ask([groups[at].rollouts[place].sample()]) for at, place in wrong]
        return [future.result()[0] for future in futures]

    def _ask(self, answer: Rollout, score: Score, max_new_tokens: int) -> Ask | None:
        """What the policy is shown; None where there is no critique, or no room for it."""
        task = answer.task
        said = critique(self._rule.critique, task, score)
        if said is None:
            return None
        text = quoted(self._policy, answer.text)
        turns = answer.turns or ({"role": "assistant", "content": text},)
        prompt = self._rule.prompt(task, text, turns, quoted(self._policy, said))
        shown = Task(id=task.id, prompt=prompt)
        if not fits(self._policy, shown, max_new_tokens):
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
