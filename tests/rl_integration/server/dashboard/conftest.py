"""A server with a watch on a real socket, and a real browser without a window."""

from __future__ import annotations

import json
import os
import queue
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.dashboard import board
from adjudge.rl_integration.server.running import server
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.watch.hacking import WatchConfig
from adjudge.rl_integration.watch.panel import WatchPanel

SMALL = WatchConfig(window=256, baseline=128, enough=64, block=16, enough_groups=4)


class Lengths:
    """Scores by length; fails what is empty."""

    name = "lengths"
    fingerprint = "lengths:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._one(str(sample.response)) for sample in samples]

    def _one(self, text: str) -> Score:
        if not text:
            return Score.failed("gold_unparsable")
        return Score(value=float(len(text)), parts={"<b>length</b>": Score.scored(float(len(text)))})


@dataclass(frozen=True)
class Running:
    """A server that runs, and what it runs on."""

    address: str
    service: RewardService
    client: httpx.Client
    stop: Callable[[], None]

    def score(self, *responses: str, scorer: str = "lengths") -> None:
        """Have responses scored, each for a prompt of its own."""
        rows = [{"prompt": f"prompt {place}", "response": text} for place, text in enumerate(responses)]
        answer = self.client.post("/v1/score", json={"scorer": scorer, "samples": rows})
        assert answer.status_code == 200, answer.text


Serve: TypeAlias = Callable[..., Running]


@contextmanager
def _served(scorers: dict[str, Any], config: ServerConfig) -> Iterator[Running]:
    panel = WatchPanel(config.watch, texts=not config.hide_texts)
    with RewardService(scorers, watch=panel) as service:
        listening: queue.Queue[str] = queue.Queue()
        http = server(service, config, listening.put, panel)
        thread = threading.Thread(target=http.run)
        thread.start()

        def stop() -> None:
            http.should_exit = True
            thread.join(30)
            assert not thread.is_alive()

        try:
            address = listening.get(timeout=1200)
            with httpx.Client(base_url=address, timeout=1200) as client:
                yield Running(address, service, client, stop)
        finally:
            stop()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start servers with small watches; they end with the test."""
    monkeypatch.setattr(board, "_REPORT_EVERY", 0.0)
    with ExitStack() as stack:

        def start(scorers: dict[str, Any] | None = None, *, port: int = 0, **options: Any) -> Running:
            config = ServerConfig(port=port, watch=SMALL, **options)
            return stack.enter_context(_served(scorers or {"lengths": Lengths()}, config))

        yield start


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("no Chromium and chromedriver here; on Debian: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    quiet = ("disable-background-networking", "disable-component-update", "no-first-run")
    for flag in (
        "headless=new",
        "disable-dev-shm-usage",
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
        *quiet,
    ):
        options.add_argument(f"--{flag}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has no sandbox for root, and says so by not starting
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    started.set_page_load_timeout(60)
    yield started
    started.quit()


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser as if it had just been started."""
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        log_of(chromium, kind)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def log_of(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What the browser logged of a kind since the last call."""
    found: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return found


def requests_of(browser: webdriver.Chrome) -> list[str]:
    """The addresses that the browser asked since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in log_of(browser, "performance")]
    return [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
