"""Runs a job over groups again and again, killed at its first, second, third, ... step on the file system.

Not a test by itself: test_job_crash.py starts it in a process of its own, because an audit hook cannot be taken away.
Usage: job_crash_driver.py FOLDER NAME.  Prints how many steps there were.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.io.jobs.toys import Sums

from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.journal import Journal

STEPS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


def work(source: Path, output: Path) -> None:
    config = JobConfig(input=str(source), output=str(output), in_flight=2, overwrite=True)
    report = run_job(config, Sums(), group_column="p")
    if (report.rows, report.made, report.dropped) != (16, 4, {"no_group": 1, "unreadable": 1}):
        raise SystemExit(f"wrong counts: {report}")


def in_child(call: Callable[[], None]) -> int:
    """Run a call in a forked child and return how it ended: 0, or minus the signal."""
    child = os.fork()
    if child == 0:
        call()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(step: int) -> None:
    """Let this process kill itself just before the step-th change of the job's files."""
    left = step

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and (event != "open" or "out" in str(args[0])):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def content(output: Path) -> dict[str, bytes]:
    """The output, with the card that stands in or beside it."""
    files = [output] if output.is_file() else list(output.rglob("*"))
    card = output.with_name(f"{output.name}.card.md")
    return {path.name: path.read_bytes() for path in [*files, card] if path.is_file()}


def main() -> None:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    assert Journal.__init__.__kwdefaults__ is not None
    Journal.__init__.__kwdefaults__["commit_seconds"] = 0.0  # commit every write, so that there are many steps
    needed = "datasets" if name == "out" else "json"
    for module in ("adjudge.io.cards.card", needed):
        importlib.import_module(module)  # here once, and not in each child
    source, whole = folder / "in.jsonl", folder / "whole" / name
    rows = [f'{{"p":"{row // 4}","x":{row}}}\n' for row in range(14)]
    source.write_text("".join([*rows, "{\n", '{"x":1}\n']))
    if in_child(lambda: work(source, whole)):
        raise SystemExit("the job does not even run without a kill")
    expected, step = content(whole), 0
    while True:
        step += 1
        output = folder / str(step) / name

        def killed(at: int = step, output: Path = output) -> None:
            kill_at(at)
            work(source, output)

        ended = in_child(killed)
        if ended == 0:
            break
        if ended != -signal.SIGKILL:
            raise SystemExit(f"step {step}: ended with {ended}")
        if in_child(lambda output=output: work(source, output)) != 0:  # type: ignore[misc]
            raise SystemExit(f"step {step}: cannot be resumed")
        if content(output) != expected:
            raise SystemExit(f"step {step}: another output: {content(output).keys()}")
        left = {path.name for path in output.parent.iterdir()} - {name, f"{name}.card.md"}
        if left:
            raise SystemExit(f"step {step}: left {left}")
        shutil.rmtree(output.parent)
    print(step - 1)


if __name__ == "__main__":
    main()
