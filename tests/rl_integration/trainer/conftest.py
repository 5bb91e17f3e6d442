"""What the trainer's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.rl_integration.trainer.nursery import Nursery

os.environ.setdefault("ACCELERATE_USE_CPU", "true")  # runs are compared with numbers of CPUs


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Starts processes that train: seconds for the first, hardly any for the others."""
    made = Nursery()
    yield made
    made.close()
