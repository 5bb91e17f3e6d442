"""The server on Ray, started and stopped.

SIGTERM and Ctrl-C take the application away: what comes from then on gets 503, what was accepted is answered, and then
Serve ends, and Ray too if it was started here.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.rl_integration.ray_serve.config import RayConfig
from adjudge.rl_integration.ray_serve.session_affinity import HEADER
from adjudge.rl_integration.ray_serve.whole import Passing, RemoteBoard, Whole
from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.middleware import LOG, Tokens
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.runtime.confine import die_with_parent
from adjudge.runtime.ray_start import start_ray
from adjudge.scoring.api import load

if TYPE_CHECKING:
    from fastapi import FastAPI
    from ray.serve import Application


class Replica:
    """What Serve runs in each replica's process."""

    def __init__(self, scorers: Mapping[str, Any], config: ServerConfig, whole: Any) -> None:
        if not LOG.handlers:  # Ray passes on what the process writes
            LOG.addHandler(logging.StreamHandler())
            LOG.setLevel(logging.INFO)
            LOG.propagate = False
        self._config = config
        self._panel = Passing(config)
        self._service = RewardService(scorers, watch=self._panel)
        self._board = RemoteBoard(self._service, self._panel, whole)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Return the application; Serve asks for it once, and ends its lifespan, which drains the service, with it."""
        return application(self._service, self._config, self._panel, self._board)

    def __del__(self) -> None:
        service = getattr(self, "_service", None)
        if service is not None:
            service.close(self._config.drain_seconds)


_QUIET = {"enable_access_log": False, "log_level": "WARNING"}
_HASHED = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"


def ray_application(scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig) -> Application:
    """Return the application, for `serve.run(..., route_prefix="/")`.

    Args:
        scorers: name to a spec or a `LaneConfig`; plain data, since it is sent to other processes.
        config: the server's limits; they hold for each replica, and its file of tokens must be on every node.
        ray: how many replicas, and what each takes.

    Raises:
        ValueError: a scorer collects groups, and its replicas come and go, or a group does not find its replica; or a
            score log or a history is wanted.
    """
    from ray import serve

    refuse_files(config)
    cohorts = [name for name, lane in scorers.items() if isinstance(lane, LaneConfig) and lane.cohort is not None]
    if cohorts and (ray.scales or ray.route != "group") and (ray.max_replicas or ray.replicas) > 1:
        raise ValueError(
            f"scorer {cohorts[0]!r} collects the members of a group (cohort), which must meet in one replica; leave "
            'max_replicas out, and say route="group"'
        )
    if config.tokens:
        config = replace(config, tokens=str(Path(config.tokens).expanduser().resolve()))
    deployment: Any = serve.deployment(
        serve.ingress()(Replica),
        name="adjudge",
        ray_actor_options={"num_cpus": ray.cpus, "num_gpus": ray.gpus},
        max_ongoing_requests=ray.max_ongoing,
        max_queued_requests=ray.max_queued,
        backpressure_config={"status_code": 503, "retry_after_s": 1.0},
        graceful_shutdown_timeout_s=config.drain_seconds,
        graceful_shutdown_wait_loop_s=0.1,
        logging_config=_QUIET,
        **_counted(ray),
        **_routed(ray, strict=bool(cohorts)),
    )
    whole: Any = serve.deployment(
        Whole,
        name="adjudge-whole",
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=1000,
        graceful_shutdown_timeout_s=config.drain_seconds,
        logging_config=_QUIET,
    )
    bound: Application = deployment.bind(dict(scorers), config, whole.bind(config))
    return bound


def refuse_files(config: ServerConfig) -> None:
    """Raise `ValueError` where a file is to be written: replicas come and go, and none may write another's."""
    for option in ("score_log", "history"):
        if path := getattr(config, option):
            raise ValueError(
                f"server option {option}={path!r} is for one process, and Ray runs replicas; leave it out, or serve "
                "without Ray"
            )


def _counted(ray: RayConfig) -> dict[str, Any]:
    if not ray.scales:
        return {"num_replicas": ray.replicas}
    scaling = {
        "min_replicas": ray.replicas,
        "max_replicas": ray.max_replicas,
        "target_ongoing_requests": ray.ongoing,
        "upscale_delay_s": ray.scale_up_seconds,
        "downscale_delay_s": ray.scale_down_seconds,
    }
    return {"autoscaling_config": scaling}


def _routed(ray: RayConfig, *, strict: bool) -> dict[str, Any]:
    """Where requests go; `strict`: rather wait for a full replica than go to its neighbour on the ring."""
    if ray.route == "load":
        return {}
    options = {} if not strict else {"num_fallback_replicas": 0}
    return {"request_router_config": {"request_router_class": _HASHED, "request_router_kwargs": options}}


NAME = "adjudge"
_CALLBACK = "adjudge.rl_integration.ray_serve.session_affinity.middlewares"
_HEADER = HEADER.decode()


@contextmanager
def ray_server(scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig) -> Iterator[str]:
    """Run the server on Ray; yield its address on this machine.

    Raises:
        ValueError: a scorer is unknown, a file of tokens cannot be used, the port is 0 or taken, the Ray that is
            joined does not answer, Serve runs in it already, or the replicas cannot be started.
    """
    _check(scorers, config)
    with _ray(ray), _serve(config, ray) as serve:
        bound = ray_application(scorers, config, ray)
        with _told("the replicas cannot be started"):
            serve.run(bound, name=NAME, route_prefix="/")
        try:
            host = f"[{config.host}]" if ":" in config.host else config.host
            yield f"http://{host}:{config.port}"
        finally:
            serve.delete(NAME)  # waits until each replica has answered what it accepted


def run_ray_server(
    scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig, tell: Callable[[str], None]
) -> None:
    """Run the server until SIGTERM or Ctrl-C; from the main thread.

    It runs in a process and a session of its own: SIGTERM to the whole group of this one, as job managers send it,
    would end Ray's processes before their work.

    Raises:
        ValueError: as `ray_server`.
        RuntimeError: the server's process ended by itself.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=_served_apart, args=(there, dict(scorers), config, ray))
    server.start()
    there.close()
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = {kind: signal.signal(kind, lambda *_: server.terminate()) for kind in kinds}
    try:
        with suppress(EOFError):
            while True:
                what, text = here.recv()
                if what == "refused":
                    raise ValueError(text)
                tell(text)
    finally:
        server.join()
        for kind, handler in before.items():
            signal.signal(kind, handler)
    if server.exitcode:
        raise RuntimeError(f"the server's process ended with exit code {server.exitcode}; its own words are above")


def _served_apart(there: Connection, scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig) -> None:
    os.setsid()
    die_with_parent()
    stopped = threading.Event()
    try:
        with ray_server(scorers, config, ray) as address:
            signal.signal(signal.SIGTERM, lambda *_: stopped.set())
            there.send(("address", address))
            while not stopped.wait(1.0):  # an endless wait would not let the handler run on every platform
                pass
    except ValueError as error:
        there.send(("refused", str(error)))


def _check(scorers: Mapping[str, Any], config: ServerConfig) -> None:
    """Find mistakes here, and not first in a replica, which Serve would start again and again."""
    if not config.port:
        raise ValueError("server option port=0; proxies on several machines need one port, give its number")
    refuse_files(config)
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
        start_ray(ray, logging_level=logging.ERROR)
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
                logging_config=_QUIET,
                controller_options={"runtime_env": {"env_vars": environment}},  # the proxies inherit it
            )
        yield serve
    finally:
        serve.shutdown()  # type: ignore[no-untyped-call]
