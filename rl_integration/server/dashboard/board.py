"""The page at `/`, its files, and its data: the service's numbers over time, and what the watch says.

The page loads nothing from anywhere else and runs no script but its own: the browser is told so, in case a text that a
model wrote should ever be taken for markup.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from fastapi import APIRouter, Query, Response

from adjudge.pages.document import BASE
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.dashboard.whole_run import HistoryFile, WholeRun
from adjudge.rl_integration.service.stats import LaneStats, Outcomes, quantile
from adjudge.rl_integration.service.tickets import Traffic
from adjudge.rl_integration.watch.panel import Recent, WatchPanel
from adjudge.rl_integration.watch.report import HackingReport

State: TypeAlias = Literal["healthy", "look", "failing", "resting", "stalled", "learning", "idle"]

_STALLED = 30.0
"""Seconds without any answer while samples wait; judges and tests of programs take a few."""

_FIRST = 16
"""Samples after which a scorer that can judge hardly any is called failing, whatever the watch waits for."""

_FAILING = 0.5
"""The share of failed samples from which on there is hardly any reward."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a person is told first.

    Attributes:
        state: "healthy"; "look", the watch has alarms; "failing", "resting" (suspended) and "stalled", it does not
            work; "learning", too few samples so far; "idle", none at all.
        sentence: the reason.
    """

    state: State
    sentence: str


def verdict(stats: LaneStats, report: HackingReport | None, stalled: float) -> Verdict:
    """Return the verdict on a scorer.

    Args:
        stats: its numbers.
        report: what its watch says; None where there is none.
        stalled: seconds for which samples have waited without any being answered.
    """
    if stats.state == "open":
        return Verdict(state="resting", sentence="It gave no scores lately, and is suspended for a while.")
    if stalled >= _STALLED:
        held = stats.waiting + stats.running
        sentence = f"{held:,} samples wait, and none was answered for {stalled:.0f} seconds."
        return Verdict(state="stalled", sentence=sentence)
    if not stats.answered:
        return Verdict(state="idle", sentence="Nothing was scored yet.")
    if stats.failed_share >= _FAILING and (report is None or (report.missing and stats.answered >= _FIRST)):
        return Verdict(state="failing", sentence=f"{stats.failed_share:.0%} of all samples could not be judged.")
    if report is None:
        return Verdict(state="healthy", sentence="It answers; what it answers is not watched.")
    if report.alarms:
        first = report.alarms[0]
        more = len(report.alarms) - 1
        sentence = first.sentence + (f"  And {more} more sign{'s' if more > 1 else ''} below." if more else "")
        grave = first.kind == "failed" and first.number >= _FAILING
        return Verdict(state="failing" if grave else "look", sentence=sentence)
    if report.missing:
        sentence = f"Too few samples to tell: {report.measures.window} so far, {report.missing} more are needed."
        return Verdict(state="learning", sentence=sentence)
    return Verdict(state="healthy", sentence="Nothing unusual in its newest samples.")


@dataclass(frozen=True, kw_only=True)
class Point:
    """What happened between two looks; None is what did not happen, and so has no number.

    Attributes:
        rate: scores a second.
        p50: median time from acceptance to score, in seconds.
        p95: the time that 95 % of the samples did not exceed.
        waiting: samples accepted and not begun, at the end.
        batch: samples a call, of the calls that ended.
    """

    rate: float
    p50: float | None
    p95: float | None
    waiting: int
    batch: float | None


class History:
    """The newest points of one scorer."""

    def __init__(self, size: int) -> None:
        self._points: deque[Point] = deque(maxlen=size)
        self._last: LaneStats | None = None
        self._seen = 0.0
        self._moved = 0.0

    def note(self, stats: LaneStats, now: float) -> bool:
        """Add a point; return whether another scorer stands under the name since the last one."""
        last, before = self._last, self._seen
        self._last, self._seen = stats, now
        if last is None:
            self._moved = now
            return False
        if last.generation != stats.generation:
            self._points.clear()
            self._moved = now
            return True
        if stats.answered > last.answered or not stats.waiting + stats.running:
            self._moved = now
        latency = [new - old for new, old in zip(stats.latency, last.latency, strict=True)]
        calls = stats.calls - last.calls
        self._points.append(
            Point(
                rate=(stats.answered - last.answered) / max(now - before, 1e-3),
                p50=quantile(latency, 0.5),
                p95=quantile(latency, 0.95),
                waiting=stats.waiting,
                batch=(stats.called - last.called) / calls if calls else None,
            )
        )
        return False

    @property
    def stalled(self) -> float:
        """Seconds since samples wait, or are under way, and none was answered."""
        return self._seen - self._moved

    def newest(self, count: int) -> dict[str, list[float | None]]:
        """Return the newest points, the oldest of them first, as a column for each number of `Point`."""
        points = list(self._points)[-count:] if count > 0 else []
        return {field.name: [_short(getattr(point, field.name)) for point in points] for field in fields(Point)}


def _short(value: Any) -> float | None:
    return None if value is None else float(f"{value:.4g}")


_EVERY = 1.0
"""Seconds between two points of the history."""

_POINTS = 600
"""Ten minutes."""

_REPORT_EVERY = 2.0
"""Seconds for which a report is good: one takes about 5 ms of the process for each scorer."""


# Numbers of a scorer that the page shows as they are.
_TOLD = "name scorer fingerprint generation answered refused shared waiting running suspensions".split()


_since_boot: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
_BOOT = time.time() - _since_boot()


def steady() -> float:
    """Return seconds since the epoch: what the wall clock said when this process began, and how long that is ago.

    The wall clock itself is set, by people and by NTP, and a chart by it would go back, or leap.
    """
    return _BOOT + _since_boot()


class Numbers(Protocol):
    """What has numbers: a `RewardService`, or many."""

    def stats(self) -> list[LaneStats]:
        """Return the numbers of every scorer."""
        ...

    def take_outcomes(self) -> dict[str, dict[tuple[Traffic, str], Outcomes]]:
        """Return what became of each scorer's samples since the last call, by traffic and client."""
        ...


Lanes: TypeAlias = tuple[list[LaneStats], dict[str, list[LaneStats]]]


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have endless work done for as long as this is open."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Board:
    """Keeps the history, and puts together what the page shows.

    Raises:
        ValueError: the file of the configuration's `history` holds none.
    """

    def __init__(self, service: Numbers, config: ServerConfig, panel: WatchPanel | None) -> None:
        self.draining = False
        self._service = service
        self._config = config
        self._panel = panel
        self._started = steady()
        self._lock = threading.Lock()  # `look` is called on the server's loop, `moment` elsewhere
        self._tick = 0
        self._histories: dict[str, History] = {}
        self._file = HistoryFile(config.history) if config.history else None
        self._runs: dict[str, WholeRun] = self._file.runs if self._file is not None else {}
        for run in self._runs.values():
            run.end_by(steady())
        self._reports: dict[str, tuple[float, int, HackingReport]] = {}

    def ticking(self) -> AbstractAsyncContextManager[None]:
        """Look at the service once a second for as long as this is open."""
        if self._file is not None:
            self._file.start(self._kept)
        return running(self._ticks())

    def close(self) -> None:
        """Take a last look, and keep it; after `ticking`, once all is answered."""
        self.look(time.monotonic())
        if self._file is not None:
            self._file.close()

    def look(self, now: float) -> None:
        """Add a point to every history; `now` is in seconds from any start."""
        with self._lock:
            self._tick += 1
            lanes = self._service.stats()
            renewed = [stats.name for stats in lanes if self._history(stats.name).note(stats, now)]
            for name, outcomes in self._service.take_outcomes().items():
                self._runs.setdefault(name, WholeRun()).note(outcomes, steady(), self._tick)
        if self._panel is not None:
            for name in renewed:
                self._panel.forget(name)

    def lanes(self) -> Lanes:
        """Return the numbers of every scorer, and those of each replica that is there; none without replicas."""
        return self._service.stats(), {}

    def moment(self, tick: int = 0, sample: int = 0) -> dict[str, Any]:
        """Return what the page shows now, without the points and samples up to those that it has."""
        with self._lock:
            now = self._tick
            tick = tick if tick <= now else 0  # another server's
            missing = now - tick if tick else _POINTS
            lanes = [(stats, self._history(stats.name)) for stats in self._service.stats()]
            pasts = [(history.newest(missing), history.stalled) for _, history in lanes]
            runs = {name: run.dump(tick) for name, run in self._runs.items()}
        newest = self._panel.newest(sample) if self._panel is not None else {}
        scorers = [
            {**self._scorer(stats, past, stalled, newest.get(stats.name, [])), "run": runs.get(stats.name)}
            for (stats, _), (past, stalled) in zip(lanes, pasts, strict=True)
        ]
        return {
            "version": version("adjudge"),
            "started": self._started,
            "now": steady(),
            "draining": self.draining,
            "tick": now,
            "every": _EVERY,
            "points": _POINTS,
            "sample": max((one.number for samples in newest.values() for one in samples), default=sample),
            "report": self._config.report,
            "texts": self._panel is not None and self._panel.texts,
            "limits": asdict(self._panel.config) if self._panel is not None else None,
            "scorers": scorers,
        }

    def _kept(self) -> dict[str, Any]:
        with self._lock:
            return {name: run.dump() for name, run in self._runs.items()}

    def _history(self, name: str) -> History:
        return self._histories.setdefault(name, History(_POINTS))

    def _scorer(self, stats: LaneStats, past: dict[str, Any], stalled: float, newest: list[Recent]) -> dict[str, Any]:
        report = self._report(stats.name)
        told = verdict(stats, report, stalled)
        return {
            **{name: getattr(stats, name) for name in _TOLD},
            "state": told.state,
            "sentence": told.sentence,
            "reasons": dict(stats.reasons),
            "history": past,
            "watch": _watch(report) if report is not None else None,
            "newest": [
                {**one._asdict(), "parts": {name: part._asdict() for name, part in one.parts.items()}} for one in newest
            ],
        }

    def _report(self, name: str) -> HackingReport | None:
        if self._panel is None:
            return None
        now, count = time.monotonic(), self._panel.count(name)
        known = self._reports.get(name)
        if known is not None and (known[1] == count or (known[1] < count and known[0] + _REPORT_EVERY > now)):
            return known[2]
        report = self._panel.report(name)
        self._reports[name] = (now, count, report)
        return report

    async def _ticks(self) -> None:
        while True:
            self.look(time.monotonic())
            await asyncio.sleep(_EVERY)


def _watch(report: HackingReport) -> dict[str, Any]:
    return {
        "measures": asdict(report.measures),
        "bars": [[bar.low, bar.high, bar.count] for bar in report.bars],
        "alarms": [asdict(alarm) for alarm in report.alarms],
        "missing": report.missing,
    }


_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

FILES = {
    "/": _FOLDER / "index.html",
    "/dashboard/base.css": BASE,
    **{f"/dashboard/{file.name}": file for file in sorted(_FOLDER.iterdir()) if file.suffix != ".html"},
}
"""Path in the address to file."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def content(path: str) -> tuple[bytes, str]:
    """Return the bytes and the media type of a path of `FILES`."""
    file = FILES[path]
    return file.read_bytes(), _TYPES[file.suffix]


class Shown(Protocol):
    """A board as the routes see it: this process's `Board`, or the one of all replicas.

    `lanes` and `moment` are called on other threads than the server's loop.
    """

    draining: bool

    def ticking(self) -> AbstractAsyncContextManager[None]:
        """Look at the service for as long as this is open."""
        ...

    def close(self) -> None:
        """Take a last look."""

    def lanes(self) -> Lanes:
        """Return the numbers of every scorer, and those of each replica that is there; none without replicas."""
        ...

    def moment(self, tick: int = 0, sample: int = 0) -> dict[str, Any]:
        """Return what the page shows now, without the points and samples up to those that it has."""
        ...


def dashboard(board: Shown) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    for path in FILES:
        router.add_api_route(path, _file(path), include_in_schema=False)

    @router.get("/v1/dashboard", summary="What the page at / shows")
    async def moment(
        tick: int = Query(0, ge=0, description="The `tick` of the last answer: points of time since then."),
        sample: int = Query(0, ge=0, description="The `sample` of the last answer: samples since then."),
    ) -> Response:
        shown = await asyncio.to_thread(board.moment, tick, sample)
        body = json.dumps(shown, allow_nan=False, separators=(",", ":")).encode()
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    return router


def _file(path: str) -> Callable[[], Awaitable[Response]]:
    body, media_type = content(path)

    async def send() -> Response:
        return Response(body, headers={**HEADERS, "Content-Type": media_type})

    return send
