"""Runs Python files one after another in one process, each as `__main__` with names and a folder of its own.

Usage: python -W error run_examples.py FILE...; beside each it writes what was printed, and the error that ended it.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path


def run(script: Path) -> None:
    """Run a file in its folder; `NAME.printed` and `NAME.error` say what came of it."""
    os.chdir(script.parent)
    sys.argv[:] = [str(script)]
    sys.path[0] = str(script.parent)
    with open(script.with_suffix(".printed"), "wb") as printed:
        os.dup2(printed.fileno(), sys.stdout.fileno())
    error = ""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except (Exception, SystemExit):  # noqa: BLE001  # the test shows it
        error = traceback.format_exc()
    sys.stdout.flush()
    script.with_suffix(".error").write_text(error, encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        run(Path(each))
