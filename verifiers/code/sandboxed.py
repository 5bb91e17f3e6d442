"""Base of the verifiers that run a response's program, or a tool that it calls, in the sandbox.

Not covered: the run itself (`adjudge.verifiers.execution`), and its limits, which each verifier has of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import Verifier
from adjudge.verifiers.code.environment import environment
from adjudge.verifiers.execution.bubblewrap import SandboxUnavailableError
from adjudge.verifiers.execution.cgroup import sweep_at_exit


@dataclass(frozen=True, kw_only=True)
class SandboxedVerifier(Verifier):
    """A verifier whose verdict depends on what programs find installed."""

    unavailable: ClassVar[tuple[type[Exception], ...]] = (SandboxUnavailableError,)

    @property
    def fingerprint(self) -> str:
        """Name, version, options, and `surroundings`."""
        return fingerprint_of(self, self.surroundings())

    def surroundings(self) -> str:
        """Return what a verdict depends on besides the sample: the Python and packages that programs find."""
        return environment()

    def warm_up(self) -> None:
        """Load the modules, in the process that outlives the workers; sandboxes are made by those."""
        sweep_at_exit()
