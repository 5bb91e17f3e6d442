"""What training a model that critiques and scores minimises, and its batches.

The rewards' loss is Bradley-Terry's for pairs with a winner and a weighted squared difference for ties, and a small
term keeps rewards near 0; the critiques' negative log-likelihood is added with a weight of its own (MM-RLHF).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from adjudge.engines.reward_network import RewardNetwork
from adjudge.reward_models.training import losses
from adjudge.reward_models.training.critique_data import CritiquePair
from adjudge.reward_models.training.objective import HeadedNetwork
from adjudge.reward_models.training.rows import Batches, Unit


class CritiqueBatches(Batches[CritiquePair]):
    """Pairs with critiques; rows 2i and 2i + 1 of a pass are the better and the worse answer of its pair i."""

    def step(self, units: Sequence[Unit[CritiquePair]], places: Sequence[int]) -> Callable[[list[int]], dict[str, Any]]:
        """Return what makes the tensors of a pass."""
        total = sum(unit.example.weight for unit in units) or 1.0
        written = sum(critique is not None for unit in units for critique in unit.example.critiques) or 1

        def tensors(chosen: list[int]) -> dict[str, Any]:
            mine = [units[at] for at in chosen]
            return {
                "ties": torch.tensor([unit.example.tie for unit in mine]),
                "weights": torch.tensor([unit.example.weight / total for unit in mine]),
                **_written(mine, 1 / written),
            }

        return tensors


def _written(units: Sequence[Unit[CritiquePair]], share: float) -> dict[str, Tensor]:
    """The tokens of critiques: their row, their place, and what their log-probability weighs."""
    tokens = [
        (2 * at + side, place, share / span.size)
        for at, unit in enumerate(units)
        for side, span in enumerate(unit.spans)
        if unit.example.critiques[side] is not None
        for place in range(span.start, len(span.tokens))
    ]
    return {
        "text_rows": torch.tensor([row for row, _, _ in tokens], dtype=torch.long),
        "text_places": torch.tensor([place for _, place, _ in tokens], dtype=torch.long),
        "text_weights": torch.tensor([weight for _, _, weight in tokens], dtype=torch.float32),
    }


class CritiqueObjective(HeadedNetwork):
    """A language model with a head that reads the end of its critique.

    The weights are of the critiques' likelihood, of the squared difference of tied rewards, and of the squared sum of
    two rewards.
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
        super().__init__(network, bf16=bf16, language_head=language_head)
        self._language, self._ties, self._centering = language, ties, centering

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
        raw, logits = self.read_and_write(input_ids, attention_mask, text_rows, text_places - 1)
        better, worse = raw[0::2, 0], raw[1::2, 0]
        apart = torch.where(ties, self._ties * (better - worse) ** 2, losses.bt(better, worse))
        center = losses.centering(better, worse)
        logits = logits.float()
        said = logits.gather(1, input_ids[text_rows, text_places].unsqueeze(1)).squeeze(1) - logits.logsumexp(1)
        written = -(said * text_weights).sum()
        loss = ((apart + self._centering * center) * weights).sum() + self._language * written
        decided = weights * ~ties
        numbers = {
            "accuracy": ((better > worse) * decided).sum(),
            "language": written,
            "gap": ((better - worse) * decided).sum(),
        }
        return {"loss": loss, "numbers": {name: value.detach() for name, value in numbers.items()}}

    def rewards(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the rewards of finished chats, (rows,)."""
        return self.read(input_ids, attention_mask)[:, 0]
