"""One Ray for all tests of a file, ended with it, for a process has one at a time; starting one takes seconds."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns where it is not set
    import ray

    root = Path(__file__).parents[3]  # what tests import, their scorers' processes import too, from the same tree
    ray.init(
        "local",  # else it joins one that it finds
        num_cpus=1,  # replicas and actors reserve a tenth; Ray begins with a process for each
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}},
    )
    yield ray
    ray.shutdown()
