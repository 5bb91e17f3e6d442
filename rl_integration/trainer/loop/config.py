"""What a run of policy training is made of, and what its file holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice, ObjectiveChoice
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.trackers import LogName
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CurriculumChoice, ImproverChoice
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, TaskFiles
from adjudge.rl_integration.watch.hacking import WatchConfig
from adjudge.training.backbones import NGRAMS, Lora, ModelChoice

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class EvolutionConfig(Options, what="evolution option"):
    """Evolution strategies (`evolution.Evolution`): no gradients, and one copy of the weights.

    Attributes:
        population: policies that answer a step's tasks; the released code's default.
        sigma: standard deviation of what is added to each weight; the released code's default.
        antithetic: whether half of them go the other half's ways backwards, which needs an even number.
    """

    population: Annotated[int, Range(ge=2)] = 30
    sigma: Annotated[float, Range(gt=0)] = 0.001
    antithetic: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.antithetic and self.population % 2:
            raise ValueError(
                f"learning.evolution.population is {self.population!r} and antithetic is true; give an even number"
            )


@dataclass(frozen=True, kw_only=True)
class LearningConfig(Options, what="learning option"):
    """How updates are made.

    Attributes:
        learning_rate: the highest; about 1e-6 for whole models, 1e-5 with LoRA, 1e-3 for new tiny ones.
        critic_learning_rate: of the value model, where there is one; None for ten times `learning_rate`.
        warmup_steps: steps in which the rate rises; it is above 0 in the first, too.
        decay: what the rate does afterwards: "constant", or "linear" or "cosine", which would be 0 in the step behind
            the last one.
        weight_decay: of AdamW.
        betas: of AdamW.
        max_grad_norm: gradients are scaled down to this length; 0 leaves them.
        minibatches: updates that a batch of rollouts is divided into; whole groups stay together.
        epochs: passes over a batch of rollouts.
        micro_tokens: most tokens of one forward pass, padding included; results do not depend on it beyond rounding.
            Where a GPU's memory runs out it is halved for the rest of the run.
        precision: "fp32" computes in 32 bits; "bf16" computes the model in bfloat16, with the weights that are trained
            and log-probabilities in 32 bits; "auto" is "bf16" on a GPU that can, else "fp32".
        gradient_checkpointing: compute activations again in the backward pass, for less memory and a third more time;
            "auto" does so on a GPU, as TRL does.
        lora: train low-rank factors beside frozen weights, which may then be in bfloat16; without another reference,
            divergences are measured from the policy without them.
        use_prefix_grouper: read a prompt once for all the answers to it, as verl's option of this name does: with long
            prompts and short answers most of the work; results do not depend on it beyond rounding.  It needs the
            activations that gradient checkpointing drops, and a whole model in each process.
        sharding: "full" keeps in each process a part of all weights, gradients and optimizer states, as FSDP2 does
            (`fully_shard`); "none" keeps all of them in each.
        cpu_offload: keep those parts in the host's memory; needs sharding, and no `lora`.
        mask_truncated_completions: learn nothing from answers that were cut off; they keep their votes in their group's
            mean and their places among the answers that a loss is divided by, as in TRL.
        evolution: learn from the mean scores of changed weights, without gradients; of the other options here only the
            rate, its course and `lora` are read, and no objective.
    """

    learning_rate: Annotated[float, Range(gt=0)] = 1e-6
    critic_learning_rate: Annotated[float, Range(gt=0)] | None = None
    warmup_steps: Annotated[int, Range(ge=0)] = 0
    decay: Literal["constant", "linear", "cosine"] = "constant"
    weight_decay: Annotated[float, Range(ge=0)] = 0.0
    betas: tuple[float, ...] = (0.9, 0.999)
    max_grad_norm: Annotated[float, Range(ge=0)] = 1.0
    minibatches: Count = 1
    epochs: Count = 1
    micro_tokens: Count = 16_384
    precision: Precision = "auto"
    gradient_checkpointing: Literal["auto", True, False] = "auto"
    lora: Lora | None = None
    use_prefix_grouper: bool = False
    sharding: Literal["none", "full"] = "none"
    cpu_offload: bool = False
    mask_truncated_completions: bool = False
    evolution: EvolutionConfig | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_prefix_grouper and (self.gradient_checkpointing is True or self.sharding != "none"):
            raise ValueError(
                "learning.use_prefix_grouper is true beside gradient_checkpointing or sharding, which drop what it "
                "shares; leave one of them out"
            )
        if self.cpu_offload and self.sharding == "none":
            raise ValueError("learning.cpu_offload is true, which needs shards; set learning.sharding to full")
        if self.cpu_offload and self.lora is not None:
            raise ValueError(
                "learning.cpu_offload is true and learning.lora is set, and factors in the host's memory are not "
                "merged; take one of the two"
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"learning.betas is {self.betas!r}; give two numbers from 0 to 1")
        if self.lora is not None and self.lora.dropout:
            raise ValueError(
                f"learning.lora.dropout is {self.lora.dropout!r}; a policy must be the same when it writes and when it "
                "learns, or the ratios of its probabilities are noise; set it to 0"
            )

    @property
    def updates(self) -> int:
        """Updates that are made from one batch of rollouts."""
        return self.minibatches * self.epochs

    def bf16(self, device: str) -> bool:
        """Return whether the model computes in bfloat16 on a device ("cpu", "cuda", ...).

        Raises:
            ValueError: bfloat16 is asked for, and the GPU has none.
        """
        import torch

        able = device == "cuda" and torch.cuda.is_bf16_supported()
        if self.precision == "bf16" and device == "cuda" and not able:
            raise ValueError("learning.precision is bf16, which this GPU does not compute; give fp32")
        return able if self.precision == "auto" else self.precision == "bf16"

    def share(self, step: int, steps: int) -> float:
        """Return what the learning rate is multiplied by in a step, the first being 0."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        passed = (step - self.warmup_steps) / max(1, steps - self.warmup_steps)
        match self.decay:
            case "constant":
                return 1.0
            case "linear":
                return max(0.0, 1.0 - passed)
            case "cosine":
                return 0.5 * (1.0 + math.cos(math.pi * min(1.0, passed)))

    def optimizer(self, groups: list[dict[str, Any]]) -> Any:
        """Return AdamW over groups of parameters, each with its highest rate as "peak"."""
        import torch

        first, second = self.betas
        given = [{**group, "lr": group["peak"]} for group in groups]
        return torch.optim.AdamW(given, betas=(first, second), weight_decay=self.weight_decay)


@dataclass(frozen=True, kw_only=True)
class RunConfig(Options, what="run option"):
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
        save_hf_ckpt: write the policy into each checkpoint, too, as `transformers` reads it, in a folder `policy`.
        eval_steps: steps between measurements on held-out tasks; 0 measures at the end only.
        measured_by: what answers to held-out tasks are judged by; None for the reward.
        load_best_model_at_end: end with the policy that was best on held-out tasks at a multiple of `eval_steps`, or at
            the last step; the first of equals.  Each that is better than all before makes a checkpoint, too.
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
    steps: Count = 100
    seed: int = 0
    save_steps: Count = 50
    keep_checkpoints: Count = 2
    save_hf_ckpt: bool = False
    eval_steps: Annotated[int, Range(ge=0)] = 0
    measured_by: RewardConfig | None = None
    load_best_model_at_end: bool = False
    guard: GuardConfig | None = None
    watch: WatchConfig | None = field(default_factory=WatchConfig)
    credit: CreditChoice | None = None
    curriculum: CurriculumChoice = field(default_factory=CurriculumChoice)
    improver: ImproverChoice = field(default_factory=ImproverChoice)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.load_best_model_at_end and not self.eval_steps:
            raise ValueError(
                "load_best_model_at_end is true, and eval_steps 0 measures the last policy alone; set eval_steps"
            )
        if self.learning.evolution is not None:
            self._check_evolution()
            return
        objective = self.made_objective()
        rule = objective.rule
        rollouts, heat = self.rollouts, self.rollouts.sampling.temperature
        adds = self.curriculum.names or self.improver.name  # they may add answers
        if rule is not None and rule.min_size > 1 and not adds:
            why = f"{self.objective.name} compares the answers to a prompt with each other, so nothing would be learnt"
            if rollouts.num_generations < rule.min_size:
                raise ValueError(
                    f"rollouts.num_generations is {rollouts.num_generations!r}, and {why}; give at least "
                    f"{rule.min_size}, or another objective"
                )
            if not heat and rollouts.tree is None:
                raise ValueError(
                    f"rollouts.sampling.temperature is {heat!r}, which makes answers alike, and {why}; give 1"
                )
        if self.learning.minibatches > rollouts.tasks and not adds:
            raise ValueError(
                f"learning.minibatches is {self.learning.minibatches!r}, and a step has {rollouts.tasks} prompts "
                "(rollouts.tasks), whose answers stay together; lower it, or raise rollouts.tasks"
            )
        if objective.shaping is not None and self.learning.sharding != "none":
            raise ValueError(
                f"learning.sharding is {self.learning.sharding}, and {self.objective.name} looks inside the policy, "
                "which shards do not show; set it to none"
            )
        if self.credit is not None:
            credit = self.credit.made()
            credit.check(objective)
            if credit.needs_tree and self.rollouts.tree is None:
                raise ValueError(f"credit {self.credit.name!r} needs answers written as a tree; set rollouts.tree")

    def _check_evolution(self) -> None:
        """Raise `ValueError` if an option is set that learning without gradients would not read."""
        plain = RunConfig(reward=self.reward)
        unread = {
            "objective": (self.objective, plain.objective),
            "credit": (self.credit, None),
            "curriculum": (self.curriculum, plain.curriculum),
            "improver": (self.improver, plain.improver),
            "rollouts.staleness": (self.rollouts.staleness, 0),
            "rollouts.engine": (self.rollouts.engine, "transformers"),
            "learning.sharding": (self.learning.sharding, "none"),
            "learning.minibatches": (self.learning.minibatches, 1),
            "learning.epochs": (self.learning.epochs, 1),
        }
        for name, (given, usual) in unread.items():
            if given != usual:
                raise ValueError(
                    f"{name} is set beside learning.evolution, which has no use for it; drop one of the two"
                )

    def made_objective(self) -> Objective:
        """Return the objective, for answers of this run's length."""
        return self.objective.made(max_new_tokens=self.rollouts.sampling.max_new_tokens)


@dataclass(frozen=True, kw_only=True)
class PolicyChoice(ModelChoice):
    """Which model is trained, and how its prompts are written.

    Attributes:
        chat_template_kwargs: for the chat template, such as {enable_thinking: false}; each must be one that it reads.
    """

    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunFile(RunConfig):
    """A run, with what it is about.

    Attributes:
        model: the policy's start.
        reference_model: folders or hub names of models of the same shape, which divergences are measured from: of
            several, from the mean of their weights (SALSA, arXiv 2411.01798); of none, from the policy's start.
        data: prompts.
        output: the folder of the run: checkpoints, logs, the report, and at the end the policy in `policy`.
        report_to: where its numbers go besides `steps.jsonl`: tensorboard, wandb; none is [].
    """

    model: PolicyChoice
    data: TaskFiles
    output: str
    reference_model: tuple[str, ...] = ()
    report_to: tuple[LogName, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.output.strip():
            raise ValueError("output is empty; name the folder of the run")
        if self.model.name == NGRAMS:
            raise ValueError("model is ngrams, which writes nothing; give from_scratch: tiny, or a language model")
        if self.reference_model and not self.made_objective().needs_reference:
            raise ValueError(
                f"reference_model is {', '.join(self.reference_model)}, and the objective {self.objective.name} "
                "measures no divergence; set reward_beta or policy.beta in objective.set, or leave it out"
            )
        object.__setattr__(self, "report_to", tuple(name for name in self.report_to if name != "none"))
        if len(set(self.report_to)) < len(self.report_to):
            raise ValueError(f"report_to is {', '.join(self.report_to)}; name each once")
