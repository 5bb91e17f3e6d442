"""Which characters of a decoded text each of its tokens wrote.

Where the texts of single tokens add up to the whole, they are the answer.  Often they do not, since decoders look back:
some strip the first blank, and a character of several bytes may be several tokens, each of which then has the whole
character, as in the offsets of `tokenizers`.  Then tokens are decoded step by step, each behind the few before it.
Where that does not add up either, every beginning of the tokens is decoded by itself, which is exact for any decoder
and takes time that grows with the square of the length.  Special tokens have no text.

Not covered: tokens that a tokenizer makes of a text; the tokens are given, and no text is tokenized again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

Decode: TypeAlias = Callable[[Sequence[int]], str]
"""From tokens to their text without special tokens (`Policy.decode`)."""

Span: TypeAlias = tuple[int, int]


def token_spans(decode: Decode, ids: Sequence[int]) -> list[Span]:
    """Return the first character of each token in `decode(ids)`, and the one after its last.

    Args:
        decode: gives the text of tokens.
        ids: of one text, from its beginning.
    """
    text = decode(ids)
    silent = {token: not decode([token, token]) for token in set(ids)}  # twice: a first blank may be stripped
    spoken = [token for token in ids if not silent[token]]
    ends = _one_by_one(decode, spoken, text) or _stepwise(decode, spoken, text)
    if ends is None:
        ends = _by_beginnings(decode, spoken, text)
    spans: list[Span] = []
    said = iter(_spans(ends))
    for token in ids:
        done = spans[-1][1] if spans else 0
        spans.append((done, done) if silent[token] else next(said))
    return spans


_End: TypeAlias = tuple[int, bool]
"""Characters that are complete after a token, and whether a part of one hangs behind them."""


def _spans(ends: Sequence[_End]) -> list[Span]:
    found: list[Span] = []
    before = 0
    for complete, hanging in ends:
        after = max(complete, before)
        # A token that completed nothing is a part of the character to come, or of the one that was given up before it.
        begin = before if hanging or after > before else max(before - 1, 0)
        found.append((begin, after + hanging))
        before = after
    return found


def _one_by_one(decode: Decode, ids: Sequence[int], text: str) -> list[_End] | None:
    """The ends, from each token by itself; None if these do not add up to the text."""
    alone = {token: decode([token]) for token in set(ids)}
    if "\ufffd" in text or "".join(alone[token] for token in ids) != text:
        return None
    return [(end, False) for end in accumulate(len(alone[token]) for token in ids)]


def _stepwise(decode: Decode, ids: Sequence[int], text: str) -> list[_End] | None:
    """The ends, from the few tokens before each; None if these do not add up to the text."""
    ends: list[_End] = []
    begin = read = done = 0  # tokens from `read` on are not complete; those from `begin` on are decoded before them
    base = ""
    for place in range(len(ids)):
        more = decode(ids[begin : place + 1])
        said = more[len(base) :]
        # Bytes behind a whole character can make it unreadable, until they are a character themselves.
        same = _common(said, text[done : done + len(said)]) if more.startswith(base) else 0
        hanging = same < len(said) or not more.startswith(base)
        ends.append((done + same, hanging))
        if same and not hanging:
            begin, read, done = read, place + 1, done + same
            base = decode(ids[begin:read])
    return ends if not ids or ends[-1] == (len(text), False) else None


def _by_beginnings(decode: Decode, ids: Sequence[int], text: str) -> list[_End]:
    """The ends, from the text of every beginning."""
    beginnings = (decode(ids[: place + 1]) for place in range(len(ids)))
    return [(same := _common(said, text), same < len(said)) for said in beginnings]


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    if other.startswith(one):
        return len(one)
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
