"""A reward model as a PyTorch module: a body without its language head, a pooling rule, and a head in 32 bits.

Pooling looks at the attention mask and never at token ids: a test for the padding token passes over a real end token
where the two are one, and so reads another place than the one that was trained.  Padding may stand on either side.

This module imports PyTorch; import it where a model is at hand.

Heads as PyTorch modules: hidden states in, raw numbers out, in 32 bits whatever the body computes in.

In bfloat16 a score has three digits, and so ties where there are none; heads cost nothing beside a body, so they stay
in 32 bits through `.to`, `.half`, autocast and saving.

Not covered: losses and training (`adjudge.reward_models.training`), and fast scoring (the engines).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from adjudge.engines import reward_checkpoint
from adjudge.engines.checkpoint_notes import CheckpointNotes
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
        attributes = config.outputs if config.kind == "gating" else config.columns
        self.inner: nn.Module = nn.Identity()
        last = width
        if config.kind == "mlp":
            last = config.hidden or width
            self.inner = _layers(config, width)
        self.score = nn.Linear(last, attributes, bias=config.bias)
        self.gate: nn.Module | None = None
        if config.kind == "gating":
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
            found: torch.Tensor = self.score(self.inner(given))
            return found if self.gate is None else torch.cat([found, self.gate(given)], dim=-1)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        """Follow the body to its device, and not to its type."""

        def kept(given: torch.Tensor) -> torch.Tensor:
            moved = fn(given)
            if not given.is_floating_point() or moved.dtype == given.dtype:
                return moved
            return moved.float() if given.is_meta else given.to(moved.device, torch.float32)

        return super()._apply(kept, recurse)  # type: ignore[no-untyped-call]


def head_network(config: HeadConfig, width: int) -> HeadNetwork:
    """Return a head with fresh weights, drawn with PyTorch's generator of the CPU, which the caller seeds.

    Args:
        config: the head's shape.
        width: of the hidden states.
    """
    return HeadNetwork(config, width)


def _layers(config: HeadConfig, width: int) -> nn.Sequential:
    """Hidden layers, each with its activation."""
    found: list[nn.Module] = []
    for number in range(config.depth):
        given = width if number == 0 else config.hidden or width
        found += [nn.Linear(given, config.hidden or width), _ACTIVATIONS[config.activation]()]
    return nn.Sequential(*found)


class RewardNetwork(nn.Module):
    """A body with a head.

    Args:
        backbone: a model of `transformers` whose output has `last_hidden_state` (what `AutoModel` loads).
        head: what reads its hidden states.
    """

    def __init__(self, backbone: nn.Module, head: HeadNetwork):
        super().__init__()
        self.backbone: Any = backbone
        self.head = head
        inner: Any = getattr(backbone, "get_base_model", lambda: backbone)()  # an adapter's own signature tells nothing
        self._takes_positions = "position_ids" in inspect.signature(inner.forward).parameters

    @classmethod
    def on(cls, backbone: Any, config: HeadConfig) -> RewardNetwork:
        """Return a network with a fresh head on a body; the head is drawn from PyTorch's generator, which you seed.

        Raises:
            ValueError: the model has a language head; its body is wanted.
        """
        if getattr(backbone, "get_output_embeddings", lambda: None)() is not None:
            raise ValueError(f"{type(backbone).__name__} has a head of its own; give its body, `model.base_model`")
        head = head_network(config, reward_checkpoint.width(backbone))
        return cls(backbone, head.to(next(backbone.parameters()).device))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **options: Any) -> RewardNetwork:
        """Return the network that `save` wrote, in evaluation mode.

        Args:
            folder: with `adjudge.json`.
            options: for `from_pretrained` of the body, such as `dtype` and `attn_implementation`.

        Raises:
            ValueError: the folder has no notes, or lacks weights.
        """
        return cls(*reward_checkpoint.load(folder, **options)).eval()

    def save(
        self,
        folder: str | os.PathLike[str],
        tokenizer: Any,
        notes: CheckpointNotes,
        *,
        language_model: Any = None,
    ) -> None:
        """Write body, head, tokenizer and notes into a folder; `adjudge.engines.reward_checkpoint` says how.

        Args:
            folder: where to; it is made.
            tokenizer: the model's; what is saved has a padding token that is not its end token.
            notes: what the folder should say of itself; `notes.head` must be this network's.
            language_model: a causal language model around the same body, for models that also write (critiques); then
                it is what is saved, with the head beside it.

        Raises:
            ValueError: the notes are of another head, or the body is wrapped (merge adapters first).
        """
        reward_checkpoint.save(self.backbone, self.head, folder, tokenizer, notes, language_model=language_model)

    @property
    def config(self) -> Any:
        """The body's configuration, which trainers look at."""
        return self.backbone.config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def pooling(self) -> str:
        """Where the head reads: see `HeadConfig.pooling`."""
        return self.head.config.pooling

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        prompt_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return raw numbers: (rows, columns), or (rows, length, columns) where the pooling is "tokens".

        Args:
            input_ids: (rows, length).
            attention_mask: (rows, length), 1 where a token is; rows may be padded on either side.
            position_ids: (rows, length); None counts the tokens of each row from 0.
            prompt_lengths: (rows,) tokens of each prompt; a gate reads the last of them.  Only for "gating".

        Raises:
            ValueError: a gate is not told where prompts end.
        """
        if position_ids is None and self._takes_positions and not bool(attention_mask[:, 0].all()):
            position_ids = (attention_mask.long().cumsum(1) - 1).clamp_min(0)
        more = {} if position_ids is None else {"position_ids": position_ids}
        hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state
        found: torch.Tensor
        if self.pooling == "tokens":
            found = self.head(hidden)
            return found
        found = self.head(pooled(hidden, attention_mask, self.pooling))
        if self.head.gate is None:
            return found
        if prompt_lengths is None:
            raise ValueError("a gating head reads the prompt's end as well; give prompt_lengths")
        ends = edges(attention_mask)[0] + prompt_lengths.to(attention_mask.device) - 1
        attributes = self.head.config.outputs
        gates = self.head(hidden[torch.arange(len(hidden), device=hidden.device), ends])
        return torch.cat([found[:, :attributes], gates[:, attributes:]], dim=-1)

    def gradient_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        """Hand the call on to the body, as trainers expect."""
        self.backbone.gradient_checkpointing_enable(*args, **kwargs)

    def gradient_checkpointing_disable(self) -> None:
        """Hand the call on to the body."""
        self.backbone.gradient_checkpointing_disable()


def edges(attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the places of each row's first and last token: (rows,) each."""
    length = attention_mask.shape[1]
    places = torch.arange(length, device=attention_mask.device).expand(attention_mask.shape)
    empty = attention_mask == 0
    return places.masked_fill(empty, length).amin(1), places.masked_fill(empty, -1).amax(1)


def pooled(hidden: torch.Tensor, attention_mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one hidden state for each row, (rows, width), of (rows, length, width); "mean" in 32 bits."""
    if pooling == "mean":
        weights = attention_mask.to(hidden.device, torch.float32).unsqueeze(-1)
        return (hidden.float() * weights).sum(1) / weights.sum(1)
    first, last = edges(attention_mask)
    return hidden[torch.arange(len(hidden), device=hidden.device), first if pooling == "first" else last]
