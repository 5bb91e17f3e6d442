"""Sandboxes for the tests, and the rule for hosts that cannot make one."""

from __future__ import annotations

import pytest

from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.warm_python import WarmPython


@pytest.fixture(scope="session")
def sandbox():  # type: ignore[no-untyped-def]
    """A sandbox that works, or a skip that says what is missing."""
    try:
        made = Sandbox()
        made.run(Program(command=("true",)), RunLimits())
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    with made:
        yield made


@pytest.fixture(scope="session")
def warm(sandbox: Sandbox):  # type: ignore[no-untyped-def]
    """Warm Python in the same kind of sandbox."""
    python = WarmPython()
    yield python
    python.close()
