"""Rollouts as tensors, prompts ending and answers beginning in the same column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adjudge.rl_integration.trainer.data.task import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """A batch of n rollouts, prompts padded on the left to P tokens and answers on the right to R.

    Attributes:
        input_ids: (n, P + R) int64.
        attention_mask: (n, P + R) 1 at tokens, 0 at padding.
        position_ids: (n, P + R) the first token of a row has 0.
        answer_ids: (n, R) int64.
        own: (n, R) bool: tokens that the policy wrote; neither a tool's nor padding.
        places: (m,) int64 row * R + column of each token in `own`: a GPU need not be waited for to know how many.
        behaviour: (n, R) float32 log-probabilities when they were written; 0 where there is no token.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    answer_ids: Tensor
    own: Tensor
    places: Tensor
    behaviour: Tensor

    def to(self, device: Any) -> TokenRows:
        """Return them on another device."""
        return TokenRows(**{name: getattr(self, name).to(device) for name in self.__slots__})


def token_rows(rollouts: Sequence[Rollout], *, pad: int) -> TokenRows:
    """Return rollouts as tensors on the CPU."""
    before = max(len(rollout.prompt_ids) for rollout in rollouts)
    after = max(len(rollout.ids) for rollout in rollouts)
    input_ids = torch.full((len(rollouts), before + after), pad, dtype=torch.int64)
    mask = torch.zeros_like(input_ids)
    own = torch.zeros((len(rollouts), after), dtype=torch.bool)
    behaviour = torch.zeros((len(rollouts), after), dtype=torch.float32)
    for row, rollout in enumerate(rollouts):
        length, ids = len(rollout.ids), (*rollout.prompt_ids, *rollout.ids)
        begin = before - len(rollout.prompt_ids)
        input_ids[row, begin : begin + len(ids)] = torch.tensor(ids)
        mask[row, begin : begin + len(ids)] = 1
        own[row, :length] = torch.from_numpy(rollout.own)
        behaviour[row, :length] = torch.from_numpy(rollout.logprobs)
    return TokenRows(
        input_ids=input_ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        answer_ids=input_ids[:, before:],
        own=own,
        places=own.flatten().nonzero()[:, 0],
        behaviour=behaviour,
    )


def within_budget(rollouts: Sequence[Rollout], units: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Yield places in batches of at most so many tokens, padding included; a unit that is longer goes alone.

    Args:
        rollouts: all of them.
        units: places that must stay together.
        tokens: the budget.
    """
    batch: list[int] = []
    before = after = 0
    for unit in sorted(units, key=lambda unit: (sum(_widths(rollouts, unit)), unit[0])):
        prompt, answer = _widths(rollouts, unit)
        wider, longer = max(before, prompt), max(after, answer)
        if batch and (len(batch) + len(unit)) * (wider + longer) > tokens:
            yield batch
            batch, wider, longer = [], prompt, answer
        batch += unit
        before, after = wider, longer
    if batch:
        yield batch


def padded_tokens(rollouts: Sequence[Rollout], places: Sequence[int]) -> int:
    """Return the tokens of a pass over some of the rollouts, padding included."""
    return len(places) * sum(_widths(rollouts, places))


def _widths(rollouts: Sequence[Rollout], places: Sequence[int]) -> tuple[int, int]:
    prompt = max(len(rollouts[place].prompt_ids) for place in places)
    return prompt, max(len(rollouts[place].ids) for place in places)
