"""A program on a disk of 1 MiB, which it can fill."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_small_disk = pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap, which makes a small disk")


def printed_on_a_small_disk(program: str, folder: Path) -> list[str]:
    """Return the lines that a Python program printed; the folder, its first argument, was a disk of its own."""
    small = ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 20), "--tmpfs", str(folder)]
    command = [*small, sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
