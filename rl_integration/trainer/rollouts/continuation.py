"""Rows of tokens that a model goes on with, one token at a time, over its cache of keys and values.

Not covered: what the next token is (`sampler`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Continuation:
    """Prompts read once, and the rows that go on from them.

    Args:
        model: a causal language model of `transformers`.
        prompts: tokens, [prompts, longest], padded on the left.
        lengths: tokens of each prompt, [prompts].
        max_tokens: tokens that will follow.
    """

    def __init__(self, model: Any, prompts: Tensor, lengths: Tensor, max_tokens: int) -> None:
        from transformers import DynamicCache

        self._model = model
        self._cache: Any = DynamicCache(config=model.config)
        longest = prompts.shape[1]
        columns = torch.arange(longest + max_tokens, device=prompts.device)
        # Columns to come are already open: what is handed to the model ends at the column it is at.
        self._mask = (columns >= (longest - lengths)[:, None]).long()
        self._next = lengths
        self._column = longest
        self._prompts = prompts

    def read(self) -> Tensor:
        """Read the prompts; return the logits of the token that follows each, [prompts, vocabulary]."""
        mask = self._mask[:, : self._column]
        return self._forward(self._prompts, mask, (mask.cumsum(-1) - 1).clamp(min=0))

    def repeat(self, times: int) -> None:
        """Make each row so many rows, side by side."""
        if times > 1:
            self._cache.batch_repeat_interleave(times)
            self._mask = self._mask.repeat_interleave(times, 0)
            self._next = self._next.repeat_interleave(times, 0)

    def keep(self, rows: Tensor) -> None:
        """Go on with some rows alone, in the order given."""
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]
        self._next = self._next[rows]

    def append(self, tokens: Tensor) -> Tensor:
        """Add a token to each row; return the logits of the one after it, [rows, vocabulary]."""
        self._column += 1
        found = self._forward(tokens[:, None], self._mask[:, : self._column], self._next[:, None])
        self._next = self._next + 1
        return found

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        found = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = found.logits[:, -1].float()
        return logits
