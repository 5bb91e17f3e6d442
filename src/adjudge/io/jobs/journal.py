"""The work done so far, beside the output, so that a job killed at any instant goes on without a row lost or doubled.

`OUT.partial/` holds the lines written (`data.jsonl`) and a manifest: how many bytes of them are committed, where
reading goes on behind them, and the counts up to there.  A commit syncs the lines first and then replaces the
manifest in one step.  Whatever lies behind the committed bytes was not committed; it is cut off on resume and
scored again.  The lines do not depend on where commits fell, so the output is the same byte for byte.  At the end
the lines become `product`, in the output's format, and that is moved to its place; each of these steps is one
that either happened or did not.

One process at a time works on an output.  The lock is a POSIX record lock: the kernel drops it when its process dies,
however it dies, and worker processes forked from the job do not inherit it.

Not covered: two machines on a network file system without locking; a disk that loses what it said it had synced; then
the lines are shorter than the manifest says, and the job refuses to go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Generic, Protocol, Self, TypeVar

from adjudge.io.errors import NO_ROOM, JobError
from adjudge.io.row import Cursor

_GUARD = threading.Lock()
_HELD: set[tuple[int, str]] = set()  # record locks do not keep two threads of one process apart


class OutputLock:
    """Holds the folder `partial` for this process until `release`.

    Raises:
        JobError: another job holds it.
    """

    def __init__(self, partial: Path) -> None:
        self._path = partial / "lock"
        self._key = (os.getpid(), str(partial.absolute()))
        with _GUARD:
            if self._key in _HELD:
                raise JobError(f"another thread of this process is writing {partial}; wait until it has finished")
            self._file = self._locked(partial)
            _HELD.add(self._key)

    def _locked(self, partial: Path) -> int:
        while True:
            partial.mkdir(parents=True, exist_ok=True)
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                continue  # the job that held it finished, and removed the folder, between the two lines above
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                holder = os.read(file, 100).decode(errors="replace").strip() or "another process"
                os.close(file)
                raise JobError(
                    f"{partial} is in use by {holder}; wait until that job has finished, or choose another output"
                ) from None
            if self._still_there(file):
                with contextlib.suppress(OSError):  # a full disk, which the first commit tells with the remedy
                    os.truncate(file, 0)
                    os.write(file, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
                return file
            os.close(file)

    def _still_there(self, file: int) -> bool:
        """Whether the path still names the file that was locked."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(file))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go; does nothing the second time."""
        with _GUARD:
            if self._key in _HELD:
                _HELD.discard(self._key)
                os.close(self._file)


class Tally(Protocol):
    """Counts over everything written so far, kept in the manifest."""

    rows: int  # of the input

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        ...

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the tally that `to_dict` wrote."""
        ...


T = TypeVar("T", bound=Tally)

RETRY = "retry"
"""The key in an identity of an output that is read beside the input, and replaced in the end."""

_FORMAT = 2


def partial_of(output: Path) -> Path:
    """Return the folder in which the work for an output is kept."""
    return output.with_name(f"{output.name}.partial")


class Journal(Generic[T]):
    """The committed work of one job; holds the lock on it.

    Args:
        output: the file or folder to be.
        identity: what must be the same for a job to go on: input, columns, options, scorer.
        tally: counts that begin at nothing; replaced by those of the manifest where there is one.
        restart: throw away what is there.
        overwrite: allow the output to exist.
        commit_seconds: how long a commit is put off while lines keep coming; what comes last waits for `rest`.

    Attributes:
        cursor: where reading goes on.
        tally: counts of what is written, the uncommitted lines included; whoever appends counts first.
        resumed_rows: rows done by earlier runs.
        safe_rows: rows committed.
        earlier_seconds: wall time of earlier runs, up to their last commit.
        done: whether every row is written and committed.

    Raises:
        ValueError: the output exists, or what is there belongs to another job.
        JobError: another process works on the same output, or what is there is damaged.
    """

    def __init__(
        self,
        output: Path,
        identity: Mapping[str, Any],
        tally: T,
        *,
        restart: bool = False,
        overwrite: bool = False,
        commit_seconds: float = 0.5,
    ) -> None:
        self._output = output
        self._partial = partial_of(output)
        self._identity = json.loads(json.dumps(identity))
        self._commit_seconds = commit_seconds
        self.cursor, self.tally = Cursor(), tally
        self._committed_cursor = self.cursor
        self.resumed_rows = self.safe_rows = 0
        self.earlier_seconds, self.done = 0.0, False
        self._began = self._committed_at = time.monotonic()
        self._data: IO[bytes] | None = None
        self._bytes = 0
        self._refused = False
        self._lock = OutputLock(self._partial)
        try:
            manifest = None if restart else self._manifest()
            in_place = manifest is not None and manifest["done"] and not self._anything_left()
            if in_place and not output.exists():
                manifest, in_place = None, False  # the job was finished, and somebody took its output away
            if output.exists() and not overwrite and not in_place:
                raise ValueError(f"{output} exists already; choose another output, or replace it with --overwrite")
            if manifest is None:
                self._manifest_path.unlink(missing_ok=True)
                _remove(self._product_path)
            else:
                self._check(manifest)
                self._take_over(manifest)
            if not self.done:
                self._data = self._open_data()
        except BaseException:
            self.close()
            raise

    @property
    def _data_path(self) -> Path:
        return self._partial / "data.jsonl"

    @property
    def _product_path(self) -> Path:
        return self._partial / "product"

    def _anything_left(self) -> bool:
        return self._data_path.exists() or self._product_path.exists()

    @property
    def _manifest_path(self) -> Path:
        return self._partial / "manifest.json"

    def _manifest(self) -> dict[str, Any] | None:
        try:
            manifest = dict(json.loads(self._manifest_path.read_bytes()))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise JobError(f"{self._manifest_path} is damaged ({error}); begin anew with --restart") from error
        if manifest.get("format") != _FORMAT:
            raise ValueError(
                f"{self._partial} was written by another version of adjudge; finish the job with that one, "
                "or begin anew with --restart"
            )
        return manifest

    def _check(self, manifest: Mapping[str, Any]) -> None:
        done = manifest["done"]  # then all lines are there, and what they replace may be gone already
        then, now = (
            {key: value for key, value in one.items() if key != RETRY or not done}
            for one in (manifest["identity"], self._identity)
        )
        changed = _differences(then, now)
        if changed:
            raise ValueError(
                f"{self._partial} holds {manifest['tally']['rows']} rows of a job that was not this one: "
                f"{'; '.join(changed[:5])}. Make the same call as then to go on with it, or begin anew with --restart"
            )

    def _take_over(self, manifest: Mapping[str, Any]) -> None:
        self.cursor = Cursor.from_json(manifest["cursor"])
        self.tally = type(self.tally).from_dict(manifest["tally"])
        self.resumed_rows = self.safe_rows = self.tally.rows
        self.earlier_seconds, self.done = manifest["seconds"], manifest["done"]
        self._bytes = manifest["bytes"]
        self._committed_cursor = self.cursor

    def _open_data(self) -> IO[bytes]:
        data = self._data_path.open("ab")
        there = data.seek(0, os.SEEK_END)
        if there < self._bytes:
            data.close()
            raise JobError(
                f"{self._data_path} holds {there} bytes, and {self._bytes} were committed; the disk lost some. "
                "Begin anew with --restart"
            )
        data.truncate(self._bytes)
        return data

    def append(self, lines: bytes, after: Cursor) -> None:
        """Write the lines of some rows, which the tally has counted; commits if the last commit is long enough ago.

        Raises:
            JobError: the disk is full.
        """
        assert self._data is not None, "append after close"
        try:
            self._data.write(lines)
        except OSError as error:
            self._refused = True  # the tally counts lines that are not there, so it must not be committed
            raise self._no_room(error) from error
        self._bytes += len(lines)
        self.cursor = after
        if time.monotonic() - self._committed_at >= self._commit_seconds:
            self.commit()

    def commit(self, *, done: bool = False) -> None:
        """Make what was appended safe.

        Raises:
            JobError: the disk is full.
        """
        assert self._data is not None, "commit after close"
        manifest = {
            "format": _FORMAT,
            "done": done,
            "bytes": self._bytes,
            "cursor": self.cursor,
            "tally": self.tally.to_dict(),
            "seconds": self.seconds,
            "identity": self._identity,
        }
        fresh = self._partial / "manifest.new"
        try:
            self._data.flush()
            os.fsync(self._data.fileno())
            with fresh.open("wb") as file:
                file.write(json.dumps(manifest).encode())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._manifest_path)
            _sync(self._partial, inside=False)
        except OSError as error:
            raise self._no_room(error) from error
        self.done = done
        self.safe_rows = self.tally.rows
        self._committed_cursor = self.cursor
        self._committed_at = time.monotonic()

    def rest(self) -> None:
        """Commit what was appended since the last commit, if anything: nothing more comes for a while.

        Raises:
            JobError: the disk is full.
        """
        if self.cursor != self._committed_cursor:
            self.commit()

    def save(self) -> None:
        """Commit what an interrupted job wrote, if anything; a disk that refuses costs only the last second."""
        if self._bytes and self._data is not None and not self._refused:
            with contextlib.suppress(JobError):
                self.commit()

    def finish(self, convert: Callable[[Path, Path], None] | None, then: Callable[[], None] | None = None) -> None:
        """Put the output in its place and remove the folder.  All must be committed as done.

        Args:
            convert: writes the output's format from the lines (source, target); None if the lines are the output.
            then: called when the output is in its place; called again if the job is killed in it and goes on.

        Raises:
            JobError: the disk is full.
        """
        if self._data is not None:
            self._data.close()
            self._data = None
        try:
            if self._data_path.exists():
                self._produce(convert)
            if self._product_path.exists():
                self._put_in_place()
            if then is not None:
                then()
        except OSError as error:
            raise self._no_room(error) from error
        shutil.rmtree(self._partial, ignore_errors=True)

    def _put_in_place(self) -> None:
        if self._output.is_dir() or self._product_path.is_dir():  # a folder takes the place of nothing but nothing
            replaced = self._partial / "replaced"
            _remove(replaced)
            with contextlib.suppress(FileNotFoundError):
                self._output.replace(replaced)
        self._product_path.replace(self._output)
        _sync(self._output.parent, inside=False)

    def _produce(self, convert: Callable[[Path, Path], None] | None) -> None:
        if convert is not None and not self._product_path.exists():
            fresh = self._partial / "product.new"
            _remove(fresh)
            convert(self._data_path, fresh)
            _sync(fresh)
            fresh.replace(self._product_path)
        if convert is not None:
            self._data_path.unlink()
        else:
            self._data_path.replace(self._product_path)

    @property
    def seconds(self) -> float:
        """Wall time of all runs so far."""
        return self.earlier_seconds + time.monotonic() - self._began

    def close(self) -> None:
        """Let go of the lock; a folder in which nothing is committed is removed."""
        if self._data is not None:
            with contextlib.suppress(OSError):  # it flushes what a full disk refused; that is uncommitted, so it may go
                self._data.close()
            self._data = None
        if not self._manifest_path.exists():
            shutil.rmtree(self._partial, ignore_errors=True)
        self._lock.release()

    def _no_room(self, error: OSError) -> JobError:
        what = "the disk is full" if error.errno in NO_ROOM else "the disk refuses"
        return JobError(
            f"{what} ({error.strerror}) while writing {self._partial}; what was committed is safe there. "
            "Make room and make the same call again to go on"
        )


def _differences(then: Any, now: Any, path: str = "") -> list[str]:
    """Return one phrase for each place where two identities differ."""
    inside, file, name = path.partition("input.files.")
    if file and not inside and then != now:
        return [f"{name} {'has changed since' if then and now else 'is new' if now else 'is gone'}"]
    if isinstance(then, dict) and isinstance(now, dict):
        differences: list[str] = []
        for key in [*then, *(key for key in now if key not in then)]:
            differences += _differences(then.get(key), now.get(key), f"{path}.{key}" if path else key)
        return differences
    return [] if then == now else [f"{path} was {then!r} and is {now!r}"]


def _remove(path: Path) -> None:
    """Remove a file or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path, *, inside: bool = True) -> None:
    """Have the disk hold a file, or a folder's list of files and, with `inside`, those too."""
    if inside and path.is_dir():
        for name in sorted(os.listdir(path)):
            _sync(path / name)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
