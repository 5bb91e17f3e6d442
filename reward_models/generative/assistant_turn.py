"""The text of an assistant's turn that a model shall go on with: one thinking block, no control token but its tags.

Chat templates look into an assistant's turn.  Those of reasoning models take the thinking block apart and write it
anew, in one spelling; a turn in another spelling is refused or cut.  So the block is put into that spelling here, and a
second one inside it, which templates drop in part, is broken up.

Not covered: templates that drop the thinking of the last turn; engines refuse the turn there, and the score fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from adjudge.prompts.escaping import BREAK, escape

OPEN, CLOSE = "<think>", "</think>"
EMPTY_BLOCK = f"{OPEN}\n\n{CLOSE}\n\n"
"""A thinking block in which nothing was thought."""

_TAG = re.compile(r"</?think>")
_OWN = re.compile(r"</?(?:think|answer)>")  # what a policy writes itself, even where its tokenizer has it as one token


def own_turn(text: str, *, special: Sequence[str] = ()) -> str:
    """Return what a judge wrote, fit to be continued: it may have quoted control tokens, and they are broken up."""
    return _in_one_block(text, lambda piece: escape(piece, special=special))


def policy_turn(text: str, *, special: Sequence[str] = (), as_written: bool = False) -> str:
    """Return the beginning of a policy's response, as it was but for special tokens that it spells out.

    No other character changes: the probabilities that are read after it are those of the policy's own text.  Nor does
    the spelling of its thinking where an engine reads turns `as_written`, without a template.
    """
    pattern = "|".join(re.escape(token) for token in special if len(token) > 1 and not _OWN.fullmatch(token))
    put = (lambda piece, clean: clean(piece)) if as_written else _in_one_block
    if not pattern:
        return put(text, lambda piece: piece)
    breaker = re.compile(f"(?=(?:{pattern}))[\\s\\S]")  # only the first character is taken, so overlaps are broken too
    return put(text, lambda piece: breaker.sub(lambda match: match[0] + BREAK, piece))


def _in_one_block(text: str, clean: Callable[[str], str]) -> str:
    """The text with its thinking, if there is any, in one block of the spelling that templates write."""
    begun = text.lstrip().startswith(OPEN)
    body = text.lstrip().removeprefix(OPEN) if begun else text
    inner, closed, answer = body.rpartition(CLOSE)
    if closed:
        return f"{OPEN}\n{_flat(clean(inner)).strip()}\n{CLOSE}\n\n{_flat(clean(answer)).lstrip()}"
    return f"{OPEN}\n{_flat(clean(body)).lstrip()}" if begun else _flat(clean(text))


def _flat(text: str) -> str:
    return _TAG.sub(lambda match: match[0][0] + BREAK + match[0][1:], text)
