"""Which system calls a sandboxed program may make, as a classic BPF filter for seccomp.

The list is one of refusals: programs in eight languages and their run times must work.  Refused with EPERM is what
reaches into other processes, mounts, namespaces, keys, kernel tuning and modules, tracing, asynchronous rings, and
what a program that only computes has no use for; sockets other than Unix ones are refused as unsupported; `clone3`
and calls newer than this list count as absent, so C libraries fall back to `clone`, whose flags a filter can read.

Source: kernel documentation "Seccomp BPF", `asm/unistd_64.h` and `asm-generic/unistd.h`.  Not covered: arguments in
memory (paths), which a filter cannot read; the mount namespace bounds those.
"""

from __future__ import annotations

import errno
import functools
import platform

from adjudge.runtime.confine import (
    ALLOW,
    ARCH_AT,
    ARGUMENT_0_AT,
    ARGUMENT_1_AT,
    ERRNO,
    JUMP_ANY_BIT,
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    LOAD,
    NUMBER_AT,
    RETURN,
    Line,
    assembled,
)
from adjudge.sandbox.bubblewrap import SandboxUnavailableError

_KILL = 0x80000000
_CLONE_NAMESPACES = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET
_NEWEST = 462  # mseal, Linux 6.10
_AF_UNIX = 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # push characters into a terminal's input
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (number on x86-64, number on arm64); -1 where there is none.  Of the scheduler's: what waits of its own accord
# would not be charged for the time.
_REFUSED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458), "unshare": (272, 97),
    "setns": (308, 268), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "acct": (163, 89), "setpriority": (141, 140), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "vhangup": (153, 58), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "memfd_secret": (447, 447), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "iopl": (172, -1), "ioperm": (173, -1), "modify_ldt": (154, -1), "uselib": (134, -1),
    "ustat": (136, -1), "sysfs": (139, -1), "_sysctl": (156, -1), "create_module": (174, -1),
    "get_kernel_syms": (177, -1), "query_module": (178, -1), "mknodat": (259, 33), "mknod": (133, -1),
    "landlock_restrict_self": (446, 446),
}  # fmt: skip
_CLONE, _CLONE3, _SOCKET, _IOCTL, _PERSONALITY = (56, 220), (435, 435), (41, 198), (16, 29), (135, 92)


@functools.cache
def syscall_filter() -> bytes:
    """Return the filter of this machine as an array of `struct sock_filter`.

    Raises:
        SandboxUnavailableError: there is no list for such a machine.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailableError(
            f"no system call list for the machine {machine!r}; there are x86_64 and aarch64; say isolation='none' for "
            "programs you trust"
        )
    at = list(_ARCHITECTURES).index(machine)
    lines: list[Line] = [
        (LOAD, ARCH_AT, None, None),
        (JUMP_EQUAL, _ARCHITECTURES[machine], None, "kill"),
        (LOAD, NUMBER_AT, None, None),
        (JUMP_AT_LEAST, _NEWEST + 1, "absent", None),  # also the second set of numbers of x86-64 (bit 30)
        (JUMP_EQUAL, _CLONE3[at], "absent", None),
    ]
    lines += [(JUMP_EQUAL, pair[at], "refuse", None) for pair in _REFUSED.values() if pair[at] >= 0]
    lines += [
        (JUMP_EQUAL, _CLONE[at], "clone", None),
        (JUMP_EQUAL, _SOCKET[at], "socket", None),
        (JUMP_EQUAL, _IOCTL[at], "ioctl", None),
        (JUMP_EQUAL, _PERSONALITY[at], "personality", "allow"),
    ]
    parts: dict[str, list[Line]] = {
        "clone": [(LOAD, ARGUMENT_0_AT, None, None), (JUMP_ANY_BIT, _CLONE_NAMESPACES, "refuse", "allow")],
        "socket": [(LOAD, ARGUMENT_0_AT, None, None), (JUMP_EQUAL, _AF_UNIX, "allow", "unsupported")],
        "ioctl": [
            (LOAD, ARGUMENT_1_AT, None, None),
            (JUMP_EQUAL, _TIOCSTI, "refuse", None),
            (JUMP_EQUAL, _TIOCLINUX, "refuse", "allow"),
        ],
        # 0xFFFFFFFF asks for the present one, which Java and C libraries do
        "personality": [
            (LOAD, ARGUMENT_0_AT, None, None),
            (JUMP_EQUAL, 0xFFFFFFFF, "allow", None),
            (JUMP_EQUAL, 0, "allow", "refuse"),
        ],
        "allow": [(RETURN, ALLOW, None, None)],
        "refuse": [(RETURN, ERRNO | errno.EPERM, None, None)],
        "absent": [(RETURN, ERRNO | errno.ENOSYS, None, None)],
        "unsupported": [(RETURN, ERRNO | errno.EAFNOSUPPORT, None, None)],
        "kill": [(RETURN, _KILL, None, None)],
    }
    return assembled(lines, parts)
