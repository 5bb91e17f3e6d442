"""Runs the escape suite as whoever started it and prints what came of each case, one JSON object a line.

Kept apart from the tests so that it can be started as another user, by an interpreter that user can reach.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.warm_python import WarmPython

CASES = Path(__file__).parents[1] / "attacks" / "sandbox_escapes.json"
LIMITS = RunLimits(seconds=0.7, memory_mb=160, processes=48, disk_mb=32)
ROOMY = RunLimits(seconds=10.0, memory_mb=160, processes=48, disk_mb=32)
MARK = "adjudge-secret-mark"


def main() -> None:
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    os.environ["ADJUDGE_MARK"] = MARK
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen([sys.executable, "-c", "input()", MARK], stdin=subprocess.PIPE) as neighbour,
        Sandbox() as sandbox,
    ):
        os.chmod(folder, 0o755)
        secret = Path(folder, "secret.txt")
        secret.write_text(MARK)
        name = f"adjudge-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        words = {"@PORT@": str(server.getsockname()[1]), "@NAME@": name, "@SECRET@": str(secret), "@MARK@": MARK}
        words["@PREFIX@"] = sys.base_prefix
        warm = WarmPython()
        for case in cases["escapes"]:
            if case.get("machine", platform.machine()) != platform.machine():
                continue
            limits = LIMITS if "timeout" in case["endings"] else ROOMY
            tell("escape", case["id"], "fresh", run_fresh(sandbox, filled(case["source"], words, "-1"), limits), warm)
            tell("escape", case["id"], "warm", run_warm(warm, filled(case["source"], words, "-1"), limits), warm)
        for case in cases["residues"]:
            for how, others in (("fresh", "1"), ("warm", "0")):
                words["@OTHERS@"] = others
                first, second = (filled(case[part], words, "-1") for part in ("leave", "look"))
                for source in (first, second):
                    done = run_fresh(sandbox, source, ROOMY) if how == "fresh" else run_warm(warm, source, ROOMY)
                tell("residue", case["id"], how, done, warm)
        assert neighbour.poll() is None
        warm.close()
        neighbour.communicate(b"\n")


def filled(source: str, words: dict[str, str], channel: str) -> str:
    for word, value in {**words, "@CHANNEL@": channel}.items():
        source = source.replace(word, value)
    return source


def run_fresh(sandbox: Sandbox, source: str, limits: RunLimits) -> RunResult:
    program = Program(
        command=(os.path.realpath(sys.executable), "-P", "-s", "-S", "solution.py"),
        files={"solution.py": source.encode()},
        outputs=("out.txt",),
        read_only=(sys.base_prefix,),
    )
    return sandbox.run(program, limits)


def run_warm(warm: WarmPython, source: str, limits: RunLimits) -> RunResult:
    return warm.script(source, b"", limits)[0]


def tell(kind: str, case: str, how: str, done: RunResult, warm: WarmPython) -> None:
    """Print a case's outcome, and what the next run on the same sandbox took and gave."""
    started = time.monotonic()
    after, _ = warm.script("print(6 * 7)", b"", ROOMY)
    row: dict[str, Any] = {
        "kind": kind,
        "id": case,
        "how": how,
        "ending": done.ending,
        "code": done.code,
        "stdout": done.stdout[-2000:].decode(errors="replace"),
        "stderr": done.stderr[-2000:].decode(errors="replace"),
        "outputs": {name: content.decode(errors="replace") for name, content in done.outputs.items()},
        "charged": done.charged,
        "next": after.stdout.decode(),
        "next_seconds": time.monotonic() - started,
    }
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
