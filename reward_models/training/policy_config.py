"""The options of training a policy on the pairs that reward models are trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from adjudge.reward_models.training.scalar_config import DataChoice
from adjudge.reward_models.training.schedule import TrainingOptions

PolicyLossName = Literal["dpo", "robust_dpo", "ipo", "step_apo", "reward_aware"]

_OF_MARGINS = ("step_apo", "reward_aware")


@dataclass(frozen=True, kw_only=True)
class PolicyLossChoice:
    """The loss, with its options.

    Attributes:
        name: see docs/training_steps.md.
        beta: how much the policy's preference counts; smaller ones let it move farther from its start.
        noise: chance that a label is wrong ("dpo": label smoothing; "robust_dpo": corrected for), in [0, 0.5).
        scale: how much a margin of rewards counts ("reward_aware").
    """

    shorthand: ClassVar[str] = "name"

    name: PolicyLossName = "dpo"
    beta: float = 0.1
    noise: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Reject options out of range, and those that the loss does not read."""
        if self.name not in get_args(PolicyLossName):
            raise ValueError(f"loss.name is {self.name!r}; give one of {', '.join(get_args(PolicyLossName))}")
        for option in ("beta", "scale"):
            if not 0 < getattr(self, option) < math.inf:
                raise ValueError(f"loss.{option} is {getattr(self, option)!r}; it must be above 0")
        if not 0 <= self.noise < 0.5:
            raise ValueError(f"loss.noise is {self.noise!r}; it must be at least 0 and below 0.5")
        if self.noise and self.name not in ("dpo", "robust_dpo"):
            raise ValueError(f"the loss {self.name!r} does not read loss.noise")
        if self.scale != 1.0 and self.name != "reward_aware":
            raise ValueError(f"the loss {self.name!r} does not read loss.scale")

    @property
    def reads_margins(self) -> bool:
        """Whether every pair must have a margin."""
        return self.name in _OF_MARGINS


@dataclass(frozen=True, kw_only=True)
class BetaScaling:
    """How beta grows with the margin of a pair's rewards: β (1 + w (1 - e^{-k m})) (MM-RLHF).

    Attributes:
        weight: w; beta grows by at most this share.
        rate: k, in inverse units of the margins.
    """

    shorthand: ClassVar[str] = "weight"

    weight: float = 0.1
    rate: float = 0.5

    def __post_init__(self) -> None:
        """Reject what does not grow."""
        for option in ("weight", "rate"):
            if not 0 < getattr(self, option) < math.inf:
                raise ValueError(f"scaling.{option} is {getattr(self, option)!r}; it must be above 0")


@dataclass(frozen=True, kw_only=True)
class PolicyTraining(TrainingOptions):
    """How a policy is trained on pairs.

    Attributes:
        model: the language model; its start is the reference.
        data: pairs; their margins are differences of rewards, or of advantages for "step_apo".
        loss: what is minimised.
        scaling: let beta grow with the margin; None for one beta.
        likelihood: weight of the chosen responses' negative mean log-probability (RPO's supervised term).
        reference: compare with the model's start; false for the policy alone.
        reference_model: a folder or hub name of another language model with the same tokens to compare with, such as
            the first model of several rounds; "" for the start.
        whole: whether responses are finished; false for steps of a solution, behind which no turn ends.  A pair of
            steps is a pair of texts that begin with the steps before: what they share cancels.
    """

    data: DataChoice
    loss: PolicyLossChoice = field(default_factory=PolicyLossChoice)
    scaling: BetaScaling | None = None
    likelihood: float = 0.0
    reference: bool = True
    reference_model: str = ""
    whole: bool = True

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        self.check_writes()
        if self.reference_model and not self.reference:
            raise ValueError("reference is false, and a reference_model is given; leave out one of them")
        if self.scaling is not None and self.loss.name == "ipo":
            raise ValueError("the loss ipo divides by beta, which scaling may make 0; leave out scaling, or use dpo")
        if not 0 <= self.likelihood < math.inf:
            raise ValueError(f"likelihood is {self.likelihood!r}; it is a weight, and must be 0 or more")

    @property
    def reads_margins(self) -> bool:
        """Whether every pair must have a margin."""
        return self.loss.reads_margins or self.scaling is not None
