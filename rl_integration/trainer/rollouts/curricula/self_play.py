"""Tasks that the policy proposes are answered in the same step (Search Self-play; Alibaba-Quark/SSP at 7b083da)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.options import Options
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import Improved, fits, quoted
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


@dataclass(frozen=True, kw_only=True)
class SelfPlayRule(Options):
    """Each task that `proposed_task` did not refuse is answered as often as its proposer's, and learnt from beside it.

    Its reference is the proposer's, its prompt what stood before the proposer's, as the system's turn, and the task.

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


class SelfPlay:
    """Has proposals answered."""

    def __init__(self, rule: SelfPlayRule, policy: Policy) -> None:
        self._rule = rule
        self._policy = policy

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

    def close(self) -> None:
        """Do nothing: it holds nothing."""
