"""What a tree of processes holds in memory, for hosts that grant no control group.

A quick look adds up private and shared-memory residency (`RssAnon` and `RssShmem` of `/proc/<pid>/status`), in which
pages that a forked child shares with its parent count twice; only when that is too much, the proportional shares of
`smaps_rollup` are read, which cost about 0.2 ms a process.

Not covered: what grows and shrinks between two looks, and kernel memory.  `RLIMIT_DATA` bounds each process besides.
"""

from __future__ import annotations

import contextlib


def exceeds(pid: int, most: int) -> bool:
    """Return whether a process and its descendants hold more than so many bytes."""
    members = tree(pid)
    if sum(_kilobytes(f"/proc/{member}/status", ("RssAnon:", "RssShmem:")) for member in members) << 10 <= most:
        return False
    return (
        sum(_kilobytes(f"/proc/{member}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for member in members) << 10 > most
    )


def tree(pid: int) -> list[int]:
    """Return a process and its descendants, as they are now."""
    found = []
    todo = [pid]
    while todo:
        member = todo.pop()
        found.append(member)
        path = f"/proc/{member}/task/{member}/children"
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            todo += [int(word) for word in file.read().split()]
    return found


def _kilobytes(path: str, names: tuple[str, ...]) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        total = sum(int(line.split()[1]) for line in file if line.startswith(names))
    return total
