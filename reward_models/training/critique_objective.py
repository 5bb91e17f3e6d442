"""What training a model that critiques and scores minimises, and its batches.

The rewards' loss is Bradley-Terry's for pairs with a winner and a weighted squared difference for ties, and a small
term keeps rewards near 0; the critiques' negative log-likelihood is added with a weight of its own (MM-RLHF).

This module imports PyTorch; import it where a model is at hand.  Not covered: several heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from adjudge.engines.reward_network import RewardNetwork, pooled
from adjudge.reward_models.training import losses
from adjudge.reward_models.training.rows import Span, micro_batches, padded


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueRow:
    """A pair as two rows of tokens.

    Attributes:
        chats: of the better answer and of the worse one, each with its critique; `start` is the critique's first token.
        written: whether there is a critique to learn to write, of each.
        tie: neither answer is better.
        weight: how much the pair counts.
    """

    chats: tuple[Span, Span]
    written: tuple[bool, bool]
    tie: bool = False
    weight: float = 1.0

    @property
    def length(self) -> int:
        """Tokens of the longer row."""
        return max(len(chat.tokens) for chat in self.chats)


class CritiqueBatches:
    """Makes the forward passes of a step.

    Args:
        rows: all pairs.
        pad: id of the padding token.
        budget: most tokens of a forward pass, padding included.
    """

    def __init__(self, rows: Sequence[CritiqueRow], *, pad: int, budget: int) -> None:
        self._rows = rows
        self._pad = pad
        self._budget = budget

    def __call__(self, places: Sequence[int]) -> list[dict[str, Tensor]]:
        """Return the forward passes of a step that trains on these pairs; weights of all passes sum to 1.

        Rows 2i and 2i + 1 of a pass are the better and the worse answer of its pair i.
        """
        rows = [self._rows[place] for place in places]
        total = sum(row.weight for row in rows) or 1.0
        critiques = sum(sum(row.written) for row in rows) or 1
        lengths = [len(chat.tokens) for row in rows for chat in row.chats]
        found = []
        for chosen in micro_batches(lengths, [[2 * at, 2 * at + 1] for at in range(len(rows))], self._budget):
            mine = [rows[at] for at in chosen]
            found.append(
                {
                    **padded([chat.tokens for row in mine for chat in row.chats], self._pad),
                    "ties": torch.tensor([row.tie for row in mine]),
                    "weights": torch.tensor([row.weight / total for row in mine]),
                    **_written(mine, 1 / critiques),
                }
            )
        return found


def _written(rows: Sequence[CritiqueRow], share: float) -> dict[str, Tensor]:
    """The tokens of critiques: their row, their place, and what their log-probability weighs."""
    lines: list[int] = []
    places: list[int] = []
    weights: list[float] = []
    for at, row in enumerate(rows):
        for side, chat in enumerate(row.chats):
            if not row.written[side]:
                continue
            tokens = range(chat.start, len(chat.tokens))
            lines += [2 * at + side] * len(tokens)
            places += tokens
            weights += [share / len(tokens)] * len(tokens)
    return {
        "text_rows": torch.tensor(lines, dtype=torch.long),
        "text_places": torch.tensor(places, dtype=torch.long),
        "text_weights": torch.tensor(weights, dtype=torch.float32),
    }


class CritiqueObjective(nn.Module):
    """A language model with a head that reads the end of its critique.

    Args:
        network: the model's body with the head.
        language_head: from hidden states to logits.
        language: weight of the critiques' likelihood.
        ties: weight of the squared difference of tied rewards.
        centering: weight of the squared sum of two rewards.
        bf16: compute the body in bfloat16; the head and the loss stay in 32 bits.
    """

    def __init__(
        self,
        network: RewardNetwork,
        language_head: nn.Module,
        *,
        language: float = 1.0,
        ties: float = 1.0,
        centering: float = 0.01,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.language_head = language_head
        self._language, self._ties, self._centering, self._bf16 = language, ties, centering, bf16

    @property
    def config(self) -> Any:
        """The body's configuration, which the Trainer looks at."""
        return self.network.config

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        ties: Tensor,
        weights: Tensor,
        text_rows: Tensor,
        text_places: Tensor,
        text_weights: Tensor,
    ) -> dict[str, Any]:
        """Return the shares of the loss and of the numbers; see `CritiqueBatches`."""
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self._bf16):
            hidden = self.network.backbone(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            rewards = self.network.head(pooled(hidden, attention_mask, self.network.pooling))[:, 0]
            logits = self.language_head(hidden[text_rows, text_places - 1]).float()
        better, worse = rewards[0::2], rewards[1::2]
        apart = torch.where(ties, self._ties * (better - worse) ** 2, losses.bt(better, worse))
        center = losses.centering(better, worse)
        told = logits.gather(1, input_ids[text_rows, text_places].unsqueeze(1)).squeeze(1) - logits.logsumexp(1)
        written = -(told * text_weights).sum()
        loss = ((apart + self._centering * center) * weights).sum() + self._language * written
        decided = weights * ~ties
        right = ((better > worse) * decided).sum().detach()
        return {
            "loss": loss,
            "numbers": {
                "accuracy": right,
                "language": written.detach(),
                "gap": ((better - worse) * decided).sum().detach(),
            },
        }

    def rewards(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the rewards of finished chats, (rows,)."""
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self._bf16):
            found: Tensor = self.network(input_ids, attention_mask)[:, 0]
            return found
