"""The Ray that a job runs on: joined, or started for the job and ended with it.

Ray writes nothing to the terminal, shows no dashboard and reports nothing to its makers; what workers print goes to its
own log files.  Without a number of workers, a cluster counts as it stands, whatever it may grow into.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import mul
from typing import Any

from adjudge.extras import need
from adjudge.runtime.pool import usable_cpus
from adjudge.runtime.ray_start import start_ray

_MIN_STORE = 128 << 20  # bytes; Ray refuses less than 75 MiB
_MAX_STORE = 2 << 30
_KNOCK_SECONDS = 10.0


def need_ray() -> Any:
    """Return the module, or raise `ValueError` where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker sees the GPUs it reserved and no others; where nothing is said, Ray does the same and warns.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    return need("ray", "--engine ray", "ray")


@contextmanager
def cluster(address: str, *, cpus: float, store_bytes: int) -> Iterator[Mapping[str, float]]:
    """Join Ray, or start one here; yield what it has in all, "CPU" and "GPU" among it.

    A Ray that this process has joined already is used as it is, whatever the address: that of the head, "auto", or ""
    to start one.  One that starts here offers `cpus`, or the machine's if those are more, and room for batches under
    way.

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
            start_ray(
                ray,
                num_cpus=max(usable_cpus(), int(cpus)),
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=max(_MIN_STORE, min(_MAX_STORE, store_bytes)),
            )
        try:
            yield ray.cluster_resources()
        finally:
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"--ray-address is {address!r}, and it cannot be joined: {error}. See whether it runs (ray status), and "
            "whether it has the same versions of Ray and Python; where it was started with a token, this environment "
            "needs RAY_AUTH_MODE=token and that token too"
        ) from error


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

    GPUs are shared out evenly among the scorers that want some, then CPUs among all that have no number yet.  Where a
    cluster `may_grow`, room that is not `there` may come; otherwise too much raises `ValueError`.
    """
    kinds = (
        ("GPU", there.get("GPU", 0.0), "--ray-gpus", [demand.gpus for demand in demands]),
        ("CPU", there.get("CPU", 0.0), "--workers", [demand.cpus for demand in demands]),
    )
    numbers = [demand.workers or 0 for demand in demands]
    for _, has, _, each in kinds:
        free = has - sum(map(mul, numbers, each))
        unset = [index for index, number in enumerate(numbers) if each[index] and not number]
        for index in unset:
            numbers[index] = max(1, int(free / len(unset) / each[index]))
    for what, has, flag, each in () if may_grow else kinds:
        needed = sum(map(mul, numbers, each))
        if needed > has + 1e-9:
            shares = ", ".join(
                f"{number} for {demand.scorer!r} with {share:g} each"
                for number, demand, share in zip(numbers, demands, each, strict=True)
                if share
            )
            raise ValueError(
                f"the Ray workers need {needed:g} {what}s ({shares}), and this Ray has {has:g}; lower --ray-workers or "
                f"{flag}, or join a larger Ray with --ray-address"
            )
    return numbers
