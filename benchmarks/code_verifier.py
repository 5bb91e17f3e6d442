"""Speed of the code verifier beside fresh interpreters, on the same programs, in one run on one machine.

Peers: (a) a fresh `python -I` for each program, which isolates nothing; (b) a fresh bubblewrap with `python -I` for
each, with the namespaces, mounts and limits of our own sandbox, but without the tests kept apart: program, tests and a
`check` call run in one process and the exit status is the verdict.  Ours has the program in a sandbox, and beside it
the tests in another one where they are not read as claims (`adjudge.verifiers.code.claims`).  Programs run one after
another, and rounds alternate.  The table gives the median of the rounds and, in brackets, the least; CPU is that of all
processes, in user and system mode.

Sets: HumanEval candidates; the same with `import numpy` on top; the same with tests that have to be executed, because
there is an import among them.  Below the table stands the floor, our own fork with an empty program.

Run it as `ADJUDGE_DATA=... python -m benchmarks.code_verifier`; `--help` lists the flags.
Not covered: verdicts (tests/verifiers/code), other languages, several workers.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro
from benchmarks.corpora import rows
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.warm_python import shared
from adjudge.sandbox.zygote import PLAIN_IMPORTS
from adjudge.verifiers.code.suite import read_suite
from adjudge.verifiers.code.verifier import CodeVerifier

IMPORTS = f"import {', '.join(PLAIN_IMPORTS)}\n"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to time.

    Attributes:
        programs: candidates drawn from each set.
        rounds: timed rounds; the table gives the median.
        seed: of the draw.
    """

    programs: int = 60
    rounds: int = 5
    seed: int = 7


@dataclass(frozen=True)
class Task:
    """A candidate with its tests."""

    program: str
    tests: str
    entry_point: str
    prompt: str


def tasks(options: Options) -> list[Task]:
    problems = {row["task_id"]: row for row in rows("code", "HumanEval.jsonl.gz")}
    labelled = [row for row in rows("code", "humaneval_candidates.jsonl.gz") if row["label"] != "timeout"]
    drawn = random.Random(options.seed).sample(labelled, options.programs)
    return [
        Task(row["program"], problem["test"], row["entry_point"], problem["prompt"])
        for row in drawn
        for problem in [problems[row["task_id"]]]
    ]


def script(task: Task, imports: str) -> str:
    """Return the one-process form that the peers run."""
    return f"{imports}{task.program}\n{task.tests}\ncheck({task.entry_point})\n"


def fresh(task: Task, extra: str) -> bool:
    command = [sys.executable, "-I", "-c", script(task, IMPORTS + extra)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def fresh_sandbox(sandbox: Sandbox, task: Task, extra: str) -> bool:
    path = [folder for folder in sys.path if folder.endswith("site-packages")]
    head = f"import sys\nsys.path += {path!r}\n" if extra else ""
    program = Program(
        command=(os.path.realpath(sys.executable), "-I", "solution.py"),
        files={"solution.py": script(task, head + IMPORTS + extra).encode()},
        read_only=(sys.base_prefix, *path),
    )
    done = sandbox.run(program, RunLimits(seconds=20))
    return done.ending == "exited" and done.code == 0


def reference(task: Task) -> dict[str, str]:
    return {"tests": task.tests, "style": "humaneval", "entry_point": task.entry_point}


def ours(verifier: CodeVerifier, task: Task, extra: str) -> bool:
    response = f"```python\n{extra}{task.program}\n```"
    return verifier.verify(Sample(prompt=task.prompt, response=response, reference=reference(task))).value == 1.0


def cpu_seconds() -> float:
    """Return what this process and its descendants have used; the clock of those alive ticks 100 times a second."""
    total = sum(os.times()[:4])
    todo = [os.getpid()]
    while todo:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a run that has just ended
            for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
                for child in path.read_text(encoding="ascii").split():
                    todo.append(int(child))
                    fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                    total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def timed(judge: Callable[[Task], bool], drawn: Sequence[Task]) -> tuple[float, float, int]:
    """Return milliseconds and milliseconds of CPU for each program, and how many passed."""
    before, started = cpu_seconds(), time.perf_counter()
    passed = sum(judge(task) for task in drawn)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - before
    return seconds / len(drawn) * 1e3, cpu / len(drawn) * 1e3, passed


def floor(rounds: int) -> float:
    """Return milliseconds of a fork with fresh namespaces that does nothing."""
    zygote = shared("bubblewrap").zygote()
    times = []
    for _ in range(max(rounds, 1) * 20):
        started = time.perf_counter()
        with zygote.run(RunLimits()) as run:
            run.end()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def main(options: Options) -> None:
    drawn = tasks(options)
    executed = [replace(task, tests=f"import math\n{task.tests}") for task in drawn]
    claimed = sum(bool(read_suite(reference(task), task.prompt).claims) for task in drawn)
    verifier = CodeVerifier()
    table = Table(title=f"{len(drawn)} HumanEval candidates, {options.rounds} rounds, one at a time; milliseconds")
    for heading in ("set", "(a)", "(b)", "ours", "(b) CPU", "ours CPU", "x (a)", "x (b)", "x (b) CPU", "passed"):
        table.add_column(heading, justify="right")
    sets = (
        ("as they are", "", drawn),
        ("with numpy", "import numpy\n", drawn),
        ("with numpy, tests executed", "import numpy\n", executed),
    )
    with Sandbox() as sandbox:
        for name, extra, chosen in sets:
            judges: list[Callable[[Task], bool]] = [
                lambda task, extra=extra: fresh(task, extra),  # type: ignore[misc]
                lambda task, extra=extra: fresh_sandbox(sandbox, task, extra),  # type: ignore[misc]
                lambda task, extra=extra: ours(verifier, task, extra),  # type: ignore[misc]
            ]
            timed(judges[2], chosen[:2])  # the warm interpreters start once, not once a round
            rounds = [[timed(judge, chosen) for judge in judges] for _ in range(options.rounds)]
            wall, cpu = ([sorted(row[index][at] for row in rounds) for index in range(3)] for at in range(2))
            a, b, us = (statistics.median(times) for times in wall)
            cpus = [statistics.median(times) for times in cpu]
            times = [f"{middle:.1f} ({least[0]:.1f})" for middle, least in zip((a, b, us), wall, strict=True)]
            ratios = [f"{ratio:.1f}" for ratio in (a / us, b / us, cpus[1] / cpus[2])]
            passed = "/".join(str(count) for _, _, count in rounds[-1])
            table.add_row(name, *times, f"{cpus[1]:.1f}", f"{cpus[2]:.1f}", *ratios, passed)
    console = Console(width=140)
    console.print(table)
    console.print(f"tests read as claims: {claimed} of {len(drawn)}")
    console.print(f"floor: a fork with fresh namespaces and nothing to do {floor(options.rounds):.2f} ms")


if __name__ == "__main__":
    main(tyro.cli(Options))
