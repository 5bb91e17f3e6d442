r"""Find the boxes of a response: `\boxed{...}`, or `\fbox{...}` or `\framebox{...}` where there is none.

Not covered: boxes that a user's own macro draws, and a box whose braces close only after 16,000 characters.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_ANSWER: Final = 4000  # characters; the longest gold of the public sets has 1,100
MAX_BOXES: Final = 50
MAX_GAP: Final = 100  # characters between two boxes that are one answer

_BRACE = re.compile(r"[{}]")
_BARE = re.compile(r"\s*([^\s$]+)")  # `\boxed 5`
_JOIN = re.compile(
    r"(?:\s|[,;&$]|\\[,;:!() ]|\\\[|\\\]|\\q?quad|\\text\{\s*(?:and|or)\s*\}|and\b|or\b|\*{0,2}\(?[b-h]\)\*{0,2}:?)*"
)
_GAP = re.compile(
    r"(?![^\d]{0,40}\b(?:not|no|wait|wrong|instead|rather|actually)\b)[^\n.!?]{0,40}?\b(?:and|or)\b[^\n.!?]{0,40}",
    re.IGNORECASE,
)
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")
_SINGLE_BOX = re.compile(r"(?<!\\)\\boxed")
_SINGLE_COMMAND = re.compile(r"(?<!\\)\\[A-Za-z]")


class Box(NamedTuple):
    """What a box holds, and the span of the whole of it in the text."""

    text: str
    start: int
    stop: int


def boxed(text: str) -> tuple[list[Box], bool]:
    """Return the closed boxes of the last run, and whether the last box is open.

    Only boxes joined to the last one by separators are returned together.
    """
    if "\\" not in text:
        return [], False
    command = "\\boxed"
    at = text.rfind(command)
    if at < 0:
        command = "\\framebox" if "\\framebox" in text else "\\fbox"
        at = text.rfind(command)
    run: list[Box] = []
    while at >= 0 and len(run) < MAX_BOXES:
        start = text.find("{", at, at + 12)
        if start < 0:
            bare = _BARE.match(text, at + len(command), at + 40)
            if bare is None:
                break
            box = Box(bare[1], at, bare.end())
        else:
            closed = _close(text, start)
            if closed < 0:
                return run, not run
            box = Box(text[start + 1 : closed], at, closed + 1)
        if run and not _joined(text, box.stop, run[0].start):
            break
        run.insert(0, box)
        at = _previous(text, command, at)
    return run, False


def earlier_boxes(text: str) -> tuple[str, ...]:
    """Return what all boxes of a text hold, as far back as `MAX_BOXES`."""
    texts: list[str] = []
    while len(texts) < MAX_BOXES:
        boxes, _ = boxed(text)
        if not boxes:
            break
        texts[:0] = [box.text for box in boxes]
        text = text[: boxes[0].start]
    return tuple(texts)


def unescape(text: str) -> str:
    r"""Return the text with `\\\\boxed` written `\\boxed`: a text that was escaped twice on its way here."""
    if "\\\\" not in text:
        return text
    proper = _SINGLE_BOX if "\\\\boxed" in text else _SINGLE_COMMAND
    return text if proper.search(text) else _DOUBLED.sub(r"\\", text)


def _previous(text: str, command: str, at: int) -> int:
    """Return where a box may begin that is one answer with the box at a place, or -1."""
    near = text.rfind("}", max(0, at - MAX_GAP), at)  # such a box ends within the longest gap
    if near < 0:
        return -1
    gap = text[max(0, at - MAX_GAP) : at]
    if "and" in gap or " or" in gap or "or " in gap or _JOIN.fullmatch(text, near + 1, at):
        return text.rfind(command, max(0, near - MAX_ANSWER), near)
    return -1


def _joined(text: str, start: int, stop: int) -> bool:
    """Whether what stands between two boxes makes them one answer."""
    return bool(_JOIN.fullmatch(text, start, stop) or _GAP.fullmatch(text, start, stop))


def _close(text: str, start: int) -> int:
    """Return where the brace that opens at a place is closed, or -1."""
    first = text.find("}", start, start + 4 * MAX_ANSWER)
    if first < 0 or (text.find("{", start + 1, first) < 0 and text[first - 1] != "\\"):
        return first  # most boxes hold no braces
    level = 0
    for brace in _BRACE.finditer(text, start, min(len(text), start + 4 * MAX_ANSWER)):
        if brace.start() and text[brace.start() - 1] == "\\" and not text.endswith("\\\\", 0, brace.start()):
            continue
        level += 1 if brace[0] == "{" else -1
        if level == 0:
            return brace.start()
    return -1
