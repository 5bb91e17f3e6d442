"""The server on Ray, started and stopped.

SIGTERM and Ctrl-C take the application away: what comes from then on gets 503, what was accepted is answered, and then
Serve ends, and Ray too if it was started here.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from adjudge.rl_integration.ray_serve.application import ray_application, refuse_score_log
from adjudge.rl_integration.ray_serve.config import RayConfig
from adjudge.rl_integration.ray_serve.door import HEADER
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.gate import Tokens
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.scoring.api import load

NAME = "adjudge"
_CALLBACK = "adjudge.rl_integration.ray_serve.door.middlewares"
_HEADER = HEADER.decode()


@contextmanager
def ray_server(scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig) -> Iterator[str]:
    """Run the server on Ray; yield its address on this machine.

    Args:
        scorers: name to a spec or a `LaneConfig`.
        config: where the proxies listen, who may ask, and the limits, which hold for each replica.
        ray: how many replicas, and what each takes.

    Raises:
        ValueError: a scorer is unknown, a file of tokens cannot be used, the port is 0 or taken, the Ray that is
            joined does not answer, Serve runs in it already, or the replicas cannot be started.
    """
    _check(scorers, config)
    with _ray(ray), _serve(config, ray) as serve:
        application = ray_application(scorers, config, ray)
        with _told("the replicas cannot be started"):
            serve.run(application, name=NAME, route_prefix="/")
        try:
            host = f"[{config.host}]" if ":" in config.host else config.host
            yield f"http://{host}:{config.port}"
        finally:
            serve.delete(NAME)  # waits until each replica has answered what it accepted


def run_ray_server(
    scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig, tell: Callable[[str], None]
) -> None:
    """Run the server until SIGTERM or Ctrl-C; from the main thread.

    Raises:
        ValueError: see `ray_server`.
    """
    stopped = threading.Event()
    with ray_server(scorers, config, ray) as address:
        before = {kind: signal.signal(kind, lambda *_: stopped.set()) for kind in (signal.SIGTERM, signal.SIGINT)}
        try:
            tell(address)
            while not stopped.wait(1.0):  # an endless wait would not let the handlers run on every platform
                pass
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def _check(scorers: Mapping[str, Any], config: ServerConfig) -> None:
    """Find mistakes here, and not first in a replica, which Serve would start again and again."""
    if not config.port:
        raise ValueError("server option port=0; proxies on several machines need one port, give its number")
    refuse_score_log(config)
    if config.tokens:
        Tokens.read(config.tokens)
    for name, given in scorers.items():
        try:
            load(given.scorer if isinstance(given, LaneConfig) else given)
        except ValueError as error:
            raise ValueError(f"scorer {name!r}: {error}") from error


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Name what did not work, and why, without the way that the reason came through Ray's processes."""
    try:
        yield
    except RuntimeError as error:
        raise ValueError(f"{what}: {getattr(error, 'cause', None) or error}") from error


@contextmanager
def _ray(config: RayConfig) -> Iterator[None]:
    """Join Ray, or start one, which ends with the server."""
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # a line for each request, as elsewhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns where it is not set
    import ray

    if ray.is_initialized():
        yield
        return
    if config.address:
        _join(config.address)
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", include_dashboard=False, logging_level=logging.ERROR)  # else it joins one that it finds
    try:
        if not config.address:
            _check_room(config, ray.cluster_resources())  # type: ignore[no-untyped-call]
        yield
    finally:
        ray.shutdown()


def _join(address: str) -> None:
    import ray

    try:
        ray.init(address, logging_level=logging.WARNING)
    except ConnectionError as error:
        raise ValueError(
            f"ray option address={address!r}: {error}. See whether it runs (ray status); where it was started with a "
            "token, this environment needs RAY_AUTH_MODE=token and that token too"
        ) from error


def _check_room(config: RayConfig, there: Mapping[str, float]) -> None:
    """Refuse replicas that this machine can never hold; Serve would wait for room for ever.

    A Ray that is joined may grow, so nothing is known of its room.
    """
    for option, resource in (("cpus", "CPU"), ("gpus", "GPU")):
        needed, has = config.replicas * getattr(config, option), there.get(resource, 0.0)
        if needed > has:
            raise ValueError(
                f"{config.replicas} replicas with {option}={getattr(config, option):g} need {needed:g}, and this "
                f"machine has {has:g}; lower replicas or {option}, or join a larger Ray (address)"
            )


@contextmanager
def _serve(config: ServerConfig, ray: RayConfig) -> Iterator[Any]:
    """Start Serve; end it, also if it does not start."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    if serve.status().proxies:
        raise ValueError(
            "Ray Serve runs already in this Ray, and where it listens cannot be changed; stop it (serve shutdown), or "
            "give another address"
        )
    environment = {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": _CALLBACK, "RAY_SERVE_SESSION_ID_HEADER_KEY": _HEADER}
    try:
        with _told(f"Ray Serve does not start on {config.host}, port {config.port}"):
            serve.start(
                proxy_location="EveryNode" if ray.proxies == "every" else "HeadOnly",
                http_options={"host": config.host, "port": config.port, "keep_alive_timeout_s": 75},
                logging_config={"enable_access_log": False, "log_level": "WARNING"},
                controller_options={"runtime_env": {"env_vars": environment}},  # the proxies inherit it
            )
        yield serve
    finally:
        serve.shutdown()  # type: ignore[no-untyped-call]
