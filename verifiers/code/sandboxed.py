"""Base of the verifiers that run a response's program, or a tool that it calls, in the sandbox."""

from __future__ import annotations

import os
import platform
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypeVar

from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import Verifier
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.cgroup import sweep_at_exit
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Isolation
from adjudge.sandbox.warm_python import shared
from adjudge.sandbox.zygote import ZygoteLostError

T = TypeVar("T")

PACKAGES = (
    "gmpy2", "more_itertools", "mpmath", "networkx", "numba", "numpy", "pandas", "pytest", "python_dateutil", "regex",
    "scikit_learn", "scipy", "sortedcontainers", "sympy",
)  # fmt: skip
"""Packages whose versions count, as they are spelt in the names of folders."""


@cache
def environment() -> str:
    """Return the Python version and the versions of installed packages, read from folder names in about a millisecond.

    Raises:
        OSError: the folders of installed packages cannot be listed.
    """
    versions = {f"python {platform.python_implementation()} {platform.python_version()}"}
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in os.listdir(folder) if os.path.isdir(folder) else ():
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and name.lower().replace(".", "_") in PACKAGES:
                versions.add(f"{name.lower()} {version}")
    return "; ".join(sorted(versions))


@dataclass(frozen=True, kw_only=True)
class IsolatedVerifier(Verifier):
    """A verifier that runs programs in the sandbox.

    Attributes:
        isolation: "bubblewrap", or "none" for programs and responses that you trust.
    """

    unavailable: ClassVar[tuple[type[Exception], ...]] = (SandboxUnavailableError,)

    isolation: Isolation = "bubblewrap"


@dataclass(frozen=True, kw_only=True)
class SandboxedVerifier(IsolatedVerifier):
    """A verifier whose verdict depends on what programs find installed."""

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


def tried_twice(isolation: Isolation, run: Callable[[], T], broken: Callable[[str], T]) -> T:
    """Run, and once more if the sandbox is lost; if it is lost again, the program is what breaks it.

    Raises:
        ZygoteLostError: it is not the program: the sandbox is lost without it, too.
    """
    try:
        return run()
    except ZygoteLostError:
        pass
    try:
        return run()
    except ZygoteLostError as error:
        shared(isolation).script("print()", b"", RunLimits())
        return broken(str(error))
