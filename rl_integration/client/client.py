"""Asks a reward server for scores: `Client` blocks, `AsyncClient` is for coroutines.

What the server cannot do for lack of capacity or life becomes a failed score with an engine's reason, after as many
tries as were allowed; it is never a number and never an exception.  A mistake of the caller's (a scorer that is not
there, a token that is not known, a sample that is none) is a `ValueError`.  Every request carries a key, so that a
second try of one that was heard gets the first one's answer and is not paid for again.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit

from adjudge.engines.http_client import (
    Answer,
    Circuit,
    JsonClient,
    Refusal,
    Retry,
    http_loop,
    on_http_loop,
)
from adjudge.engines.interface import Fault
from adjudge.options import Count, Options, Range
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.service.tickets import Traffic
from adjudge.runtime.deadline import seconds_left, set_deadline
from adjudge.runtime.loop import run_blocking
from adjudge.scoring.api import listed, sample_of

_SECONDS: Final = Range(gt=0, unit="seconds")


@dataclass(frozen=True, kw_only=True)
class ClientConfig(Options, what="client option"):
    """Which server is asked, and how.

    Attributes:
        url: where the server is: "http://127.0.0.1:8000".
        token_env: the environment variable that holds the token; tokens are never options, since options are logged.
        chunk: most samples of one request; the samples of a group stay together.  A server that takes fewer at once is
            asked for half of them, and so on.
        concurrency: requests of a process under way at once, and no more than half of the files that it may have open
            (`ulimit -n`).  Where a server gathers groups whose members come one by one (`cohort`), each member waits
            in a request of its own, so it must be at least the number of answers that are scored at once.  Of requests
            of more than 8 samples, 16 are under way at once, or a 32nd of `concurrency` if that is more.
        timeout: seconds for one try of a request.
        deadline: seconds for all tries of a request and the pauses between them.
        attempts: how often a request is sent at most; a repeated one is never scored twice.
        trust_env: use the proxies that the environment names.
    """

    url: str
    token_env: str = "ADJUDGE_TOKEN"
    chunk: Count = 64
    concurrency: Count = 512
    timeout: Annotated[float, _SECONDS] = 600.0
    deadline: Annotated[float, _SECONDS] = 3600.0
    attempts: Count = 12
    trust_env: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.netloc or parts.username:
            raise ValueError(f"client option url={self.url!r}; give http://HOST:PORT, and no password in it")
        super().__post_init__()

    @property
    def at_once(self) -> int:
        """`concurrency`, or half of the files that the process may have open."""
        return min(self.concurrency, max(1, _open_files() // 2))

    @property
    def token(self) -> str:
        """The token, or "" where none is set."""
        return os.environ.get(self.token_env, "")


def _open_files() -> int:
    try:
        import resource
    except ImportError:  # not a POSIX system
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


_MAX_BYTES = 256 << 20
_LARGE = 8  # samples of a request; of larger ones, a thousand places would be more than a server takes of a client
_SLOW_BODY = 408  # a slow line, and no mistake of the caller's
_GRACE = 0.5  # seconds for the way of an answer that the server gives when the time is up
_TOO_LARGE = 413  # more samples, values or bytes than the server takes at once; fewer may do


class _Connection(NamedTuple):
    """What a process asks a server with; for use on its HTTP loop.

    Attributes:
        http: the connections.
        large: places for requests of many samples.
    """

    http: JsonClient
    large: asyncio.Semaphore


class AsyncClient:
    """A client for coroutines, from any event loop; connections are shared by all, and `async with` closes them."""

    def __init__(self, config: ClientConfig | str) -> None:
        self.config = ClientConfig(url=config) if isinstance(config, str) else config
        self._connections: dict[int, _Connection] = {}  # by process id: connections do not survive a fork
        weakref.finalize(self, _let_go, self._connections).atexit = False

    def __reduce__(self) -> tuple[type[AsyncClient], tuple[ClientConfig]]:
        return type(self), (self.config,)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def score(
        self,
        samples: Sequence[Sample | Mapping[str, Any]],
        scorer: str | None = None,
        *,
        traffic: Traffic = "train",
        within: float | None = None,
    ) -> list[Score]:
        """Return one score per sample, in order.

        Args:
            samples: what to score.
            scorer: its name on the server; may be left out where there is one.
            traffic: "train" or "eval"; while both wait, training gets three quarters of the scorer.
            within: seconds after which nobody needs the answer.  Neither the server's queue nor this client's tries go
                on longer: what has no score by then fails, as `expired` or with what the last try ended in.

        Raises:
            ValueError: the request is wrong, so that no try of it can be answered.
        """
        if within is not None and not within >= 0:
            raise ValueError(f"within={within!r}; give the seconds after which nobody needs the answer, at least 0")
        rows = [one if isinstance(one, Sample) else sample_of(one, place) for place, one in enumerate(listed(samples))]
        if not rows:
            return []
        plain = []
        for place, row in enumerate(rows):
            try:
                plain.append(row.to_dict())
            except TypeError as error:
                raise ValueError(f"sample {place} cannot be sent: {error}") from error
        chunks = chunked([row.group for row in rows], self.config.chunk)
        asked = {"scorer": scorer, "traffic": traffic, "within": within}
        return await on_http_loop(self._score(chunks, plain, asked))

    async def scorers(self) -> list[dict[str, Any]]:
        """Return what the server says about its scorers.

        Raises:
            ValueError: the token is not known.
            ConnectionError: the server does not answer.
        """
        answer = await on_http_loop(self._connection().http.get(f"{self.config.url.rstrip('/')}/v1/scorers"))
        if isinstance(answer, Refusal):
            raise ValueError(f"the reward server at {self.config.url} refused the request: {answer.fault.detail}")
        if isinstance(answer, Fault):
            raise ConnectionError(f"the reward server at {self.config.url} gave no answer: {answer.detail}")
        return list(answer.body["scorers"])

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if os.getpid() in self._connections:
            await on_http_loop(self._connections.pop(os.getpid()).http.close())

    async def _score(
        self, chunks: list[list[int]], rows: list[dict[str, Any]], asked: Mapping[str, Any]
    ) -> list[Score]:
        if asked["within"] is not None:
            set_deadline(min(asked["within"] + _GRACE, math.inf if (left := seconds_left()) is None else left))
        tasks = [asyncio.ensure_future(self._ask([rows[place] for place in chunk], asked)) for chunk in chunks]
        try:
            answers = await asyncio.gather(*tasks)
        finally:  # one mistake ends them all
            for task in tasks:
                task.cancel()
        return in_order(chunks, answers)

    async def _ask(self, rows: list[dict[str, Any]], asked: Mapping[str, Any]) -> list[Score]:
        key = secrets.token_hex(16)
        body = {**asked, "samples": rows, "idempotency_key": key}
        connection, start = self._connection(), time.monotonic()
        if len(rows) > _LARGE and connection.large.locked():
            connection.http.crowded_at = start
        answer: Answer | Refusal | Fault = Fault(reason="expired", detail="no answer came in the caller's time")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds_left()), connection.large if len(rows) > _LARGE else nullcontext():
                answer = await connection.http.post(f"{self.config.url.rstrip('/')}/v1/score", body)
        if isinstance(answer, Refusal) and answer.status == _SLOW_BODY:
            return [Score.failed("engine_timeout", error=answer.fault.detail) for _ in rows]
        if isinstance(answer, Refusal) and answer.status == _TOO_LARGE:
            parts = chunked([str(row["group"]) for row in rows], max(1, len(rows) // 2))
            if len(parts) > 1:  # one after the other, so that they do not fill the server's queue together
                answers = [await self._ask([rows[place] for place in part], asked) for part in parts]
                return in_order(parts, answers)
        if isinstance(answer, Refusal):
            raise ValueError(f"the reward server at {self.config.url} refused the request: {answer.fault.detail}")
        if isinstance(answer, Fault):
            reason = answer.reason if seconds_left() != 0 else "expired"
            return [Score.failed(reason, error=answer.detail) for _ in rows]
        scores = _scores(answer, key, len(rows))
        if connection.http.crowded_at >= start:
            scores = [self._explained(score) if score.reason == "cohort_incomplete" else score for score in scores]
        return scores

    def _explained(self, score: Score) -> Score:
        why = (
            "other requests waited meanwhile, and siblings may have been among them: this process has at most "
            f"{self.config.at_once} under way at once, the smaller of the client option "
            f"`concurrency`={self.config.concurrency} and half of `ulimit -n`; raise it"
        )
        return replace(score, evidence={**score.evidence, "error": why})

    def _connection(self) -> _Connection:
        pid = os.getpid()
        if pid not in self._connections:
            http = JsonClient(
                secret=self.config.token,
                concurrency=self.config.at_once,
                timeout=self.config.timeout,
                deadline=self.config.deadline,
                max_bytes=_MAX_BYTES,
                retry=Retry(attempts=self.config.attempts),
                circuit=Circuit(seconds=self.config.deadline),
                trust_env=self.config.trust_env,
                more_headers=_within,
            )
            large = asyncio.Semaphore(max(16, self.config.concurrency // 32))
            self._connections[pid] = _Connection(http, large)
        return self._connections[pid]


class Client:
    """A client for everybody else: any thread, a notebook, a Ray actor, inside a running event loop."""

    def __init__(self, config: ClientConfig | str) -> None:
        self._client = AsyncClient(config)

    @property
    def config(self) -> ClientConfig:
        """Which server, and how patiently."""
        return self._client.config

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def score(
        self,
        samples: Sequence[Sample | Mapping[str, Any]],
        scorer: str | None = None,
        *,
        traffic: Traffic = "train",
        within: float | None = None,
    ) -> list[Score]:
        """Return one score per sample, in order; see `AsyncClient.score`."""
        return run_blocking(self._client.score(samples, scorer, traffic=traffic, within=within))

    def scorers(self) -> list[dict[str, Any]]:
        """Return what the server says about its scorers; see `AsyncClient.scorers`."""
        return run_blocking(self._client.scorers())

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        run_blocking(self._client.close())


_LOOK = 10.0  # seconds


async def names_at(config: ClientConfig) -> list[str]:
    """Return the names of a server's scorers, or find within seconds that it does not answer.

    Raises:
        ConnectionError: it does not; the message says what was tried.
        ValueError: the token is not known.
    """
    client = AsyncClient(replace(config, attempts=min(3, config.attempts), timeout=_LOOK, deadline=_LOOK))
    try:
        return [str(one.get("name")) for one in await client.scorers()]
    finally:
        await client.close()


def chunked(groups: Sequence[str], most: int) -> list[list[int]]:
    """Return the places of rows, of which each group is given, in chunks of at most so many; a group stays whole."""
    units: dict[object, list[int]] = {}
    for place, group in enumerate(groups):
        units.setdefault((group,) if group else place, []).append(place)
    chunks: list[list[int]] = []
    for unit in units.values():
        if chunks and len(chunks[-1]) + len(unit) <= most:
            chunks[-1] += unit
        else:
            chunks.append(list(unit))
    return chunks


def in_order(chunks: Iterable[Sequence[int]], answers: Iterable[Sequence[Score]]) -> list[Score]:
    """Return scores by the places of their samples, which each chunk names."""
    scores: dict[int, Score] = {}
    for chunk, answer in zip(chunks, answers, strict=True):
        scores.update(zip(chunk, answer, strict=True))
    return [scores[place] for place in range(len(scores))]


def _scores(answer: Answer, key: str, count: int) -> list[Score]:
    """The scores of an answer; one that is no such thing, or another request's, is the server's fault, and no score."""
    try:
        if (found_key := answer.body.get("idempotency_key")) != key:
            raise ValueError(f"it answers the request {found_key!r}, and {key!r} was asked")
        scores = answer.body["scores"]
        if not isinstance(scores, list) or len(scores) != count:
            raise ValueError(f"{len(scores) if isinstance(scores, list) else scores!r} scores for {count} samples")
        return [Score.from_dict(one) for one in scores]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        detail = f"the server's answer is not a list of scores: {error}"[:300]
        return [Score.failed("engine_error", error=detail) for _ in range(count)]


def _within() -> dict[str, str]:
    """What is left of the caller's time, as a header: a second try with another body would be another request."""
    left = seconds_left()
    return {} if left is None else {"within": f"{max(0.0, left - _GRACE):.3f}"}


def _let_go(connections: dict[int, _Connection]) -> None:
    connection = connections.pop(os.getpid(), None)
    if connection is not None:
        asyncio.run_coroutine_threadsafe(connection.http.close(), http_loop())
