"""The server as an application of Ray Serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.rl_integration.ray_serve.config import RayConfig
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig

if TYPE_CHECKING:
    from ray.serve import Application
import logging
from typing import TYPE_CHECKING

from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.gate import LOG
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.watch.panel import WatchPanel

if TYPE_CHECKING:
    from fastapi import FastAPI


class Replica:
    """What Serve runs in each replica's process."""

    def __init__(self, scorers: Mapping[str, Any], config: ServerConfig) -> None:
        if not LOG.handlers:  # Ray passes on what the process writes
            LOG.addHandler(logging.StreamHandler())
            LOG.setLevel(logging.INFO)
            LOG.propagate = False
        self._config = config
        self._panel = WatchPanel(config.watch, texts=not config.hide_texts)
        self._service = RewardService(scorers, watch=self._panel)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Return the application; Serve asks for it once, and ends its lifespan, which drains the service, with it."""
        return application(self._service, self._config, self._panel)

    def __del__(self) -> None:
        service = getattr(self, "_service", None)
        if service is not None:
            service.close(self._config.drain_seconds)


_HASHED = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"


def ray_application(scorers: Mapping[str, Any], config: ServerConfig, ray: RayConfig) -> Application:
    """Return the application, for `serve.run(..., route_prefix="/")`.

    Args:
        scorers: name to a spec or a `LaneConfig`; plain data, since it is sent to other processes.
        config: the server's limits; they hold for each replica, and its file of tokens must be on every node.
        ray: how many replicas, and what each takes.

    Raises:
        ValueError: a scorer collects groups, and its replicas come and go, or a group does not find its replica; or a
            score log is wanted.
    """
    from ray import serve

    refuse_score_log(config)
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
        logging_config={"enable_access_log": False, "log_level": "WARNING"},
        **_counted(ray),
        **_routed(ray, strict=bool(cohorts)),
    )
    bound: Application = deployment.bind(dict(scorers), config)
    return bound


def refuse_score_log(config: ServerConfig) -> None:
    """Raise `ValueError` where a score log is wanted: replicas come and go, and none may write another's file."""
    if config.score_log:
        raise ValueError(
            f"server option score_log={config.score_log!r} is for one process, and Ray runs replicas; leave it out, or "
            "serve without Ray"
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
