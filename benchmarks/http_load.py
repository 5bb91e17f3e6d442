"""A client that loads a reward server: requests over kept-alive connections, so many under way or so many a second."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a request; status 0 is none at all."""

    identity: str
    status: int
    seconds: float
    retry_after: str = ""
    body: bytes = b""

    @property
    def values(self) -> list[float | None]:
        """The scores' values."""
        return [score["value"] for score in json.loads(self.body)["scores"]]


class Http:
    """Requests over kept-alive connections, as many as are needed; never tried again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._count = 0

    async def score(self, *responses: str, key: str = "", within: float | None = None) -> Answer:
        """Send samples with these responses, under an idempotency key, for an answer within so many seconds."""
        self._count += 1
        identity = f"load.{self._count}"
        rows = [{"prompt": "q", "response": response} for response in responses]
        body = json.dumps({"scorer": "it", "samples": rows, "idempotency_key": key, "within": within}).encode()
        head = (
            f"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Id: {identity}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        begun = time.perf_counter()
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while self._free and connection is None:
                connection = self._free.pop()
                if connection[0].at_eof():  # the server ends what was idle for 75 s
                    connection[1].close()
                    connection = None
            connection = connection or await asyncio.open_connection("127.0.0.1", self._port)
            connection[1].write(head.encode() + body)
            status, headers, answer = await _read(connection[0])
        except (OSError, asyncio.IncompleteReadError):
            if connection is not None:
                connection[1].close()
            return Answer(identity=identity, status=0, seconds=time.perf_counter() - begun)
        if headers.get("connection") == "close":
            connection[1].close()
        else:
            self._free.append(connection)
        seconds = time.perf_counter() - begun
        retry = headers.get("retry-after", "")
        return Answer(identity=identity, status=status, seconds=seconds, retry_after=retry, body=answer)

    def close(self) -> None:
        """Close the connections."""
        for _, writer in self._free:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
    headers = {name: value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def closed_loop(http: Http, in_flight: int, seconds: float) -> list[Answer]:
    """Keep so many requests under way."""
    ends = time.perf_counter() + seconds
    found: list[Answer] = []

    async def one(number: int) -> None:
        while time.perf_counter() < ends:
            found.append(await http.score(f"{number}.{len(found)}"))

    await asyncio.gather(*map(one, range(in_flight)))
    return found


async def open_loop(http: Http, rate: float, seconds: float, tag: str = "") -> list[Answer]:
    """Send requests at a rate, whatever becomes of those before."""
    begun = time.perf_counter()
    sent = []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        sent.append(asyncio.create_task(http.score(f"{tag}{number}")))
    return await asyncio.gather(*sent)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def milliseconds(answers: Sequence[Answer]) -> dict[str, str]:
    taken = [answer.seconds for answer in answers]
    return {f"p{share:g} ms": f"{1e3 * percentile(taken, share / 100):.1f}" for share in (50, 99)}
