"""The page at `/`, its files, and its data.

The page loads nothing from anywhere else and runs no script but its own: the browser is told so, in case a text that a
model wrote should ever be taken for markup.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Query, Response

from adjudge.rl_integration.server.dashboard.board import Board

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

FILES = {
    "/": "index.html",
    "/dashboard/page.css": "page.css",
    "/dashboard/page.js": "page.js",
    "/dashboard/charts.js": "charts.js",
    "/dashboard/samples.js": "samples.js",
    "/dashboard/scorer.js": "scorer.js",
    "/dashboard/words.js": "words.js",
    "/dashboard/icon.svg": "icon.svg",
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
    file = _FOLDER / FILES[path]
    return file.read_bytes(), _TYPES[file.suffix]


def dashboard(board: Board) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    for path in FILES:
        router.add_api_route(path, _file(path), include_in_schema=False)

    @router.get("/v1/dashboard", summary="What the page at / shows")
    async def moment(
        tick: int = Query(0, ge=0, description="The `tick` of the last answer: points of time since then."),
        sample: int = Query(0, ge=0, description="The `sample` of the last answer: samples since then."),
    ) -> Response:
        found = await asyncio.to_thread(board.moment, tick, sample)
        body = json.dumps(found, allow_nan=False, separators=(",", ":")).encode()
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    return router


def _file(path: str) -> Callable[[], Awaitable[Response]]:
    body, media_type = content(path)

    async def send() -> Response:
        return Response(body, headers={**HEADERS, "Content-Type": media_type})

    return send
