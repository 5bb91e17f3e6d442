"""Content-addressed scores in one SQLite file that many processes may share.

The key of a score is the SHA-256 of the scorer's fingerprint and of what was judged: prompt, response, reference,
finish reason and extra columns, but not `id` and `group`.  So a changed scorer or a changed sample misses, and the
same text under another id hits.  Values are JSON, never pickles.

The file is in WAL mode: readers never wait, writers wait for one another.  A process that is killed leaves a
readable file behind.  SQLite must not carry an open database through `fork`, so the connection is closed just
before a fork and opened again by whoever needs it, in the parent and in the child.

A file that is damaged, is of another schema version, or is not a cache at all raises `ValueError` saying so; nothing
is ever deleted to make room for a cache.  A single unreadable entry counts as a miss and is written anew.  What goes
wrong once a scorer uses it, such as a full disk, costs no score: it is logged, and the scorer goes on without.

Not covered: network file systems (WAL needs shared memory), and scores that depend on a group.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from adjudge import wire
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample

T = TypeVar("T")
U = TypeVar("U")

_LOG = logging.getLogger(__name__)

_APPLICATION_ID = 0x41646A67  # "Adjg": tells our files from other people's databases
_SCHEMA_VERSION = 1
_BUSY_SECONDS = 60.0  # how long a writer waits for another one; a write takes milliseconds
_EVICT_TO = 0.9  # share of max_bytes left in use after an eviction, so that not every write evicts
_BATCH = 500  # keys per statement; SQLite allows 999 parameters in old builds
_MAX_TOUCHED = 10_000  # old keys read since the last write, before a reader writes down that they were

_TELL_AGAIN = 60.0  # seconds between two lines in the log about a cache that cannot be used

_EVICTED_AT_ONCE = 64  # rows between two looks at the size
_ROW_OVERHEAD = 100  # bytes a row takes beside its score: the key twice, the tick, headers

# The tick is both the row id and the order of use, so the rows evicted together lie on the same pages and free them.
_CREATE = "CREATE TABLE scores (tick INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, score TEXT NOT NULL)"


def score_key(fingerprint: str, sample: Sample) -> bytes:
    """Return the 32-byte key of a sample's score.

    Raises:
        TypeError: the sample holds something that JSON cannot.
    """
    judged = [fingerprint, sample.prompt, sample.response, sample.reference, sample.finish_reason, sample.extra]
    return hashlib.sha256(wire.dumps(judged).encode("ascii")).digest()


class ScoreCache:
    """A size-bounded store of scores, safe for many threads and processes and across `fork`.

    Args:
        path: the SQLite file; made, with its folder, when it does not exist.
        max_bytes: bound on the bytes in use in the file, at least 1 MiB.  When a write would go over it, the
            entries that were used longest ago go first; a single score above an eighth of it is not kept.

    Raises:
        ValueError: the file is not a score cache, is damaged, or is of another version; or an option is out of range.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int = 1 << 30) -> None:
        if max_bytes < 1 << 20:
            raise ValueError(f"ScoreCache option max_bytes={max_bytes}; it must be at least {1 << 20} (1 MiB)")
        self.path = Path(path).absolute()
        self.max_bytes = max_bytes
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._touched: set[bytes] = set()
        _CLOSE_BEFORE_FORK.add(self)
        try:
            with self._open():
                pass  # a wrong path is a user mistake, and is reported before any work
        except OSError as error:
            raise ValueError(f"{error}; choose another path for the cache") from error

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Score]:
        """Return the scores that are stored under these keys."""
        scores: dict[bytes, Score] = {}
        with self._open() as connection:
            first, last = connection.execute("SELECT min(tick), max(tick) FROM scores").fetchone()
            for start in range(0, len(keys), _BATCH):
                some = keys[start : start + _BATCH]
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT tick, key, score FROM scores WHERE key IN ({marks})", some)
                for tick, key, text in rows:
                    if (score := _readable(text)) is None:
                        continue
                    scores[key] = score
                    if tick < last - (last - first) // 4:  # the newest quarter is safe where it is
                        self._touched.add(key)
            if len(self._touched) > _MAX_TOUCHED:
                with _transaction(connection):
                    self._mark_used(connection)
        return scores

    def put(self, scores: Mapping[bytes, Score]) -> None:
        """Store scores in one transaction; failures are not kept, so that they are tried again."""
        texts = (
            (key, json.dumps(score.to_dict(), sort_keys=True, separators=(",", ":")))
            for key, score in scores.items()
            if score.status != "failed"
        )
        rows = {key: text for key, text in texts if len(text) <= self.max_bytes // 8}
        if not rows:
            return
        with self._open() as connection, _transaction(connection):
            self._mark_used(connection)
            for some in _portions(rows, self.max_bytes // 32):
                self._make_room(connection, sum(_ROW_OVERHEAD + len(text) for _, text in some))
                connection.executemany("INSERT OR REPLACE INTO scores (key, score) VALUES (?, ?)", some)
            self._make_room(connection, 0)

    def __len__(self) -> int:
        """The number of scores stored."""
        with self._open() as connection:
            return int(connection.execute("SELECT count(*) FROM scores").fetchone()[0])

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., ScoreCache], tuple[Any, ...]]:
        return partial(ScoreCache, max_bytes=self.max_bytes), (str(self.path),)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Hold the connection; SQLite's complaints about the file become a `ValueError` with the remedy."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _connect(self.path)
                yield self._connection
            except sqlite3.OperationalError as error:
                raise OSError(f"the score cache {str(self.path)!r} cannot be used: {error}") from error
            except sqlite3.DatabaseError as error:
                raise ValueError(
                    f"the score cache {str(self.path)!r} is damaged or no SQLite file ({error}); delete it if it is a "
                    "cache (scores are then computed again), or choose another path"
                ) from error

    def _mark_used(self, connection: sqlite3.Connection) -> None:
        """Move the old entries that were read since the last write to the end of the queue."""
        connection.executemany(
            "UPDATE scores SET tick = (SELECT max(tick) + 1 FROM scores) WHERE key = ?",
            [(key,) for key in self._touched],
        )
        self._touched.clear()

    def _make_room(self, connection: sqlite3.Connection, incoming: int) -> None:
        if _bytes_used(connection) + incoming <= self.max_bytes:
            return
        target = int(self.max_bytes * _EVICT_TO) - incoming
        oldest = "DELETE FROM scores WHERE tick IN (SELECT tick FROM scores ORDER BY tick LIMIT ?)"
        while _bytes_used(connection) > target and connection.execute(oldest, (_EVICTED_AT_ONCE,)).rowcount:
            continue


class CachedScorer:
    """A scorer in front of which a cache stands.

    Name, fingerprint and scores are those of the scorer inside; equal samples of one batch are scored once.  A
    stored score keeps the cost it had when it was computed.  Samples that JSON cannot hold are scored every time,
    and a groupwise scorer is passed through untouched.

    Args:
        scorer: the scorer to ask for what is not stored.
        cache: where scores are kept.
    """

    def __init__(self, scorer: Scorer, cache: ScoreCache) -> None:
        self.scorer = scorer
        self.cache = cache
        self._told = -_TELL_AGAIN

    @property
    def name(self) -> str:
        """The name of the scorer inside."""
        return self.scorer.name

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the scorer inside."""
        return self.scorer.fingerprint

    @property
    def groupwise(self) -> bool:
        """Whether the scorer inside needs whole groups."""
        return is_groupwise(self.scorer)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the scorer inside can tell that the sample lacks something."""
        validate_sample(self.scorer, sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order, from the cache or from the scorer inside."""
        if self.groupwise:
            return await score_checked(self.scorer, samples)
        fingerprint = self.fingerprint
        keys = [_key_or_index(fingerprint, sample, index) for index, sample in enumerate(samples)]
        stored = list(dict.fromkeys(key for key in keys if isinstance(key, bytes)))
        hits = await self._tried(self.cache.get, stored) or {}
        known: dict[bytes | int, Score] = dict(hits.items())
        unknown = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in known}
        fresh = dict(zip(unknown, await score_checked(self.scorer, list(unknown.values())), strict=True))
        await self._tried(self.cache.put, {key: s for key, s in fresh.items() if isinstance(key, bytes)})
        known.update(fresh)
        return [known[key] for key in keys]

    async def _tried(self, use: Callable[[T], U], given: T) -> U | None:
        """What the cache answers in a thread; None where it cannot be used now."""
        try:
            return await asyncio.to_thread(use, given)
        except (OSError, ValueError) as error:
            if time.monotonic() - self._told >= _TELL_AGAIN:
                self._told = time.monotonic()
                _LOG.warning("%s; scores are computed and given out, and not kept", error)
            return None


def _key_or_index(fingerprint: str, sample: Sample, index: int) -> bytes | int:
    """The sample's key, or its place in the batch if it cannot be a key."""
    try:
        return score_key(fingerprint, sample)
    except TypeError:
        return index


_CLOSE_BEFORE_FORK: weakref.WeakSet[ScoreCache] = weakref.WeakSet()
_HELD: dict[int, list[ScoreCache]] = {}  # by forking thread: the caches it keeps locked meanwhile


def _before_fork() -> None:
    held = sorted(_CLOSE_BEFORE_FORK, key=id)  # one order for all threads, or two forks could wait for each other
    for cache in held:
        cache._lock.acquire()
        cache.close()
    _HELD[threading.get_ident()] = held


def _after_fork() -> None:
    for cache in _HELD.pop(threading.get_ident(), []):
        cache._lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_ours(connection):
            _create(connection, path)
        version = _pragma(connection, "user_version")
        if version != _SCHEMA_VERSION:
            raise ValueError(
                f"the score cache {str(path)!r} has schema version {version}, and this adjudge writes "
                f"{_SCHEMA_VERSION}; delete the file (scores are then computed again) or choose another path"
            )
        connection.execute("PRAGMA journal_size_limit = 4194304")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and not _is_ours(connection):
        raise ValueError(f"{str(path)!r} is a SQLite database, but not a score cache of adjudge; choose another path")
    _switch_to_wal(connection)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        if not _is_ours(connection):
            connection.execute(_CREATE)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Turn a new file into one with a write-ahead log; of several processes that try, SQLite refuses all but one.

    That refusal comes at once: SQLite does not wait here, whatever the connection's timeout is.
    """
    give_up = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(0.005)


def _is_ours(connection: sqlite3.Connection) -> bool:
    return _pragma(connection, "application_id") == _APPLICATION_ID


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _portions(rows: Mapping[bytes, str], most: int) -> Iterator[list[tuple[bytes, str]]]:
    """Rows in portions of at most so many bytes; a row that is larger is a portion by itself."""
    portion: list[tuple[bytes, str]] = []
    size = 0
    for key, text in rows.items():
        if portion and size + len(text) > most:
            yield portion
            portion, size = [], 0
        portion.append((key, text))
        size += len(text)
    yield portion


def _readable(text: str) -> Score | None:
    try:
        return Score.from_dict(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return None
