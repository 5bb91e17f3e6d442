"""The Ray that a job runs on: joined, or started for the job and ended with it.

Ray writes nothing to the terminal, shows no dashboard and reports nothing to its makers.  What workers print goes to
Ray's own log files.

Without a number of workers, a cluster counts as it stands, whatever it may grow into.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adjudge.extras import need
from adjudge.runtime.pool import usable_cpus

_MIN_STORE = 128 << 20  # bytes; Ray refuses less than 75 MiB
_MAX_STORE = 2 << 30
_KNOCK_SECONDS = 10.0


def need_ray() -> Any:
    """Return the module.

    Raises:
        ValueError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker sees the GPUs it reserved and no others; where nothing is said, Ray does the same and warns.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    return need("ray", "--engine ray", "ray")


@contextmanager
def cluster(address: str, *, cpus: float, store_bytes: int) -> Iterator[Mapping[str, float]]:
    """Join Ray, or start one here; yield what it has in all, "CPU" and "GPU" among it.

    A Ray that this process has joined already is used as it is, whatever the address.

    Args:
        address: of the head, "auto", or "" to start one.
        cpus: what a Ray that starts here must offer; it offers the machine's CPUs if those are more.
        store_bytes: what batches under way may take in the object store of a Ray that starts here.

    Raises:
        ValueError: ray is not installed, the address does not answer, or the versions of Ray differ.
    """
    ray = need_ray()
    if ray.is_initialized():
        yield ray.cluster_resources()
        return
    with _silent():
        if address:
            _join(ray, address)
        else:
            ray.init(
                "local",  # else it joins one that it finds
                num_cpus=max(usable_cpus(), int(cpus)),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=max(_MIN_STORE, min(_MAX_STORE, store_bytes)),
            )
        try:
            yield ray.cluster_resources()
        finally:
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    problem: Exception
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        problem = error
    else:
        return
    raise ValueError(
        f"--ray-address is {address!r}, and it cannot be joined: {problem}. See whether it runs (ray status), and "
        "whether it has the same versions of Ray and Python; where it was started with a token, this environment "
        "needs RAY_AUTH_MODE=token and that token too"
    ) from problem


def _knock(address: str) -> None:
    """See whether anybody listens; Ray itself tries for two minutes, and writes to the terminal meanwhile."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in address:
        raise ValueError("it must be auto or HOST:PORT, as ray start prints it")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()


@contextmanager
def _silent() -> Iterator[None]:
    """Keep Ray from printing on standard output that a worker died, where `--json` prints the report.

    No option of Ray 2.60 does that: `log_to_driver` is about what workers print.
    """
    from ray._private import worker

    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False
    try:
        yield
    finally:
        worker._worker_logs_enabled = before


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the workers of one scorer take."""

    scorer: str
    cpus: float
    gpus: float = 0.0
    workers: int | None = None


def counts(demands: Sequence[Demand], there: Mapping[str, float], *, may_grow: bool) -> list[int]:
    """Return the number of workers of each scorer, at least one.

    GPUs are shared out evenly among the scorers that want some, then CPUs among all that have no number yet.

    Args:
        demands: one for each scorer.
        there: what the cluster has in all.
        may_grow: whether room that is not there may come; otherwise too much is an error.

    Raises:
        ValueError: the cluster is too small, or has no GPU.
    """
    gpus, cpus = there.get("GPU", 0.0), there.get("CPU", 0.0)
    found = [demand.workers or 0 for demand in demands]
    free_gpus = gpus - sum(number * demand.gpus for number, demand in zip(found, demands, strict=True))
    open_on_gpus = [index for index, demand in enumerate(demands) if demand.gpus and not found[index]]
    for index in open_on_gpus:
        found[index] = max(1, int(free_gpus / len(open_on_gpus) / demands[index].gpus))
    free_cpus = cpus - sum(number * demand.cpus for number, demand in zip(found, demands, strict=True))
    open_on_cpus = [index for index in range(len(demands)) if not found[index]]
    for index in open_on_cpus:
        found[index] = max(1, int(free_cpus / len(open_on_cpus) / demands[index].cpus))
    if not may_grow:
        _check(demands, found, gpus, cpus)
    return found


def _check(demands: Sequence[Demand], found: Sequence[int], gpus: float, cpus: float) -> None:
    for what, has, flag, taken in (
        ("GPU", gpus, "--ray-gpus", [demand.gpus for demand in demands]),
        ("CPU", cpus, "--workers", [demand.cpus for demand in demands]),
    ):
        needed = sum(number * each for number, each in zip(found, taken, strict=True))
        if needed > has + 1e-9:
            told = ", ".join(
                f"{number} for {demand.scorer!r} with {each:g} each"
                for number, demand, each in zip(found, demands, taken, strict=True)
                if each
            )
            raise ValueError(
                f"the Ray workers need {needed:g} {what}s ({told}), and this Ray has {has:g}; lower --ray-workers or "
                f"{flag}, or join a larger Ray with --ray-address"
            )
