"""A file with a line for each score that was given, for `adjudge eval live_drift`: numbers and names, never texts.

Lines are made on the server's loop, about 8 microseconds each, and written by a thread of their own a second later at
most.  A full file becomes the older one, and the one before that goes, so the disk holds two at most.  A file that
cannot be written any more costs lines, which are counted, and no scores.

Not covered: several processes; each needs a file of its own.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.service.tickets import Traffic
from adjudge.rl_integration.watch.hacking import fingerprint, texts_of

LOG = logging.getLogger("adjudge.server")

_SUFFIX = ".jsonl"
_EVERY = 1.0  # seconds between two writes
_MAX_ROWS = 100_000  # lines in memory, about 30 MB, while the disk does not answer; more are lost
_CLOSING = 10.0  # seconds for the last write
_LONGEST_NAME = 64  # of a group, in characters; a longer name may be a text
_PROBE = 1 << 12  # bytes that must find room at the start


class ScoreLog:
    """Takes scores on one event loop, and writes them in a thread from `start` to `close`.

    Args:
        path: the file, which goes on if it is there; its name ends with .jsonl, so that its readers know it.
        max_bytes: size from which on it becomes the older file, NAME.1.jsonl, in place of the one before.

    Raises:
        ValueError: the file cannot be written, or another process writes it.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        self._path = Path(path).expanduser().absolute()
        self._older = self._path.with_suffix(f".1{_SUFFIX}")
        self._most = max_bytes
        self._rows: deque[bytes] = deque()
        self._dropped = 0  # counted on the loop
        self._unwritten = 0  # counted in the thread
        self._failing = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="adjudge-score-log", daemon=True)
        if self._path.suffix != _SUFFIX:
            raise ValueError(f"the score log {path!r} must have a name that ends with {_SUFFIX}")
        if self._path.exists() and not self._path.is_file():
            raise ValueError(f"the score log {path!r} is there and no plain file; name another one")
        try:
            self._file = self._opened()
            self._append(b"\n" * _PROBE)
            os.ftruncate(self._file, os.fstat(self._file).st_size - _PROBE)
        except OSError as error:
            raise ValueError(
                f"the score log {path!r} cannot be written: {error.strerror}; name another file, or see to its folder, "
                "its rights and its room"
            ) from error

    def start(self) -> Self:
        """Begin to write."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Write what is left; what comes later is lost, and counted."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_CLOSING)

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self._dropped + self._unwritten

    def add(
        self,
        scorer: str,
        samples: Sequence[Sample],
        scores: Sequence[Score],
        *,
        latency: float,
        client: str,
        route: str,
        traffic: Traffic,
    ) -> None:
        """Take note of scores; never waits for the disk.

        Args:
            scorer: its name in the service.
            samples: what was scored.
            scores: one for each.
            latency: seconds since the request was taken.
            client: whose they are.
            route: path of the request.
            traffic: "train" or "eval".
        """
        if self._closing.is_set() or len(self._rows) + len(samples) > _MAX_ROWS:
            if not self._dropped:
                self._tell(error="the disk is too slow, or the server is closed, so that lines are lost")
            self._dropped += len(samples)
            return
        now, latency = round(time.time(), 6), round(latency, 6)
        for sample, score in zip(samples, scores, strict=True):
            row = {
                "time": now,
                "scorer": scorer,
                "fingerprint": score.provenance.fingerprint,
                "value": score.value,
                "status": score.status,
                "reason": score.reason,
                "group": _group(sample),
                "length": sum(map(len, texts_of(sample.response, assistant=True))),
                "latency": latency,
                "client": client,
                "route": route,
                "traffic": traffic,
            }
            self._rows.append(json.dumps(row, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def _run(self) -> None:
        while not self._closing.wait(_EVERY):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        rows = [self._rows.popleft() for _ in range(len(self._rows))]
        if not rows:
            return
        data = b"".join(rows)
        try:
            self._prepare(len(data))
            self._append(data)
        except OSError as error:
            self._unwritten += len(rows)
            if not self._failing:
                self._tell(error=str(error))
            self._failing = True
            return
        if self._failing:
            self._tell(error="none any more")
        self._failing = False

    def _tell(self, *, error: str) -> None:
        LOG.error("%s", json.dumps({"score_log": str(self._path), "error": error, "lost": self.lost}))

    def _prepare(self, more: int) -> None:
        """Open the file anew if somebody moved or removed it, or if it is full."""
        now = os.fstat(self._file)
        try:
            moved = not os.path.samestat(os.stat(self._path), now)
        except FileNotFoundError:
            moved = True
        full = not moved and now.st_size > 0 and now.st_size + more > self._most
        if full:
            os.replace(self._path, self._older)
        if moved or full:
            old, self._file = self._file, self._opened()
            os.close(old)

    def _opened(self) -> int:
        """Open the file, locked as long as this process lives, at the beginning of a line."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by the workers that scorers fork
            except (BlockingIOError, PermissionError) as error:
                why = "another process writes it, and each server needs a file of its own"
                raise OSError(error.errno, why) from error
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":  # a process was killed within a line
                os.write(file, b"\n")
        except OSError:
            os.close(file)
            raise
        return file

    def _append(self, data: bytes) -> None:
        """Write all of it, or nothing."""
        before, left = os.fstat(self._file).st_size, memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, before)
            raise


def _group(sample: Sample) -> str:
    """Return the group's name, or a fingerprint of what has no short name; "" where there is no prompt either."""
    if 0 < len(sample.group) <= _LONGEST_NAME:
        return sample.group
    texts = (sample.group,) if sample.group else texts_of(sample.prompt)
    return f"{fingerprint(texts):016x}" if any(texts) else ""
