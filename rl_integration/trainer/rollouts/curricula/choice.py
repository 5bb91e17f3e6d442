"""Curricula and improvers by their published names, and how a run's configuration names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from adjudge.options import named
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.curricula.chunked import Adcl
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, CurriculumRule, Setting
from adjudge.rl_integration.trainer.rollouts.curricula.filters import (
    Dars,
    PfPpo,
    ReinforceAda,
    RestGrpo,
    Rlpr,
    ZeroVariance,
)
from adjudge.rl_integration.trainer.rollouts.curricula.hints import AdaptiveHintsRule, HintsRule
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import (
    DemonstrationsRule,
    Improver,
    RefinementsRule,
    SelfPlayRule,
)
from adjudge.rl_integration.trainer.rollouts.curricula.sources import Dump, Mixture, Mopps, Pcl, Prioritized, Sec
from adjudge.training.config_file import config_of, plain_config

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


CURRICULA: Mapping[str, CurriculumRule] = MappingProxyType(
    {
        # Which tasks.
        "mopps": Mopps(),
        "pcl": Pcl(),
        "prioritized": Prioritized(),
        "sec": Sec(),
        "dump": Dump(),
        "mixture": Mixture(),
        "adcl": Adcl(),
        # How many answers.
        "dars": Dars(),
        "dars_hard": Dars(totals=(48, 24, 12, 9)),
        "reinforce_ada": ReinforceAda(),
        "reinforce_ada_positive": ReinforceAda(stop="positive"),
        # What is learnt from.
        "zero_variance": ZeroVariance(),
        "rest_grpo": RestGrpo(),
        "rlpr": Rlpr(),
        "pf_ppo": PfPpo(),
    }
)


@dataclass(frozen=True, kw_only=True)
class CurriculumChoice:
    """Which tasks are drawn, how many answers each gets, and what is learnt from.

    Attributes:
        names: of curricula that decide different things (docs/objectives.md); none for tasks in a shuffled order.
        set: options that differ from the published ones, with a dot behind the name: {"mopps.memory": 0.5}.
    """

    shorthand: ClassVar[str] = "names"

    names: tuple[str, ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            named(CURRICULA, name, "curriculum")
        for path in self.set:
            if path.partition(".")[0] not in self.names:
                raise ValueError(
                    f"curriculum.set has the option {path!r}; begin it with one of the names and a dot "
                    f"({', '.join(f'{name}.' for name in self.names) or 'there are none'})"
                )
        deciding: dict[str, str] = {}
        for name, rule in self._rules().items():
            for part in rule.parts:
                if part in deciding:
                    raise ValueError(f"the curricula {deciding[part]!r} and {name!r} both decide the {part}; take one")
                deciding[part] = name

    def made(self, setting: Setting) -> Curriculum:
        """Return the parts for a run.

        Raises:
            ValueError: they do not fit the run's tasks or its groups.
        """
        parts: dict[str, Any] = {}
        for rule in self._rules().values():
            made = rule.made(setting)
            parts |= {part: getattr(made, part) for part in rule.parts}
        return Curriculum(**parts)

    def _rules(self) -> dict[str, CurriculumRule]:
        rules: dict[str, CurriculumRule] = {}
        for name in self.names:
            published, start = CURRICULA[name], f"{name}."
            own = {path.removeprefix(start): value for path, value in self.set.items() if path.startswith(start)}
            record = {**plain_config(published), **own}
            rules[name] = config_of(type(published), record, f"curriculum.set.{name}")
        return rules


ImproverRule: TypeAlias = RefinementsRule | HintsRule | AdaptiveHintsRule | DemonstrationsRule | SelfPlayRule

IMPROVERS: Mapping[str, ImproverRule] = MappingProxyType(
    {
        "critique_grpo": RefinementsRule(),
        "cog_rethinker": RefinementsRule(
            critique="verdict",
            decompose="\n\nBreak this into smaller problems, solve them one by one, and answer it from their answers.",
            keep=1_000,
            only_right=True,
            only_unsolved=True,
        ),
        "luffy": DemonstrationsRule(),
        "ghpo": HintsRule(),
        "seele": AdaptiveHintsRule(),
        "nurl": HintsRule(column="hint", shares=(1.0,), plain=1, lead="\n\nHint: "),
        "search_self_play": SelfPlayRule(),
    }
)


@dataclass(frozen=True, kw_only=True)
class ImproverChoice:
    """What helps where answers are wrong, or answers what was asked.

    Attributes:
        name: critique_grpo, cog_rethinker, luffy, ghpo, seele, nurl, search_self_play (docs/objectives.md),
            or "" for none.
        set: options that differ from the published ones.
    """

    shorthand: ClassVar[str] = "name"

    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.set and not self.name:
            raise ValueError("improver.set is given without improver.name; name the improver that the options are of")
        self._rule()

    def made(self, policy: Policy, tasks: Sequence[Task]) -> Improver[Any] | None:
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

    def _rule(self) -> ImproverRule | None:
        if not self.name:
            return None
        published = named(IMPROVERS, self.name, "improver")
        return config_of(type(published), {**plain_config(published), **self.set}, "improver.set")
