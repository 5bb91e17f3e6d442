"""Heads as PyTorch modules: hidden states in, raw numbers out, in 32 bits whatever the body computes in.

In bfloat16 a score has three digits, and so ties where there are none; heads cost nothing beside a body, so they stay
in 32 bits through `.to`, `.half`, autocast and saving.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from adjudge.engines.head_config import HeadConfig

_ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "selu": nn.SELU,
}


class HeadNetwork(nn.Module):
    """A head of a reward model.

    The names of its weights are part of the checkpoint format: `score` is the layer that gives the numbers, `inner`
    holds the hidden layers before it, and `gate` the network that weighs them.

    Args:
        config: the head's shape.
        width: of the hidden states.
    """

    def __init__(self, config: HeadConfig, width: int):
        super().__init__()
        self.config = config
        self.width = width
        attributes = config.outputs if config.has_gate else config.columns
        self.inner: nn.Module = nn.Identity()
        last = width
        if config.kind == "mlp":
            last = config.hidden or width
            self.inner = _layers(config, width)
        self.score = nn.Linear(last, attributes, bias=config.bias)
        self.gate: nn.Module | None = None
        if config.has_gate:
            self.gate = nn.Sequential(
                *_layers(config, width), nn.Linear(config.hidden or width, attributes, bias=config.bias)
            )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                # Rewards of about 1 for hidden states of about 1 (arXiv 2009.01325, appendix B).
                nn.init.normal_(module.weight, std=(module.in_features + 1) ** -0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return raw numbers, (..., columns), for hidden states, (..., width)."""
        with torch.autocast(hidden.device.type, enabled=False):
            given = hidden.float()
            numbers: torch.Tensor = self.score(self.inner(given))
            return numbers if self.gate is None else torch.cat([numbers, self.gate(given)], dim=-1)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        """Follow the body to its device, and not to its type."""

        def kept(given: torch.Tensor) -> torch.Tensor:
            moved = fn(given)
            if not given.is_floating_point() or moved.dtype == given.dtype:
                return moved
            return moved.float() if given.is_meta else given.to(moved.device, torch.float32)

        return super()._apply(kept, recurse)  # type: ignore[no-untyped-call]


def _layers(config: HeadConfig, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number in range(config.depth):
        given = width if number == 0 else config.hidden or width
        layers += [nn.Linear(given, config.hidden or width), _ACTIVATIONS[config.activation]()]
    return nn.Sequential(*layers)
