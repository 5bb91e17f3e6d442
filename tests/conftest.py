"""What all tests share: the list of project files, the rule that CI skips nothing, and who runs which file.

A skipped test is a test that nobody ran.  Under CI it counts as failed, with one exception: tests that read corpora
(their reason names ADJUDGE_DATA) may be skipped where there are none, unless ADJUDGE_REQUIRE_DATA says there are.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

# Ray runs its workers at nice 15: beside other work they starve, and wait for minutes while everybody waits for them.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # as Ray spells it
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

# A shell starts background jobs with SIGINT ignored, and children inherit that; the tests of Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure, and a failure must come back on the next run.
settings.register_profile("adjudge", deadline=None, derandomize=True)
settings.load_profile("adjudge")

ROOT = Path(__file__).parents[1]

HUNGRY = (
    "tests/engines/test_openai_vllm.py",
    "tests/engines/test_parity.py",
    "tests/engines/test_reward_invariance.py",
    "tests/engines/test_vllm.py",
    "tests/engines/test_published_heads.py",
    "tests/engines/test_vllm_worker.py",
    "tests/rl_integration/trainer/rollouts/test_vllm_generator.py",
    "tests/frameworks/open_rlhf/test_real_open_rlhf.py",
    "tests/frameworks/verl/test_real_trainer.py",
    "tests/frameworks/verl/test_real_queue.py",
    "tests/frameworks/verl/test_real_verl.py",
)
"""Files whose processes, of vLLM or of Ray, need up to 10 GB together, or that wait for vLLM's import.

One process runs them one after another.
"""

LONG = (
    *HUNGRY,
    "tests/rl_integration/trainer/loop/test_processes.py",
    "tests/test_start_pages.py",
    "tests/frameworks/",
    "tests/data_pipelines/label/ray/test_ray_job.py",
    "tests/reward_models/training/test_scalar_training.py",
    "tests/verifiers/code/test_attacks_code.py",
    "tests/verifiers/test_redteam.py",
    "tests/verifiers/verilog/test_verilog_attacks.py",
    "tests/data_pipelines/label/test_crash.py",
    "tests/cli/test_demo.py",
)
"""Files that take more than a minute begin first, so that none of them is left at the end for one process alone."""


class _Files(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives each process whole files, and those of `HUNGRY` to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return HUNGRY[0] if file in HUNGRY else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Files | None:
    return _Files(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is collected is garbage; to look through it time and again took a quarter of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """What a file of tests leaves is not looked through again for garbage; that made late tests many times slower."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)))


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


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say under CI which files take longest: `--durations` lists tests, of which thousands are short."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    if _on("CI"):
        terminalreporter.section("longest files")
        for file, spent in sorted(seconds.items(), key=lambda one: -one[1])[:40]:
            terminalreporter.write_line(f"{spent:7.1f}s {file}")


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
