"""What all tests share: the list of project files, and the rule that CI skips nothing.

A skipped test is a test that nobody ran.  Under CI it counts as failed, with one exception: tests that read corpora
(their reason names ADJUDGE_DATA) may be skipped where there are none, unless ADJUDGE_REQUIRE_DATA says there are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A shell starts background jobs with SIGINT ignored, and children inherit that; the tests of Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure, and a failure must come back on the next run.
settings.register_profile("adjudge", deadline=None, derandomize=True)
settings.load_profile("adjudge")

ROOT = Path(__file__).parents[1]


@pytest.fixture
def busy() -> Iterator[None]:
    """Three loops for each processor, each in a session of its own, or the scheduler would share by groups."""
    count = 3 * len(os.sched_getaffinity(0))
    loops = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(loop.pid, signal.SIGKILL)
            loop.wait()


def _on(name: str) -> bool:
    return os.environ.get(name, "").lower() not in ("", "0", "false")


def must_run(reason: str) -> bool:
    """Return whether a test that was skipped for this reason had to run."""
    if _on("ADJUDGE_REQUIRE_DATA"):
        return True
    return _on("CI") and "ADJUDGE_DATA" not in reason


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if must_run(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped under CI, where every test must run: {reason.removeprefix('Skipped: ')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def project_files(root: Path) -> list[Path]:
    """Every file git tracks or would track, relative to the root, links left out."""
    if not (root / ".git").exists():
        pytest.fail("the project's files are listed by git; run the tests in a checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted(Path(name) for name in set(listed) if name and (root / name).is_file())
