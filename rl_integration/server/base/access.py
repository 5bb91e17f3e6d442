"""What every route needs: the service, who asks, and how refusals become answers."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.server.base.json_bodies import aside
from adjudge.rl_integration.server.base.score_log import ScoreLog
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.tickets import Asking, Refused
from adjudge.wire import encode

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

_SECONDS = 600.0
_BYTES = 256 << 20
_ENTRY = 512  # bytes that an entry takes beside its answer
_DIGESTED = 1 << 20  # bytes, of which a millisecond's worth is digested on the loop
_ORPHANED = 120.0  # seconds; clients come back after 30 at most

_Name: TypeAlias = tuple[str, str]


@dataclass(kw_only=True)
class _Work:
    """What is being answered, and how many wait for it."""

    digest: bytes
    task: asyncio.Task[bytes]
    waiting: int = 0


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """An answer, and until when it is kept."""

    digest: bytes
    answer: bytes
    until: float


class Replays:
    """Answers kept for a while under the keys that clients gave; for use on one event loop.

    A client whose connection broke asks again with the same key: it gets the answer of the first time, or waits for it,
    and nothing is paid for twice.  If nobody comes back, the work is given up after a while.  Refusals are never kept.

    Args:
        seconds: how long an answer is kept.
        max_bytes: how much is kept at most.
        orphaned: seconds after which work is given up that nobody waits for.
        clock: seconds from any start.
    """

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        max_bytes: int = _BYTES,
        orphaned: float = _ORPHANED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most = max_bytes
        self._orphaned = orphaned
        self._clock = clock
        self._under_way: dict[_Name, _Work] = {}
        self._kept: OrderedDict[_Name, _Kept] = OrderedDict()  # in the order of their ends
        self._bytes = 0

    async def once(self, client: str, key: str, digest: bytes, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """Return the answer of the work that was done under this key, and do it if there is none.

        The work goes on when the caller is cancelled: it was accepted, and the caller may ask again.

        Args:
            client: whose key it is.
            key: the key; without one the work is done, and ends with the caller.
            digest: of the request, to tell it from others.
            work: what is to be done once.

        Raises:
            HttpError: 422, the key was another request's.
        """
        if not key:
            return await work()
        name = (client, key)
        self._forget()
        if (kept := self._kept.get(name)) is not None:
            _same(kept.digest, digest)
            return kept.answer
        known = self._under_way.get(name)
        if known is None or known.task.cancelling():
            known = self._under_way[name] = _Work(digest=digest, task=asyncio.create_task(work()))
            known.task.add_done_callback(lambda _: self._settle(name, known))
        _same(known.digest, digest)
        known.waiting += 1
        try:
            return await asyncio.shield(known.task)
        finally:
            known.waiting -= 1
            if not known.waiting and not known.task.done():
                asyncio.get_running_loop().call_later(self._orphaned, self._give_up, known)

    def _give_up(self, work: _Work) -> None:
        if not work.waiting:
            work.task.cancel()

    def _settle(self, name: _Name, work: _Work) -> None:
        if self._under_way.get(name) is work:
            del self._under_way[name]
        if work.task.cancelled() or work.task.exception() is not None:
            return
        answer = work.task.result()
        self._kept[name] = _Kept(digest=work.digest, answer=answer, until=self._clock() + self._seconds)
        self._bytes += len(answer) + _ENTRY
        self._forget()

    def _forget(self) -> None:
        now = self._clock()
        while self._kept:
            oldest, kept = next(iter(self._kept.items()))
            if kept.until >= now and self._bytes <= self._most:
                return
            del self._kept[oldest]
            self._bytes -= len(kept.answer) + _ENTRY


def _same(known: bytes, given: bytes) -> None:
    if known != given:
        raise HttpError(422, "key_reused", "this idempotency key came with another request; give each its own")


_CLOSED = "closed"  # the reason of what a stopping server could not answer in time; another try elsewhere can


class Host:
    """The service as the routes see it."""

    def __init__(self, service: RewardService, config: ServerConfig, score_log: ScoreLog | None = None) -> None:
        self.service = service
        self.config = config
        self.score_log = score_log
        self.replays = Replays()
        self._under_way: Counter[str] = Counter()  # samples by client; for use on one event loop

    def only_scorer(self, asked: str | None) -> str:
        """Return the scorer a request means: the one it names, or the only one there is.

        Raises:
            HttpError: 404, there is none of that name; 422, several could be meant.
        """
        names = self.service.names
        if asked is None and len(names) == 1:
            return names[0]
        if asked is None:
            raise HttpError(422, "which_scorer", f"name the scorer; there are {', '.join(names)}")
        if asked not in names:
            raise HttpError(404, "unknown_scorer", f"there is no scorer {asked!r}; there are {', '.join(names)}")
        return asked

    async def score(
        self, request: HttpRequest, scorer: str, samples: Sequence[Sample], **asking: Unpack[Asking]
    ) -> list[Score]:
        """Score samples for whoever sent the request."""
        with self._answers(request, scorer, samples, asking) as log_scores:
            scores = await self.service.score(scorer, samples, **asking)
        if any(score.reason == _CLOSED for score in scores):
            raise _closing()
        scores = await aside(len(scores), lambda: list(map(_sendable, scores)))
        request.state.log["failed"] = sum(score.status == "failed" for score in scores)
        log_scores(samples, scores)
        return scores

    async def stream(
        self, request: HttpRequest, scorer: str, samples: Sequence[Sample], **asking: Unpack[Asking]
    ) -> AsyncGenerator[tuple[int, Score], None]:
        """Yield scores as they come; see `score`."""
        with self._answers(request, scorer, samples, asking) as log_scores:
            async with aclosing(self.service.stream(scorer, samples, **asking)) as scores:
                async for place, score in scores:
                    if score.reason == _CLOSED:
                        raise _closing()
                    score = _sendable(score)
                    log_scores([samples[place]], [score])
                    yield place, score

    async def once(self, request: HttpRequest, key: str, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """Return the answer of work that is done once for a client's key, if it gave one; see `Replays.once`."""
        body = await request.body() if key else b""
        digest = await aside(len(body), lambda: hashlib.sha256(body).digest(), _DIGESTED) if key else b""
        return await self.replays.once(request.state.client, key, digest, work)

    @contextmanager
    def _answers(
        self, request: HttpRequest, scorer: str, samples: Sequence[Sample], asking: Asking
    ) -> Iterator[Callable[[Sequence[Sample], Sequence[Score]], None]]:
        """Hold samples as those of the request's client; yield what takes their scores to the score log."""
        log: dict[str, Any] = {"scorer": scorer, "samples": len(samples)}
        if self.config.log_texts:
            log["texts"] = [{"prompt": one.prompt, "response": one.response} for one in samples]
        request.state.log = log
        client = asking["client"] = request.state.client
        begun, traffic = time.perf_counter(), asking.get("traffic", "train")

        def log_scores(samples: Sequence[Sample], scores: Sequence[Score]) -> None:
            if self.score_log is not None:
                latency, route = time.perf_counter() - begun, request.url.path
                self.score_log.add(
                    scorer, samples, scores, latency=latency, client=client, route=route, traffic=traffic
                )

        here = self._under_way[client]
        if here and here + len(samples) > self.config.max_under_way:
            message = f"{here} samples of this client are under way, and at most {self.config.max_under_way} may be"
            raise HttpError(429, "too_many_under_way", message, retry_after=1.0)
        self._under_way[client] += len(samples)
        try:
            yield log_scores
        except Refused as refused:
            raise HttpError.of(refused) from refused
        finally:
            self._under_way[client] -= len(samples)
            if not self._under_way[client]:
                del self._under_way[client]


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _sendable(score: Score) -> Score:
    """Return a score, or a failed one in its place if JSON cannot hold its evidence: that costs no other sample."""
    try:
        _check_evidence(score)
    except (TypeError, RecursionError) as error:
        failed = Score.failed("verifier_error", error=f"the score cannot be sent: {error}"[:500])
        return replace(failed, provenance=score.provenance, cost=score.cost)
    return score


def _check_evidence(score: Score) -> None:
    if not all(type(value) in _PLAIN for value in score.evidence.values()):
        encode(dict(score.evidence), "evidence")
    for part in score.parts.values():
        _check_evidence(part)


def _closing() -> HttpError:
    return HttpError(503, "draining", "the server had to stop before it could answer; ask again", retry_after=5.0)
