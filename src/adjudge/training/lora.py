"""Low-rank factors beside frozen weights (LoRA, arXiv 2106.09685).

Not covered: quantised weights (QLoRA).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Lora:
    """Train small factors beside the weights instead of the weights (LoRA, arXiv 2106.09685); merged when saved.

    Attributes:
        rank: of the factors.
        alpha: the factors' product counts `alpha / rank` times.
        dropout: share of their inputs left out in training.
        targets: names of layers; "all-linear" for every linear layer of the body.
    """

    shorthand: ClassVar[str] = "rank"

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ("all-linear",)

    def __post_init__(self) -> None:
        """Reject options out of range."""
        if self.rank < 1:
            raise ValueError(f"lora.rank is {self.rank!r}; it must be at least 1")
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"lora.alpha is {self.alpha!r}; it must be above 0")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"lora.dropout is {self.dropout!r}; it must be at least 0 and below 1")
        if not self.targets:
            raise ValueError("lora.targets is empty; name layers, or give all-linear")


def with_lora(body: Any, lora: Lora) -> Any:
    """Return a body whose weights are frozen, with factors beside them that are trained.

    Raises:
        ValueError: the targets name no layer.
    """
    import peft

    options: dict[str, Any] = {
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": lora.targets[0] if lora.targets == ("all-linear",) else list(lora.targets),
    }
    config = peft.LoraConfig(**options)
    try:
        adapted: Any = peft.get_peft_model(body, config)
    except ValueError as error:
        raise ValueError(f"lora.targets are {', '.join(lora.targets)}: {str(error)[:300]}") from error
    for value in adapted.parameters():
        if value.requires_grad:
            value.data = value.data.float()
    return adapted
