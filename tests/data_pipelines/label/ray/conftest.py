"""One Ray for all tests of a file, ended with it, for a process has one at a time; its workers are processes."""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")  # Ray warns where it is not set
    import ray

    ray.init(
        "local",  # else it joins one that it finds
        num_cpus=4,  # what actors reserve; the machine may have fewer
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=128 << 20,
    )
    yield ray
    ray.shutdown()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Ray does not wait for all of its processes
        gc.collect()


@pytest.fixture
def odd_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scorers of this folder be found here; what is found here, Ray's workers find."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
