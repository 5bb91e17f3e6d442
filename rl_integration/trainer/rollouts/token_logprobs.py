"""Log-probabilities of tokens and entropies from logits, without a second copy of the logits.

A batch of long answers has more logits than anything else: 8 answers of 4,096 tokens over 150,000 tokens are 20 GB in
32 bits.  Written with `log_softmax` and autograd, several copies of them live at a time.  Here the forward pass goes
through a part of the rows at a time and keeps one number for each token, and the backward pass writes the one tensor
that the model needs, the gradient of its logits.

Not covered: never making the logits at all; models differ in what they do behind their last layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

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
    found: tuple[Tensor, Tensor] = _TokenLogprobs.apply(logits, ids, temperature, steer)  # type: ignore[no-untyped-call]
    return found


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
        found = torch.zeros_like(logits)
        for part in _parts(logits):
            logp = (logits[part].to(normals.dtype) / ctx.temperature).sub_(normals[part].unsqueeze(-1))
            wanted = by_logprob[part].unsqueeze(-1)
            change = wanted.expand_as(logp)
            if ctx.steer:
                change = change + (logp + entropies[part].unsqueeze(-1)) * by_entropy[part].unsqueeze(-1)
            change = logp.exp().mul_(change).neg_()
            change.scatter_add_(-1, ids[part].unsqueeze(-1), wanted)
            found[part] = change.div_(ctx.temperature).to(found.dtype)
        return found, None, None, None


def _parts(logits: Tensor) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of all logits but the last column's, a bounded number at a time: short rows, or parts of one."""
    rows, columns, vocabulary = logits.shape
    columns -= 1
    positions = max(1, _PART.get(logits.device.type, _PART["cuda"]) // vocabulary)
    height, width = max(1, positions // max(1, columns)), max(1, min(columns, positions))
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            yield slice(row, row + height), slice(column, min(column + width, columns))
