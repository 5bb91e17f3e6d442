"""What the operating system can hold a worker process to: no child processes, bounded memory and CPU, no core dump.

Linux on x86-64 and arm64 refuses new processes by a seccomp filter (kernel documentation: Seccomp BPF); threads
stay allowed.  Elsewhere `RLIMIT_NPROC` is the best there is, and it does not bind the superuser.  Memory is held by
`RLIMIT_AS`, which macOS ignores.

Not covered: files and network.  A verifier is trusted code that reads untrusted text; programs written by a model
need a sandbox, not this.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Mapping
from typing import TypeAlias

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_SECCOMP_SET_MODE_FILTER = 1
_SPEC_ALLOW = 4  # without this flag, kernels before 5.16 slow the whole process down against Spectre

_CLONE_THREAD = 0x10000
_X32_BIT = 0x40000000  # x86-64 kernels may offer the same calls under a second set of numbers
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCH_AT, ARGUMENT_0_AT, ARGUMENT_1_AT = 0, 4, 16, 24  # in struct seccomp_data, low halves (little endian)
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

Line: TypeAlias = tuple[int, int, str | None, str | None]
"""An instruction of a filter: code, operand, target if true, target if false; None goes on to the next one."""

# machine: audit number, seccomp, clone, clone3, calls that only ever make processes
_CALLS: dict[str, tuple[int, int, int, int, tuple[int, ...]]] = {
    "x86_64": (0xC000003E, 317, 56, 435, (57, 58)),
    "aarch64": (0xC00000B7, 277, 220, 435, ()),
}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    zero = ctypes.c_ulong(0)
    return bool(_libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero) == 0)


def adopt_orphans() -> bool:
    """Make descendants whose parent died children of this process; False where the platform cannot."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(yes: bool = True) -> bool:
    """Ask the kernel for SIGKILL when the thread that started this process ends; False where it cannot."""
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if yes else 0)


def forbid_processes() -> bool:
    """Refuse this process and its threads any new process, for ever; threads stay allowed.

    Returns:
        True if a filter refuses them.  False if only `RLIMIT_NPROC` could be set.
    """
    calls = _CALLS.get(platform.machine())
    if sys.platform.startswith("linux") and calls is not None:
        arch, seccomp, clone, clone3, always = calls
        if _install(_filter(arch, clone, clone3, always), seccomp):
            return True
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    return False


def _filter(arch: int, clone: int, clone3: int, always: tuple[int, ...]) -> bytes:
    lines: list[Line] = [
        (LOAD, ARCH_AT, None, None),
        (JUMP_EQUAL, arch, None, "refuse"),
        (LOAD, NUMBER_AT, None, None),
        (JUMP_AT_LEAST, _X32_BIT, "refuse", None),
        *((JUMP_EQUAL, number, "refuse", None) for number in always),
        (JUMP_EQUAL, clone3, "absent", None),  # the C library then falls back to clone, whose flags can be read
        (JUMP_EQUAL, clone, None, "allow"),
        (LOAD, ARGUMENT_0_AT, None, None),
        (JUMP_ANY_BIT, _CLONE_THREAD, "allow", "refuse"),
    ]
    answers = {"allow": ALLOW, "refuse": ERRNO | errno.EPERM, "absent": ERRNO | errno.ENOSYS}
    return assembled(lines, {name: [(RETURN, answer, None, None)] for name, answer in answers.items()})


def assembled(lines: list[Line], parts: Mapping[str, list[Line]]) -> bytes:
    """Return a filter as an array of `struct sock_filter`; the parts follow the lines, each a target by its name."""
    where: dict[str, int] = {}
    for name, part in parts.items():
        where[name] = len(lines)
        lines = [*lines, *part]
    program = b""
    for index, (code, operand, yes, no) in enumerate(lines):
        jumps = [0 if target is None else where[target] - index - 1 for target in (yes, no)]
        program += struct.pack("=HBBI", code, *jumps, operand)
    return program


def _install(program: bytes, seccomp: int) -> bool:
    if not _prctl(_PR_SET_NO_NEW_PRIVS, 1):
        return False
    held = ctypes.create_string_buffer(program, len(program))
    head = _Program(len(program) // 8, ctypes.addressof(held))
    libc = _libc()
    if libc.syscall(
        ctypes.c_long(seccomp),
        ctypes.c_long(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_long(_SPEC_ALLOW),
        ctypes.byref(head),
    ):
        return bool(libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(head)) == 0)
    return True


def forbid_core_dumps() -> None:
    """Let a crash leave no core file, and start no core handler: the kernel takes a limit of 1 byte to mean that."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        low = 1 if hard == resource.RLIM_INFINITY or hard >= 1 else 0
        resource.setrlimit(resource.RLIMIT_CORE, (low, low))


def address_space() -> int:
    """Return the bytes of address space this process holds; 0 where the platform does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def limit_memory(total_bytes: int) -> None:
    """Let allocations fail that would take this process beyond so many bytes of address space."""
    _limit(resource.RLIMIT_AS, total_bytes)


def limit_cpu(more_seconds: float) -> None:
    """Let the kernel end this process (SIGXCPU) after so many more seconds of CPU, rounded up."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + more_seconds) + 2)


def _limit(which: int, soft: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def children() -> list[int]:
    """Return the process ids of this process's children, adopted ones too; [] where the platform does not tell."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return _children_by_scan(me)


def _children_by_scan(parent: int) -> list[int]:
    pids = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                pids.append(int(name))
    return pids
