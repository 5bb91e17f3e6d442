"""JSON over HTTP to one server: many requests at once, second tries, deadlines, a word for all that goes wrong.

A request ends in an answer or in a `Fault`, never later than its deadline:

| what happened | second try | reason in the end |
|---|---|---|
| no connection, or the connection ended before an answer began | yes | `engine_unavailable` |
| no complete answer within `timeout` | yes | `engine_timeout` |
| status 429, 503 or 529 | yes, after what Retry-After asks for | `engine_overloaded` |
| status 502 | yes | `engine_unavailable` |
| status 504 | yes | `engine_timeout` |
| another 5xx | yes | `engine_error` |
| the answer broke off | yes | `engine_error` |
| another status (redirects are not followed) | no | `engine_error` |
| an answer that is too large, no JSON, or no JSON object | no | `engine_error` |
| an object with nothing but an `error`, as gateways send with status 200 | as its `code` | as its `code` |

A connection belongs to the loop it was opened on.  Callers come from many loops, some of which live for one call, so
connections live on one loop of this process: all callers share a pool of them and the limit on concurrent requests.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import random
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from adjudge.engines.interface import Fault
from adjudge.options import Options, Range
from adjudge.runtime.deadline import seconds_left
from adjudge.runtime.loop import process_loop
from adjudge.wire import no_constant

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Retry(Options, what="retry option"):
    """How often and after which pauses a request is sent again.

    Attributes:
        attempts: how often a request is sent at most, the first time included.
        first_pause: upper bound in seconds of the pause after the first attempt; it doubles with each attempt.
        longest_pause: upper bound in seconds of any pause, also of one that the server asks for.
    """

    attempts: Annotated[int, Range(ge=1)] = 6
    first_pause: Annotated[float, Range(ge=0, unit="seconds")] = 0.5
    longest_pause: Annotated[float, Range(ge=0, unit="seconds")] = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest_pause < self.first_pause:
            raise ValueError(f"retry option longest_pause={self.longest_pause!r}; it must be at least first_pause")

    def pause(self, attempt: int, asked: float | None, source: random.Random) -> float:
        """Return the seconds to wait after an attempt.

        Full jitter: uniform between 0 and the doubled bound, so that a thousand clients of a server that comes back do
        not come back together.  What the server asked for is a lower bound, with the jitter on top of it.

        Args:
            attempt: which attempt failed, from 1.
            asked: the seconds that the server asked for, or None.
            source: where the jitter comes from.
        """
        doublings = min(attempt - 1, 64)  # 2.0 ** 1024 overflows
        jitter = source.uniform(0, min(self.longest_pause, self.first_pause * 2.0**doublings))
        return min(self.longest_pause, (asked or 0.0) + jitter)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for; None where there is none that can be read.

    Source: RFC 9110, section 10.2.3: a number of seconds, or an HTTP date.
    """
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    try:
        moment = email.utils.parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, OverflowError):
        return None


@dataclass(eq=False, kw_only=True)
class Circuit(Options, what="circuit option"):
    """Whether a server counts as dead, known to all that ask it.

    Attributes:
        failures: so many connections in a row must have failed,
        seconds: and for so long, so that a restart that takes a moment costs nothing but that moment.
        pause: seconds between two looks whether a dead server is back.
        clock: seconds that only grow.
        failed_in_a_row: how many connections have failed since the last sign of life.
    """

    failures: Annotated[int, Range(ge=1)] = 5
    seconds: Annotated[float, Range(ge=0, unit="seconds")] = 5.0
    pause: Annotated[float, Range(ge=0, unit="seconds")] = 5.0
    clock: Callable[[], float] = time.monotonic
    failed_in_a_row: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)
    _open_until: float | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self) -> float:
        """Return for how many seconds the server is still to be left alone; 0 when it may be asked."""
        with self._lock:
            return 0.0 if self._open_until is None else max(0.0, self._open_until - self.clock())

    def failed(self) -> None:
        """Take note that no connection came about, or that it ended without an answer."""
        with self._lock:
            now = self.clock()
            if not self.failed_in_a_row:
                self._since = now
            self.failed_in_a_row += 1
            if self.failed_in_a_row >= self.failures and now - self._since >= self.seconds:
                self._open_until = now + self.pause

    def answered(self) -> None:
        """Take note of a sign of life."""
        with self._lock:
            self.failed_in_a_row = 0
            self._open_until = None


def http_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop for HTTP, started on first use."""
    return process_loop("adjudge-http").started()


async def on_http_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this process's HTTP loop; cancelling the caller cancels it."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, http_loop()))


_MAX_DETAIL = 500  # characters, as `Fault` promises
_OVERLOADED = (429, 503, 529)
_SURROGATE = re.compile("[\ud800-\udfff]")
# How servers say that a prompt does not fit into the model's window, and the statuses they say it with.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|exceeds? (the |its )?context (window|limit|length|size)|"
    r"maximum (context|prompt|input|model) length|maximum allowed length|model's context length|"
    r"(prompt|input) is too long|maximum number of tokens allowed|"
    r"`inputs` must have less than|`max_new_tokens` must be <=",
    re.IGNORECASE,
)
_UNFIT = (400, 422)
_POOL = 8  # connections
_IDLE = 64  # connections that are kept for later requests
_CHUNK = 1 << 16  # bytes per read; a body that goes over its limit is noticed that soon


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A JSON object that a server answered with, and the seconds from sending the request to the last byte."""

    body: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A status that says the request itself is at fault; the caller decides whose mistake that is.

    Attributes:
        status: the HTTP status, or the one that an answer with nothing but an error names.
        fault: the same as a fault.
    """

    status: int
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class NoObject(Fault):
    """The server answered, and not with a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    fault: Fault
    asked: float | None = None


@dataclass(eq=False, kw_only=True)
class JsonClient:
    """A connection pool to one server.  All calls must come from one event loop.

    Attributes:
        secret: the key that is sent with each request, and must never appear in a fault; "" for none.
        concurrency: how many requests are under way at once.
        timeout: seconds for one attempt, from sending to the last byte.
        deadline: seconds for all attempts at one request and the pauses between them, from when the first is sent.
        max_bytes: largest answer that is read.
        retry: when to try again.
        circuit: what is known about the server.
        trust_env: whether the proxies that the environment names are used.
        more_headers: made anew for each attempt.
    """

    secret: str
    concurrency: int
    timeout: float
    deadline: float
    max_bytes: int
    retry: Retry
    circuit: Circuit
    trust_env: bool
    more_headers: Callable[[], Mapping[str, str]] = dict

    def __post_init__(self) -> None:
        import httpx

        self._jitter = random.Random()
        self._closed = False
        self._slots = asyncio.Semaphore(self.concurrency)
        self.crowded_at = -math.inf
        """When a request last had to wait for others, by `time.monotonic`."""
        self._pools: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []  # each pool as often as it may take another request
        self._tls = httpx.create_ssl_context(trust_env=self.trust_env)

    async def close(self) -> None:
        """Close the connections; requests under way get a fault."""
        self._closed = True
        for pool in list(self._pools):
            await pool.aclose()

    @asynccontextmanager
    async def _pool(self) -> AsyncIterator[httpx.AsyncClient]:
        """Take a place in a pool; httpx looks at all pairs of a pool's idle connections for each request."""
        import httpx

        if not self._free:
            key = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
            # The time limits are ours: httpx counts each read anew, so that a slow drip of bytes would never time out.
            pool = httpx.AsyncClient(
                headers={"Accept": "application/json", **key},
                timeout=httpx.Timeout(None),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_POOL),
                follow_redirects=False,
                trust_env=self.trust_env,
                verify=self._tls,
            )
            self._pools.append(pool)
            self._free += [pool] * _POOL
        taken = self._free.pop()
        try:
            yield taken
        finally:
            self._free.append(taken)
            if len(self._free) > _IDLE and self._free.count(taken) == _POOL:
                self._free = [other for other in self._free if other is not taken]
                self._pools.remove(taken)
                await taken.aclose()

    async def post(self, url: str, body: Mapping[str, Any]) -> Answer | Refusal | Fault:
        """Send a JSON object and return the one that comes back."""
        try:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            return self._fault("engine_error", f"the prompt cannot be written as JSON: {error}")
        # Halves of surrogate pairs, which UTF-8 cannot hold, are replaced as the embedded engines replace them.
        text = _SURROGATE.sub("\ufffd", text)
        return await self._ask("POST", url, text.encode())

    async def get(self, url: str) -> Answer | Refusal | Fault:
        """Return the JSON object at an address."""
        return await self._ask("GET", url, None)

    async def _ask(self, method: str, url: str, content: bytes | None) -> Answer | Refusal | Fault:
        """Ask until there is an answer, or until the caller's deadline (`adjudge.runtime.deadline`)."""
        try:
            async with asyncio.timeout(seconds_left()):
                return await self._tried(method, url, content)
        except TimeoutError:
            return self._fault("engine_timeout", "the time of the whole call was up")

    async def _tried(self, method: str, url: str, content: bytes | None) -> Answer | Refusal | Fault:
        deadline: float | None = None
        attempt = 0
        while True:
            attempt += 1
            if self._slots.locked():
                self.crowded_at = time.monotonic()
            async with self._slots:  # given back between attempts, so that pauses hold nobody up
                if attempt == 1 and (wait := self.circuit.wait()):
                    return Fault(
                        reason="engine_unavailable",
                        detail=f"not tried: {self.circuit.failed_in_a_row} connections to the server failed in a row; "
                        f"it is asked again in {wait:.1f} s",
                    )
                if self._closed:
                    return Fault(reason="engine_unavailable", detail="the engine was closed")
                now = time.monotonic()
                deadline = deadline or now + self.deadline
                outcome = await self._attempt(method, url, content, min(self.timeout, deadline - now))
            if not isinstance(outcome, _Again):
                return outcome
            pause = max(self.retry.pause(attempt, outcome.asked, self._jitter), self.circuit.wait())
            left, callers = deadline - time.monotonic(), seconds_left()
            if attempt >= self.retry.attempts or pause >= (left if callers is None else min(left, callers)):
                return outcome.fault
            await asyncio.sleep(pause)

    async def _attempt(
        self, method: str, url: str, content: bytes | None, seconds: float
    ) -> Answer | Refusal | Fault | _Again:
        import httpx

        begun = False
        start = time.monotonic()
        try:
            headers = {**self.more_headers(), **({} if content is None else {"Content-Type": "application/json"})}
            async with self._pool() as pool:
                sending = pool.stream(method, url, content=content, headers=headers)
                async with asyncio.timeout(seconds), sending as response:
                    begun = True
                    self.circuit.answered()
                    raw = await self._read(response)
        except TimeoutError:
            return self._again("engine_timeout", f"no complete answer within {seconds:.1f} s")
        except _TooLarge as error:
            return self._fault("engine_error", str(error))
        except httpx.DecodingError as error:
            return self._fault("engine_error", f"the answer's encoding is broken: {error}")
        except httpx.TransportError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            if begun:
                return self._again("engine_error", f"the answer broke off ({what})")
            self.circuit.failed()
            return self._again("engine_unavailable", f"no answer ({what})")
        if response.status_code != 200:
            return self._not_ok(response, response.status_code, raw)
        if isinstance(body := self._object(response, raw), Fault):
            return body
        if (said := body.get("error")) and not any(isinstance(value, list) for value in body.values()):
            code = said.get("code") if isinstance(said, Mapping) else None
            return self._not_ok(response, code if isinstance(code, int) and 400 <= code < 600 else 400, raw)
        return Answer(body=body, seconds=time.monotonic() - start)

    async def _read(self, response: httpx.Response) -> bytes:
        pieces = bytearray()
        async for piece in response.aiter_bytes(_CHUNK):
            pieces += piece
            if len(pieces) > self.max_bytes:
                raise _TooLarge(f"the answer is larger than {self.max_bytes} bytes; raise `max_bytes` if it may be")
        return bytes(pieces)

    def _not_ok(self, response: httpx.Response, status: int, raw: bytes) -> Refusal | _Again:
        detail = f"status {status}: {_message(raw)}"
        if status in _OVERLOADED:
            asked = retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
            return self._again("engine_overloaded", detail, asked)
        if status >= 500:
            gateway: dict[int, str] = {502: "engine_unavailable", 504: "engine_timeout"}
            return self._again(gateway.get(status, "engine_error"), detail)
        too_long = status in _UNFIT and _TOO_LONG.search(_excerpt(raw)) is not None
        fault = replace(self._fault("engine_error", detail), too_long=too_long)
        return Refusal(status=status, fault=fault)

    def _object(self, response: httpx.Response, raw: bytes) -> Mapping[str, Any] | NoObject:
        kind = response.headers.get("Content-Type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            return self._no_object(f"the answer is of type {kind!r}, not JSON: {_excerpt(raw)}")
        try:
            body = json.loads(raw, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            return self._no_object(f"the answer is not JSON ({error}): {_excerpt(raw)}")
        if not isinstance(body, dict):
            return self._no_object(f"the answer is not a JSON object: {_excerpt(raw)}")
        return body

    def _no_object(self, detail: str) -> NoObject:
        return NoObject(reason="engine_error", detail=safe_detail(detail, self.secret))

    def _again(self, reason: str, detail: str, asked: float | None = None) -> _Again:
        return _Again(fault=self._fault(reason, detail), asked=asked)

    def _fault(self, reason: str, detail: str) -> Fault:
        return Fault(reason=reason, detail=safe_detail(detail, self.secret))


class _TooLarge(Exception):
    """An answer went over its limit."""


def safe_detail(text: str, secret: str = "") -> str:
    """Return text of a server as a fault may show it: one line, printable, short, and without the secret."""
    if secret:
        text = text.replace(secret, "***")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MAX_DETAIL else line[: _MAX_DETAIL - 1] + "…"


def _message(raw: bytes) -> str:
    """Return what an error answer says: `{"error": {"message": ...}}`, `{"message": ...}`, or its first characters."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return _excerpt(raw)
    for key in ("error", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    if isinstance(body, dict) and "message" in body:
        body = body["message"]
    return body if isinstance(body, str) else _excerpt(raw)


def _excerpt(raw: bytes) -> str:
    return raw[: 2 * _MAX_DETAIL].decode("utf-8", errors="replace") or "(empty)"
