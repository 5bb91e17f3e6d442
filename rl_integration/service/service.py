"""The reward service: many scorers, called from anywhere, each with its own queue.

`RewardService({"math": "math", "rm": LaneConfig(scorer=..., batch=32)})` hosts scorers in this process; the server of
`adjudge.rl_integration.server` puts the same object behind HTTP.  `score` is for coroutines, `score_blocking` for any
thread; both accept all of a request or refuse all of it, and everything accepted gets a score.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self, Unpack

from adjudge.protocol import Sample, Score, Scorer
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.lane import Lane, Watch
from adjudge.rl_integration.service.stats import LaneStats, Outcomes
from adjudge.rl_integration.service.tickets import Asking, Draining, Request, Traffic
from adjudge.runtime.cache import CachedScorer, ScoreCache
from adjudge.runtime.contract import is_groupwise
from adjudge.scoring.api import listed, load, sample_of


class RewardService:
    """Hosts scorers; may be called from any thread and any event loop of the process that made it.

    Args:
        scorers: name to a spec or a `LaneConfig`.
        watch: told each score, on the service's thread.

    Raises:
        ValueError: there are no scorers, or one is unknown or misconfigured.
    """

    def __init__(self, scorers: Mapping[str, Any], *, watch: Watch | None = None) -> None:
        if not isinstance(scorers, Mapping) or not scorers:
            raise ValueError(f"the service was given {scorers!r}; give a mapping of names to scorers, one at least")
        loaded = {name: _loaded(name, given) for name, given in scorers.items()}
        self._watch = watch
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._change = threading.Lock()
        self._closed = False
        self._complete = True
        self._replaced: set[Lane] = set()  # with something left to answer
        self._lanes = {name: Lane(name, config, scorer, self._loop, watch) for name, (config, scorer) in loaded.items()}
        self._thread = threading.Thread(target=self._run, name="adjudge-service", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def names(self) -> list[str]:
        """The names of the scorers, in the order they were given."""
        return list(self._lanes)

    def scorer(self, name: str) -> Scorer:
        """Return the scorer that a name stands for now, or raise `ValueError`."""
        return self._lane(name).scorer

    async def score(
        self,
        name: str,
        samples: Sequence[Sample | Mapping[str, Any]],
        *,
        client: str = "",
        traffic: Traffic = "train",
        within: float | None = None,
    ) -> list[Score]:
        """Score samples; one score per sample, in order.

        Args:
            name: which scorer.
            samples: samples, or mappings of their fields; for a scorer of groups without a cohort size, whole groups.
            client: whose they are; clients share a scorer fairly.
            traffic: "train" or "eval"; while both wait, training gets three quarters of the scorer.
            within: seconds after which nobody needs the answer.  What has not begun by then is failed (`expired`);
                time in the queue counts here, and never against the scorer's own limits.

        Raises:
            ValueError: there is no such scorer, or a row is not a sample.
            Refused: nothing was begun; `retry_after` says when to try again.
        """
        return await asyncio.wrap_future(self.submit(name, samples, client=client, traffic=traffic, within=within))

    async def stream(
        self, name: str, samples: Sequence[Sample | Mapping[str, Any]], **asking: Unpack[Asking]
    ) -> AsyncGenerator[tuple[int, Score], None]:
        """Yield the place and the score of each sample as soon as there is one; else as `score`."""
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[int, Score]] = asyncio.Queue()

        def on_score(place: int, score: Score) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody reads on
                here.call_soon_threadsafe(queue.put_nowait, (place, score))

        request = self._submitted(name, samples, on_score, **asking)
        try:
            for _ in request.samples:
                yield await queue.get()
        finally:
            request.future.cancel()  # nobody reads on; what is done is done

    def submit(
        self, name: str, samples: Sequence[Sample | Mapping[str, Any]], **asking: Unpack[Asking]
    ) -> Future[list[Score]]:
        """Ask for scores as `score` does, and return at once; from any thread."""
        return self._submitted(name, samples, **asking).future

    def score_blocking(
        self, name: str, samples: Sequence[Sample | Mapping[str, Any]], **asking: Unpack[Asking]
    ) -> list[Score]:
        """Score samples as `score` does, and wait; not from the service's own thread."""
        future = self.submit(name, samples, **asking)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C: nobody waits any more
            raise

    def reload(self, name: str, given: Any) -> None:
        """Put another scorer, or another configuration, in a name's place.

        What was accepted is scored by the scorer it was accepted for; what comes from now on, by the new one.

        Raises:
            ValueError: the spec is not a scorer; the old one stays.
        """
        config, scorer = _loaded(name, given)
        with self._change:
            if self._closed:
                raise Draining("the service is closed", retry_after=None)
            old = self._lanes.get(name)
            generation = old.stats().generation + 1 if old is not None else 1
            flows = old.flows if old is not None else None
            lane = Lane(name, config, scorer, self._loop, self._watch, generation, flows)
            self._lanes = {**self._lanes, name: lane}
            if old is not None:
                self._replaced.add(old)
        if old is not None:
            leaving = asyncio.run_coroutine_threadsafe(old.drain(), self._loop)
            leaving.add_done_callback(lambda _: self._replaced.discard(old))

    def stats(self) -> list[LaneStats]:
        """Return the numbers of every scorer."""
        return [lane.stats() for lane in self._lanes.values()]

    def take_outcomes(self) -> dict[str, dict[tuple[Traffic, str], Outcomes]]:
        """Return what became of each scorer's samples since the last call, by traffic and client."""
        return {name: lane.flows.take() for name, lane in self._lanes.items()}

    async def drain(self, seconds: float | None = None) -> bool:
        """Accept nothing more, and wait for what was accepted.

        Returns:
            Whether all of it was answered.
        """
        with self._change:
            self._closed = True
            lanes = self._all_lanes()
        drains = [asyncio.run_coroutine_threadsafe(lane.drain(), self._loop) for lane in lanes]
        waiting = asyncio.gather(*map(asyncio.wrap_future, drains))
        try:
            await asyncio.wait_for(waiting, seconds)
        except TimeoutError:
            return False
        return True

    async def abandon(self) -> bool:
        """Accept nothing more, and fail (`closed`) what was not answered yet.

        Returns:
            Whether all that was ever accepted was answered by the scorers.
        """
        with self._change:
            self._closed = True
            lanes = self._all_lanes()
        leaving = [asyncio.run_coroutine_threadsafe(lane.abandon(), self._loop) for lane in lanes]
        if any(await asyncio.gather(*map(asyncio.wrap_future, leaving))):
            self._complete = False
        return self._complete

    def close(self, seconds: float | None = 10.0) -> bool:
        """Drain, end the service's thread, and return whether all that was accepted was answered.

        What was not answered in these seconds fails as `closed`.
        """
        if self._pid != os.getpid() or not self._thread.is_alive():
            return self._complete
        with ThreadPoolExecutor(1) as elsewhere:  # this thread may have a running loop
            elsewhere.submit(asyncio.run, self._closing(seconds)).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        return self._complete

    async def _closing(self, seconds: float | None) -> None:
        if not await self.drain(seconds):
            await self.abandon()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _all_lanes(self) -> list[Lane]:
        self._must_be_here()
        return [*self._lanes.values(), *self._replaced]

    def _submitted(
        self,
        name: str,
        samples: Sequence[Sample | Mapping[str, Any]],
        on_score: Callable[[int, Score], None] | None = None,
        *,
        client: str = "",
        traffic: Traffic = "train",
        within: float | None = None,
    ) -> Request:
        if traffic not in ("train", "eval"):
            raise ValueError(f'traffic={traffic!r}; give "train" or "eval"')
        if within is not None and not within >= 0:
            raise ValueError(f"within={within!r}; give the seconds after which nobody needs the answer, or None")
        rows = [one if isinstance(one, Sample) else sample_of(one, place) for place, one in enumerate(listed(samples))]
        for place, sample in enumerate(rows):
            if not isinstance(sample.group, str):
                raise ValueError(f"sample {place} has the group {sample.group!r}; a group is named by text")
        expires = None if within is None or math.isinf(within) else time.monotonic() + within
        request = Request(rows, client=client, traffic=traffic, expires=expires, on_score=on_score)
        while True:
            lane = self._lane(name)
            if not rows:
                request.future.set_result([])
                return request
            try:
                lane.submit(request)
            except Draining:
                if self._closed or self._lanes.get(name) is lane:
                    raise
            else:
                return request  # else: reloaded between the two lines

    def _must_be_here(self) -> None:
        if self._pid != os.getpid():
            raise ValueError(
                "this reward service was made in another process; make one after the fork, or ask a server"
            )

    def _lane(self, name: str) -> Lane:
        self._must_be_here()
        lane = self._lanes.get(name)
        if lane is None:
            raise ValueError(f"there is no scorer {name!r} in this service; it has {', '.join(self._lanes)}")
        return lane


def _loaded(name: str, given: Any) -> tuple[LaneConfig, Scorer]:
    config = given if isinstance(given, LaneConfig) else LaneConfig(scorer=given)
    try:
        scorer = load(config.scorer)
    except ValueError as error:
        raise ValueError(f"scorer {name!r}: {error}") from error
    if config.cohort is not None and not is_groupwise(scorer):
        raise ValueError(
            f"scorer {name!r}: cohort={config.cohort} is for scorers that compare the members of a group, and "
            f"{scorer.name!r} judges each sample by itself; leave it out"
        )
    if config.cache and is_groupwise(scorer):
        raise ValueError(
            f"scorer {name!r}: {scorer.name!r} compares the members of a group, and such scores are not cached; leave "
            f"out cache={config.cache!r}"
        )
    if config.cache:
        scorer = CachedScorer(scorer, ScoreCache(config.cache))
    return config, scorer
