"""Bodies of requests, taken as JSON and strictly.

Refused before anything looks at them: what is not JSON, and what Python's reader lets through although others do not or
read it otherwise: NaN, numbers beyond a double, objects that say a key twice, nesting without end, and other encodings
than UTF-8.  A body of more than a million values is refused before it is read: they would take seconds and gigabytes;
and so is an object of more than 100,000 fields, in the reading of which no other thread runs.

What takes more than a moment is done on another thread (`aside`), so that other clients are served meanwhile: a large
body is read, checked against the route's model and turned into samples there.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from email.message import Message
from typing import Any, Never, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from adjudge.options import suggestion
from adjudge.protocol import Sample
from adjudge.rl_integration.server.base.errors import HttpError, bad_request
from adjudge.runtime.contract import check_fields

Rows = TypeVar("Rows", bound=Sequence[Any])
T = TypeVar("T")

_MANY = 256  # rows, each of which takes some 10 microseconds
_LARGE = 64 << 10  # bytes, which take about a millisecond
_MAX_VALUES = 1_000_000  # of a body, and strings: a hundred for each of 10,000 samples
_MAX_FIELDS = 100_000  # of an object that holds no other


async def aside(size: int, work: Callable[[], T], many: int = _MANY) -> T:
    """Return what a function returns, which is called on another thread where its work is large."""
    return await asyncio.to_thread(work) if size > many else work()


async def aside_if_large(request: Request, work: Callable[[], T]) -> T:
    """Return what a function of a request's body returns, which is called on another thread where the body is large."""
    return await aside(len(await request.body()), work, _LARGE)


def samples_of(rows: Sequence[Any], most: int) -> list[Sample]:
    """Return the samples that JSON rows describe.

    Raises:
        HttpError: 413, there are too many; 422, a row is not a sample.
    """
    samples = []
    for index, row in enumerate(within_limit(rows, most)):
        try:
            if not isinstance(row, Mapping):
                raise ValueError(f"it is a {type(row).__name__}; give an object with prompt, response, reference, ...")
            samples.append(Sample.from_dict(row))
            check_fields(samples[-1])
        except (ValueError, TypeError) as error:
            raise HttpError(422, "bad_sample", f"sample {index}: {error}") from error
    return samples


def within_limit(rows: Rows, most: int) -> Rows:
    """Return the rows.

    Raises:
        HttpError: 413, there are too many.
    """
    if len(rows) > most:
        raise HttpError(
            413,
            "too_many_samples",
            f"{len(rows)} samples came, and at most {most} are taken at once; send fewer, or give the "
            "server a larger `max_samples`",
        )
    return rows


_DEEPEST = 100  # levels; what handles samples later calls itself for each of them


class JsonRoute(APIRoute):
    """A route whose body, if it takes one, is strict JSON, and whose query, if it is read, has no unknown parameter."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        handle = super().get_route_handler()
        field = self.body_field
        known = [parameter.alias for parameter in self.dependant.query_params]
        required = field is not None and field.field_info.is_required()

        async def handler(request: Request) -> Response:
            _check_query(request, known)
            if field is None:
                return await handle(request)
            given = _JsonRequest(request.scope, request.receive)
            body = await given.body()
            if required or body:
                _check_headers(given)
                given.read = await aside(len(body), lambda: _validated(field, body), _LARGE)
            return await handle(given)

        return handler


class _JsonRequest(Request):
    """A request whose body was read; FastAPI asks for it, and takes an instance of the route's model as it is."""

    read: Any = None

    async def json(self) -> Any:
        return self.read


def _validated(field: Any, body: bytes) -> Any:
    """Return what a body holds, as an instance of a route's model; null stays what it is.

    Lists that the models check item by item are `fail_fast`: an error for each of a million bad
    items would take seconds, in which no other thread runs.
    """
    data = read_json(body)
    if data is None:
        return None
    found, errors = field.validate(data, loc=("body",))
    if errors:
        raise RequestValidationError(errors)
    return found


def read_json(body: bytes) -> Any:
    """Return what a body holds.

    Raises:
        HttpError: 400, it is not strict JSON; 413, it holds too many values.
    """
    if not body.strip():
        raise HttpError(400, "not_json", "the body is empty; send a JSON object")
    if len(body) > _LARGE:
        _check_size(body)
    try:
        data = json.loads(body.decode(), parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_object)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # of the syntax, of bytes that are not UTF-8, of integers beyond 4300 digits
        long = "an integer has more than 4300 digits; send it as text" if "_max_str_digits" in str(error) else ""
        raise HttpError(400, "not_json", f"the body is not JSON: {long or str(error)[:200]}") from error
    if body.count(b"[") + body.count(b"{") > _DEEPEST and _deeper(data, _DEEPEST):
        raise _too_deep()
    return data


def _check_size(body: bytes) -> None:
    """Refuse what would take too long to read, by what stands between its strings; far quicker than reading it."""
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = pieces.count(b'"') // 2
    between = b"".join(pieces.split(b'"')[::2]) if strings <= _MAX_VALUES else b""
    values = max(strings, sum(map(between.count, (b",", b"[", b"{"))))
    if values > _MAX_VALUES:
        raise _too_many(f"the body holds {values} values, and at most {_MAX_VALUES} are read")
    fields = max(part.count(b":") for part in between.split(b"{"))
    if fields > _MAX_FIELDS:
        raise _too_many(f"an object has {fields} fields, and at most {_MAX_FIELDS} are read")


def _too_many(message: str) -> HttpError:
    return HttpError(413, "too_many_values", f"{message}; send less")


def _deeper(value: Any, levels: int) -> bool:
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = (outer.values() if isinstance(outer, dict) else outer for outer in layer)
        layer = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not layer:
            return False
    return True


def _too_deep() -> HttpError:
    return HttpError(400, "not_json", f"the body is nested more than {_DEEPEST} levels deep")


def _check_query(request: Request, known: Sequence[str]) -> None:
    """Refuse what FastAPI would pass over: a misspelt parameter changes scores without a word.

    A route that knows none gets those of the routes beside it, where a framework sends one query with all that it asks.
    """
    for name in request.query_params if known and request.scope["query_string"] else ():
        if name not in known:
            known_ones = f"the route takes {', '.join(known)}{suggestion(name, known)}"
            raise bad_request(f"there is no query parameter {name[:80]!r}; {known_ones}")


def _check_headers(request: Request) -> None:
    if (coding := request.headers.get("content-encoding", "identity").strip().lower()) != "identity":
        raise HttpError(415, "compressed", f"the body is encoded as {coding[:40]!r}; send it as it is")
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    kind = header.get_content_type()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        shown = request.headers.get("content-type", "")[:80]
        raise HttpError(415, "not_json", f"the content-type is {shown!r}; send JSON, as content-type: application/json")


def _no_number(text: str) -> Never:
    raise ValueError(f"{text} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is beyond the largest number, 1.8e308")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        count = Counter(name for name, _ in pairs)
        ((twice, _),) = count.most_common(1)
        raise ValueError(f"an object has the key {twice[:80]!r} twice")
    return members
