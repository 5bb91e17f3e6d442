"""Changes of files: SEARCH/REPLACE edits as SWE-RL's prompt asks for them, and the change that a reference tells.

Each edit of a response has a fenced block of its own:

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

A response that thinks first has one thinking block, then one solution block (SWE-RL).  The released check counts the
four tags and does not look at their order; here the thought comes first, and what stands between its tags and between
those of the solution is what is read.

A reference tells the files as they were, and the change as edits, as the files after it, or as a unified diff of git's.
Hunks must fit at the lines they name; nothing is searched for.  New, deleted and renamed files are understood.

Source: `SEARCH_REPLACE_REGEX` and `apply_code_change` of facebookresearch/swe-rl, src/swerl/core/reward.py.

Not covered: edits that delete a file or rename it, which the format cannot say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from adjudge.protocol import Sample, response_text
from adjudge.responses.answer_span import shorten
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError

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
    place = lines.find(wanted)
    if place < 0 or lines.find(wanted, place + 1) >= 0:
        how = "not found" if place < 0 else "found more than once"
        raise BadEditError(f"edit {number}: its SEARCH is {how} in {edit.path!r}")
    put = "\n" if edit.replace is None else f"\n{edit.replace}\n"
    changed = lines[:place] + put + lines[place + len(wanted) :]
    return changed[1:-1]  # all but the newlines that were put around it; "" where no line is left


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


_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NEWLINE: Final = "\\ No newline at end of file"
_NOTHING: Final = "/dev/null"


class BadDiffError(ValueError):
    """A diff that cannot be read, or that does not fit the texts."""


@dataclass(slots=True)
class _FileDiff:
    """What a diff says of one file; `old` and `new` are None where there is none."""

    old: str | None
    new: str | None
    hunks: list[tuple[int, list[str], list[str]]] = field(default_factory=list)


def apply_diff(diff: str, files: Mapping[str, str]) -> dict[str, str | None]:
    """Return the new text of each file that a diff changes, None for one that it deletes.

    The diff is of git or of diff -u, with or without the prefixes a/ and b/; files are text by path.

    Raises:
        BadDiffError: it cannot be read, or does not fit.
    """
    changed: dict[str, str | None] = {}
    parts = _read(diff.split("\n"))
    if not parts:
        raise BadDiffError("the patch names no file; it must be a unified diff")
    for part in parts:
        before = "" if part.old is None else changed.get(part.old, files.get(part.old))  # several may change one file
        if before is None:
            raise BadDiffError(f"the patch changes {part.old!r}, which is not among the files")
        text = _patched(before, part)
        if part.old is not None and part.old != part.new:
            changed[part.old] = None
        if part.new is not None:
            changed[part.new] = text
        elif text:
            raise BadDiffError(f"the patch deletes {part.old!r} and leaves lines of it")
    return changed


def _read(lines: list[str]) -> list[_FileDiff]:
    parts: list[_FileDiff] = []
    renamed = named = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(("GIT binary patch", "Binary files ", "copy from ")):
            raise BadDiffError(f"line {at + 1} of the patch is {line[:40]!r}, which cannot be applied to texts")
        if line.startswith("diff --git a/"):
            named = line[13 : 13 + (len(line) - 16) // 2]  # of "a/NAME b/NAME"
        elif named and line.startswith("new file mode "):  # an empty file has no more than this
            parts.append(_FileDiff(None, named))
        elif named and line.startswith("deleted file mode "):
            parts.append(_FileDiff(named, None))
        elif line.startswith("rename from "):
            renamed = line.removeprefix("rename from ")
        elif line.startswith("rename to ") and renamed:
            parts.append(_FileDiff(renamed, line.removeprefix("rename to ")))
        elif line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old, new = _name(line[4:], "a/"), _name(lines[at + 1][4:], "b/")
            if not (parts and not parts[-1].hunks and (parts[-1].old, parts[-1].new) == (old, new)):
                parts.append(_FileDiff(old, new))  # a header of git's has said so before
            at += 1
        elif line.startswith("@@ "):
            if not parts:
                raise BadDiffError(f"line {at + 1} of the patch begins a hunk of no file")
            at = _hunk(lines, at, parts[-1])
            continue
        at += 1
    return parts


def _name(text: str, prefix: str) -> str | None:
    name = text.partition("\t")[0].rstrip("\r")
    if name == _NOTHING:
        return None
    if name.startswith('"'):
        raise BadDiffError(f"the patch quotes the file name {name}; plain names alone are read")
    return name.removeprefix(prefix)


def _hunk(lines: list[str], at: int, part: _FileDiff) -> int:
    """Read one hunk; return the number of the line behind it."""
    head = _HUNK.match(lines[at])
    if head is None:
        raise BadDiffError(f"line {at + 1} of the patch is not a hunk header: {lines[at][:60]!r}")
    start, count_old, _, count_new = (1 if number is None else int(number) for number in head.groups())
    old: list[str] = []
    new: list[str] = []
    last: list[list[str]] = []
    while True:
        at += 1
        line = lines[at] if at < len(lines) else ""
        if line == _NO_NEWLINE:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        if len(old) == count_old and len(new) == count_new:
            break
        kind, text = line[:1] or " ", f"{line[1:]}\n"  # mailers strip the blank of an empty line
        if at >= len(lines) or kind not in " +-":
            raise BadDiffError(f"line {at + 1} of the patch is in a hunk of more lines than there are")
        last = [side for side, kinds in ((old, " -"), (new, " +")) if kind in kinds]
        for side in last:
            side.append(text)
    if (len(old), len(new)) != (count_old, count_new):
        raise BadDiffError(f"the hunk before line {at + 1} of the patch has other lines than its header says")
    part.hunks.append((start - 1 if count_old else start, old, new))
    return at


def _patched(text: str, part: _FileDiff) -> str:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]  # what follows the last newline: nothing, or a line without one
    if not lines[-1]:
        lines.pop()
    result: list[str] = []
    done = 0
    for start, old, new in part.hunks:
        if start < done or lines[start : start + len(old)] != old:
            raise BadDiffError(f"the patch does not fit {part.old or part.new!r} at line {start + 1}")
        result += lines[done:start]
        result += new
        done = start + len(old)
    return "".join([*result, *lines[done:]])


CHANGES = ("patch", "edits", "after")
"""The fields of which one tells the change."""


def texts_of(value: Any, field: str) -> dict[str, str]:
    """Return a mapping from path to text.

    Raises:
        BadReferenceError: it is none, or a path is not plain.
    """
    if not isinstance(value, Mapping):
        raise ReferenceFormError(f'"{field}" is a {type(value).__name__}; it must be {{path: text}}')
    for path, text in value.items():
        if not isinstance(path, str) or not isinstance(text, str):
            raise ReferenceFormError(f'"{field}" has {path!r}: {text!r:.40}; both must be texts')
        _plain(path, field)
    return dict(value)


def _plain(path: str, field: str) -> str:
    try:
        return checked_path(path)
    except BadEditError as error:
        raise BadReferenceError(f'"{field}": {error}') from error


def change_of(
    reference: Mapping[str, Any], before: Mapping[str, str], matching: Matching
) -> dict[str, str | None] | None:
    """Return the new text of each file that the reference's change touches; None where it tells none.

    A file that is deleted has None.

    It has at most one of `CHANGES`; its "edits" are applied by `matching` to the text by path.

    Raises:
        BadReferenceError: several are given, or the change cannot be read or applied.
    """
    given = [field for field in CHANGES if reference.get(field) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise ReferenceFormError(f'the reference has both "{given[0]}" and "{given[1]}"; one must do')
    value = reference[given[0]]
    try:
        if given[0] == "patch":
            if not isinstance(value, str):
                raise ReferenceFormError(f'"patch" is a {type(value).__name__}; it must be a unified diff')
            changed: dict[str, str | None] = apply_diff(value, before)
        elif given[0] == "edits":
            changed = {**apply_edits(before, _edits(value), matching)}
        else:
            changed = _after(value)
    except (BadDiffError, BadEditError) as error:
        raise BadReferenceError(f'"{given[0]}": {error}') from error
    for path in changed:
        _plain(path, given[0])
    return changed


def _after(value: Any) -> dict[str, str | None]:
    if not isinstance(value, Mapping) or not all(isinstance(path, str) for path in value):
        raise ReferenceFormError(f'"after" is a {type(value).__name__}; it must be {{path: text}}')
    kept = texts_of({path: text for path, text in value.items() if text is not None}, "after")
    return {path: kept.get(path) for path in value}


def _edits(value: Any) -> list[Edit]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ReferenceFormError('"edits" must be a list of {"path", "search", "replace"}')
    edits = []
    for number, entry in enumerate(value):
        if not isinstance(entry, Mapping) or set(entry) != {"path", "search", "replace"}:
            raise ReferenceFormError(f'edit {number} must have "path", "search" and "replace"')
        path, search, replace = entry["path"], entry["search"], entry["replace"]
        if not isinstance(path, str) or not isinstance(search, str) or not isinstance(replace, str | None):
            raise ReferenceFormError(f"edit {number} must have texts; null deletes the lines")
        edits.append(Edit(_plain(path, "edits"), search, replace))
    return edits
