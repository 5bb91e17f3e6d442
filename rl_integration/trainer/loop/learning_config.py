"""How a policy is updated: the optimiser's options.

Not covered: what is learnt (`objectives`), and where rollouts come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.training.lora import Lora

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class LearningConfig:
    """How updates are made.

    Attributes:
        learning_rate: the highest; about 1e-6 for whole models, 1e-5 with LoRA, 1e-3 for new tiny ones.
        critic_learning_rate: of the value model, where there is one; None for ten times `learning_rate`.
        warmup_steps: steps in which the rate rises from 0.
        decay: what the rate does afterwards: "constant", or "linear" or "cosine", which would be 0 in the step behind
            the last one.
        weight_decay: of AdamW.
        betas: of AdamW.
        max_grad_norm: gradients are scaled down to this length; 0 leaves them.
        minibatches: updates that a batch of rollouts is divided into; whole groups stay together.
        epochs: passes over a batch of rollouts.
        micro_tokens: most tokens of one forward pass, padding included; results do not depend on it beyond rounding.
        precision: "fp32" computes in 32 bits; "bf16" computes the model in bfloat16, with the weights that are trained
            and log-probabilities in 32 bits; "auto" is "bf16" on a GPU that can, else "fp32".
        gradient_checkpointing: compute activations again in the backward pass, for less memory and a third more time.
        lora: train low-rank factors beside frozen weights, which may then be in bfloat16; without another reference,
            divergences are measured from the policy without them.
    """

    learning_rate: float = 1e-6
    critic_learning_rate: float | None = None
    warmup_steps: int = 0
    decay: Literal["constant", "linear", "cosine"] = "constant"
    weight_decay: float = 0.0
    betas: tuple[float, ...] = (0.9, 0.999)
    max_grad_norm: float = 1.0
    minibatches: int = 1
    epochs: int = 1
    micro_tokens: int = 16_384
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    lora: Lora | None = None

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for name in ("minibatches", "epochs", "micro_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"learning.{name} is {getattr(self, name)!r}; it must be at least 1")
        for name in ("weight_decay", "max_grad_norm", "warmup_steps"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"learning.{name} is {getattr(self, name)!r}; it must be 0 or more")
        for name in ("learning_rate", "critic_learning_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"learning.{name} is {value!r}; it must be above 0")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"learning.betas is {self.betas!r}; give two numbers from 0 to 1")
        if self.decay not in ("constant", "linear", "cosine"):
            raise ValueError(f"learning.decay is {self.decay!r}; give constant, linear or cosine")
        if self.precision not in ("auto", "fp32", "bf16"):
            raise ValueError(f"learning.precision is {self.precision!r}; give auto, fp32 or bf16")
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
