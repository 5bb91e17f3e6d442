"""The warm Python: what a run gets, and what losing the server costs."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from adjudge.sandbox.bubblewrap import wait_readable
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.warm_python import WarmPython, flavour_of
from adjudge.sandbox.zygote import ZygoteLostError

LIMITS = RunLimits(seconds=5.0, memory_mb=128)


def out(warm: WarmPython, source: str, stdin: bytes = b"") -> str:
    done, _ = warm.script(source, stdin, LIMITS, flavour_of(source))
    assert (done.ending, done.code) == ("exited", 0), done
    return done.stdout.decode()


def made_ahead(warm: WarmPython) -> int:
    """Return the process id of the run that waits for a job: the server's only child, once a run has ended."""
    assert out(warm, "print(1)") == "1\n"
    server = warm.zygote().pid
    (pid,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return int(pid)


@pytest.mark.parametrize(
    ("source", "code", "stdout", "stderr"),
    [
        ("print(input()[::-1])", 0, "cba\n", ""),
        ("import sys; sys.exit('no')", 1, "", "no\n"),
        ("import sys; sys.exit(7)", 7, "", ""),
        ("1 / 0", 1, "", "ZeroDivisionError: division by zero\n"),
        ("import threading\nthreading.Thread(target=print, args=('late',)).start()", 0, "late\n", ""),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", 0, "hi\nbye\n", ""),
        ("import sys\nprint(__name__, sys.argv[0], sys.path[0] == '')", 0, "__main__ solution.py True\n", ""),
        ("print('\\udce9')", 0, b"\xe9\n".decode("latin-1"), ""),
    ],
    ids=["input", "exit-text", "exit-status", "error", "thread", "atexit", "main", "any-bytes"],
)  # fmt: skip
def test_a_script_runs_as_the_interpreter_would(
    warm: WarmPython, source: str, code: int, stdout: str, stderr: str
) -> None:
    done, unparsable = warm.script(source, b"abc\n", LIMITS)
    assert (done.ending, done.code, done.stdout.decode("latin-1"), unparsable) == ("exited", code, stdout, "")
    assert done.stderr.decode().endswith(stderr)


def test_a_source_that_is_no_python_is_told_apart(warm: WarmPython) -> None:
    done, unparsable = warm.script("def f(:", b"", LIMITS)
    assert unparsable.startswith("SyntaxError")
    assert done.code == 1


def test_hash_order_is_the_same_in_every_server(sandbox: Sandbox) -> None:
    orders = set()
    for _ in range(2):
        warm = WarmPython()
        orders.add(out(warm, "print(list({'a', 'b', 'c', 'd', 'e', 'f'}))"))
        warm.close()
    assert len(orders) == 1


def test_packages_are_there_for_programs_that_import_them(warm: WarmPython) -> None:
    pytest.importorskip("numpy")
    assert flavour_of("import numpy as np") == (True, ("numpy",))
    assert flavour_of("import os, sys\nfrom math import pi") == (False, ())
    for late in (
        "__import__('numpy')",
        "importlib.import_module('numpy')",
        "exec('import numpy as np')",
        "import numpy",
    ):
        assert flavour_of(f"x = 1; {late}") == (True, ("numpy",))
    assert out(warm, "import numpy\nprint(numpy.arange(3).sum())") == "3\n"


def test_a_lost_server_is_replaced(warm: WarmPython) -> None:
    zygote = warm.zygote()
    os.kill(zygote.pid, signal.SIGKILL)
    with pytest.raises(ZygoteLostError):
        warm.script("print(1)", b"", LIMITS)
    assert out(warm, "print(2)") == "2\n"


def test_a_run_that_was_made_ahead_and_is_gone_is_made_again(warm: WarmPython) -> None:
    waiting = made_ahead(warm)
    ended = os.pidfd_open(waiting)
    os.kill(waiting, signal.SIGKILL)
    assert wait_readable(ended, 10.0)
    os.close(ended)
    assert out(warm, "print(2)") == "2\n"
    assert made_ahead(warm) != waiting


def test_a_run_that_ends_before_it_has_its_job_is_nobodys_doing(warm: WarmPython) -> None:
    made_ahead(warm)
    run = warm.zygote().run(LIMITS)
    run.channel.shutdown(socket.SHUT_WR)  # it sees the end and not a job
    with run, pytest.raises(ZygoteLostError, match="before it had its job"):
        run.begin("script", {"source": "", "filename": "", "argv": []})
    assert out(warm, "print(3)") == "3\n"


def test_a_run_that_was_made_ahead_gets_the_limits_of_its_job(warm: WarmPython) -> None:
    fill = "import os\nfd = os.open('big', os.O_CREAT | os.O_WRONLY)\nos.posix_fallocate(fd, 0, 6 << 20)\nprint('ok')"
    for disk, text in ((8, b"ok\n"), (4, b""), (8, b"ok\n")):
        done, _ = warm.script(fill, b"", RunLimits(disk_mb=disk))
        assert done.stdout == text, done
    for memory, text in ((64, b""), (256, b"ok\n")):
        done, _ = warm.script("x = bytearray(100 << 20)\nprint('ok')", b"", RunLimits(memory_mb=memory))
        assert done.stdout == text, done


def test_what_a_run_forks_is_told_so(warm: WarmPython) -> None:
    source = (
        "import os, random, threading\nmine = random.random()\nlock = threading.Lock()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\nread, write = os.pipe()\n"
        "if os.fork() == 0:\n    os.write(write, f'{random.random()} {threading.active_count()}'.encode())\n"
        "    os._exit(0)\nos.wait()\ntheirs, threads = os.read(read, 99).split()\n"
        "print(float(theirs) != random.random(), threads)"
    )
    assert out(warm, source) == "True b'1'\n"


def test_a_run_cannot_reach_the_server(warm: WarmPython) -> None:
    source = "import gc\nprint([o for o in gc.get_objects() if type(o).__name__ == 'socket' and o.fileno() >= 0])"
    assert out(warm, source) == "[]\n"


def test_isolation_none_runs_too_and_leaves_no_folder() -> None:
    loose = WarmPython("none")
    folder = Path(out(loose, "import os; print(os.getcwd())").strip())
    done, _ = loose.script("while True: pass", b"", RunLimits(seconds=0.3))
    assert done.ending == "timeout"
    assert not folder.exists()
    waiting = made_ahead(loose)
    run = loose.zygote().run(LIMITS)  # the one that was waiting, which by now is sure to have gone to its folder
    left = Path(f"/proc/{waiting}/cwd").readlink()
    assert left.parent == folder.parent
    run.close()
    loose.close()
    assert not left.exists()


def test_it_is_the_interpreter_that_runs_the_tests(warm: WarmPython) -> None:
    assert out(warm, "import sys; print(sys.version)") == sys.version + "\n"
