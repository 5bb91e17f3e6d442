"""The sandbox of this process: one for all verifiers that run programs in it, made when the first one asks.

Not covered: what the sandbox keeps out; see `adjudge.sandbox.sandbox`.
"""

from __future__ import annotations

import os
from typing import Protocol

from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Isolation, Sandbox

__all__ = ["Isolation", "Runner", "sandbox"]


class Runner(Protocol):
    """Whatever runs programs apart; `adjudge.sandbox.sandbox.Sandbox` is one."""

    def run(self, program: Program, limits: RunLimits) -> RunResult:
        """Run a program to its end or its limits."""
        ...


# By process id: a sandbox of the parent process is of no use after a fork.
_SANDBOXES: dict[tuple[int, Isolation], Runner] = {}


def sandbox(isolation: Isolation) -> Runner:
    """Return this process's sandbox.

    Raises:
        SandboxUnavailableError: the host cannot isolate programs.
    """
    key = (os.getpid(), isolation)
    if key not in _SANDBOXES:
        _SANDBOXES[key] = Sandbox(isolation)
    return _SANDBOXES[key]
