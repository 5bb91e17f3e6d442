"""Processes that train, can be killed, and need not import PyTorch anew: forks of one that has.

`Nursery` is the tests' side.  Run as a script, this file is the other one: it reads a line for each group of
processes, forks them, waits, and says how each ended.  A child may be told to kill itself (SIGKILL) at its n-th event:
each time it opens, renames or deletes something in the run's folder, and each time it calls the model.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_WATCHED = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


class Nursery:
    """Forks processes that call functions of `tests.rl_integration.trainer.child_work`; to be closed."""

    def __init__(self) -> None:
        root = Path(__file__).parents[3]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                (str(root / "tests" / "without"), str(root), str(root / "src"))  # this tree's, wherever it is installed
            ),
            "ADJUDGE_TEST_WITHOUT": "sklearn",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.rl_integration.trainer.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=environment,
        )

    def run(
        self,
        call: str,
        *,
        processes: int = 1,
        dies: int = 0,
        die_at: int = 0,
        kill: tuple[int, float] | None = None,
        **given: Any,
    ) -> list[int]:
        """Call a function in new processes; return how each ended, a signal as its negative number.

        Args:
            call: the function's name.
            processes: how many, each of which knows of the others as a launcher's do.
            dies: which of them kills itself,
            die_at: and at which event; 0 for none.
            kill: the step behind which the first process is killed from outside, and after how many seconds.
            given: the function's arguments, plain data.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"call": call, "processes": processes, "dies": dies, "die_at": die_at, "kill": kill, "given": given}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the nursery has ended; its errors are above"
        found: list[int] = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=1200)


class Dying:
    """Counts what a process does, and kills it at a certain event.

    Args:
        at: which event; 0 for none.
    """

    def __init__(self, at: int) -> None:
        self.events: list[str] = []
        self._at = at
        self._folder = ""

    def watch(self, folder: Path, model: Any = None) -> None:
        """Begin to count."""
        self._folder = str(folder)
        sys.addaudithook(self._heard)
        if model is not None:
            model.register_forward_pre_hook(lambda *_: self._count("model"))

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _WATCHED and str(arguments[0]).startswith(self._folder):
            self._count(f"{event} {Path(str(arguments[0])).name}")

    def _count(self, event: str) -> None:
        self.events.append(event)
        if len(self.events) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def _child(order: dict[str, Any], rank: int, port: int, told: int) -> None:
    from tests.rl_integration.trainer import child_work

    if order["processes"] > 1:
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": order["processes"], "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in names.items()}, MASTER_ADDR="127.0.0.1")
    work = getattr(child_work, order["call"])
    dying = Dying(order["die_at"] if rank == order["dies"] else 0)
    work(dying=dying, tell=lambda step: os.write(told, bytes([step])), **order["given"])


def _forked(order: dict[str, Any]) -> list[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    reads, told = os.pipe()
    children = []
    for rank in range(order["processes"]):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(reads)
                _child(order, rank, port, told)
                code = 0
            except SystemExit as asked:
                code = int(asked.code or 0)
            except Exception:  # noqa: BLE001  (told as a process tells it that is not a fork)
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    os.close(told)
    if order["kill"] is not None:
        step, seconds = order["kill"]
        while (seen := os.read(reads, 1)) and seen[0] < step:
            pass
        time.sleep(seconds)  # to be anywhere in the next step, not to wait for something
        os.kill(children[0], signal.SIGKILL)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.close(reads)
    return ends


def _main() -> None:
    from tests.rl_integration.trainer import child_work

    child_work.imported()
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)
    os._exit(0)  # what PyTorch does on its way out takes a second


if __name__ == "__main__":
    _main()
