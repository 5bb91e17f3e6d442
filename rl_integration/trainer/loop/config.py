"""What a run of policy training is made of.

Not covered: the policy and the data themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.rl_integration.trainer.algorithms.credit.choice import CreditChoice
from adjudge.rl_integration.trainer.algorithms.objectives.choice import ObjectiveChoice
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.learning_config import LearningConfig
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CurriculumChoice
from adjudge.rl_integration.trainer.rollouts.improvers.choice import ImproverChoice
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig
from adjudge.rl_integration.watch.config import WatchConfig


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
        rule = self.objective.made(max_new_tokens=self.rollouts.sampling.max_new_tokens).rule
        adds = self.curriculum.names or self.improver.name  # they may add answers
        if rule is not None and self.rollouts.num_generations < rule.min_size and not adds:
            raise ValueError(
                f"rollouts.num_generations is {self.rollouts.num_generations!r}, and {self.objective.name} compares "
                "the answers to a prompt with each other, so nothing would be learnt; give at least "
                f"{rule.min_size}, or another objective"
            )
        if self.credit is not None:
            credit = self.credit.made()
            credit.check(self.objective.made(max_new_tokens=self.rollouts.sampling.max_new_tokens))
            if credit.needs_tree and self.rollouts.tree is None:
                raise ValueError(f"credit {self.credit.name!r} needs answers written as a tree; set rollouts.tree")
