"""Runs a program in a training framework's own environment, which `make frameworks` makes.

A framework's folder here holds `requirements.txt` (installed without dependencies; all else is found in .venv), a
program that uses the framework for real and prints one line of JSON at the end, and the test that runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run_in(
    framework: str, program: Path, *arguments: str, seconds: float = 1700.0, without: str = "sklearn,scipy,trio"
) -> Any:
    """Run a program in the environment of a framework, and return the JSON of the last line it printed.

    Args:
        framework: its folder's name.
        program: a file.
        arguments: of the program.
        seconds: most that it takes.
        without: packages that are hidden from it, with commas between them: none of them is needed.
    """
    python = ROOT / ".venv" / "frameworks" / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{framework} has no environment; `make frameworks` makes it")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'tests' / 'without'}{os.pathsep}{ROOT}",
        "ADJUDGE_TEST_WITHOUT": without,
        "HF_HUB_OFFLINE": "1",
        "RAY_memory_monitor_refresh_ms": "0",  # it would kill workers for the memory of the tests beside them
    }
    for left in (1, 0):
        ended, said, wrong = _ran([str(python), str(program), *arguments], environment, seconds)
        if not (left and _RAY_IS_LATE in wrong):
            break
    assert ended == 0, f"{program.name} ended with {ended}:\n{said[-3000:]}\n{wrong[-6000:]}"
    return json.loads(said.strip().splitlines()[-1])


_RAY_IS_LATE = "The current node timed out during startup"  # after 30 s, which nothing sets, on a busy machine


def _ran(command: list[str], environment: dict[str, str], seconds: float) -> tuple[int | str, str, str]:
    """Run a command; return its exit code, or what it did instead of ending, and what it wrote."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            ended: int | str = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=out, stderr=err, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            ended = f"nothing after {seconds:.0f} s"
        for file in (out, err):
            file.seek(0)
        return ended, out.read(), err.read()
