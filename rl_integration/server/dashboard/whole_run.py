"""What became of each client's samples over the whole run, coarser as it grows longer, and the file that keeps it."""

from __future__ import annotations

import fcntl
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from adjudge.rl_integration.service.stats import Outcomes
from adjudge.rl_integration.service.tickets import WEIGHTS, Traffic

LOG = logging.getLogger("adjudge.server")

SHORTEST: Final = 10
"""Seconds of a slot at the start."""

SLOTS: Final = 200
"""Most slots from the first to now."""

_EVERY: Final = 60.0  # seconds between two writes
_CLOSING: Final = 10.0  # seconds for the last one
_LATEST: Final = 1 << 40  # seconds since the epoch; floats tell seconds there
_FORMAT: Final = "adjudge history 1"

Row: TypeAlias = tuple[int, Traffic, str, int, int, int, float | None]


class WholeRun:
    """The outcomes of one scorer's samples in slots of time; slots double in length where there would be too many.

    Attributes:
        interval: seconds of a slot; slot n holds what came from n * interval seconds since the epoch on.
    """

    def __init__(self) -> None:
        self.interval = SHORTEST
        self._slots: dict[tuple[int, Traffic, str], Outcomes] = {}
        self._changed: dict[tuple[int, Traffic, str], int] = {}  # the look at which it last was

    def note(self, outcomes: Mapping[tuple[Traffic, str], Outcomes], now: float, look: int) -> None:
        """Add what became of samples since the last look.

        Args:
            outcomes: by traffic and client.
            now: seconds since the epoch.
            look: the number of this look, above those before.
        """
        slots = [int(now // self.interval), *(slot for slot, _, _ in self._slots)]
        first, last = min(slots), max(slots)
        while last - first >= SLOTS:
            first, last = first // 2, last // 2
            self._double(look)
        for flow, counts in outcomes.items():
            self._add((int(now // self.interval), *flow), counts, look)

    def end_by(self, now: float) -> None:
        """Move all of it back where it ends later: it was written while the clock was ahead, and what comes follows it.

        Args:
            now: seconds since the epoch.
        """
        slots = [slot for slot, _, _ in self._slots]
        ahead = min(max(slots, default=0) - int(now // self.interval), min(slots, default=0))
        if ahead > 0:
            self._slots = {(slot - ahead, kind, who): counts for (slot, kind, who), counts in self._slots.items()}
            self._changed = {(slot - ahead, kind, who): look for (slot, kind, who), look in self._changed.items()}

    def rows(self, since: int = 0) -> list[Row]:
        """Return slot, traffic, client, answered, scored, failed and sum of what changed after a look, by slot.

        The sum is None where it is not a finite number.
        """
        keys = sorted(key for key, look in self._changed.items() if look > since)
        return [
            (*key, one.answered, one.scored, one.failed, one.sum if math.isfinite(one.sum) else None)
            for key, one in ((key, self._slots[key]) for key in keys)
        ]

    def dump(self, since: int = 0) -> dict[str, Any]:
        """Return what changed after a look as JSON data; all of it by default."""
        return {"interval": self.interval, "rows": self.rows(since)}

    @classmethod
    def load(cls, data: Any) -> WholeRun:
        """Return what `dump` gave.

        Raises:
            ValueError, TypeError, LookupError, ArithmeticError: it did not give that.
        """
        run = cls()
        run.interval = data["interval"]
        doublings = math.log2(run.interval / SHORTEST)
        if type(run.interval) is not int or doublings < 0 or doublings % 1:
            raise ValueError(f"the interval {run.interval!r}")
        for row in data["rows"]:
            slot, traffic, client, answered, scored, failed, total = row
            counts = [slot, answered, scored, failed, answered - scored - failed]
            named = traffic in WEIGHTS and isinstance(client, str)
            whole = all(type(count) is int and count >= 0 for count in counts) and slot * run.interval < _LATEST
            if not (named and whole and (total is None or math.isfinite(total))):
                raise ValueError(f"the row {row!r}")
            total = math.nan if total is None else float(total)
            run._add((slot, traffic, client), Outcomes(answered=answered, scored=scored, failed=failed, sum=total), 1)
        return run

    def _add(self, key: tuple[int, Traffic, str], counts: Outcomes, look: int) -> None:
        self._slots.setdefault(key, Outcomes()).add(counts)
        self._changed[key] = look

    def _double(self, look: int) -> None:
        before, self._slots, self._changed = self._slots, {}, {}
        self.interval *= 2
        for (slot, traffic, client), counts in before.items():
            self._add((slot // 2, traffic, client), counts, look)


class HistoryFile:
    """Keeps every scorer's whole run: read at once, and written by a thread of its own from `start` to `close`.

    Raises:
        ValueError: there is a file that cannot be read, or that no history is in; or another process keeps it.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).expanduser().absolute()
        self._failing = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.runs: dict[str, WholeRun] = {}
        self._lock = self._locked()
        try:
            data = json.loads(self._path.read_bytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"the format {data['format']!r}")
            self.runs = {name: WholeRun.load(run) for name, run in data["scorers"].items()}
        except FileNotFoundError:
            return
        except OSError as error:
            raise ValueError(
                f"the history {path!r} cannot be read: {error.strerror}; name another file, or see to its rights"
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ValueError(
                f"{path!r} holds no history of this server, or a damaged one ({type(error).__name__}: "
                f"{str(error)[:100]}); name another file, or move it away to begin anew"
            ) from error

    def start(self, told: Callable[[], dict[str, Any]]) -> None:
        """Begin to write what `told` returns, the `dump` of each scorer's run by name, once a minute."""
        self._thread = threading.Thread(target=self._run, args=(told,), name="adjudge-history", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write a last time."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_CLOSING)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _locked(self) -> int | None:
        """Lock a file beside it, since the file itself is replaced; None where none can be written, as told later."""
        try:
            lock = os.open(
                self._path.with_name(f".{self._path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
        except OSError:
            return None
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with this process; workers do not inherit it
        except (BlockingIOError, PermissionError) as error:
            os.close(lock)
            raise ValueError(
                f"another process keeps the history {str(self._path)!r}; each server needs a file of its own"
            ) from error
        except OSError:  # a file system without locks
            os.close(lock)
            return None
        return lock

    def _run(self, told: Callable[[], dict[str, Any]]) -> None:
        closing = False
        while not closing:
            self._write(told())  # at once, so that a folder that cannot be written is told at the start
            closing = self._closing.wait(_EVERY)
        self._write(told())

    def _write(self, runs: dict[str, Any]) -> None:
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        text = json.dumps({"format": _FORMAT, "written": time.time(), "scorers": runs}, allow_nan=False)
        try:
            try:
                with draft.open("w", encoding="ascii") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(self._path)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            if not self._failing:
                remedy = "see to its folder, its rights and its room; it is tried again each minute"
                LOG.warning("%s", json.dumps({"history": str(self._path), "error": str(error), "remedy": remedy}))
            self._failing = True
            return
        if self._failing:
            LOG.warning("%s", json.dumps({"history": str(self._path), "error": "none any more"}))
        self._failing = False
