"""The Ray that a job runs on: joined, or started for the job and ended with it.

Ray writes nothing to the terminal, shows no dashboard and reports nothing to its makers.  What workers print goes to
Ray's own log files.

Not covered: starting a cluster; `ray start`, `ray up` and KubeRay do that.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from adjudge.extras import need
from adjudge.runtime.pool import usable_cpus

_LEAST_STORE = 128 << 20  # bytes; Ray refuses less than 75 MiB
_MOST_STORE = 2 << 30
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
                object_store_memory=max(_LEAST_STORE, min(_MOST_STORE, store_bytes)),
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
    """See whether anybody listens; Ray itself tries for two minutes, and writes to the terminal meanwhile.

    Raises:
        OSError: nobody does.
        ValueError: it is no HOST:PORT.
    """
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
