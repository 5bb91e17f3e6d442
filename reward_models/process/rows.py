"""A solution as one row of tokens in which the place of every step is known, whatever the solution says.

A format lists the pieces of a row: the problem, the steps, and what stands around and between them.  The model is read
at the last token of some pieces, one for each step.  Those places follow from the pieces and are never searched for, so
no text can add one or move one.

Pieces are joined and tokenized as one text, as most published models were trained, or each by itself (`apart`).

Markers of step ends in text that somebody else wrote: `<extra_0>`, "ки", and what a tokenizer makes of their kin.

A process model that counts markers reads one step more for each marker in the text, and every value behind it belongs
to another step.  Here the places of steps do not come from counting, and still
a marker in the text would speak to the model.  So:

- special tokens of the tokenizer, turn marks and hidden characters are broken up in all text that is not ours
  (`adjudge.prompts.escaping`): `<·extra_0>`;
- where a format's marker is one token, the row must hold it once behind each step and nowhere else.  Text that yields
  it is broken up by dots, "к·и", and, where the dots do not help, left out;
- if the row still does not hold, there is no row, and the scorer finds out whose doing it was.

Not covered: text that tells the model how to judge.  A process model has no instructions to override, but may still
have been trained on praise.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from adjudge import wire
from adjudge.engines.interface import Engine, Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_weights import tokenizer as load_tokenizer
from adjudge.prompts.escaping import BREAK, escape
from adjudge.protocol import Message

Spans: TypeAlias = tuple[tuple[int, int], ...]


class RowTokens:
    """A tokenizer of `transformers`, written in Rust, that says where its tokens stand; may be used from any thread.

    Raises:
        ValueError: the tokenizer cannot tell the characters of its tokens.
    """

    def __init__(self, tokenizer: Any, *, model: str = ""):
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(
                f"the tokenizer of {model!r} does not say which characters its tokens stand for; "
                "give a model with a tokenizer.json"
            )
        self._tokenizer = tokenizer
        self._prompts = PromptTokens(tokenizer, model=model, window=0)
        self._lock = threading.Lock()
        self.special = self._prompts.special_tokens
        """Texts that become one token of their own wherever they stand."""
        self.bos: str = tokenizer.bos_token or ""
        """The token that begins a text; "" if there is none."""
        first = tokenizer("x", verbose=False)["input_ids"][:1]
        self.begin = self.bos if self.bos and first == [tokenizer.bos_token_id] else ""
        """The same where the tokenizer puts it before a text of its own accord, else ""."""

    def spans(self, text: str) -> tuple[tuple[int, ...], Spans]:
        """Return the tokens of a text, without special tokens added, and the characters of each."""
        with self._lock:
            encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return tuple(encoded["input_ids"]), tuple(map(tuple, encoded["offset_mapping"]))

    def text(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, without special tokens added."""
        return self.spans(text)[0]

    def frame(self, chat: Sequence[Message], gaps: Sequence[int], **options: Any) -> tuple[str, ...] | Fault:
        """Return what the chat template writes around the contents of some turns, or why there is nothing.

        Untrusted text never goes through the template: some trim or rewrite it, and its place would be lost.  The texts
        are what comes before, between and after the turns in `gaps`, whose content does not matter.
        """
        key = hashlib.sha256(wire.dumps([dict(turn) for turn in chat]).encode()).hexdigest()[:16]
        marks = [f"gap{key}n{number}e" for number in range(len(gaps))]  # no content holds the digest of itself
        turns = [dict(turn) for turn in chat]
        for place, mark in zip(gaps, marks, strict=True):
            turns[place]["content"] = mark
        prompts = PromptTokens(self._tokenizer, model=self._prompts.model, window=0, options=options)
        text = prompts.rendered(turns, finished=True)
        if isinstance(text, Fault):
            return text
        texts = []
        for mark in marks:
            before, sign, text = text.partition(mark)
            if not sign or mark in text:
                return Fault(
                    reason="engine_error", detail="the chat template leaves out, repeats or rewrites turns of the chat"
                )
            texts.append(before)
        return (*texts, text)


def token_spans(tokens: RowTokens, text: str, characters: Sequence[tuple[int, int]]) -> Spans:
    """Return the tokens of a text that hold each span of characters: the first one, and one past the last.

    For trainers that put the value of a step on the policy's tokens: give them the policy's tokenizer, the response,
    and `start` and `end` of the score's steps.  Neighbouring steps share the token in which they meet, if there is one.
    """
    _, spans = tokens.spans(text)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return tuple((bisect_right(ends, start), bisect_left(starts, end)) for start, end in characters)


def tokens_of(engine: Engine, name: str = "") -> RowTokens:
    """Return the tokenizer of an engine's model, or the one that is named; equal ones are loaded once.

    Raises:
        ValueError: there is none, or it cannot be used.
    """
    own = getattr(engine, "config", None)
    if name or not isinstance(own, TransformersConfig):
        own = TransformersConfig(model=name or engine.model)
    return _loaded(own.model, own.revision, own.trust_remote_code)


@lru_cache(maxsize=8)
def _loaded(model: str, revision: str, trust: bool) -> RowTokens:
    config = TransformersConfig(model=model, revision=revision, trust_remote_code=trust)
    return RowTokens(load_tokenizer(config), model=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a row.

    Attributes:
        step: the number of the step whose text this is, else -1.
        trusted: whether it is ours; other text must be made harmless.
        read: whether the model is read at its last token.
    """

    text: str
    step: int = -1
    trusted: bool = True
    read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A solution in tokens.

    Attributes:
        surfaces: for each token, the characters it stands for.
        places: for each step, the token at which the model is read.
        spans: for each step, its first token, and one past its last.
        stops: for each step, the character of `text` before which the piece that is read ends.
        text: what was tokenized; "" if pieces were tokenized each by itself.
        changed: the numbers of the steps whose text was made harmless.
    """

    ids: tuple[int, ...]
    surfaces: tuple[str, ...]
    places: tuple[int, ...]
    spans: Spans
    stops: tuple[int, ...]
    text: str
    changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit(Fault):
    """A fault that the response itself may have caused: its row is too long, or cannot be made or read."""


def composed(tokens: RowTokens, pieces: Sequence[Piece], *, apart: bool = False) -> StepRow:
    """Return the row that pieces make, each tokenized by itself (`apart`), or all as one text.

    A piece is read at the last token that begins in it: where "." and the line break behind it are one token, that
    token is the last of the piece that ends with the dot.  The span of a step has every token that holds some of it.

    Raises:
        ValueError: a piece that is read has no token of its own.
    """
    texts = [piece.text for piece in pieces]
    ids: list[int] = []
    surfaces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for text in texts if apart else ["".join(texts)]:
        own, spans = tokens.spans(text)
        ids += own
        surfaces += [text[start:end] for start, end in spans]
        starts += [at + start for start, _ in spans]
        ends += [at + end for _, end in spans]
        at += len(text)
    places, stops = [], []
    steps: dict[int, tuple[int, int]] = {}
    at = 0
    for piece in pieces:
        begin, at = at, at + len(piece.text)
        past = bisect_left(starts, at)
        if piece.read:
            if apart and past == bisect_left(starts, begin):
                raise ValueError(f"the text {piece.text!r}, at which the model is to be read, has no token")
            places.append(past - 1)
            stops.append(at)
        if piece.step >= 0:
            steps[piece.step] = (bisect_right(ends, begin), past)
    return StepRow(
        ids=tuple(ids),
        surfaces=tuple(surfaces),
        places=tuple(places),
        spans=tuple(steps[number] for number in range(len(steps))),
        stops=tuple(stops),
        text="" if apart else "".join(texts),
    )


_DOTTED, _ROUNDS = 2, 4  # marks are broken up in the first rounds, left out in the others


def step_row(tokens: RowTokens, pieces: Sequence[Piece], *, apart: bool = False, marker: str = "") -> StepRow | Fault:
    """Return the row that pieces make, with text that is not ours made harmless; a fault if it cannot be made.

    Args:
        tokens: the model's tokenizer.
        pieces: in order; steps are numbered from 0, and one piece is read for each.
        apart: tokenize each piece by itself; else all as one text.
        marker: the text of the pieces that are read, if its last token must stand nowhere else; "" if it may, as a
            line break may.
    """
    harmless = [
        piece if piece.trusted else replace(piece, text=escape(piece.text, special=tokens.special)) for piece in pieces
    ]
    sign = marker_token(tokens, marker) if marker else -1
    for number in range(_ROUNDS):
        try:
            row = composed(tokens, harmless, apart=apart)
        except ValueError as error:
            return Fault(reason="engine_error", detail=str(error))
        wrong = _wrong(row, sign) if marker else set()
        if not wrong:
            changed = {now.step for was, now in zip(pieces, harmless, strict=True) if was.text != now.text}
            return replace(row, changed=tuple(sorted(changed - {-1})))
        harmless = [piece if piece.trusted else _without(piece, wrong, dotted=number < _DOTTED) for piece in harmless]
    return Fault(reason="engine_error", detail=f"the marker {marker!r} does not stand once behind each step")


def marker_token(tokens: RowTokens, marker: str) -> int:
    """Return the last token of a marker where it follows text."""
    return tokens.text(f"x{marker}")[-1]


def _wrong(row: StepRow, sign: int) -> set[str]:
    """What must not stand in text that is not ours: the surfaces of markers that are none of ours."""
    places = set(row.places)
    stray = {row.surfaces[at].strip() for at, token in enumerate(row.ids) if token == sign and at not in places}
    # A marker of ours that is another token has merged with the end of the text before it.
    merged = {row.surfaces[at].strip() for at in places if row.ids[at] != sign}
    return {surface for surface in stray | merged if surface} or ({""} if stray or merged else set())


def _without(piece: Piece, surfaces: set[str], *, dotted: bool) -> Piece:
    text = piece.text
    for surface in sorted(surfaces, key=len, reverse=True):
        if surface:
            text = text.replace(surface, BREAK.join(surface) if dotted and len(surface) > 1 else BREAK)
    return replace(piece, text=text)
