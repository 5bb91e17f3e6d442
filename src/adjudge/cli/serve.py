"""`adjudge serve`: scorers behind HTTP."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, Lines, print_json
from adjudge.extras import install_hint
from adjudge.training.config_file import config_of, read_config

if TYPE_CHECKING:
    from adjudge.rl_integration.ray_serve.config import RayConfig
    from adjudge.rl_integration.server.base.config import ServerConfig
    from adjudge.rl_integration.service.stats import LaneStats


_UNSAID = tyro.conf.arg(help_behavior_hint="")


@dataclass(frozen=True, kw_only=True)
class ServeCommand:
    """Serve scores over HTTP.

    adjudge serve math code --port 8000

    A file for --config holds the fields below and the scorers by name.

    Exit code: 0 it was stopped and answered all it had accepted,
    1 it left some unanswered, 2 the call is wrong, or the port is taken.
    """

    scorers: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCORER", help_behavior_hint="")
    ] = ()
    """Names of scorers, or NAME=SPEC."""

    config: Annotated[str, _UNSAID] = ""
    """A YAML file; what is said here goes before what it says."""

    host: Annotated[str | None, tyro.conf.arg(metavar="STR", help_behavior_hint="(default: 127.0.0.1)")] = None
    """The address to listen on."""

    port: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 8000)")] = None
    """The port; 0 for any that is free."""

    tokens: Annotated[str | None, tyro.conf.arg(metavar="STR", help_behavior_hint="")] = None
    """A file with one NAME TOKEN a line; who sends none of them is turned away."""

    open_to_all: bool = False
    """Listen on any address without tokens all the same."""

    score_log: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl", help_behavior_hint="")] = None
    """A file that gets a line for each score, without texts, for adjudge eval
    live_drift. From 256 MiB on it is begun anew, and the old one is kept."""

    history: Annotated[str | None, tyro.conf.arg(metavar="FILE.json", help_behavior_hint="")] = None
    """A file that keeps the page's charts of the whole run over a restart."""

    report: Annotated[str | None, tyro.conf.arg(metavar="URL", help_behavior_hint="")] = None
    """The run's report, for a link on the page; or a path, which it names."""

    log_texts: bool = False
    """Write prompts and responses into the log."""

    hide_texts: bool = False
    """Keep prompts and responses off the page at /."""

    ray: bool = False
    """Serve from replicas on Ray; `ray` in the file says how many."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Serve until stopped, and return the exit code."""
        settings, scorers, replicas = self._settings()
        settings.check_address()
        return self._here(settings, scorers) if replicas is None else self._on_ray(settings, scorers, replicas)

    def _on_ray(self, settings: ServerConfig, scorers: dict[str, Any], replicas: RayConfig) -> int:
        try:
            from ray import serve  # noqa: F401 - Ray comes with Serve or without

            from adjudge.rl_integration.ray_serve.running import run_ray_server
        except ImportError as error:
            raise ValueError(f"serving on Ray needs more packages ({error}); {install_hint('ray')}") from error
        run_ray_server(scorers, settings, replicas, self._tell(list(scorers)))
        return exits.FINE

    def _here(self, settings: ServerConfig, scorers: dict[str, Any]) -> int:
        try:
            from adjudge.rl_integration.server.running import server
        except ImportError as error:
            raise ValueError(f"serving needs more packages ({error}); {install_hint('serve')}") from error
        from adjudge.rl_integration.service.service import RewardService
        from adjudge.rl_integration.watch.panel import WatchPanel

        panel = WatchPanel(settings.watch, texts=not settings.hide_texts)
        service = RewardService(scorers, watch=panel)
        try:
            http = server(service, settings, self._tell(list(scorers)), panel)
            logging.basicConfig(level=logging.INFO, format="%(message)s")
            with _telling(service.stats):
                http.run()
        finally:
            done = service.close(settings.drain_seconds)
        return exits.FINE if done and http.started else exits.FOUND

    def _tell(self, names: list[str]) -> Callable[[str], None]:
        def tell(address: str) -> None:
            if self.as_json:
                print_json({"address": address, "scorers": names})
            else:
                print(f"serving {', '.join(names)} at {address}; Ctrl-C stops it")
            sys.stdout.flush()

        return tell

    def _settings(self) -> tuple[ServerConfig, dict[str, Any], RayConfig | None]:
        from adjudge.rl_integration.ray_serve.config import RayConfig
        from adjudge.rl_integration.server.base.config import ServerConfig

        given = read_config(self.config) if self.config else {}
        named = given.pop("scorers", {})
        if not isinstance(named, dict):
            raise ValueError(f"scorers is {named!r}; it must be a mapping of names to specs")
        scorers = {str(name): _lane(name, spec) for name, spec in named.items()}
        for text in self.scorers:
            name, _, spec = text.partition("=")
            scorers[name] = spec or name
        if not scorers:
            raise ValueError("no scorer was named; say adjudge serve math, or give a file with `scorers`")
        on_ray = self.ray or "ray" in given
        replicas = config_of(RayConfig, given.pop("ray", None) or {}, "ray") if on_ray else None
        for option in ("host", "port", "tokens", "score_log", "history", "report"):
            if getattr(self, option) is not None:
                given[option] = getattr(self, option)
        for option in ("open_to_all", "log_texts", "hide_texts"):
            if getattr(self, option):
                given[option] = True
        return config_of(ServerConfig, given), scorers, replicas


@contextmanager
def _telling(stats: Callable[[], Sequence[LaneStats]], pause: float = 10.0) -> Iterator[None]:
    """Say on standard error how much was scored, where it is not a terminal and something was scored since."""
    ended, lines = threading.Event(), Lines()

    def tell() -> None:
        told = ""
        while not ended.wait(pause):
            lanes = [lane for lane in stats() if lane.answered]
            shown = "  ".join(
                f"{lane.name}: {lane.answered} scores, {lane.failed_share:.1%} failed, {lane.waiting} waiting"
                for lane in lanes
            )
            if shown != told:
                told = shown if lines.line(shown) else told

    thread = threading.Thread(target=tell, name="adjudge-serve-lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _lane(name: str, given: Any) -> Any:
    """A scorer's spec, or where it is one of the options of its queue, those options."""
    from adjudge.rl_integration.service.config import LaneConfig

    return config_of(LaneConfig, given, f"scorers.{name}") if isinstance(given, dict) and "scorer" in given else given
