"""SEARCH/REPLACE edits as SWE-RL's prompt asks for them: reading them out of a response, and applying them.

Each edit has a fenced block of its own:

    ```python
    ### path/of/the/file.py
    <<<<<<< SEARCH
    lines of the file as it is
    =======
    lines in their place
    >>>>>>> REPLACE
    ```

Nothing between two markers is no line at all: lines are deleted, or a file is made.  One blank line there is one blank
line, as in the released reader.  Only lines that are exactly a marker are markers.  Time is linear in the response.

Source: `SEARCH_REPLACE_REGEX` and `apply_code_change` of facebookresearch/swe-rl, src/swerl/core/reward.py.

The solution in a response that thinks first: one thinking block, then one solution block (SWE-RL).

The released check counts the four tags and does not look at their order; here the thought comes first, and what
stands between its tags and between those of the solution is what is read.

Not covered: edits that delete a file or rename it, which the format cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

from adjudge.protocol import Sample, response_text
from adjudge.responses.answer_span import shorten

Matching = Literal["unique", "released"]

MAX_RESPONSE: Final = 1 << 20
"""Characters of a response that are read."""

_SEARCH, _DIVIDER, _REPLACE, _FENCE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```"
_MAX_SCANNED = 500_000_000  # characters of files that edits are looked for in; a second, at 1 to 2 ns each
_MAX_WRITTEN = 16 << 20  # characters of a file after its edits
_MAX_PATH = 1024  # characters, and 255 bytes for each part: what a file system takes


class BadEditError(ValueError):
    """Edits that cannot be read or applied."""

    def __init__(self, message: str, reason: str = "bad_format") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines of a file, "" to make it, and lines in their place: None for none, "" for one blank line."""

    path: str
    search: str
    replace: str | None


def read_edits(text: str) -> list[Edit]:
    """Return the edits of a solution, in order; prose between the blocks is ignored.

    Raises:
        BadEditError: there is none, or one is not of the form above.  The released reader leaves such a block out, or
            takes what follows it for a part of it.
    """
    lines = text.split("\n")
    edits: list[Edit] = []
    start = at = 0
    while at < len(lines):
        if lines[at] == _REPLACE:
            raise BadEditError(f"line {at + 1} of the solution ends an edit that does not begin")
        if lines[at] != _SEARCH:
            at += 1
            continue
        if at - 2 < start or not lines[at - 1].startswith("### ") or _FENCE not in lines[at - 2]:
            raise BadEditError(f"line {at + 1} of the solution: an edit begins with ```, then ### and the file's path")
        divider = _marker(lines, at + 1, _DIVIDER)
        end = _marker(lines, divider + 1, _REPLACE)
        if end + 1 >= len(lines) or not lines[end + 1].startswith(_FENCE):
            raise BadEditError(f"line {end + 1} of the solution: an edit ends with ``` and has a block of its own")
        search, replace = lines[at + 1 : divider], lines[divider + 1 : end]
        path = checked_path(lines[at - 1].removeprefix("### ").strip())
        edits.append(Edit(path, "\n".join(search), "\n".join(replace) if replace else None))
        start = at = end + 2
    if not edits:
        raise BadEditError("the solution has no SEARCH/REPLACE edit", "no_answer")
    return edits


def _marker(lines: Sequence[str], at: int, wanted: str) -> int:
    """Return the number of the line that is the marker; no other may come before it."""
    for number in range(at, len(lines)):
        if lines[number] == wanted:
            return number
        if lines[number] in (_SEARCH, _REPLACE):
            break
    raise BadEditError(f"an edit has no line {wanted} behind line {at} of the solution")


def checked_path(path: str) -> str:
    """Return a path that stays in the repository and means one file.

    Raises:
        BadEditError: it is absolute, has "..", ".", an empty part or a character that no path has.
    """
    parts = PurePosixPath(path).parts
    plain = path.isprintable() and "\\" not in path and len(path) <= _MAX_PATH
    if not plain or not parts or path.startswith("/") or ".." in parts or "/".join(parts) != path or path == ".":
        raise BadEditError(f"the path {shorten(path)!r} must be relative and plain, such as 'package/module.py'")
    if max(len(part.encode()) for part in parts) > 255:
        raise BadEditError(f"the path {shorten(path)!r} has a part of more than 255 bytes")
    return path


def apply_edits(files: Mapping[str, str], edits: Sequence[Edit], matching: Matching) -> dict[str, str]:
    """Return the new text of each file that is edited; edits of one file build on each other.

    A path that is not there is a file to be made.  "unique" wants SEARCH to be whole lines that occur once; "released"
    takes a match at the start of any line, also of a part of it, and changes every one.

    Raises:
        BadEditError: an edit changes nothing, or its SEARCH is not found or found more than once; or all that is more
            work than allowed.
    """
    texts: dict[str, str] = {}
    scanned = 0
    for number, edit in enumerate(edits, 1):
        text = texts.get(edit.path, files.get(edit.path, ""))
        scanned += len(text)
        if scanned > _MAX_SCANNED:
            raise BadEditError(f"{len(edits)} edits of files this long", "too_complex")
        if edit.search == (edit.replace or ""):
            raise BadEditError(f"edit {number} puts in what it searches for")
        texts[edit.path] = _applied(text, edit, number, matching)
        if len(texts[edit.path]) > _MAX_WRITTEN:
            raise BadEditError(f"{edit.path!r} becomes longer than {_MAX_WRITTEN} characters", "too_complex")
    return texts


def _applied(text: str, edit: Edit, number: int, matching: Matching) -> str:
    if not edit.search:
        if text:
            raise BadEditError(f"edit {number} searches for nothing in {edit.path!r}, which is not empty")
        return edit.replace or ""
    if matching == "released":
        return _applied_everywhere(text, edit, number)
    lines, wanted = f"\n{text}\n", f"\n{edit.search}\n"
    places = tuple(_places(lines, wanted))
    if len(places) != 1:
        how = "not found" if not places else "found more than once"
        raise BadEditError(f"edit {number}: its SEARCH is {how} in {edit.path!r}")
    put = "\n" if edit.replace is None else f"\n{edit.replace}\n"
    changed = lines[: places[0]] + put + lines[places[0] + len(wanted) :]
    return changed[1:-1]  # all but the newlines that were put around it; "" where no line is left


def _places(text: str, wanted: str) -> Iterator[int]:
    """Yield the first two places, which may overlap."""
    place = text.find(wanted)
    if place >= 0:
        yield place
        other = text.find(wanted, place + 1)
        if other >= 0:
            yield other


def _applied_everywhere(text: str, edit: Edit, number: int) -> str:
    wanted, put = f"\n{edit.search}", f"\n{edit.replace or ''}"
    count = f"\n{text}".count(wanted)
    if not count:
        raise BadEditError(f"edit {number}: its SEARCH is not found in {edit.path!r}")
    if count * len(put) > _MAX_WRITTEN:
        raise BadEditError(f"edit {number} puts too much into {edit.path!r}", "too_complex")
    return f"\n{text}".replace(wanted, put)[1:]


Thought = Literal["required", "opened", "optional"]


def solution_of(sample: Sample, thought: Thought, think_tag: str, solution_tag: str) -> str:
    """Return the text of the solution block.

    A thought "required" wants a thinking block that is not blank, "opened" the same where the prompt has already opened
    it; with "optional" it is not looked at.

    Raises:
        BadEditError: a tag is missing, stands more than once or out of order, the thought is blank, or the response is
            longer than a megabyte.
    """
    text = response_text(sample)
    if len(text) > MAX_RESPONSE:
        raise BadEditError(f"the response has more than {MAX_RESPONSE} characters", "too_complex")
    tags = [f"<{solution_tag}>", f"</{solution_tag}>"]
    if thought != "optional":
        tags = [f"<{think_tag}>", f"</{think_tag}>", *tags]
    if thought == "opened":
        if tags[0] in text:
            raise BadEditError(f"{tags[0]} stands in the response, and the prompt has opened it")
        text = f"{tags[0]}{text}"
    places = []
    for tag in tags:
        if text.count(tag) != 1:
            cut = sample.finish_reason == "length" and tag not in text
            raise BadEditError(f"{tag} must stand once in the response", "truncated" if cut else "bad_format")
        places.append(text.index(tag))
    if places != sorted(places):
        raise BadEditError(f"the tags must come in this order: {' '.join(tags)}")
    if thought != "optional" and not text[places[0] + len(tags[0]) : places[1]].strip():
        raise BadEditError("the thinking block is blank")
    return text[places[-2] + len(tags[-2]) : places[-1]].strip()
