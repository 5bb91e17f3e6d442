"""`adjudge serve` hands the options of the page on, and tells what cannot be meant."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge.cli.serve import ServeCommand
from adjudge.rl_integration.server import running
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.watch.panel import WatchPanel


class Unserved:
    """A server that is stopped at once."""

    started = True

    def run(self) -> None: ...


def test_the_watch_and_the_flag_reach_the_panel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    panels: list[WatchPanel | None] = []
    configs: list[ServerConfig] = []

    def server(
        service: RewardService, config: ServerConfig, tell: Callable[[str], None], panel: WatchPanel | None = None
    ) -> Unserved:
        panels.append(panel)
        configs.append(config)
        return Unserved()

    monkeypatch.setattr(running, "server", server)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    file = tmp_path / "serve.yaml"
    file.write_text("port: 0\nwatch: {longer: 4, at_maximum: 0.98}\nscorers: {exact: exact}\n")
    assert ServeCommand(config=str(file), hide_texts=True).run() == 0
    assert ServeCommand(scorers=("exact",), port=0, history="run.json", report="https://there/").run() == 0
    first, second = panels
    assert first is not None
    assert second is not None
    assert (first.config.longer, first.config.at_maximum, first.texts) == (4, 0.98, False)
    assert (second.config.longer, second.texts) == (2.0, True)
    assert [(one.history, one.report) for one in configs] == [("", ""), ("run.json", "https://there/")]


@pytest.mark.parametrize(
    ("watch", "told"),
    [
        ("3", "watch is 3"),
        ("[longer]", "must be a mapping"),
        ("{lenght: 2}", "unknown option 'watch.lenght'; there are window, baseline"),
        ("{longer: much}", "watch.longer is 'much'; it must be a number"),
        ("{1: 2}", "unknown option 'watch.1'"),
        ("", "watch is None"),
    ],
)
def test_a_watch_that_cannot_be_meant_is_told(tmp_path: Path, watch: str, told: str) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(f"watch: {watch}\nscorers: {{exact: exact}}\n")
    with pytest.raises(ValueError, match=told):
        ServeCommand(config=str(file)).run()
