"""One run of verl for several files of tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import write_model
from tests.frameworks.environment import run_in
from tests.frameworks.pages import blocks


def settings(beginning: str) -> list[str]:
    """The settings of verl's that the page shows in a block."""
    (block,) = blocks("verl", beginning)
    return [word for word in block.split() if word.startswith(("reward.", "+reward."))]


@pytest.fixture(scope="session")
def under_ray(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `under_ray.py` found."""
    model = write_model(tmp_path_factory.mktemp("verl") / "model")
    shown = {"function": settings("python -m verl"), "manager": settings("reward.reward_manager")}
    program = Path(__file__).parent / "under_ray.py"
    return run_in("verl", program, str(model), json.dumps(shown), without="sklearn,vllm")
