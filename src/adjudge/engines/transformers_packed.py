"""Rows laid end to end as one row, what they share once: nothing is padded, and nothing is read twice.

A reward model's batch is prompts with several answers each, all of different lengths.  Every layer but attention treats
tokens one by one, so it can read the tokens of all rows as one long row; attention alone has to know which tokens
belong together.  Here it runs piece by piece: a prefix with the first answer behind it, and each other answer with its
prefix before it.  What the last layer's attention says of a token is seen by nobody but that token, so there it runs
for the tokens alone that are asked for.

On a CPU a piece is a call of PyTorch's attention; on a GPU all pieces are one call of its variable-length kernel (half
precision only).  `usable` compares with the plain way before anything is packed.

Not covered: models whose attention is more than causal with or without a sliding window (soft caps, sinks, chunks), and
layers that are not attention; these are read in padded rows.
"""

from __future__ import annotations

import inspect
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from adjudge.engines.shared_prefixes import Group, Tokens

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]

NAME = "adjudge_packed"
"""Under this name `transformers` finds the attention."""

_MORE = ("softcap", "s_aux", "position_bias", "cache")  # what `attention` would have to know


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens that stand side by side in the long row, and the prefix that comes before them.

    Attributes:
        start: the first of them.
        end: one past the last.
        before: where the prefix begins and ends.
        asked: the first that attention is asked for; those before it are only seen.
    """

    start: int
    end: int
    before: tuple[int, int]
    asked: int

    @property
    def reach(self) -> int:
        """How many tokens the last one sees, itself included."""
        return self.end - self.start + self.before[1] - self.before[0]

    @property
    def queries(self) -> int:
        """How many tokens attention is asked for."""
        return self.end - self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A batch as one row.

    Attributes:
        tokens: the long row.
        pieces: what attends to what; together they are the long row, in order, and all of it is asked for.
        homes: for each row, where its prefix begins, how long that is, and where the rest begins.
    """

    tokens: list[int]
    pieces: tuple[Piece, ...]
    homes: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, rows: Sequence[Tokens], groups: Sequence[Group]) -> Packed:
        """Return rows packed in groups; a group's rows have at least one token after its prefix."""
        tokens: list[int] = []
        pieces: list[Piece] = []
        homes: dict[int, tuple[int, int, int]] = {}

        def add(some: Tokens, before: tuple[int, int]) -> int:
            start = len(tokens)
            tokens.extend(some)
            pieces.append(Piece(start=start, end=len(tokens), before=before, asked=start))
            return start

        for group in groups:
            cut, (leader, *others) = group.prefix, group.rows
            start = add(rows[leader], (0, 0))
            homes[leader] = start, cut, start + cut
            for row in others:
                homes[row] = start, cut, add(rows[row][cut:], (start, start + cut))
        return cls(
            tokens=tokens,
            pieces=tuple(pieces),
            homes=tuple(homes[row] for row in range(len(rows))),
        )

    def places(self, places: Sequence[Sequence[int]]) -> Integers:
        """Return where tokens of each row stand in the long row, each row's after the row's before it: (places,)."""
        import numpy as np

        at = integers(chain.from_iterable(places))
        start, cut, rest = np.repeat(np.array(self.homes), list(map(len, places)), axis=0).T
        return np.where(at < cut, start + at, rest + at - cut)

    @property
    def positions(self) -> Integers:
        """Of each token in its own row: (tokens,)."""
        import numpy as np

        parts = np.array([(*piece.before, piece.start, piece.end) for piece in self.pieces])
        return _ranges(parts[:, 1] - parts[:, 0], parts[:, 3] - parts[:, 2])

    def asked(self, places: Integers) -> tuple[Piece, ...]:
        """Return pieces that ask for some tokens of the long row alone."""
        starts = [piece.start for piece in self.pieces]
        owners = [(self.pieces[bisect_right(starts, place) - 1], place) for place in sorted(set(places.tolist()))]
        return tuple(replace(piece, asked=place, end=place + 1) for piece, place in owners)


def integers(numbers: Iterable[int]) -> Integers:
    """Return an array, several times as fast as PyTorch makes a tensor of a list."""
    import numpy as np

    return np.fromiter(numbers, np.int64)


def _ranges(starts: Integers, lengths: Integers) -> Integers:
    """`start`, `start` + 1 and so on, `length` numbers for each start, one range after the other."""
    import numpy as np

    ends = lengths.cumsum()
    ranges: Integers = np.arange(ends[-1]) + (starts - ends + lengths).repeat(lengths)
    return ranges


def windows_of(config: Any) -> int | None:
    """Return how many layers of a model have a sliding window; None if some keep other things than keys and values."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    try:
        kinds = [type(layer) for layer in DynamicCache(config=config).layers]
    except (KeyError, AttributeError, ValueError):  # kinds of memory that the cache does not know
        return None
    if not kinds or not set(kinds) <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return None
    return kinds.count(DynamicSlidingWindowLayer)


def read(body: Any, packed: Packed, device: torch.device, *, places: Integers, calls: int) -> torch.Tensor:
    """Return a body's hidden states at places of the long row: (places, width).

    Args:
        body: the model without its head.
        packed: the rows.
        device: where the body is.
        places: tokens of the long row.
        calls: how often the body calls its attention; 0 computes all of the last call too.

    Raises:
        RuntimeError: it called its attention more or less often.
    """
    import torch

    def there(numbers: Integers) -> torch.Tensor:
        return torch.from_numpy(numbers).to(device)

    plan = _Plan(packed.pieces, device)
    last = _Plan(packed.asked(places), device) if calls else plan
    ids, positions, wanted = there(integers(packed.tokens))[None], there(packed.positions)[None], there(places)
    if device.type == "cuda":  # copies wait for the GPU, which has nothing to do yet
        _ = plan.joined, last.joined
    with _reading(plan, last, calls):
        output = body(input_ids=ids, position_ids=positions, use_cache=False)
        if calls and _CURRENT.calls != calls:
            raise RuntimeError(f"the model called its attention {_CURRENT.calls} times, and {calls} when it was loaded")
    hidden: torch.Tensor = output.last_hidden_state[0][wanted]
    return hidden


def usable(body: Any) -> tuple[int, str]:
    """Make a body read packed rows; return how often it calls its attention and "", or 0 and why it cannot.

    A comparison with the plain way decides; a body that cannot is left as it was.
    """
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface

    usual = getattr(body.config, "_attn_implementation", "")
    if usual == NAME:  # another network of the same model
        usual = "sdpa"
    dtype, device, windows = body.dtype, body.device, windows_of(body.config)
    if windows is None:
        return 0, "it keeps other things than keys and values"
    if usual != "sdpa":
        return 0, f"its attention is {usual}, and not sdpa"
    if device.type != "cpu" and not (device.type == "cuda" and dtype.itemsize == 2):
        return 0, f"there is no kernel for {dtype} on {device.type}; give dtype bfloat16"
    size = min(body.get_input_embeddings().weight.shape[0], 10_000)
    tokens = [(7919 * at + 11) % size for at in range(40)]
    rows = [tuple(tokens[:24]), tuple(tokens[:16] + tokens[24:]), tuple(tokens[20:27])]
    groups = [Group(prefix=16, rows=(0, 1)), Group(prefix=0, rows=(2,))]
    packed = Packed.of(rows, groups)
    AttentionInterface.register(NAME, torch.compiler.disable(attention))  # type: ignore[no-untyped-call]
    AttentionMaskInterface.register(NAME, mask)
    with torch.inference_mode():
        try:
            plain = [
                body(input_ids=torch.tensor([row], device=device), use_cache=False).last_hidden_state[0] for row in rows
            ]
            body.set_attn_implementation(NAME)
            every = packed.places([range(len(row)) for row in rows])
            whole = read(body, packed, device, places=every, calls=0)
            calls, seen = _CURRENT.calls, _CURRENT.windows
            ends = packed.places([[len(row) - 1] for row in rows])
            last = read(body, packed, device, places=ends, calls=calls)
        except (RuntimeError, TypeError, ValueError, AttributeError, ImportError) as error:  # such as an older PyTorch
            body.set_attn_implementation(usual)
            return 0, f"{type(error).__name__}: {error}"[:300]
        wanted = torch.cat([*plain, *(states[-1:] for states in plain)]).float()
        gap = float((torch.cat([whole, last]).float() - wanted).norm() / wanted.norm())
    # The rows are shorter than windows are, so these are counted: a model may keep them to itself, in masks.
    if gap <= (most := 1e-4 if dtype.itemsize == 4 else 0.05) and seen == windows:
        return calls, ""
    body.set_attn_implementation(usual)
    if seen != windows:
        return 0, f"its attention is told of {seen} sliding windows, and it has {windows}"
    return 0, f"packed, a hidden state is off by {gap:.2g} of its size, and at most {most:g} is allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """The tokens that all pieces ask for and see, piece after piece, and where the pieces of both end."""

    queries: torch.Tensor
    keys: torch.Tensor
    query_ends: torch.Tensor
    key_ends: torch.Tensor
    max_queries: int
    max_keys: int


class _Plan:
    """The pieces of a batch, and what attention needs of them, made once for all layers."""

    def __init__(self, pieces: Sequence[Piece], device: torch.device):
        self.pieces = pieces
        self._device = device
        self._masks: dict[tuple[Piece, int], torch.Tensor] = {}

    def mask(self, piece: Piece, window: int) -> torch.Tensor:
        """Which of a piece's keys, (queries, keys), each of its tokens sees: the last `window` of prefix and piece."""
        import torch

        if (piece, window) not in self._masks:
            before = piece.reach - piece.queries
            seen = torch.ones(piece.queries, piece.reach, dtype=torch.bool, device=self._device).tril(before)
            self._masks[piece, window] = seen if window >= piece.reach else seen.triu(before - window + 1)
        return self._masks[piece, window]

    @cached_property
    def joined(self) -> _Joined:
        """All pieces for one call of a variable-length kernel."""
        import numpy as np
        import torch

        parts = np.array([(*piece.before, piece.start, piece.end, piece.asked) for piece in self.pieces])
        queries, seen = parts[:, 3] - parts[:, 4], parts[:, [1, 3]] - parts[:, [0, 2]]
        reach = seen.sum(1)
        wanted = _ranges(parts[:, 4], queries), _ranges(parts[:, [0, 2]].ravel(), seen.ravel())
        ends = [np.append(0, some.cumsum()).astype(np.int32) for some in (queries, reach)]
        tensors = [torch.from_numpy(some).to(self._device) for some in (*wanted, *ends)]
        return _Joined(
            queries=tensors[0],
            keys=tensors[1],
            query_ends=tensors[2],
            key_ends=tensors[3],
            max_queries=int(queries.max()),
            max_keys=int(reach.max()),
        )


class _Current(threading.local):
    plan: _Plan | None = None
    last: _Plan | None = None  # of the last call
    most: int = 0  # calls of a forward pass; 0 where no call is known to be the last
    calls: int = 0  # so far
    windows: int = 0  # those of them with a sliding window


_CURRENT = _Current()  # attention is called from inside the model, which hands on only what it knows


@contextmanager
def _reading(plan: _Plan, last: _Plan, most: int) -> Iterator[None]:
    _CURRENT.plan, _CURRENT.last, _CURRENT.most = plan, last, most
    _CURRENT.calls = _CURRENT.windows = 0
    try:
        yield
    finally:
        _CURRENT.plan = _CURRENT.last = None


def mask(*args: Any, **kwargs: Any) -> Any:
    """Return the mask that `transformers` should make: none for packed rows, the usual one for others."""
    from transformers.masking_utils import sdpa_mask

    return None if _CURRENT.plan is not None else sdpa_mask(*args, **kwargs)


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend in packed rows, or as `transformers` usually does; shapes are its own, (1, heads, tokens, width)."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    plan = _CURRENT.plan
    if plan is None:
        usual: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **more
        )
        return usual
    if any(more.get(name) is not None for name in _MORE) or not getattr(module, "is_causal", True):
        raise NotImplementedError("this attention is more than causal")
    _CURRENT.calls += 1
    _CURRENT.windows += sliding_window is not None
    if _CURRENT.calls == _CURRENT.most and _CURRENT.last is not None:
        plan = _CURRENT.last
    attend = _at_once if query.is_cuda else _piecewise
    return attend(plan, query, key, value, scaling, sliding_window), None


def _piecewise(
    plan: _Plan,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float | None,
    window: int | None = None,
) -> torch.Tensor:
    """(1, heads, tokens, width) to (1, tokens, heads, width), a call for each piece; 0 where nothing is asked for."""
    from torch.nn.functional import scaled_dot_product_attention as attend

    more: dict[str, Any] = {"scale": scaling, "enable_gqa": query.shape[1] != key.shape[1]}
    attended = value.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])
    for piece in plan.pieces:
        keys, values = _seen_by(piece, key), _seen_by(piece, value)
        widest = piece.reach if window is None else min(window, piece.reach)
        if widest == piece.reach <= 2 * piece.queries:
            # All that is seen asks, too: where that is the smaller part of it, half a square costs less than a mask.
            seen = attend(_seen_by(piece, query), keys, values, is_causal=True, **more)[:, :, -piece.queries :]
        else:
            asked = query[:, :, piece.asked : piece.end]
            seen = attend(asked, keys, values, attn_mask=plan.mask(piece, widest), **more)
        attended[:, piece.asked : piece.end] = seen.transpose(1, 2)
    return attended


def _seen_by(piece: Piece, whole: torch.Tensor) -> torch.Tensor:
    """The queries, keys or values of a piece and of what comes before it."""
    import torch

    first, last = piece.before
    if first == last or last == piece.start:
        return whole[:, :, first if first < last else piece.start : piece.end]
    return torch.cat([whole[:, :, first:last], whole[:, :, piece.start : piece.end]], 2)


def _at_once(
    plan: _Plan,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float | None,
    window: int | None = None,
) -> torch.Tensor:
    from torch.nn.attention import varlen

    joined = plan.joined
    words = _words(varlen.varlen_attn)
    more: dict[str, Any] = {}
    if "window_size" in words:
        # A token sees what came before it, counted from the end of its piece.
        more = {"scale": scaling, "window_size": (-1 if window is None else window - 1, 0)}
    elif window is None and scaling in (None, query.shape[-1] ** -0.5):
        more = {"is_causal": True}
    else:
        raise NotImplementedError(f"window {window}, scale {scaling}: this PyTorch's kernel has no such; 2.11 has")
    if "enable_gqa" in words:  # without this word, keys of fewer heads go to the kernel unchecked, and it takes them
        more["enable_gqa"] = query.shape[1] != key.shape[1]
    asked = query[0].transpose(0, 1)
    whole = len(joined.queries) == len(asked)
    seen: Any = varlen.varlen_attn(
        asked if whole else asked[joined.queries],
        key[0].transpose(0, 1)[joined.keys],
        value[0].transpose(0, 1)[joined.keys],
        joined.query_ends,
        joined.key_ends,
        joined.max_queries,
        joined.max_keys,
        **more,
    )
    if whole:
        return seen[None]  # type: ignore[no-any-return]
    attended = value.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])
    attended[0, joined.queries] = seen
    return attended


@cache
def _words(kernel: Any) -> frozenset[str]:
    """What PyTorch's kernel can be told: from 2.11 on a window and a scale, from 2.12 on that key heads are fewer."""
    return frozenset(inspect.signature(kernel).parameters)
