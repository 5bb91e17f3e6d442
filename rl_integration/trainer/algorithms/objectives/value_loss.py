"""PPO's loss of the value model.

    l_t = 1/2 max( (V - R)², (clip(V, V_old - range, V_old + range) - R)² ),   L = mean over tokens

R are the returns of `Gae`.  Clipping keeps a value from moving far in one update; range None leaves it out.

Not covered: quantile and histogram heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.tokens import LossValue, Totals
from adjudge.rl_integration.trainer.contract.options import check_above, check_min


@dataclass(frozen=True, kw_only=True)
class ValueLoss:
    """The clipped squared error of values; see the module.

    Attributes:
        clip: the range; None for no clipping.
        weight: what the loss is multiplied by.
    """

    clip: float | None = 0.2
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.clip is not None:
            check_above("clip", self.clip, 0.0)
        check_min("weight", self.weight, 0.0)

    def __call__(
        self, values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, *, totals: Totals | None = None
    ) -> LossValue:
        """Return the loss and its metrics.

        Args:
            values: (n, t) of the value model, with gradient.
            old_values: (n, t) when the rollouts were scored.
            returns: (n, t) targets.
            mask: (n, t) tokens of the policy, of samples that take part.
            totals: of the whole update, where this is a part of it.

        Raises:
            ValueError: shapes differ.
        """
        for name, given in (("old_values", old_values), ("returns", returns), ("mask", mask)):
            if given.shape != values.shape:
                raise ValueError(f"{name} has the shape {tuple(given.shape)}; it must be {tuple(values.shape)}")
        hidden = ~mask.bool()
        value, old, target = (
            given.masked_fill(hidden, 0.0) for given in (values, old_values.detach(), returns.detach())
        )
        squares = (value - target) ** 2
        count = max(1, totals.tokens if totals is not None else int(mask.sum()))
        outside = torch.zeros_like(squares)
        if self.clip is not None:
            near = torch.maximum(torch.minimum(value, old + self.clip), old - self.clip)
            other = (near - target) ** 2
            outside = (other > squares).to(squares.dtype)
            squares = torch.maximum(squares, other)
        loss = self.weight * squares.sum() / 2 / count
        metrics = {
            "value_clip_ratio": outside.sum() / count,
            "value_error": ((value - target) ** 2).detach().sum() / count,
        }
        return LossValue(loss=loss, metrics=metrics)
