"""What vLLM is asked with, and what its outputs say.

Every function takes a fault in place of what it works on, and hands it on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.engines.interface import (
    Completion,
    Fault,
    Generation,
    LabelLogprobs,
    Logits,
    Sampling,
    TextLogprobs,
    TokenLogits,
)
from adjudge.engines.label_tokens import NEVER, LabelTokens, Tokens
from adjudge.engines.vllm_worker import Output, Request
from adjudge.protocol import NO_COST, Cost

_FINISHED = ("stop", "length")  # vLLM also knows "abort" and "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Log-probabilities of the last token of sequences, after the prompt and the tokens before it."""

    values: Mapping[Tokens, float]
    cost: Cost


def asked(row: Tokens | Fault, **params: Any) -> Request | Fault:
    """Return the request for a row of tokens."""
    return row if isinstance(row, Fault) else Request(tokens=row, params=params)


def sampling_params(sampling: Sampling, row: Tokens | Fault) -> dict[str, Any]:
    """Return the fields of vLLM's SamplingParams; the seed is the prompt's own, so that prompts do not share luck."""
    params: dict[str, Any] = {
        "n": sampling.n,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop": list(sampling.stop),
    }
    if sampling.temperature > 0 and not isinstance(row, Fault):
        digest = hashlib.sha256(f"{sampling.seed} {','.join(map(str, row))}".encode()).digest()
        params["seed"] = int.from_bytes(digest[:4]) >> 1
    return params


def generation(output: Output | Fault) -> Generation | Fault:
    """Return completions and their cost."""
    if isinstance(output, Fault):
        return output
    parts = sorted(output.value.outputs, key=lambda part: part.index)
    for part in parts:
        if part.finish_reason not in _FINISHED:
            return Fault(reason="engine_error", detail=f"vLLM gave up (finish_reason {part.finish_reason!r})")
    completions = tuple(
        Completion(text=part.text, finish_reason=part.finish_reason, tokens=len(part.token_ids)) for part in parts
    )
    return Generation(completions=completions, cost=_cost(output, sum(part.tokens for part in completions)))


def reads(output: Output | Fault, prefix: Tokens, tokens: Sequence[int]) -> Reads | Fault:
    """Return what was read at the place after a prompt and a prefix."""
    if isinstance(output, Fault):
        return output
    found = output.value.outputs[0].logprobs[0]
    missing = [token for token in tokens if token not in found]
    if missing:
        return Fault(reason="engine_error", detail=f"vLLM returned no log-probability of the token {missing[0]}")
    return Reads(values={(*prefix, token): float(found[token].logprob) for token in tokens}, cost=_cost(output, 1))


def joined(parts: Iterable[Reads | Fault]) -> Reads | Fault:
    """Return several reads for one prompt as one; one fault spoils them all."""
    values: dict[Tokens, float] = {}
    cost = NO_COST
    for part in parts:
        if isinstance(part, Fault):
            return part
        values |= part.values
        cost += part.cost
    return Reads(values=values, cost=cost)


def label_logprobs(labels: LabelTokens, sequences: Mapping[Tokens, float], cost: Cost) -> LabelLogprobs:
    """Return labels' log-probabilities, from those of their sequences."""
    logprobs, mass = labels.summed(sequences)
    return LabelLogprobs(logprobs=logprobs, mass=mass, cost=cost)


def text_logprobs(output: Output | Fault, text: Tokens) -> TextLogprobs | Fault:
    """Return the log-probabilities of a text, the last tokens of what was asked."""
    if isinstance(output, Fault):
        return output
    places = output.value.prompt_logprobs[-len(text) :] if text else []
    if len(places) != len(text) or not all(place and token in place for place, token in zip(places, text, strict=True)):
        return Fault(reason="engine_error", detail="vLLM returned no log-probabilities of the text's tokens")
    entries = [place[token] for place, token in zip(places, text, strict=True)]
    return TextLogprobs(
        tokens=tuple(entry.decoded_token or "" for entry in entries),
        logprobs=tuple(max(float(entry.logprob), NEVER) for entry in entries),
        cost=_cost(output, 1),
    )


def logits(output: Output | Fault) -> Logits | Fault:
    """Return a sequence classifier's outputs."""
    if isinstance(output, Fault):
        return output
    values = tuple(float(value) for value in output.value.outputs.data.flatten().tolist())
    return _finite(values) or Logits(values=values, cost=_cost(output, 0))


def token_logits(output: Output | Fault) -> TokenLogits | Fault:
    """Return a token classifier's outputs."""
    if isinstance(output, Fault):
        return output
    tokens = tuple(output.value.prompt_token_ids)
    rows = tuple(tuple(float(value) for value in row) for row in output.value.outputs.data.tolist())
    if len(rows) != len(tokens):
        detail = f"the prompt has {len(tokens)} tokens; vLLM returned outputs for {len(rows)}"
        return Fault(reason="engine_error", detail=detail)
    return _finite([value for row in rows for value in row]) or TokenLogits(
        token_ids=tokens, values=rows, cost=_cost(output, 0)
    )


def _finite(values: Sequence[float]) -> Fault | None:
    if all(map(math.isfinite, values)):
        return None
    return Fault(reason="engine_error", detail="the model's outputs are not finite; try dtype='float32'")


def _cost(output: Output, generated: int) -> Cost:
    return Cost(
        seconds=output.seconds, prompt_tokens=len(output.value.prompt_token_ids or ()), completion_tokens=generated
    )
