"""The page at `/`, its files, and its data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Query, Response

from adjudge.rl_integration.server.dashboard.board import Board
from adjudge.rl_integration.server.dashboard.files import FILES, HEADERS, content


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
