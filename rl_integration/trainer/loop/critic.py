"""The value model of objectives with a critic: a copy of the policy's body with one number for each token.

Not covered: values over bins, and sharing the body with the policy.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from adjudge.rl_integration.trainer.rollouts.token_rows import TokenRows


class ValueModel(nn.Module):
    """Predicts, before each token of an answer, the reward that is still to come.

    Args:
        model: the policy's causal language model; what is trained of its body is copied, frozen weights are shared.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        body = model.base_model
        frozen = {id(value): value for value in body.parameters() if not value.requires_grad}
        self.body = copy.deepcopy(body, frozen)
        width = int(model.config.get_text_config().hidden_size)
        self.head = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)  # it begins by knowing nothing, not by guessing
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: TokenRows) -> Tensor:
        """Return (n, R) values of the states before the answers' tokens."""
        found = self.body(
            input_ids=rows.input_ids,
            attention_mask=rows.attention_mask,
            position_ids=rows.position_ids,
            use_cache=False,
        )
        width = rows.answer_ids.shape[1]
        before: Tensor = found.last_hidden_state[:, -width - 1 : -1]
        values: Tensor = self.head(before.float())[..., 0]
        return values
