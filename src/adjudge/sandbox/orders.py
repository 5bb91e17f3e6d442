"""What the caller of a fork server and the server say to each other: records of one size, answered in order.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: what a run is told;
that goes over the run's own channel.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

READY, MAKE, END = 1, 2, 3
"""The server has started; make a run; kill a run and say how it ended."""

PREPARED = b"+"
"""What a run says on its channel when it has been made apart and waits for its job."""

TAKEN = b"!"
"""What it says when it has its job, before it looks at it: what happens from here on is the job's doing."""

_RECORD = struct.Struct("!BBIiq")
SIZE = _RECORD.size


@dataclass(frozen=True, slots=True)
class Order:
    """An order, and the answer to it.

    Attributes:
        kind: `READY`, `MAKE` or `END`.
        number: of the run; the caller counts them.
        light: of `MAKE`: whether the run is for code that is trusted.
        code: of an answer to `END`: exit status, or minus the signal's number; to `MAKE`: 0, or why there is no run, an
            error number.
        size: of `MAKE`: MiB of files; of an answer to `END`: the most memory that a process of it held, in KiB.
    """

    kind: int
    number: int = 0
    light: bool = False
    code: int = 0
    size: int = 0

    def pack(self) -> bytes:
        """Return it as `SIZE` bytes."""
        return _RECORD.pack(self.kind, self.light, self.number, self.code, self.size)

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        """Return the order that `pack` wrote."""
        kind, light, number, code, size = _RECORD.unpack(data)
        return cls(kind, number, bool(light), code, size)
