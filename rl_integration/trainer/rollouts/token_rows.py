"""Rollouts as tensors, prompts ending and answers beginning in the same column; and log-probabilities of their tokens.

The logits of the answers are one slice, those of the prompts are never made, and there is no second copy of them: 8
answers of 4,096 tokens over 150,000 tokens are 20 GB in 32 bits.  The forward pass goes through a part of the rows at
a time and keeps one number for each token; the backward pass writes the one tensor that the model needs.
"""

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
        behaviour: (n, R) float32 log-probabilities when they were written; 0 where there is no token.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    answer_ids: Tensor
    own: Tensor
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


_PART = {"cpu": 1 << 18, "cuda": 1 << 24}
"""Logits that are in 32 bits at a time: on a CPU as many as its cache holds, on a GPU as many as keep it busy (64 MB).

4 answers of 512 tokens over 32,000, forward and backward on a CPU: 530 MB and 1.0 s, where autograd takes 1,510 MB and
1.8 s; the logits are 250 MB.
"""


def token_logprobs(logits: Tensor, ids: Tensor, *, temperature: float, steer: bool) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of tokens, in nats, and entropies of the distributions they are from.

    Args:
        logits: (n, R + 1, V) of any type of number; those of the last column are not looked at.
        ids: (n, R) tokens.
        temperature: what logits are divided by.
        steer: whether entropies have gradients, too.

    Returns:
        (n, R) and (n, R), in 32 bits, or in 64 where the logits are.
    """
    logprobs, entropies = _TokenLogprobs.apply(logits, ids, temperature, steer)  # type: ignore[no-untyped-call]
    return logprobs, entropies


class _TokenLogprobs(torch.autograd.Function):
    """The gradients, with z = logits / temperature, p = softmax(z) and H the entropy.

    d logp(a) / dz = 1[a] - p and dH / dz = -p (log p + H).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor, temperature: float, steer: bool) -> tuple[Tensor, Tensor]:
        kind = torch.float64 if logits.dtype == torch.float64 else torch.float32
        logprobs = torch.empty(ids.shape, dtype=kind, device=logits.device)
        entropies, normals = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for part in _parts(logits):
            z = logits[part].to(kind) / temperature
            normal = z.logsumexp(-1)
            normals[part] = normal
            logprobs[part] = z.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1) - normal
            entropies[part] = normal - torch.softmax(z, -1).mul_(z).sum(-1)
        ctx.save_for_backward(logits, ids, normals, entropies)
        ctx.temperature, ctx.steer = temperature, steer
        if not steer:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        by_logprob, by_entropy = grads
        logits, ids, normals, entropies = ctx.saved_tensors
        grad_logits = torch.zeros_like(logits)
        for part in _parts(logits):
            logp = (logits[part].to(normals.dtype) / ctx.temperature).sub_(normals[part].unsqueeze(-1))
            wanted = by_logprob[part].unsqueeze(-1)
            change = wanted.expand_as(logp)
            if ctx.steer:
                change = change + (logp + entropies[part].unsqueeze(-1)) * by_entropy[part].unsqueeze(-1)
            change = logp.exp().mul_(change).neg_()
            change.scatter_add_(-1, ids[part].unsqueeze(-1), wanted)
            grad_logits[part] = change.div_(ctx.temperature).to(grad_logits.dtype)
        return grad_logits, None, None, None


def _parts(logits: Tensor) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of all logits but the last column's, a bounded number at a time: short rows, or parts of one."""
    rows, columns, vocabulary = logits.shape
    columns -= 1
    positions = max(1, _PART.get(logits.device.type, _PART["cuda"]) // vocabulary)
    height, width = max(1, positions // max(1, columns)), max(1, min(columns, positions))
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            yield slice(row, row + height), slice(column, min(column + width, columns))
