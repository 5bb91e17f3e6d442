"""The options of training a policy on the pairs that reward models are trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from adjudge.options import Options, Range
from adjudge.reward_models.training.scalar_config import DataChoice
from adjudge.reward_models.training.schedule import TrainingOptions

PolicyLossName = Literal["dpo", "robust_dpo", "ipo", "step_apo", "reward_aware", "orpo", "rrhf"]

_OF_MARGINS = ("step_apo", "reward_aware")
_PER_TOKEN = ("orpo", "rrhf")


@dataclass(frozen=True, kw_only=True)
class PolicyLossChoice(Options, what="loss option"):
    """The loss, with its options.

    Attributes:
        name: see docs/training.md.
        beta: how much the policy's preference counts; smaller ones let it move farther from its start.  For "orpo", the
            weight of the odds ratio beside the likelihood.
        noise: chance that a label is wrong ("dpo": label smoothing; "robust_dpo": corrected for), in [0, 0.5).
        scale: how much a margin of rewards counts ("reward_aware").
    """

    shorthand: ClassVar[str] = "name"

    name: PolicyLossName = "dpo"
    beta: Annotated[float, Range(gt=0)] = 0.1
    noise: Annotated[float, Range(ge=0, lt=0.5)] = 0.0
    scale: Annotated[float, Range(gt=0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise and self.name not in ("dpo", "robust_dpo"):
            raise ValueError(f"the loss {self.name!r} does not read loss.noise")
        if self.scale != 1.0 and self.name != "reward_aware":
            raise ValueError(f"the loss {self.name!r} does not read loss.scale")
        if self.beta != 0.1 and self.name == "rrhf":
            raise ValueError("the loss 'rrhf' does not read loss.beta; likelihood weighs the other term")

    @property
    def reads_margins(self) -> bool:
        """Whether every pair must have a margin."""
        return self.name in _OF_MARGINS

    @property
    def per_token(self) -> bool:
        """Whether mean log-probabilities are compared, without a reference."""
        return self.name in _PER_TOKEN


@dataclass(frozen=True, kw_only=True)
class BetaScaling(Options, what="scaling option"):
    """How beta grows with the margin of a pair's rewards: β (1 + w (1 - e^{-k m})) (MM-RLHF).

    Attributes:
        weight: w; beta grows by at most this share.
        rate: k, in inverse units of the margins.
    """

    shorthand: ClassVar[str] = "weight"

    weight: Annotated[float, Range(gt=0)] = 0.1
    rate: Annotated[float, Range(gt=0)] = 0.5


@dataclass(frozen=True, kw_only=True)
class PolicyTraining(TrainingOptions):
    """How a policy is trained on pairs.

    Attributes:
        model: the language model; its start is the reference.
        data: pairs; their margins are differences of rewards, or of advantages for "step_apo".
        loss: what is minimised.
        scaling: let beta grow with the margin; None for one beta.
        likelihood: weight of the chosen responses' negative mean log-probability (RPO's supervised term; 1 in ORPO and
            RRHF).
        reference: compare with the model's start; false for the policy alone.
        reference_model: a folder or hub name of another language model with the same tokens to compare with, such as
            the first model of several rounds; "" for the start.
        whole: whether responses are finished; false for steps of a solution, behind which no turn ends.  A pair of
            steps is a pair of texts that begin with the steps before, and what they share is not learnt.
    """

    data: DataChoice
    loss: PolicyLossChoice = field(default_factory=PolicyLossChoice)
    scaling: BetaScaling | None = None
    likelihood: Annotated[float, Range(ge=0)] = 0.0
    reference: bool = True
    reference_model: str = ""
    whole: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_writes()
        if self.reference_model and not self.reference:
            raise ValueError("reference is false, and a reference_model is given; leave out one of them")
        if self.loss.per_token and (self.reference or self.scaling is not None):
            raise ValueError(
                f"the loss {self.loss.name} compares mean log-probabilities without a reference and without scaling; "
                "set reference to false, and leave out scaling"
            )
        if self.scaling is not None and self.loss.name == "ipo":
            raise ValueError("the loss ipo divides by beta, which scaling may make 0; leave out scaling, or use dpo")

    @property
    def reads_margins(self) -> bool:
        """Whether every pair must have a margin."""
        return self.loss.reads_margins or self.scaling is not None
