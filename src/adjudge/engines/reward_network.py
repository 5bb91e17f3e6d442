"""A reward model as a PyTorch module: a body without its language head, a pooling rule, and a head in 32 bits.

Pooling looks at the attention mask and never at token ids: a test for the padding token passes over a real end token
where the two are one, and so reads another place than the one that was trained.  Padding may stand on either side.

This module imports PyTorch; import it where a model is at hand.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import torch
from torch import nn

from adjudge.engines import reward_checkpoint
from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.head_networks import HeadNetwork


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
        """Return a network with a fresh head on a body, drawn with PyTorch's generator of the CPU, which you seed.

        Raises:
            ValueError: the model has a language head; its body is wanted.
        """
        if getattr(backbone, "get_output_embeddings", lambda: None)() is not None:
            raise ValueError(f"{type(backbone).__name__} has a head of its own; give its body, `model.base_model`")
        head = HeadNetwork(config, reward_checkpoint.width(backbone))
        return cls(backbone, head.to(next(backbone.parameters()).device))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **options: Any) -> RewardNetwork:
        """Return the network that `save` wrote, or one with a published head, in evaluation mode.

        Args:
            folder: with `adjudge.json`, or of a family in `adjudge.engines.published_heads`.
            options: for `from_pretrained` of the body, such as `dtype` and `attn_implementation`.

        Raises:
            ValueError: the folder has no notes and no head that is known, or lacks weights.
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
        numbers: torch.Tensor
        if self.pooling == "tokens":
            numbers = self.head(hidden)
            return numbers
        numbers = self.head(pooled(hidden, attention_mask, self.pooling))
        if self.head.config.kind != "gating":
            return numbers
        if prompt_lengths is None:
            raise ValueError("a gating head reads the prompt's end as well; give prompt_lengths")
        ends = edges(attention_mask)[0] + prompt_lengths.to(attention_mask.device) - 1
        attributes = self.head.config.outputs
        gates = self.head(hidden[torch.arange(len(hidden), device=hidden.device), ends])
        return torch.cat([numbers[:, :attributes], gates[:, attributes:]], dim=-1)

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
