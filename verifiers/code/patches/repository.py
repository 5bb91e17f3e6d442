"""A repository as a reference gives it: a mapping, a folder, or an archive, read into memory by us alone.

Links, devices and `.git` are left out; a path that leaves the repository is an error.  Sizes are bounded before
anything is unpacked.

Not covered: checking a commit out, and files of more than 16 MiB in all.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.patches.edits import BadEditError, checked_path

MAX_BYTES: Final = 16 << 20
"""Bytes of all files together; they travel into the sandbox in one message of at most 32 MiB."""

MAX_FILES: Final = 8000
"""Files; the sandbox has room for 16,384 files and folders."""

_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "__pycache__"})


def read_repository(value: Any) -> dict[str, bytes]:
    """Return the contents of a repository's files by path.

    Args:
        value: a mapping from path to text or bytes, or the path of a folder, of a .tar, .tar.gz, .tgz, .tar.bz2,
            .tar.xz or .zip.  An archive whose files all lie in one folder is read as that folder.

    Raises:
        BadReferenceError: it is none of these, cannot be read, or is too large.
    """
    if isinstance(value, Mapping):
        return _collected(_of_mapping(value))
    if not isinstance(value, str) or not value:
        kind = type(value).__name__
        raise ReferenceFormError(
            f"the repository is a {kind}; it must be {{path: text}} or the path of a folder or an archive"
        )
    place = Path(value)
    try:
        if place.is_dir():
            return _collected(_of_folder(place))
        if tarfile.is_tarfile(place):
            with tarfile.open(place) as archive:
                return _without_top(_collected(_of_tar(archive)))
        if zipfile.is_zipfile(place):
            with zipfile.ZipFile(place) as packed:
                return _without_top(_collected(_of_zip(packed)))
    except (OSError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, BadReferenceError):
            raise
        raise BadReferenceError(f"the repository {value!r} cannot be read: {error}") from error
    raise BadReferenceError(f"the repository {value!r} is neither a folder nor a tar or zip archive")


def text_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the files that are UTF-8, which are those that edits can change."""
    texts = {}
    for path, content in files.items():
        try:
            texts[path] = content.decode()
        except UnicodeDecodeError:
            continue
    return texts


def _of_mapping(value: Mapping[Any, Any]) -> Iterator[tuple[str, bytes]]:
    for path, content in value.items():
        if not isinstance(path, str) or not isinstance(content, str | bytes):
            raise ReferenceFormError(f"the repository has {path!r}: {content!r:.40}; give path and text")
        yield path, content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


def _of_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            file = Path(place, name)
            if file.is_file() and not file.is_symlink():
                _bounded(file.stat().st_size)
                yield file.relative_to(folder).as_posix(), file.read_bytes()


def _of_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isreg():
            _bounded(member.size)
            file = archive.extractfile(member)
            assert file is not None
            yield member.name.removeprefix("./"), file.read()


def _of_zip(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for member in archive.infolist():
        if not member.is_dir() and (member.external_attr >> 28) in (0, 8):  # 8 is a plain file, 10 a link
            _bounded(member.file_size)
            with archive.open(member) as file:
                yield member.filename, file.read(MAX_BYTES + 1)  # the header's size may be a lie


def _bounded(size: int) -> None:
    if size > MAX_BYTES:
        raise BadReferenceError(f"the repository has a file of {size} bytes; {MAX_BYTES} in all are read")


def _collected(entries: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    collected: dict[str, bytes] = {}
    left = MAX_BYTES
    for path, content in entries:
        if _LEFT_OUT & set(path.split("/")):
            continue
        try:
            collected[checked_path(path)] = content
        except BadEditError as error:
            raise BadReferenceError(f"the repository: {error}") from error
        left -= len(content)
        if left < 0 or len(collected) > MAX_FILES:
            raise BadReferenceError(f"the repository has more than {MAX_BYTES} bytes or {MAX_FILES} files")
    if not collected:
        raise BadReferenceError("the repository has no file")
    return collected


def _without_top(files: dict[str, bytes]) -> dict[str, bytes]:
    tops = {path.partition("/")[0] for path in files}
    if len(tops) != 1 or any("/" not in path for path in files):
        return files
    return {path.partition("/")[2]: content for path, content in files.items()}
