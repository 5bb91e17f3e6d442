"""Runs a program in a training framework's own environment, which `make frameworks` makes.

A framework's folder here holds `requirements.txt` (installed without dependencies; all else is found in .venv), a
program that uses the framework for real and prints one line of JSON at the end, and the test that runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run_in(framework: str, program: Path, *arguments: str, seconds: float = 1700.0, without: str = "sklearn") -> Any:
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
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    done = subprocess.run(
        [str(python), str(program), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, (
        f"{program.name} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    )
    return json.loads(done.stdout.strip().splitlines()[-1])
