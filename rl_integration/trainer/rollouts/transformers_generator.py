"""Rows of tokens that a `transformers` model goes on with: a prompt is read once, finished rows leave the batch.

Each piece is handed over the moment it ends, so that scoring goes on while the others are still being written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from adjudge.rl_integration.trainer.data.task import FinishReason
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import UNREADABLE, SamplingConfig
from adjudge.rl_integration.trainer.rollouts.writer import OnPiece, Piece


class Continuation:
    """Prompts read once, and the rows that go on from them, by at most so many tokens."""

    def __init__(self, policy: Policy, prompts: Sequence[Sequence[int]], max_tokens: int) -> None:
        from transformers import DynamicCache

        self._model, device, longest = policy.model, policy.device, max(map(len, prompts))
        self._cache: Any = DynamicCache(config=policy.model.config)
        padded = [[policy.pad] * (longest - len(ids)) + list(ids) for ids in prompts]
        self._prompts = torch.tensor(padded, device=device)
        self._next = torch.tensor([len(ids) for ids in prompts], device=device)
        # Columns to come are already open: what is handed to the model ends at the column it is at.
        columns = torch.arange(longest + max_tokens, device=device)
        self._mask = (columns >= (longest - self._next)[:, None]).long()
        self._column = longest

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
        logits = self._forward(tokens[:, None], self._mask[:, : self._column], self._next[:, None])
        self._next = self._next + 1
        return logits

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        outputs = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = outputs.logits[:, -1].float()
        return logits


_SPARE = 4  # characters that stand for the bytes of one, where a window begins inside it


class StopTexts:
    """Texts that end a piece, looked for after each of its tokens.

    Most tokens are passed by, since they hold no stop text's last character; for the others only the newest tokens are
    decoded, those that reach back by the longest stop text and one more, since decoders treat the first token of a text
    in ways of their own.

    Raises:
        ValueError: a stop text is empty, or holds U+FFFD.
    """

    def __init__(self, texts: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        for text in texts:
            if not text or UNREADABLE in text:
                raise ValueError(f"the stop text {text!r} cannot be looked for; give a text, without U+FFFD")
        self._texts = tuple(texts)
        self._decode = decode
        self._reach = max(map(len, texts), default=0) + _SPARE
        lasts = {text[-1] for text in texts}
        # Decoders drop spaces where a text begins, so nothing is told by a single token of stop texts that end in one.
        self._lasts = None if any(last.isspace() for last in lasts) else lasts | {UNREADABLE}
        self._ending: dict[int, bool] = {}

    def ended(self, ids: Sequence[int]) -> bool:
        """Return whether a piece contains a stop text, if it did not without its last token."""
        if not self._texts or not self._may_end(ids[-1]):
            return False
        width = self._reach
        while True:
            window = ids[-width:]
            text = self._decode(window)
            if self._within(text):
                return len(window) == len(ids) or self._within(self._decode(ids))
            if len(window) == len(ids) or self._reaches(text, window[0]):
                return False
            width *= 2

    def _may_end(self, token: int) -> bool:
        """Whether a token holds the last character of a stop text, or a part of a character."""
        if self._lasts is None:
            return True
        may_end = self._ending.get(token)
        if may_end is None:
            text = self._decode([token])
            may_end = self._ending[token] = any(last in text for last in self._lasts)
        return may_end

    def _within(self, text: str) -> bool:
        return any(stop in text for stop in self._texts)

    def _reaches(self, text: str, first: int) -> bool:
        """Whether a window's text, but for its first token, is as long as any stop text, and begins with a character.

        Decoders that fall back to bytes spoil a whole run of them where one is missing.
        """
        return not text.startswith(UNREADABLE) and len(text) - len(self._decode([first])) >= self._reach


_KEPT = 0.75  # once fewer of the rows go on, the others' keys and values are dropped


class TransformersGenerator:
    """Writes with the very model that learns."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._ends = policy.ends

    @property
    def exact(self) -> bool:
        """Whether log-probabilities are those of the policy's other passes; in bfloat16 rounding is too coarse."""
        return self._policy.exact

    def refresh(self, version: int) -> None:
        """Do nothing: the weights are the policy's own."""

    def close(self) -> None:
        """Do nothing: it holds nothing of its own."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        on_piece: OnPiece,
        limits: Sequence[int] | None = None,
        stops: Sequence[str] = (),
    ) -> None:
        """Write pieces; see `Generator`.  A piece that comes to the end of the model's window is cut off there.

        Raises:
            ValueError: a prompt leaves no room in the window, or the weights are no longer numbers.
        """
        max_tokens = [sampling.max_new_tokens] * len(prompts)
        if limits is not None:
            max_tokens = [min(own, limit) for own, limit in zip(max_tokens, limits, strict=True)]
        max_tokens = [min(own, room) for own, room in zip(max_tokens, _room(prompts, self._policy), strict=True)]
        if max_tokens and min(max_tokens) < 1:
            at = max_tokens.index(min(max_tokens))
            raise ValueError(f"the piece after prompt {at} may have {max_tokens[at]} tokens; it must be at least 1")
        generator = torch.Generator(device=self._policy.device).manual_seed(seed)
        stop_texts = StopTexts(stops, self._policy.decode)
        # Prompts of like length are read together.
        order = sorted(range(len(prompts)), key=lambda at: (len(prompts[at]), at))
        width = max(1, sampling.max_num_seqs // copies)
        with self._policy.reading(), _heads_share(self._policy.model):
            for begin in range(0, len(order), width):
                writings = [
                    _Writing(place=at * copies + copy, prompt=prompts[at], max_tokens=max_tokens[at])
                    for at in order[begin : begin + width]
                    for copy in range(copies)
                ]
                self._write(writings, copies, sampling, generator, stop_texts, on_piece)

    @torch.inference_mode()
    def _write(
        self,
        writings: list[_Writing],
        copies: int,
        sampling: SamplingConfig,
        generator: torch.Generator,
        stop_texts: StopTexts,
        on_piece: OnPiece,
    ) -> None:
        longest = max(one.max_tokens for one in writings)
        rows = Continuation(self._policy, [writing.prompt for writing in writings[::copies]], longest)
        logits = rows.read().repeat_interleave(copies, 0)
        rows.repeat(copies)
        going = list(range(len(writings)))  # which writing each row is
        while True:
            tokens, logprobs = _drawn(logits, sampling, generator)
            for row, token, logprob in zip(going, tokens.tolist(), logprobs.tolist(), strict=True):
                writing = writings[row]
                if writing.finish_reason is None:
                    writing.add(token, logprob, ended=token in self._ends, stop=stop_texts.ended)
                    if writing.finish_reason is not None:
                        on_piece(writing.place, writing.piece())
            open_rows = [at for at, row in enumerate(going) if writings[row].finish_reason is None]
            if not open_rows:
                return
            if len(open_rows) < _KEPT * len(going):
                chosen = torch.tensor(open_rows, device=logits.device)
                rows.keep(chosen)
                tokens, going = tokens[chosen], [going[at] for at in open_rows]
            logits = rows.append(tokens)


def _room(prompts: Sequence[Sequence[int]], policy: Policy) -> list[int]:
    """How many tokens may follow each prompt: beyond its window a model fails, or writes what means nothing.

    Raises:
        ValueError: a prompt is empty, or fills the window.
    """
    window = policy.tokens.window
    for at, prompt in enumerate(prompts):
        if not 0 < len(prompt) < window:
            raise ValueError(
                f"prompt {at} has {len(prompt)} tokens; {policy.name} needs at least 1, and room for an answer among "
                f"the {window} tokens that it reads; shorten the prompt"
            )
    return [window - len(prompt) for prompt in prompts]


_SHARED = "adjudge_shared_heads"


@contextmanager
def _heads_share(model: Any) -> Iterator[None]:
    """Inside, on a CPU, heads that have keys and values in common read the same ones.

    `transformers` copies them for each head where there is a mask, which took a quarter of the time of writing.
    """
    usual = model.config._attn_implementation
    if model.device.type != "cpu" or usual != "sdpa":
        yield
        return
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def attention(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
    ) -> tuple[Tensor, None]:
        if attention_mask is None or more.get("position_bias") is not None:
            plain: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
            return plain
        read = scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=more.get("scaling"), enable_gqa=True
        )
        return read.transpose(1, 2).contiguous(), None

    AttentionInterface.register(_SHARED, attention)
    AttentionMaskInterface.register(_SHARED, sdpa_mask)
    model.set_attn_implementation(_SHARED)
    try:
        yield
    finally:
        model.set_attn_implementation(usual)


def _drawn(logits: Tensor, sampling: SamplingConfig, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens, and their log-probabilities among all tokens."""
    if sampling.temperature == 0:
        logprobs = logits.log_softmax(-1)
        tokens = logits.argmax(-1)
    else:
        logprobs = (logits / sampling.temperature).log_softmax(-1)
        noise = torch.empty_like(logprobs).exponential_(generator=generator)
        allowed = logprobs if sampling.top_p == 1 else _nucleus(logprobs, sampling.top_p)
        tokens = (allowed - noise.log()).argmax(-1)  # the Gumbel trick: exact, and one pass
    return tokens, logprobs.gather(-1, tokens[:, None])[:, 0]


def _nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    """The log-probabilities, -inf but for the fewest likeliest tokens of each row that have `top_p` together."""
    ordered, tokens = logprobs.sort(-1, descending=True)
    chances = ordered.exp()
    outside = chances.cumsum(-1) - chances >= top_p
    return logprobs.masked_fill(outside.scatter(-1, tokens, outside), -math.inf)


@dataclass(slots=True, kw_only=True)
class _Writing:
    place: int
    prompt: Sequence[int]
    max_tokens: int
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    ended: bool = False

    def add(self, token: int, logprob: float, *, ended: bool, stop: Callable[[Sequence[int]], bool]) -> None:
        """Add a token, and see whether it was the last."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.ended = ended
        if ended or stop(self.ids):
            self.finish_reason = "stop"
        elif len(self.ids) == self.max_tokens:
            self.finish_reason = "length"

    def piece(self) -> Piece:
        """Return it as it was written; it has ended."""
        assert self.finish_reason is not None, "asked for finished pieces alone"
        if not all(map(math.isfinite, self.logprobs)):
            raise ValueError(
                "the log-probabilities of the policy's tokens are not finite, so its weights are spoilt; go on from "
                "an earlier checkpoint with a lower learning.learning_rate, or try learning.precision: fp32"
            )
        return Piece(
            ids=tuple(self.ids), logprobs=tuple(self.logprobs), finish_reason=self.finish_reason, ended=self.ended
        )
