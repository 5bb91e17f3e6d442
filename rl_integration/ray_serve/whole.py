"""The numbers of all replicas in one place: each tells its own once a second, and asks for all where somebody asks it.

The place is a deployment of its own beside the replicas, so it ends with them.  Replicas are told apart by Serve's name
for each, which no later one gets: what a dead one told last stays counted, and nothing counts twice.

Not covered: what a replica did in its last second before SIGKILL; where the place itself is killed, it begins anew with
what the replicas of now have done, and its charts are empty.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import deque
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.server.dashboard.board import Board, Lanes, running
from adjudge.rl_integration.server.middleware import LOG
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import LaneStats, Outcomes, together
from adjudge.rl_integration.service.tickets import Traffic
from adjudge.rl_integration.watch.hacking import Seen
from adjudge.rl_integration.watch.panel import Recent, WatchPanel

_EVERY: Final = 1.0  # seconds between two tellings
_THERE: Final = 10.0  # seconds after its last telling for which a replica is taken to be there
_PATIENCE: Final = 5.0  # seconds for the whole to answer
_TELLING: Final = 1.0  # seconds for a telling that nobody waits for, also the last one of a replica that ends

Flows: TypeAlias = dict[str, dict[tuple[Traffic, str], Outcomes]]
Samples: TypeAlias = dict[str, list[tuple[Seen, Recent | None]]]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a replica tells.

    Attributes:
        replica: its name.
        turn: of this telling; one that arrives after a later one is too late.
        lanes: its numbers since it began.
        change: the number of what follows, which is told again until it is known to have arrived.
        flows: what became of samples since the change before.
        samples: the newest of them.
    """

    replica: str
    turn: int
    lanes: list[LaneStats]
    change: int
    flows: Flows
    samples: Samples


@dataclass(kw_only=True)
class _Replica:
    turn: int = -1
    change: int = -1
    lanes: list[LaneStats] = field(default_factory=list)
    heard: float = 0.0


class Whole:
    """What all replicas told; has the page's board, as a single server has."""

    def __init__(self, config: ServerConfig) -> None:
        self._lock = threading.Lock()
        self._replicas: dict[str, _Replica] = {}
        self._flows: Flows = {}
        self._panel = WatchPanel(config.watch, texts=not config.hide_texts)
        self._board = Board(self, config, self._panel)
        threading.Thread(target=self._ticks, name="adjudge-whole", daemon=True).start()

    def tell(self, told: Told) -> None:
        """Take a replica's numbers."""
        with self._lock:
            known = self._replicas.setdefault(told.replica, _Replica())
            known.heard = time.monotonic()
            if told.turn > known.turn:
                known.turn, known.lanes = told.turn, told.lanes
            if told.change <= known.change:
                return
            known.change = told.change
            for name, flows in told.flows.items():
                here = self._flows.setdefault(name, {})
                for flow, outcomes in flows.items():
                    here.setdefault(flow, Outcomes()).add(outcomes)
        for name, samples in told.samples.items():
            for one, recent in samples:
                self._panel.add(name, one, recent)

    def lanes(self, told: Told) -> Lanes:
        """Take a replica's numbers, and return those of all, and of each that is there."""
        self.tell(told)
        with self._lock:
            there = {name: one.lanes for name, one in self._there().items()}
        return self.stats(), there

    def moment(self, tick: int, sample: int) -> dict[str, Any]:
        """Return what the page shows; see `Board.moment`."""
        return self._board.moment(tick, sample)

    def stats(self) -> list[LaneStats]:
        """Return the sums, in the order of the first replica's scorers."""
        with self._lock:
            ever, now = ([one.lanes for one in of.values()] for of in (self._replicas, self._there()))
        names = dict.fromkeys(lane.name for lanes in ever for lane in lanes)
        return [together(_named(name, ever), _named(name, now)) for name in names]

    def take_outcomes(self) -> Flows:
        """Return what became of all samples since the last call."""
        with self._lock:
            taken, self._flows = self._flows, {}
        return taken

    def _there(self) -> dict[str, _Replica]:
        since = time.monotonic() - _THERE
        return {name: one for name, one in self._replicas.items() if one.heard >= since}

    def _ticks(self) -> None:
        while True:
            self._board.look(time.monotonic())
            time.sleep(_EVERY)


def _named(name: str, replicas: list[list[LaneStats]]) -> list[LaneStats]:
    return [lane for lanes in replicas for lane in lanes if lane.name == name]


class Passing(WatchPanel):
    """A watch that keeps what it sees until it is taken: of each scorer as many samples as a watch looks at."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config.watch, texts=not config.hide_texts)
        self._change = threading.Lock()
        self._kept: dict[str, tuple[deque[Seen], deque[Recent]]] = {}

    def __call__(self, name: str, sample: Sample, score: Score) -> None:
        """Take note of a scorer's sample."""
        one, recent = self.cut(sample, score)
        with self._change:
            kept = self._kept.get(name)
            if kept is None:
                kept = self._kept[name] = (deque(maxlen=self.config.window), deque(maxlen=self.size))
            kept[0].append(one)
            kept[1].append(recent)

    def take(self) -> Samples:
        """Return what was seen since the last call; the newest of it as the page shows it."""
        with self._change:
            taken, self._kept = self._kept, {}
        shown = {name: [None] * (len(all_) - len(newest)) + list(newest) for name, (all_, newest) in taken.items()}
        return {name: list(zip(all_, shown[name], strict=True)) for name, (all_, _) in taken.items()}


class RemoteBoard:
    """The board of all replicas, as the routes of one of them see it.

    Args:
        service: of this replica.
        panel: its watch.
        whole: Serve's handle of the `Whole`.
    """

    def __init__(self, service: RewardService, panel: Passing, whole: Any) -> None:
        self.draining = False
        self._service = service
        self._panel = panel
        self._whole = whole
        self._name = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._turn = self._change = 0
        self._unheard: tuple[Flows, Samples] | None = None
        self._away = False

    def ticking(self) -> AbstractAsyncContextManager[None]:
        """Tell the whole once a second for as long as this is open."""
        return running(self._ticks())

    def close(self) -> None:
        """Tell a last time, if there is still somebody to tell."""
        with suppress(HttpError):
            self._tell("tell", _TELLING)

    def lanes(self) -> Lanes:
        """Return the numbers of every scorer, and those of each replica that is there.

        Raises:
            HttpError: 503, the whole does not answer: a part of it would look like a server that began anew.
        """
        self._must_be_there()
        found: Lanes = self._tell("lanes", _PATIENCE)
        return found

    def moment(self, tick: int = 0, sample: int = 0) -> dict[str, Any]:
        """Return what the page shows now; raise `HttpError` as `lanes` does."""
        self._must_be_there()
        found: dict[str, Any] = self._ask("moment", _PATIENCE, tick, sample)
        return found

    def _must_be_there(self) -> None:
        if self._away:  # so that no thread waits for it but the one that tells
            raise _away("it did not take the newest numbers")

    async def _ticks(self) -> None:
        while True:
            away = self._away
            try:
                await asyncio.to_thread(self._tell, "tell", _TELLING)
                self._away = False
            except HttpError as error:
                self._away = True
                if not away:
                    LOG.warning("%s", json.dumps({"numbers": "away", "error": error.message}))
            await asyncio.sleep(_EVERY)

    def _tell(self, method: str, seconds: float) -> Any:
        with self._lock:
            self._turn += 1
            if self._unheard is None:
                self._change += 1
                self._unheard = self._service.take_outcomes(), self._panel.take()
            flows, samples = self._unheard
            told = Told(
                replica=self._name,
                turn=self._turn,
                lanes=self._service.stats(),
                change=self._change,
                flows=flows,
                samples=samples,
            )
            found = self._ask(method, seconds, told)
            self._unheard = None
            return found

    def _ask(self, method: str, seconds: float, *given: Any) -> Any:
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        response = getattr(self._whole, method).remote(*given)
        try:
            return response.result(timeout_s=seconds)
        except (TimeoutError, RayError, RayServeException) as error:
            response.cancel()
            raise _away(type(error).__name__) from error


def _away(why: str) -> HttpError:
    message = f"what adds up the numbers of all replicas does not answer ({why}); ask again"
    return HttpError(503, "numbers_away", message, retry_after=2.0)
