"""What a fork server does over and over before it serves, so that its runs need not.

A Python adapts to what it does: it looks up methods once and remembers where they are, rewrites instructions for the
types they meet, interns names, binds functions of shared libraries.  Done in a run, each of these writes to a page
that the run shared with the server until then, and a page costs a run 3 microseconds; a run touches 600 of them
without a rehearsal.  The rehearsal does what runs do, with a program of ours, and leaves nothing behind: no
module, no file, no descriptor, no thread.

The file uses the standard library alone.  Not covered: namespaces and limits, which the server must not have.
"""

from __future__ import annotations

import linecache
import socket
import sys
from typing import Any

from adjudge.sandbox import codec, frames, guest, guest_tests
from adjudge.sandbox.peer import Peer, serves_everything

_ROUNDS = 24  # an instruction is rewritten after at most 8 rounds, and one that cannot be is left alone after 16 more
_NAME = "rehearsed program"
_SOURCE = """
def solve(items, most=3):
    positive = sorted({item for item in items if item > 0})
    return positive[:most]
"""
_TESTS = """
def check(candidate):
    assert candidate([3, -1, 2]) == [2, 3]
"""
_SETUP = {"memory_mb": 1024, "disk_mb": 64, "cpu_seconds": 322, "open_files": 256, "processes": 72, "streams": []}
_SERVE = codec.dumps((_SETUP, "serve", {"source": _SOURCE, "filename": _NAME, "wanted": ["solve"]}))
_CALL = codec.dumps(("do", 1, "call", codec.Handle(-1, "function"), ([3, -1, 2],), {}))
_ANSWER = codec.dumps(("done", 1, [2, 3], {}))
_TEST = codec.dumps(
    (
        _SETUP,
        "tests",
        {
            "style": "humaneval", "setup": "", "tests": [_TESTS], "take": ["solve"], "imports": {}, "start": 0,
            "names": [("solve", "object", codec.Handle(-1, "function"))], "entry_point": "solve", "named": ["solve"],
            "module": _NAME, "own": [], "classes": {},
        },
    )
)  # fmt: skip


def rehearse() -> None:
    """Do what runs do, until this Python has adapted to it."""
    for _ in range(_ROUNDS):
        for run in (_serve_a_candidate, _test_a_candidate):
            near, far = socket.socketpair()
            with near, far:
                run(near, far)


def _job(near: socket.socket, far: socket.socket, order: bytes) -> dict[str, Any]:
    frames.send(near, order)
    frame, _ = frames.receive_first(far)
    assert frame is not None
    _, _, job = codec.loads(frame, trusted=True)
    taken: dict[str, Any] = job
    return taken


def _serve_a_candidate(near: socket.socket, far: socket.socket) -> None:
    job = _job(near, far, _SERVE)
    module, code = guest.load(job["source"], _NAME, job["filename"])
    exec(code, module.__dict__)
    peer = Peer(far, serves_everything, trusting=True)
    frames.send(far, codec.dumps(("ready", guest.describe(module.__dict__, peer, job["wanted"])), peer.keep))
    frames.send(near, _CALL)
    near.shutdown(socket.SHUT_WR)
    peer.serve()
    del sys.modules[_NAME], linecache.cache[_NAME]


def _test_a_candidate(near: socket.socket, far: socket.socket) -> None:
    job = _job(near, far, _TEST)
    frames.send(near, _ANSWER)
    guest_tests.run(far, far, job)
