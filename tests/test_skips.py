"""The rule of conftest.py: under CI, a skipped test fails the session."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.skip(reason={reason!r})
def test_it(): ...

@pytest.mark.xfail(strict=True)
def test_known_defect(): assert False
"""


def run(folder: Path, root: Path, reason: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    shutil.copy(root / "tests" / "conftest.py", folder)
    (folder / "test_sample.py").write_text(TESTS.format(reason=reason))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    environment = {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take longer than all else
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("environment", "reason", "code"),
    [
        ({}, "no such program", 0),
        ({"CI": "1"}, "no such program", 1),
        ({"CI": "1"}, "ADJUDGE_DATA is not set", 0),
        ({"CI": "1", "ADJUDGE_REQUIRE_DATA": "1"}, "ADJUDGE_DATA is not set", 1),
        ({"CI": "0"}, "no such program", 0),
    ],
)
def test_a_skip_is_a_failure_where_nothing_may_be_skipped(
    root: Path, tmp_path: Path, environment: dict[str, str], reason: str, code: int
) -> None:
    done = run(tmp_path, root, reason, environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert (f"skipped under CI, where every test must run: {reason}" in done.stdout) == (code == 1)


def test_a_module_that_skips_itself_is_seen_too(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_sample.py").write_text('import pytest\npytest.importorskip("no_such_package_anywhere")\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"CI": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no_such_package_anywhere" in done.stdout
