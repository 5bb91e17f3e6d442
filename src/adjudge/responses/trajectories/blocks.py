"""The tagged blocks of one turn.

One scan from left to right.  Tags are written just so (`<search>`, `</search>`) and never nest: a block ends at the
first closing tag of its name, and an opening tag that is never closed opens nothing.

Thoughts are the exception, for a plan is no act.  A thought that is never closed reaches to the end of the turn, and
a closing tag without an opening one ends a thought that began with the turn, as where the prompt wrote the opening tag.

Not covered: XML.  Attributes, entities and other spellings of a tag are ordinary text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.trajectory import Block


def blocks_of(text: str, form: TrajectoryForm, *, offset: int = 0) -> list[Block]:
    """Return the blocks of a turn in order: its thoughts, and what stands outside them.

    Args:
        text: the turn.
        form: the tags.
        offset: where the turn begins; added to all spans.
    """
    found: list[Block] = []
    last = {tag: text.rfind(f"</{tag}>") for tag in form.tags}
    tag, opened, inside = "", 0, 0
    thought = _begun_before(text, form.think)  # where the last closing tag without an opening one stands
    for mark in _pattern(form.tags).finditer(text, thought[1]):
        name, closing = mark["name"], bool(mark["slash"])
        if tag:
            if closing and name == tag:
                found.append(_block(text, tag, (opened, inside, mark.start(), mark.end()), offset))
                tag = ""
        elif closing and name == form.think:
            found, thought = [], mark.span()
        elif not closing and last[name] >= mark.end():
            tag, opened, inside = name, mark.start(), mark.end()
        elif not closing and name == form.think:
            found.append(_block(text, name, (mark.start(), mark.end(), len(text), len(text)), offset))
            break
    return [_block(text, form.think, (0, 0, thought[0], thought[1]), offset), *found] if thought[1] else found


def _begun_before(text: str, think: str) -> tuple[int, int]:
    """Where a thought ends that the text does not open, (0, 0) without one; tags that it mentions open nothing."""
    close = text.find(f"</{think}>") if think else -1
    if close < 0 or f"<{think}>" in text[:close]:
        return 0, 0
    return close, close + len(think) + 3


def _block(text: str, tag: str, places: tuple[int, int, int, int], offset: int) -> Block:
    start, inside, close, end = places
    return Block(tag=tag, text=text[inside:close].strip(), start=offset + start, end=offset + end)


@lru_cache(maxsize=64)
def _pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(?P<slash>/?)(?P<name>{'|'.join(map(re.escape, tags))})>")
