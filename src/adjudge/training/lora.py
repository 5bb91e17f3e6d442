"""Low-rank factors beside frozen weights (LoRA, arXiv 2106.09685).

Not covered: quantised weights (QLoRA).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Count, Options, Range


@dataclass(frozen=True, kw_only=True)
class Lora(Options, what="lora option"):
    """Train small factors beside the weights instead of the weights (LoRA, arXiv 2106.09685); merged when saved.

    Attributes:
        rank: of the factors.
        alpha: the factors' product counts `alpha / rank` times.
        dropout: share of their inputs left out in training.
        targets: names of layers; "all-linear" for every linear layer of the body.
    """

    shorthand: ClassVar[str] = "rank"

    rank: Count = 16
    alpha: Annotated[float, Range(gt=0)] = 32.0
    dropout: Annotated[float, Range(ge=0, lt=1)] = 0.0
    targets: tuple[str, ...] = ("all-linear",)

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
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
