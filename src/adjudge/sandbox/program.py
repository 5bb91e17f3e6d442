"""One program to run apart: its command, its files, what it may use, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Ending = Literal["exited", "signalled", "timeout", "memory", "output", "disk"]

ENDINGS: Mapping[str, str] = {
    "timeout": "candidate_timeout",
    "memory": "candidate_memory",
    "output": "candidate_output",
    "disk": "candidate_output",
    "signalled": "candidate_crash",
}
"""The reason of a tool's run that a limit or a signal ended, where the response that it read is to blame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What one run may use, all its processes together.

    Attributes:
        seconds: seconds from the start of the program in which it computes or sleeps; those in which the machine gives
            it no processor are not counted (`adjudge.sandbox.time_limit`).
        memory_mb: MiB of memory.
        processes: processes and threads at one time, the program itself included.
        output_bytes: bytes of standard output, and as many of standard error.
        disk_mb: MiB of files in the working directory and the other writable places.
        stack_mb: MiB of stack of a program's first thread, and of each other one that does not say how much it wants.
    """

    seconds: float = 10.0
    memory_mb: int = 1024
    processes: int = 64
    output_bytes: int = 1 << 20
    disk_mb: int = 64
    stack_mb: int = 8

    def __post_init__(self) -> None:
        """Reject limits that would let nothing, or everything, run."""
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"RunLimits.seconds is {self.seconds!r}; it must be a positive number of seconds")
        for name in ("memory_mb", "processes", "output_bytes", "disk_mb", "stack_mb"):
            if getattr(self, name) < 1:
                raise ValueError(f"RunLimits.{name} is {getattr(self, name)!r}; it must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run.

    Attributes:
        command: the program and its arguments; the program is looked up in the system's standard places.
        files: files put into the working directory first, by relative path.
        stdin: what it reads from standard input.
        environment: variables beside the few that every program gets (PATH, HOME, LANG, TMPDIR).
        outputs: relative paths of files to bring back after the run, where they exist.
        read_only: folders of the host it may read beside the system's own, such as a toolchain.
    """

    command: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run.

    Attributes:
        ending: "exited" by itself, "signalled" (a crash, `code` is the signal), or the limit that ended it.
        code: exit status, or the signal's number; None when a limit ended the run.
        stdout: standard output, cut at the limit.
        stderr: standard error, cut at the limit.
        outputs: contents of the files that `Program.outputs` named and that exist as plain files.
        seconds: wall-clock seconds of the run.
        charged: of these, what counts against the limit.
        memory_mb: the most memory it held at one time, in MiB; None where the host cannot say.
    """

    ending: Ending
    code: int | None
    stdout: bytes
    stderr: bytes
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    seconds: float
    charged: float = 0.0
    memory_mb: float | None = None
