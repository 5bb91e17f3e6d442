"""Control groups: memory and process counts of a run as a whole, held and measured by the kernel.

Version 2 needs a group of which the `memory` and `pids` controllers may be used by this user: the group this process
is in, or the one above it, with both in `cgroup.subtree_control`.  Version 1 needs write access below this process's
group in both hierarchies, which in practice means root.  Elsewhere `Group.make` returns None, and a run is held by
`tree_exceeds`, asked now and then; what grows and shrinks between two looks and kernel memory go unseen there, and
`RLIMIT_DATA` bounds each process besides.

Source: kernel documentation "Control Group v2" and "Memory Resource Controller" (v1).  Not covered: CPU time, which
`time_limit` reads elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import time
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_numbers = itertools.count()


class Group:
    """One group, for one run at a time: its folders in the hierarchies with the memory and the pids controller.

    In version 2 that is one folder.
    """

    def __init__(self, memory: Path, pids: Path) -> None:
        self._memory = memory
        self._pids = pids
        self._unified = memory == pids
        self._kills_before = 0
        self._held: tuple[int, int] = (0, 0)
        self._files: dict[str, int] = {}

    @classmethod
    def make(cls, root: Path = _ROOT, own: Path = _OWN) -> Group | None:
        """Return a new group, or None where the host grants none; `own` tells which groups this process is in."""
        prefix = _prefix()
        name = f"{prefix}{os.getpid()}-{next(_numbers)}"
        for memory, pids in _parents(root, own):
            for folder in {memory, pids}:
                _sweep(folder, prefix)
            try:
                (memory / name).mkdir()
                if pids != memory:
                    (pids / name).mkdir()
                group = cls(memory / name, pids / name)
                group.hold(1 << 40, 1 << 15)  # shows that the limits can be written
            except OSError:
                for folder in (memory / name, pids / name):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                continue
            return group
        return None

    def hold(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run and forget the last one.

        Raises:
            OSError: the kernel refuses; the group is gone, for example.
        """
        if (memory_bytes, processes) != self._held:
            if self._unified:
                (self._memory / "memory.max").write_text(f"{memory_bytes}")
                with contextlib.suppress(OSError):  # absent without swap accounting
                    (self._memory / "memory.swap.max").write_text("0")
            else:
                (self._memory / "memory.limit_in_bytes").write_text(f"{memory_bytes}")
            (self._pids / "pids.max").write_text(f"{processes}")
            self._held = (memory_bytes, processes)
        if not self._unified:
            os.pwrite(self._opened("memory.max_usage_in_bytes"), b"0", 0)
        self._kills_before = self._kills()

    def entering(self) -> list[str]:
        """Return a command that joins the group and then becomes the command whose words follow it.

        A process that moves itself waits for nobody.  To move another one the kernel waits until all processors have
        passed a quiet point: 5 to 15 ms, where the shell takes 1 ms.
        """
        name = "cgroup.procs" if self._unified else "tasks"
        files = [str(folder / name) for folder in dict.fromkeys((self._memory, self._pids))]
        script = "".join(f'echo 0 >"${number}" && ' for number in range(1, len(files) + 1))
        return ["/bin/sh", "-c", f'{script}shift {len(files)} && exec "$@"', "sh", *files]

    def peak_mb(self) -> float | None:
        """Return the most MiB held at one time since `hold`, tmpfs files counted; None where the kernel cannot say.

        Version 2 cannot forget an earlier peak, so there it is None.
        """
        if self._unified:
            return None
        try:
            return int(os.pread(self._opened("memory.max_usage_in_bytes"), 64, 0)) / (1 << 20)
        except OSError:
            return None

    def killed(self) -> bool:
        """Return whether the kernel has killed a process for memory since `hold`."""
        return self._kills() > self._kills_before

    def close(self) -> None:
        """Kill what is left in the group and remove it; a group that the kernel still holds is left behind empty."""
        while self._files:
            os.close(self._files.popitem()[1])
        for folder in {self._memory, self._pids}:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        os.kill(int(pid), 9)
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(0.005)  # the kernel tells nobody when the last process has left

    def _kills(self) -> int:
        name = "memory.events" if self._unified else "memory.oom_control"
        with contextlib.suppress(OSError):
            for line in os.pread(self._opened(name), 4096, 0).splitlines():
                word, _, count = line.partition(b" ")
                if word == b"oom_kill":
                    return int(count)
        return 0

    def _opened(self, name: str) -> int:
        """Return a descriptor of a file that every run needs; opening it anew would cost each 0.1 ms."""
        if name not in self._files:
            self._files[name] = os.open(self._memory / name, os.O_RDWR if name.endswith("_bytes") else os.O_RDONLY)
        return self._files[name]


@cache
def sweep_at_exit() -> None:
    """Have the groups of processes that were killed removed when this process ends: for one that outlives them."""
    atexit.register(_sweep_all)


def _sweep_all() -> None:
    for parents in _parents(_ROOT, _OWN):
        for folder in set(parents):
            _sweep(folder, _prefix())


def _prefix() -> str:
    """Return what names of groups begin with: other containers see them, and count processes for themselves."""
    try:
        return f"adjudge-{os.stat('/proc/self/ns/pid').st_ino}-"
    except OSError:
        return "adjudge-0-"


def _sweep(folder: Path, prefix: str) -> None:
    """Remove the groups of processes that were killed before they could."""
    with contextlib.suppress(OSError):
        for child in folder.glob(f"{prefix}*"):
            pid = child.name.removeprefix(prefix).partition("-")[0]
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                with contextlib.suppress(OSError):
                    child.rmdir()


def _parents(root: Path, own: Path) -> list[tuple[Path, Path]]:
    """Return the folders in which a group may be made, best first, as (memory, pids)."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    places = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            places[controller] = path.lstrip("/")
    parents = []
    if "memory" in places and "pids" in places:
        parents.append((root / "memory" / places["memory"], root / "pids" / places["pids"]))
        parents.append((root / "memory", root / "pids"))
    if "" in places:
        here = root / places[""]
        for folder in (here, here.parent):
            with contextlib.suppress(OSError):
                granted = (folder / "cgroup.subtree_control").read_text().split()
                if {"memory", "pids"} <= set(granted) and folder.is_relative_to(root):
                    parents.append((folder, folder))
    return parents


def tree_exceeds(pid: int, most: int) -> bool:
    """Return whether a process and its descendants hold more than so many bytes, where no control group counts them.

    A quick look adds up private and shared-memory residency, in which pages that a forked child shares with its parent
    count twice; only when that is too much, the proportional shares are read, which cost about 0.2 ms a process.
    """
    members = tree(pid)
    return all(
        sum(_kilobytes(f"/proc/{member}/{file}", names) for member in members) << 10 > most
        for file, names in (("status", ("RssAnon:", "RssShmem:")), ("smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")))
    )


def tree(pid: int) -> list[int]:
    """Return a process and its descendants, as they are now."""
    members = [pid]
    for member in members:  # it grows as it is read
        path = f"/proc/{member}/task/{member}/children"
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            members += [int(word) for word in file.read().split()]
    return members


def _kilobytes(path: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(names))
    return 0
