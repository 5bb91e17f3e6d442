"""Improvers by their published names, and how a run's configuration names them.

Not covered: what they do (`refinements`, `hints`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.improvers.hints import HintsRule
from adjudge.rl_integration.trainer.rollouts.improvers.improver import Improver
from adjudge.rl_integration.trainer.rollouts.improvers.refinements import RefinementsRule
from adjudge.training.config_file import config_of, plain_config

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy

IMPROVERS: Mapping[str, RefinementsRule | HintsRule] = MappingProxyType(
    {
        "critique_grpo": RefinementsRule(),
        "ghpo": HintsRule(),
        "nurl": HintsRule(column="hint", shares=(1.0,), plain=1, lead="\n\nHint: "),
    }
)


@dataclass(frozen=True, kw_only=True)
class ImproverChoice:
    """What helps where answers are wrong.

    Attributes:
        name: critique_grpo, ghpo or nurl (docs/curricula.md); "" for none.
        set: options that differ from the published ones.
    """

    shorthand: ClassVar[str] = "name"

    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject what is none."""
        if self.name and self.name not in IMPROVERS:
            raise ValueError(f"there is no improver {self.name!r}; there are {', '.join(IMPROVERS)}")
        if self.set and not self.name:
            raise ValueError("improver.set is given without improver.name; name the improver that the options are of")
        self._rule()

    def made(self, policy: Policy, tasks: Sequence[Task]) -> Improver | None:
        """Return the improver for a run, to be closed; None where none is named.

        Raises:
            ValueError: it cannot help with these tasks.
        """
        rule = self._rule()
        if rule is None:
            return None
        if any(task.cohort for task in tasks):
            raise ValueError(f"the improver {self.name!r} cannot help tasks that are scored together; leave it out")
        return rule.made(policy, tasks)

    def _rule(self) -> RefinementsRule | HintsRule | None:
        if not self.name:
            return None
        published = IMPROVERS[self.name]
        return config_of(type(published), {**plain_config(published), **self.set}, "improver.set")
