"""The scenarios of benchmarks/reward_server_load.py, each for a few seconds; how long things take is not held here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "benchmarks" / "reward_server_load.py"
SECONDS = {
    "overload": 2.0,
    "misbehaviour": 3.0,
    "bodies": 1.0,
    "crowd": 1.0,
    "stop": 2.0,
    "kill": 1.0,
    "idle": 2.0,
    "slow": 2.0,
    "clock": 4.0,  # the page looks once a second, and is to see some of the jumps
}


@pytest.fixture(scope="module")
def load() -> Iterator[ModuleType]:
    """The benchmark as a module, under the name by which servers find its scorers."""
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[FILE.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[FILE.stem]


def test_every_scenario_is_run_here(load: ModuleType) -> None:
    assert set(load.SCENARIOS) == set(SECONDS)


@pytest.mark.parametrize("name", SECONDS)
def test_promises_hold_under_load(load: ModuleType, name: str) -> None:
    options = load.Options(idle=300, slow=20, crowd=500, times=False)
    report = load.SCENARIOS[name](options, SECONDS[name])
    assert report.broken == [], report.counts
