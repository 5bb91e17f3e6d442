"""The input of a job: one or many files of one kind, or a dataset, as one numbered stream of rows.

What an input may be is decided here, for every command: a file by its suffix, a folder written by `save_to_disk`, a
folder of data files, a pattern (`runs/*.jsonl`, `runs/**/*.parquet`; files are read in the order of their names), an
address that fsspec knows (`s3://...`, `gs://...`, `hf://...`; fetched once into the user's cache folder, under its
address and version), or else a name on the Hugging Face hub (`hub:NAME` where a file here has that name). Several stand
one behind the other, with commas. Not covered: standard input, which cannot be entered again where an interrupted job
stopped.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from adjudge.extras import need
from adjudge.io.arrow_rows import HubDataset, ParquetFile, SavedDataset
from adjudge.io.row import Cursor, Part, Place, Row
from adjudge.io.text_rows import DAMAGE, CsvFile, JsonLines, JsonList, holds_list, is_gzip


def is_remote(name: str) -> bool:
    """Return whether a name is an address with a protocol."""
    protocol, separator, rest = name.partition("://")
    return bool(separator and rest) and protocol.replace("+", "").isalnum()


def fetched(name: str) -> list[Path]:
    """Return local copies of the files that an address names: one, those of a folder, or those that a pattern fits.

    Raises:
        ValueError: fsspec or a package of it is missing, or there is nothing there that can be read.
    """
    fsspec = need("fsspec", f"reading {name}")
    try:
        files, root = fsspec.core.url_to_fs(name)
    except (ImportError, ValueError) as error:  # a package is missing, or no package has this protocol
        raise ValueError(f"{name} cannot be read: {error}") from error
    try:
        paths = files.glob(root) if any(sign in root for sign in "*?[") else files.find(root)
        if not paths:
            raise ValueError(f"there is nothing at {name}; check the address")
        return [_copy(files, path) for path in sorted(map(str, paths))]
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error}; check the address and your credentials") from error


def _copy(files: Any, path: str) -> Path:
    """The local copy of a file, under a name that changes with its address and its version."""
    protocol = files.protocol if isinstance(files.protocol, str) else files.protocol[0]
    version = f"{protocol}://{path} {files.ukey(path)}"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adjudge" / "fetched"
    home = folder / hashlib.sha256(version.encode()).hexdigest()[:16] / PurePosixPath(path).name
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = home.with_name(f"{home.name}.{os.getpid()}.partial")
        files.get_file(path, str(draft))
        draft.replace(home)
    return home


_HEAD_BYTES = 1 << 20
_HEADS, _HEAD_ROWS = 64, 8
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


class Source:
    """The rows of all parts, numbered from 0.

    Args:
        name: what the user called it.
        parts: the files, in reading order; never empty.
        files: every file the rows come from, for the identity; empty for a hub dataset.
        origin: what else tells one input from another: split, subset, revision.
    """

    def __init__(self, name: str, parts: list[Part], files: list[Path], origin: Mapping[str, Any]) -> None:
        self.name = name
        self._parts = parts
        self._files = files
        self._origin = origin
        self._sizes = [path.stat().st_size for path in files]

    def file_of(self, part: int) -> str:
        """Return the name, without its folder, of the file that a part's rows come from; "" where it is not a file."""
        path = self._parts[part].path
        return path.name if isinstance(path, Path) and path.is_file() else ""

    def heads(self) -> list[tuple[str, list[Row]]]:
        """Return the first rows of each file, up to 64 files, where there are several."""
        parts = self._parts[:_HEADS] if len(self._parts) > 1 else []
        return [(str(part.path), list(itertools.islice(part.rows(Place()), _HEAD_ROWS))) for part in parts]

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on: each file's size, change time and first MiB as a hash."""
        root = Path(self.name)
        files = {}
        for path in self._files:
            name = (
                path.name if path == root else str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
            )
            stat = path.stat()
            with path.open("rb") as stream:
                head = hashlib.sha256(stream.read(_HEAD_BYTES)).hexdigest()[:16]
            files[name] = {"bytes": stat.st_size, "changed": stat.st_mtime_ns, "head": head}
        return {"files": files, **self._origin} if files else {"name": self.name, **self._origin}

    def columns(self) -> list[str] | None:
        """Return the top-level columns that every part has, or None where only the rows tell."""
        common: list[str] | None = None
        for part in self._parts:
            names = part.columns()
            if names is None:
                return None
            common = names if common is None else [name for name in common if name in names]
        return common

    def select(self, columns: list[str] | None) -> None:
        """Read only these top-level columns where that saves work; None reads all."""
        for part in self._parts:
            part.select(columns)

    def count(self) -> int | None:
        """Return the number of rows, or None if a part does not know."""
        total = 0
        for part in self._parts:
            rows = part.count()
            if rows is None:
                return None
            total += rows
        return total

    def fraction(self, cursor: Cursor) -> float | None:
        """Return the share of the input before a place, from 0 to 1, or None if unknown."""
        total = self.count()
        if total is not None:
            return cursor.row / total if total else 1.0
        if len(self._sizes) != len(self._parts) or any(is_gzip(path) for path in self._files):
            return None
        whole = sum(self._sizes)
        return min(1.0, (sum(self._sizes[: cursor.part]) + cursor.place.offset) / whole) if whole else 1.0

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the rows behind a place, each with its number and its part."""
        index, place = start.row, start.place
        for number in range(start.part, len(self._parts)):
            for row in self._parts[number].rows(place):
                row.index, row.part = index, number
                index += 1
                yield row
            place = Place()


@dataclass(frozen=True, kw_only=True)
class DatasetChoice:
    """Which part of a dataset is read: the options of everything that opens an input."""

    split: str = ""
    """Split of a dataset that has several."""

    subset: str = ""
    """Configuration of a dataset on the hub."""

    revision: str = ""
    """Commit, tag or branch of a dataset on the hub."""

    def opened(self, name: str, *, limit: int) -> Source:
        """Open an input, as `open_source` says."""
        return open_source(name, limit=limit, split=self.split, subset=self.subset, revision=self.revision)


def open_source(
    name: str, *, limit: int, split: str = "", subset: str = "", revision: str = "", usual_split: str = ""
) -> Source:
    """Open the input.

    Args:
        name: file, folder, pattern, address or hub name; several with commas.
        limit: bytes one row of a text file may take.
        split: which split, for datasets that have several; "a+b" takes two, one behind the other.
        subset: which configuration of a hub dataset.
        revision: which commit of a hub dataset.
        usual_split: which split to take where there are several and none is named; "" asks for a name.

    Raises:
        ValueError: there is no such input, or it cannot be read as what its name says it is.
    """
    path = Path(name).expanduser()
    if not path.exists() and "," in name:
        each = [
            open_source(one.strip(), limit=limit, split=split, subset=subset, revision=revision)
            for one in name.split(",")
            if one.strip()
        ]
        parts = [part for source in each for part in source._parts]
        files = [file for source in each for file in source._files]
        return Source(name, parts, files, {key: text for source in each for key, text in source._origin.items()})
    if not path.exists():
        if is_remote(name):
            return _files_source(name, fetched(name), limit, split)
        if any(sign in name for sign in "*?["):
            files = sorted(file for file in map(Path, glob.glob(str(path), recursive=True)) if file.is_file())
            if not files:
                raise ValueError(f"no file fits the pattern {name}; check the path")
            return _files_source(name, files, limit, split)
        hub = name.removeprefix("hub:")
        if "/" not in name and not (split or subset or revision):  # those are for a dataset of the hub
            beside = [
                file for file in sorted(glob.glob(f"{glob.escape(name)}.*")) if _reader_of(Path(file)) is not None
            ]
            if beside:
                raise ValueError(
                    f"there is no {name} here; did you mean {' or '.join(beside)}? (hub:{name} is that of the hub)"
                )
        if hub == name and (_reader_of(path) is not None or _HUB_NAME.fullmatch(name) is None):
            raise ValueError(f"there is no file or folder {name}; check the path")
        hubs = [
            HubDataset(hub, subset=subset, split=one, revision=revision, usual_split=usual_split)
            for one in split.split("+")
        ]
        return Source(name, list(hubs), [], {"subset": subset, "split": split, "version": hubs[0].version})
    if subset or revision:
        raise ValueError(f"--subset and --revision are for datasets of the hub; {name} is here on the disk")
    if path.is_dir() and ((path / "state.json").is_file() or (path / "dataset_dict.json").is_file()):
        files = sorted(file for file in path.rglob("*") if file.is_file())
        saved = [SavedDataset(path, one, usual_split) for one in split.split("+")]
        return Source(name, list(saved), files, {"split": split})
    return _files_source(name, _data_files(path) if path.is_dir() else [path], limit, split)


def _files_source(name: str, files: list[Path], limit: int, split: str) -> Source:
    if split:
        raise ValueError(f"--split is for datasets; {name} holds plain data files, so name the file you want")
    try:
        return Source(name, [_open_file(file, limit) for file in files], files, {})
    except DAMAGE as error:
        raise ValueError(f"{name} cannot be read: {error}") from error


def _data_files(folder: Path) -> list[Path]:
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and _reader_of(file) is not None
        and not any(part.startswith((".", "_")) or part.endswith(".partial") for part in file.relative_to(folder).parts)
    ]
    if not files:
        raise ValueError(f"the folder {folder} holds no data files ({_SUFFIXES}) and is not a datasets folder")
    kinds = {_data_suffix(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(
            f"the folder {folder} holds files of several kinds ({', '.join(sorted(kinds))}); take them one by one"
        )
    return files


def _open_file(path: Path, limit: int) -> Part:
    reader = _reader_of(path)
    if reader is None:
        raise ValueError(f"{path} has a suffix that says nothing about its format; one of {_SUFFIXES} is needed")
    return reader(path, limit)


def _data_suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if is_gzip(path) else path.suffix.lower()


def _reader_of(path: Path) -> Callable[[Path, int], Part] | None:
    return None if is_gzip(path) and _data_suffix(path) == ".parquet" else _READERS.get(_data_suffix(path))


def _json(path: Path, limit: int) -> Part:
    return JsonList(path) if holds_list(path) else JsonLines(path, limit)


_READERS: dict[str, Callable[[Path, int], Part]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".jsonlines": JsonLines,
    ".json-lines": JsonLines,
    ".json": _json,
    ".csv": lambda path, limit: CsvFile(path, limit, ","),
    ".tsv": lambda path, limit: CsvFile(path, limit, "\t"),
    ".parquet": lambda path, limit: ParquetFile(path),
}
_SUFFIXES = f"{', '.join(_READERS)}; text also with .gz"
