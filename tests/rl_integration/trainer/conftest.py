"""What the trainer's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.rl_integration.trainer.nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Starts processes that train: seconds for the first, hardly any for the others."""
    made = Nursery()
    yield made
    made.close()
