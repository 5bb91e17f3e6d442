"""What a run may use, what comes back from it, and what a host without isolation is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from adjudge.sandbox import bubblewrap
from adjudge.sandbox import sandbox as sandbox_module
from adjudge.sandbox.bubblewrap import Enclosure
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox, SandboxUnavailableError

QUICK = RunLimits(seconds=5.0, memory_mb=128, processes=16, output_bytes=1000, disk_mb=4)


def sh(script: str, **more: object) -> Program:
    return Program(command=("sh", "-c", script), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "ending", "code"),
    [
        ("exit 0", "exited", 0),
        ("exit 3", "exited", 3),
        ("kill -9 $$", "signalled", signal.SIGKILL),
        ("kill -TERM $$", "signalled", signal.SIGTERM),
        ("sleep 60", "timeout", None),
        ("yes", "output", None),
        ("yes >&2", "output", None),
        ("head -c 8000000 /dev/zero > big", "disk", None),
    ],
    ids=["success", "failure", "sigkill", "sigterm", "slow", "chatty", "chatty-errors", "big-file"],
)
def test_endings(sandbox: Sandbox, script: str, ending: str, code: int | None) -> None:
    limits = QUICK if ending != "timeout" else RunLimits(seconds=0.2)
    done = sandbox.run(sh(script), limits)
    assert (done.ending, done.code) == (ending, code), done


def test_a_program_that_ends_as_soon_as_it_may_go_on_leaves_its_files(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes: list[Enclosure] = []

    def enclosed(*given: Any) -> Enclosure:
        boxes.append(Enclosure(*given))
        return boxes[-1]

    def written(fd: int, data: bytes) -> int:
        count = write(fd, data)
        if data == b"\n":  # it may go on
            os.waitid(os.P_PID, boxes[-1].process.pid, os.WEXITED | os.WNOWAIT)
        return count

    write = os.write
    monkeypatch.setattr(sandbox_module, "Enclosure", enclosed)
    monkeypatch.setattr(os, "write", written)
    done = sandbox.run(sh("echo here > out", outputs=("out",)), QUICK)
    assert done.outputs == {"out": b"here\n"}


def test_output_is_cut_at_the_limit(sandbox: Sandbox) -> None:
    done = sandbox.run(sh("head -c 1000 /dev/zero; echo err >&2"), QUICK)
    assert (done.ending, len(done.stdout), done.stderr) == ("exited", 1000, b"err\n")
    done = sandbox.run(sh("head -c 1001 /dev/zero"), QUICK)
    assert (done.ending, len(done.stdout)) == ("output", 1000)


def test_stdin_files_and_outputs(sandbox: Sandbox) -> None:
    program = sh(
        "cat; cat sub/in.txt; echo out > sub/out.txt; mkdir d; ln -s sub/in.txt link; chmod 0 sub/in.txt",
        files={"sub/in.txt": b"in\n"},
        stdin=b"x" * 500 + b"\n",
        outputs=("sub/out.txt", "link", "d", "absent", "sub/in.txt/x"),
    )
    done = sandbox.run(program, QUICK)
    assert done.stdout == b"x" * 500 + b"\nin\n"
    assert done.outputs == {"sub/out.txt": b"out\n"}


def test_an_output_above_the_disk_limit_is_absent(sandbox: Sandbox) -> None:
    done = sandbox.run(sh("truncate -s 3M a; truncate -s 3M b; exit 0", outputs=("a", "b")), QUICK)
    assert {name: len(content) for name, content in done.outputs.items()} == {"a": 3 << 20}


def test_a_program_that_reads_nothing_is_not_waited_for(sandbox: Sandbox) -> None:
    done = sandbox.run(sh("exec <&-; echo done", stdin=b"x" * 5_000_000), QUICK)
    assert (done.ending, done.stdout) == ("exited", b"done\n")


def test_the_environment_is_the_same_everywhere(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_SECRET", "x")
    done = sandbox.run(sh("env | sort; id -u; id -g; hostname; umask", environment={"MORE": "1"}), QUICK)
    assert done.stdout.decode().split() == [
        "HOME=/tmp/work",
        "LANG=C.UTF-8",
        "MKL_NUM_THREADS=1",
        "MORE=1",
        "OMP_NUM_THREADS=1",
        "OPENBLAS_NUM_THREADS=1",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "PWD=/tmp/work",
        "PYTHONHASHSEED=0",
        "TMPDIR=/tmp",
        "TZ=UTC",
        "1000",
        "1000",
        "sandbox",
        "0022",
    ]


def test_runs_of_several_threads_keep_apart(sandbox: Sandbox) -> None:
    found: dict[int, bytes] = {}

    def run(number: int) -> None:
        found[number] = sandbox.run(sh(f"echo {number} > f; cat f; ls /proc | grep -c '^[0-9]'"), QUICK).stdout

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number].split()[0] == str(number).encode() for number in range(4))
    assert max(int(text.split()[1]) for text in found.values()) <= 5  # its own: shells, ls, grep


def test_nothing_of_ours_is_left(sandbox: Sandbox) -> None:
    before = sorted(os.listdir("/proc/self/fd")), children()
    for _ in range(5):
        sandbox.run(sh("sleep 60 & exit 0"), QUICK)
    assert (sorted(os.listdir("/proc/self/fd")), children()) == before


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.mark.parametrize(
    "program",
    [
        Program(command=("true",), files={"../x": b""}),
        Program(command=("true",), files={"/etc/x": b""}),
        Program(command=("true",), outputs=("a/../../x",)),
        Program(command=()),
        Program(command=("true",), read_only=("relative",)),
    ],
    ids=["file-above", "file-absolute", "output-above", "no-command", "relative-folder"],
)
def test_paths_outside_are_refused(sandbox: Sandbox, program: Program) -> None:
    with pytest.raises(ValueError, match="Program"):
        sandbox.run(program, QUICK)


def test_a_missing_program_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxUnavailableError, match="no-such-program"):
        sandbox.run(Program(command=("no-such-program",)), QUICK)


def test_a_host_without_bubblewrap_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        Sandbox()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailableError, match="run on Linux"):
        Sandbox()


def test_a_host_without_namespaces_is_told_what_to_do() -> None:
    text = bubblewrap.explain("bwrap: No permissions to create a new namespace")
    assert "sysctl -w user.max_user_namespaces" in text


def test_isolation_that_is_none_is_explicit_and_warned_about() -> None:
    with pytest.raises(ValueError, match="isolation"):
        Sandbox("docker")  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="isolation='none'"):
        loose = Sandbox("none")
    program = sh("cat f; echo hi > out; exit 4", files={"f": b"data"}, outputs=("out",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = loose.run(program, QUICK)
    assert (done.ending, done.code, done.stdout, done.outputs) == ("exited", 4, b"data", {"out": b"hi\n"})
    assert loose.run(sh("sleep 60"), RunLimits(seconds=0.2)).ending == "timeout"


def test_everything_ends_with_a_killed_parent(sandbox: Sandbox, root: Path) -> None:
    source = (
        "from adjudge.sandbox.warm_python import WarmPython\nimport os\n"
        "warm = WarmPython()\nprint(warm.zygote().pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=1200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    server = int(done.stdout)
    try:
        watch = os.pidfd_open(server)
    except ProcessLookupError:
        return
    poll = __import__("select").poll()
    poll.register(watch)
    assert poll.poll(5000), "the warm Python outlived the process that made it"
    os.close(watch)
