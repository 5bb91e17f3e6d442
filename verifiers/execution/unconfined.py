"""Running a program without isolation: resource limits, a time limit and a folder of its own, nothing more.

Not covered: everything isolation is for.  The program has this user's files and network, and a descendant that leaves
its process group outlives it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from adjudge.verifiers.execution.bubblewrap import ENVIRONMENT, SandboxUnavailableError
from adjudge.verifiers.execution.capture import converse, streams_of
from adjudge.verifiers.execution.outputs import collect
from adjudge.verifiers.execution.program import Program, RunLimits, RunResult
from adjudge.verifiers.execution.time_limit import TimeLimit

# ulimit counts memory in KiB and files in blocks of 512 bytes; what a platform cannot limit is left as it is
_LIMITED = 'ulimit -c 0; ulimit -d "$1" 2>&-; ulimit -f "$2" 2>&-; ulimit -n 256 2>&-; shift 2; exec "$@"'


def run_unconfined(program: Program, limits: RunLimits) -> RunResult:
    """Run a program as this user.

    Raises:
        SandboxUnavailableError: there is no shell to set the limits.
        OverloadedError: the machine let the program wait for too long.
    """
    with tempfile.TemporaryDirectory(prefix="adjudge-", ignore_cleanup_errors=True) as folder:
        for path, content in program.files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755)
        environment = {**ENVIRONMENT, "HOME": folder, "TMPDIR": folder, **program.environment}
        shell = ["/bin/sh", "-c", _LIMITED, "sh", str(limits.memory_mb << 10), str(limits.disk_mb << 11)]
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                [*shell, *program.command],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxUnavailableError(f"a program cannot be started: {error}") from error
        with contextlib.ExitStack() as held:
            held.callback(process.wait)
            held.callback(_kill, process)
            limit = TimeLimit(limits.seconds, [process.pid])
            got = converse(streams_of(process, held), program.stdin, limit, limits.output_bytes)
            seconds = time.monotonic() - started
            _kill(process)
            code = process.wait()
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            outputs = collect(opened, program.outputs, limits.disk_mb << 20)
        finally:
            os.close(opened)
    return RunResult(
        ending=got.excess or ("signalled" if code < 0 else "exited"),
        code=None if got.excess else abs(code),
        stdout=bytes(got.stdout),
        stderr=bytes(got.stderr),
        outputs=outputs,
        seconds=seconds,
        charged=limit.total,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
