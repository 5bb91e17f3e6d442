"""A real server on a real socket, in a thread of the test's process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import httpx
import pytest

from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.running import server
from adjudge.rl_integration.service.service import RewardService

Serve: TypeAlias = Callable[..., httpx.Client]


@contextmanager
def served(scorers: dict[str, Any], config: ServerConfig) -> Iterator[str]:
    """Run a server; yield its address."""
    with RewardService(scorers) as service:
        listening: queue.Queue[str] = queue.Queue()
        http = server(service, config, listening.put)
        thread = threading.Thread(target=http.run)
        thread.start()
        try:
            yield listening.get(timeout=1200)
        finally:
            http.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers, and give clients of them; both end with the test."""
    with ExitStack() as stack:

        def start(scorers: dict[str, Any], **options: Any) -> httpx.Client:
            address = stack.enter_context(served(scorers, ServerConfig(port=0, **options)))
            return stack.enter_context(httpx.Client(base_url=address, timeout=1200))

        yield start
