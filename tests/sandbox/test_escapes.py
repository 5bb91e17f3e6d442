"""Programs that try to leave the sandbox, and runs that look for what the run before them left.

Every case runs in a fresh sandbox and in a fork of the warm one, as the user who runs the tests and, when that is
root, as an ordinary user besides.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adjudge.sandbox.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
DRIVER = "tests/sandbox/escape_driver.py"
CASES = json.loads((ROOT / "tests" / "attacks" / "sandbox_escapes.json").read_text(encoding="utf-8"))
USERS = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)
SYSTEM_PYTHON = "/usr/bin/python3"


def readable_copy(folder: Path) -> Path:
    """Return a copy of what the driver needs; an ordinary user may not even look into the folder of a checkout."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "adjudge", folder / "src" / "adjudge", ignore=ignore)
    for name in (DRIVER, "tests/attacks/sandbox_escapes.json"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    return folder


@cache
def suites() -> dict[str, Future[dict[tuple[str, str, str], dict[str, Any]]]]:
    """Start the suite for every user at once: most of its time is waiting for limits."""
    runs = ThreadPoolExecutor(len(USERS))
    return {user: runs.submit(outcomes, user) for user in USERS}


def outcomes(user: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Run the whole suite once and return the rows by (kind, case, how)."""
    command, root = [sys.executable], ROOT
    with contextlib.ExitStack() as held:
        if user == "ordinary" and os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SYSTEM_PYTHON, "-B"]
            root = readable_copy(Path(held.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-escapes-"))))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "src")}
        command.append(str(root / DRIVER))
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["kind"], row["id"], row["how"]): row for row in rows}


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest, sandbox: Sandbox) -> str:
    who: str = request.param
    if who == "ordinary" and os.geteuid() == 0:
        version = "import sys; sys.exit(sys.version_info < (3, 11))"
        if shutil.which(SYSTEM_PYTHON) is None or subprocess.run([SYSTEM_PYTHON, "-c", version]).returncode:
            pytest.skip(f"the suite as an ordinary user needs {SYSTEM_PYTHON} 3.11: apt-get install python3")
    return who


@pytest.mark.parametrize("how", ["fresh", "warm"])
@pytest.mark.parametrize("case", CASES["escapes"], ids=lambda case: case["id"])
def test_nothing_escapes(case: dict[str, Any], how: str, user: str) -> None:
    row = suites()[user].result().get(("escape", case["id"], how))
    if row is None:
        pytest.skip("a case for another machine")
    assert "ESCAPED" not in row["stdout"], row
    assert row["ending"] in case["endings"], row
    assert row["outputs"] == {}, row
    assert row["charged"] < 12, row
    assert row["next"] == "42\n", row
    assert row["next_seconds"] < 100, row


@pytest.mark.parametrize("how", ["fresh", "warm"])
@pytest.mark.parametrize("case", CASES["residues"], ids=lambda case: case["id"])
def test_nothing_is_left_for_the_next_run(case: dict[str, Any], how: str, user: str) -> None:
    row = suites()[user].result()[("residue", case["id"], how)]
    assert (row["ending"], row["code"], row["stdout"]) == ("exited", 0, ""), row
