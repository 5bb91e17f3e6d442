"""Runs a label job again and again, killed at its first, second, third, ... step on the file system, and resumes it.

Not a test by itself: test_crash.py starts it in a process of its own, because an audit hook cannot be taken away.
Usage: crash_driver.py FOLDER SUFFIX [retry].  Prints how many steps there were.  With `retry`, the job judges again
what failed in an output that is there.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.io.jobs.journal import Journal
from adjudge.protocol import Sample, Score, response_text

STEPS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


class Length:
    """The length of the response; fails on every third length unless it is repaired."""

    name = "length"
    fingerprint = "length:1"
    repaired = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        lengths = [len(response_text(sample)) for sample in samples]
        return [
            Score.scored(length, id=sample.id) if self.repaired or length % 3 else Score.failed("engine_unavailable")
            for sample, length in zip(samples, lengths, strict=True)
        ]


def label(source: Path, output: Path, *, retry: bool = False) -> None:
    config = LabelConfig(input=str(source), output=str(output), batch_size=5, in_flight=2, retry_failed=retry)
    report = run_label(config, scorer=Length())
    if not Length.repaired:
        return
    if report.rows != 40 or report.counts != {("length", "scored", ""): 39, ("length", "failed", "bad_sample"): 1}:
        raise SystemExit(f"wrong counts: {report}")


def go_on(source: Path, output: Path, complete: bool, *, retry: bool) -> None:
    """Make the same call again; a job that was killed as its last files went away is told that the output exists."""
    try:
        label(source, output, retry=retry)
    except ValueError as error:
        if not complete or "exists already" not in str(error):
            raise


def in_child(work: Callable[[], None]) -> int:
    """Run work in a forked child and return how it ended: 0, or minus the signal."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(step: int) -> None:
    """Let this process kill itself just before the step-th change of the job's files."""
    left = step

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and (event != "open" or "out." in str(args[0])):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def failed(source: Path, output: Path) -> bytes:
    """Return an output of which every third score failed."""
    Length.repaired = False
    label(source, output)
    Length.repaired = True
    return output.read_bytes()


def main() -> None:
    folder, suffix, retry = Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["retry"]
    assert Journal.__init__.__kwdefaults__ is not None
    Journal.__init__.__kwdefaults__["commit_seconds"] = 0.0  # commit every batch, so that there are many steps
    source, whole = folder / "in.jsonl", folder / f"whole.{suffix}"
    source.write_text("".join(f'{{"response":"{"x" * row}"}}\n' for row in range(39)) + "{\n")
    if in_child(lambda: label(source, whole)):
        raise SystemExit("the job does not even run without a kill")
    expected, step = whole.read_bytes(), 0
    before = failed(source, folder / f"before.{suffix}") if retry else None
    while True:
        step += 1
        output = folder / str(step) / f"out.{suffix}"
        if before is not None:
            output.parent.mkdir()
            output.write_bytes(before)

        def killed(at: int = step, output: Path = output) -> None:
            kill_at(at)
            label(source, output, retry=retry)

        ended = in_child(killed)
        if ended == 0:
            break
        if ended != -signal.SIGKILL:
            raise SystemExit(f"step {step}: ended with {ended}")
        if output.exists() and output.read_bytes() not in (expected, before):
            raise SystemExit(f"step {step}: an output that is not complete")
        if before is not None and not output.exists():
            raise SystemExit(f"step {step}: the earlier output is gone")
        complete = output.exists() and not (output.with_name(f"{output.name}.partial") / "manifest.json").exists()

        def resumed(output: Path = output, complete: bool = complete) -> None:
            go_on(source, output, complete, retry=retry)

        if in_child(resumed) != 0:
            raise SystemExit(f"step {step}: cannot be resumed")
        if output.read_bytes() != expected:
            raise SystemExit(f"step {step}: another output")
        if [path.name for path in output.parent.iterdir()] != [output.name]:
            raise SystemExit(f"step {step}: left {sorted(output.parent.iterdir())}")
        shutil.rmtree(output.parent)
    print(step - 1)


if __name__ == "__main__":
    main()
