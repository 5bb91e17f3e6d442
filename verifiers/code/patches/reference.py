"""The references of `patch`: files as they were, and the change that was made, in one of three forms.

Applying a unified diff of git's to texts: how references write the change that was made.

Hunks must fit at the lines they name; nothing is searched for.  New, deleted and renamed files are understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.patches.edits import BadEditError, Edit, Matching, apply_edits, checked_path

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
