"""The rule for hosts that cannot make a sandbox."""

from __future__ import annotations

import pytest

from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox


@pytest.fixture(scope="session", autouse=True)
def sandbox_works() -> None:
    """Skip, saying what is missing, where there is no sandbox."""
    try:
        with Sandbox() as sandbox:
            sandbox.run(Program(command=("true",)), RunLimits())
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
