"""What a run of policy training is made of.

Not covered: the policy and the data themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adjudge.rl_integration.trainer.batches.reward_config import RewardConfig
from adjudge.rl_integration.trainer.credit.choice import CreditChoice
from adjudge.rl_integration.trainer.curricula.choice import CurriculumChoice
from adjudge.rl_integration.trainer.guard import GuardConfig
from adjudge.rl_integration.trainer.improvers.choice import ImproverChoice
from adjudge.rl_integration.trainer.learning.learning_config import LearningConfig
from adjudge.rl_integration.trainer.rollouts.sampling import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.tree_config import TreeConfig
from adjudge.rl_integration.trainer.rollouts.vllm_options import VllmOptions
from adjudge.rl_integration.trainer.tools.tool_config import ToolUse
from adjudge.rl_integration.watch.config import WatchConfig

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True)
class ObjectiveChoice:
    """What is learnt from rewards.

    Attributes:
        name: of a published objective: grpo, dr_grpo, dapo, gspo, ppo, ... (docs/objectives.md).
        set: options that differ from the published ones, with dots: {"policy.beta": 0.04, "policy.clip_high": 0.28}.
    """

    shorthand: ClassVar[str] = "name"

    name: str = "grpo"
    set: Mapping[str, Any] = field(default_factory=dict)

    def made(self, *, most_new_tokens: int) -> Objective:
        """Return the objective.

        Args:
            most_new_tokens: most tokens of an answer: what lengths are measured by, unless the options say otherwise.

        Raises:
            ValueError: there is none of this name, or an option is none of its.
        """
        from adjudge.rl_integration.trainer.objectives.table import objective  # imports torch, behind a file's keys

        published = objective(self.name)
        sizes: dict[str, Any] = {}
        if getattr(published.policy, "aggregation", "") == "constant":
            sizes["policy.length"] = most_new_tokens
        if published.overlong is not None:  # DAPO's penalty begins at four fifths of its limit
            buffer = max(1, most_new_tokens // 5)
            sizes["overlong"] = replace(published.overlong, limit=most_new_tokens, buffer=buffer)
        return published.but(sizes).but(self.set)


@dataclass(frozen=True, kw_only=True)
class RolloutsConfig:
    """Which answers are drawn, and when.

    Attributes:
        tasks: prompts of a step.
        group: answers to each.
        ahead: batches that are written before the scores of the one to learn from are waited for.  0 learns from the
            newest policy's answers alone; 1 hides scores that take as long as a batch takes to write, and learns from
            answers that are one update old, whose probabilities are corrected for.
        rounds: for objectives that draw groups anew: most batches that one step may use up.
        tools: what the policy may call while it answers; None for answers of one turn.
        sampling: how answers are drawn.
        engine: what writes answers: "transformers", with the very model that learns, or "vllm", with a copy of it.
        vllm: how vLLM runs.
        tree: how the answers to a prompt share beginnings; None for answers that are written by themselves.
    """

    tasks: int = 8
    group: int = 8
    ahead: int = 0
    rounds: int = 4
    tools: ToolUse | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    engine: Literal["transformers", "vllm"] = "transformers"
    vllm: VllmOptions = field(default_factory=VllmOptions)
    tree: TreeConfig | None = None

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for option in ("tasks", "group", "rounds"):
            if getattr(self, option) < 1:
                raise ValueError(f"rollouts.{option} is {getattr(self, option)!r}; it must be at least 1")
        if self.ahead < 0:
            raise ValueError(f"rollouts.ahead is {self.ahead!r}; it must be 0 or more")
        if self.engine not in ("transformers", "vllm"):
            raise ValueError(f"rollouts.engine is {self.engine!r}; give transformers or vllm")
        if self.tree is not None:
            self.tree.check(self.group)
            if self.tools is not None:
                raise ValueError("rollouts.tree and rollouts.tools are both set; answers with tools do not branch yet")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A run.

    Attributes:
        reward: where scores come from.
        objective: what is learnt from them.
        rollouts: which answers are drawn.
        learning: how updates are made.
        steps: batches that are learnt from.
        seed: of everything random.
        save_steps: steps between checkpoints.
        keep_checkpoints: how many are kept.
        eval_steps: steps between measurements on held-out tasks; 0 measures at the end only.
        measured_by: what answers to held-out tasks are judged by; None for the reward.
        guard: what stops the run when its reward is hacked.
        watch: from where on outer signs of hacking are told in the log and the report; None looks for none.
        credit: how credit is given within answers; None gives all tokens of an answer its advantage.
        curriculum: which tasks are drawn, how many answers each gets, and what is learnt from.
        improver: what helps where answers are wrong.
    """

    reward: RewardConfig
    objective: ObjectiveChoice = field(default_factory=ObjectiveChoice)
    rollouts: RolloutsConfig = field(default_factory=RolloutsConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    steps: int = 100
    seed: int = 0
    save_steps: int = 50
    keep_checkpoints: int = 2
    eval_steps: int = 0
    measured_by: RewardConfig | None = None
    guard: GuardConfig | None = None
    watch: WatchConfig | None = field(default_factory=WatchConfig)
    credit: CreditChoice | None = None
    curriculum: CurriculumChoice = field(default_factory=CurriculumChoice)
    improver: ImproverChoice = field(default_factory=ImproverChoice)

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for option in ("steps", "save_steps", "keep_checkpoints"):
            if getattr(self, option) < 1:
                raise ValueError(f"{option} is {getattr(self, option)!r}; it must be at least 1")
        if self.eval_steps < 0:
            raise ValueError(f"eval_steps is {self.eval_steps!r}; give 0 to measure at the end only, or more")
        rule = self.objective.made(most_new_tokens=self.rollouts.sampling.most_new_tokens).rule
        adds = self.curriculum.names or self.improver.name  # they may add answers
        if rule is not None and self.rollouts.group < rule.least and not adds:
            raise ValueError(
                f"rollouts.group is {self.rollouts.group!r}, and {self.objective.name} compares the answers to a "
                f"prompt with each other, so nothing would be learnt; give at least {rule.least}, or another objective"
            )
        if self.credit is not None:
            credit = self.credit.made()
            credit.check(self.objective.made(most_new_tokens=self.rollouts.sampling.most_new_tokens))
            if credit.needs_tree and self.rollouts.tree is None:
                raise ValueError(f"credit {self.credit.name!r} needs answers written as a tree; set rollouts.tree")
