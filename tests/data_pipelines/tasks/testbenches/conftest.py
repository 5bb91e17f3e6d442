"""What the tests of test benches share: the tools they need."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

REMEDIES = {
    "iverilog": "apt-get install iverilog",
    "bwrap": "apt-get install bubblewrap",
    "verilator": "apt-get install verilator g++",
}


@pytest.fixture(scope="session")
def parser() -> None:
    """The parser of Verilog."""
    if importlib.util.find_spec("pyslang") is None:
        pytest.skip("pyslang is not installed: pip install 'adjudge[verilog]'")


@pytest.fixture(scope="session")
def icarus(parser: None) -> None:
    """Icarus and the sandbox."""
    need("bwrap")
    need("iverilog")


@pytest.fixture(scope="session")
def verilator(icarus: None) -> None:
    """Verilator and a C++ compiler."""
    need("verilator")


def need(tool: str) -> None:
    """Skip the test where a tool is missing."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: {REMEDIES[tool]}")
