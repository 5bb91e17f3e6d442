"""Log-probabilities of tokens under a causal language model, without a number for each token of its vocabulary.

The model's body makes the states, and its last linear layer turns a bounded number of them at a time into logits, which
are gone before the next ones come; the backward pass makes them again.  Between the two passes stay the states and
three numbers for each token.

By arithmetic, for 8,192 tokens over a vocabulary of 152,000: logits are 5.0 GB in 32 bits, and autograd holds about
three of these.  Here they are at most 128 MB on a GPU, with two or three more of that size while their gradients are
made, and half of one in bfloat16.  Beside that, a layer of width d that is trained has a gradient of 152,000 d numbers,
as it has anyway (0.3 GB at 512).

A model whose logits are not what its last linear layer returns (a soft cap, a scale, low-rank factors beside it) makes
its own, of the last columns alone; they are then gone through in parts, and one number for each token is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_LOG = logging.getLogger(__name__)

_PART = {"cpu": 1 << 20, "cuda": 1 << 25}
"""Logits that are there at a time: on a CPU as many as its cache holds, on a GPU as many as keep it busy (128 MB)."""

_TOKENS = 128  # at least, so that reading the layer's weights costs less than multiplying by them


def base_model(model: Any) -> Any:
    """Return the model of `transformers` that peft may have wrapped."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def token_logprobs(
    model: Any,
    inputs: dict[str, Tensor],
    places: Tensor,
    *,
    columns: int,
    temperature: float = 1.0,
    steer: bool = False,
    shared: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of tokens given those before them, in nats, and entropies of what they were drawn from.

    Call it in the autocast context that the model computes in.

    Args:
        model: a causal language model of `transformers`, with or without low-rank factors of peft.
        inputs: its arguments; `input_ids` are (n, T).
        places: (m,) int64, on the model's device: row * T + column of the tokens, none twice and none in column 0.
        columns: all the tokens are in the last so many columns.
        temperature: what logits are divided by; above 0.
        steer: whether entropies have gradients, too.
        shared: read what stands before those columns once for all rows in which it is the same, where the model's head
            is plain.

    Returns:
        (m,) and (m,), in 32 bits, or in 64 where the model computes in these.
    """
    base, ids = base_model(model), inputs["input_ids"]
    before, targets = places - 1, ids.flatten()[places]
    head = plain_head(base)
    if head is not None:
        if shared and columns < ids.shape[1]:
            states = _shared_states(base.base_model, **inputs, prompt=ids.shape[1] - columns)
        else:
            states = base.base_model(**inputs, use_cache=False).last_hidden_state
        weights: tuple[Any, Any] = head.weight, head.bias
    else:
        keep = {"logits_to_keep": columns + 1} if columns + 1 < ids.shape[1] else {}
        states, weights = base(**inputs, use_cache=False, **keep).logits, (None, None)
        left_out = ids.shape[1] - states.shape[1]
        before = before - (before // ids.shape[1] + 1) * left_out
    logprobs, entropies = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        states.flatten(0, 1), *weights, before, targets, temperature, steer
    )
    return logprobs, entropies


def _shared_states(
    body: Any, *, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, prompt: int
) -> Tensor:
    """The last states (n, T, d) of rows whose first columns are prompts, of which each is read once."""
    from transformers import DynamicCache

    begins = torch.stack([one[:, :prompt] for one in (input_ids, attention_mask, position_ids)], dim=1)
    once, which = torch.unique(begins, dim=0, return_inverse=True)
    cache = DynamicCache(config=body.config)
    before = body(
        input_ids=once[:, 0], attention_mask=once[:, 1], position_ids=once[:, 2], past_key_values=cache, use_cache=True
    ).last_hidden_state
    cache.batch_select_indices(which)
    after = body(
        input_ids=input_ids[:, prompt:],
        attention_mask=attention_mask,
        position_ids=position_ids[:, prompt:],
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    return torch.cat((before[which], after), dim=1)


_PLAIN: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def plain_head(model: Any) -> nn.Linear | None:
    """The layer that makes the model's logits of its body's last states; None where more happens to them."""
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:  # what has factors beside it is another type
        return None
    if model not in _PLAIN:
        _PLAIN[model] = _makes_logits(model, head)
        if not _PLAIN[model]:
            _LOG.info("%s changes the logits of its head, so they are made whole", type(model).__name__)
    return head if _PLAIN[model] else None


@torch.no_grad()
def _makes_logits(model: Any, head: nn.Linear) -> bool:
    """Try it on three tokens: no list of the options that scale or cap logits would be complete."""
    seen: list[Any] = []
    hooks = [
        model.base_model.register_forward_hook(lambda _, inputs, output: seen.append(output)),
        head.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output))),
    ]
    training = model.training
    model.eval()
    try:
        logits = model(input_ids=torch.arange(3, device=model.device).unsqueeze(0), use_cache=False).logits
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    states, read, written = (*seen, None, None, None)[:3]
    states = getattr(states, "last_hidden_state", None)
    return bool(logits.any()) and all(  # a scale leaves zeros as they are, which the padding token may give
        isinstance(one, Tensor)
        and isinstance(other, Tensor)
        and one.shape == other.shape
        and torch.equal(one.float(), other.float())
        for one, other in ((states, read), (written, logits))
    )


class _TokenLogprobs(torch.autograd.Function):
    """Of states (N, d) and a linear layer, or of logits (N, V) and none: (m,) numbers of the rows at `places`.

    The gradients, with z = logits / temperature, p = softmax(z) and H the entropy:
    d logp(a) / dz = 1[a] - p and dH / dz = -p (log p + H).
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        places: Tensor,
        ids: Tensor,
        temperature: float,
        steer: bool,
    ) -> tuple[Tensor, Tensor]:
        ctx.kind = torch.float64 if states.dtype == torch.float64 else torch.float32
        ctx.coarse = states.dtype if weight is None else weight.dtype
        if weight is not None and torch.is_autocast_enabled(states.device.type):
            ctx.coarse = torch.get_autocast_dtype(states.device.type)
        ctx.temperature, ctx.steer = temperature, steer
        logprobs = torch.empty(ids.shape, dtype=ctx.kind, device=states.device)
        entropies, normals = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for part, _, z in _parts(ctx, states, weight, bias, places):
            normal = z.logsumexp(-1)
            normals[part] = normal
            logprobs[part] = z.gather(-1, ids[part].unsqueeze(-1)).squeeze(-1) - normal
            entropies[part] = normal - torch.softmax(z, -1).mul_(z).sum(-1)
        ctx.save_for_backward(states, weight, bias, places, ids, normals, entropies)
        if not steer:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        by_logprob, by_entropy = (grad.unsqueeze(-1) for grad in grads)
        states, weight, bias, places, ids, normals, entropies = ctx.saved_tensors
        grad_states = torch.zeros_like(states)
        grad_weight = torch.zeros_like(weight, dtype=ctx.kind) if ctx.needs_input_grad[1] else None
        grad_bias = torch.zeros_like(bias, dtype=ctx.kind) if ctx.needs_input_grad[2] else None
        coarse = None if weight is None else weight.to(ctx.coarse)
        for part, given, z in _parts(ctx, states, coarse, bias, places):
            logp, wanted = z.sub_(normals[part].unsqueeze(-1)), by_logprob[part]
            if ctx.steer:
                change = (logp + entropies[part].unsqueeze(-1)).mul_(by_entropy[part]).add_(wanted)
                change.mul_(logp.exp_()).neg_()
            else:
                change = logp.exp_().mul_(-wanted)
            change.scatter_add_(-1, ids[part].unsqueeze(-1), wanted)
            change.div_(ctx.temperature)
            if grad_bias is not None:
                grad_bias += change.sum(0)
            change = change.to(ctx.coarse)
            if grad_weight is not None:
                if ctx.coarse == ctx.kind:
                    grad_weight.addmm_(change.T, given)
                else:
                    grad_weight += change.T @ given
            grad_states[places[part]] = (change if coarse is None else change @ coarse).to(states.dtype)
        return (
            grad_states,
            None if grad_weight is None or weight is None else grad_weight.to(weight.dtype),
            None if grad_bias is None or bias is None else grad_bias.to(bias.dtype),
            *(None,) * 4,
        )


def _parts(
    ctx: Any, states: Tensor, weight: Tensor | None, bias: Tensor | None, places: Tensor
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """A bounded number of places at a time: which, their states, and their logits / temperature, free to change."""
    coarse, shift = (None if one is None else one.to(ctx.coarse) for one in (weight, bias))
    vocabulary = states.shape[-1] if weight is None else len(weight)
    step = max(1 if weight is None else _TOKENS, _PART.get(states.device.type, _PART["cuda"]) // vocabulary)
    for begin in range(0, len(places), step):
        part = slice(begin, begin + step)
        given = states[places[part]].to(ctx.coarse)
        z = (given if coarse is None else linear(given, coarse, shift)).to(ctx.kind)
        yield part, given, z.div_(ctx.temperature)
