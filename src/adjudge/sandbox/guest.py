"""What a run does inside the sandbox, once the fork server has made it: it takes one job from its channel.

The channel's first frame is `(setup, kind, job)`, as a `codec` value, with descriptors beside it.  `setup` has
"memory_mb", "disk_mb", "cpu_seconds", "open_files", "processes" (or None) and "streams", the numbers (0 to 2) that the
first descriptors become; one more descriptor is the socket to a peer.  Jobs are of these kinds:

- `script`: run a source as a main program; the process's streams and exit status speak for it;
- `serve`: load a source as a module and answer calls (`peer`) until the channel ends;
- `tests`: run tests against a candidate that another run serves, and report (`guest_tests`).

The file uses the standard library alone.  Not covered: trust.  A candidate shares the process with the `script` and
`serve` jobs and may say anything through the channel; whoever listens believes no more than that these were its
answers.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import io
import linecache
import os
import random
import resource
import socket
import sys
import threading
import traceback
import types
from typing import Any

from adjudge.sandbox import codec, fork_hooks, frames
from adjudge.sandbox.peer import Peer, serves_everything
from adjudge.sandbox.raised import INNER, places_of

MODULE = "solution"
_SHOWN = 2000
_MAX_DATA = 1 << 16  # bytes of a value, encoded
_CONTAINERS = (list, tuple, set, frozenset, dict)


def prepare() -> None:
    """Do what every job needs done, before there is one."""
    fork_hooks.give()
    random.seed(0)  # the same run twice is the same run
    gc.enable()


def run(channel: socket.socket, held: int) -> int:
    """Take the job and do it; return the process's exit status.  It was born with `held` bytes of the server's."""
    frame, descriptors = frames.receive_first(channel)
    if frame is None:
        return 0
    channel.sendall(frames.TAKEN)
    setup, kind, job = codec.loads(frame, trusted=True)  # the caller has read what is the candidate's
    streams = setup["streams"]
    for target, fd in zip(streams, descriptors, strict=False):
        os.dup2(fd, target)
    for fd in descriptors[: len(streams)]:
        os.close(fd)
    _hold(setup, held)
    sys.setrecursionlimit(job.get("recursion", 1000))
    # a program finds the modules beside it; where tests run, nothing is found because it was written there
    sys.path[:] = [*([] if kind == "tests" else [""]), *(path for path in sys.path if path)]
    if kind == "script":
        return _script(channel, job)
    if kind == "serve":
        return _serve(channel, job)
    from adjudge.sandbox import guest_tests

    return guest_tests.run(channel, socket.socket(fileno=descriptors[len(streams)]), job)


def _hold(setup: dict[str, Any], held: int) -> None:
    """Limit a run, which was born with so many bytes of the server's."""
    for which, value in (
        (resource.RLIMIT_DATA, (setup["memory_mb"] << 20) + held),
        (resource.RLIMIT_FSIZE, setup["disk_mb"] << 20),
        (resource.RLIMIT_NOFILE, setup["open_files"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, setup["cpu_seconds"]),
        (resource.RLIMIT_NPROC, setup["processes"]),
    ):
        if value is None:
            continue
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has not all of them
            resource.setrlimit(which, (bound, bound))


def load(source: str, name: str, filename: str) -> tuple[types.ModuleType, types.CodeType]:
    """Return an empty module and the code that fills it.

    Raises:
        SyntaxError: the source is not a program.
    """
    code = compile(source, filename, "exec", dont_inherit=True)
    module = types.ModuleType(name)
    module.__file__ = filename
    module.__dict__["__builtins__"] = builtins
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    sys.modules[name] = module
    return module, code


def _compiled(channel: socket.socket, job: dict[str, Any], name: str) -> tuple[types.ModuleType, types.CodeType] | None:
    try:
        return load(job["source"], name, job["filename"])
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        frames.send(channel, codec.dumps(("unparsable", f"{type(error).__name__}: {error}"[:_SHOWN])))
        return None


def _script(channel: socket.socket, job: dict[str, Any]) -> int:
    sys.argv = [job["filename"], *job["argv"]]
    compiled = _compiled(channel, job, "__main__")
    if compiled is None:
        return 1
    frames.send(channel, codec.dumps(("started",)))
    channel.close()
    _open_streams()
    module, code = compiled
    status = 0
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        status = _status(error.code)
    except BaseException:  # noqa: BLE001 as the interpreter does
        traceback.print_exc(limit=-10)
        status = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
    except SystemExit as error:
        status = _status(error.code)
    except BaseException:  # noqa: BLE001 as the interpreter does
        status = status or 120
    return status


def _open_streams() -> None:
    """Make the standard streams anew; the server's were made for other descriptors."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(fd, "w" if fd else "r", closefd=False)
        raw.name = f"<{name}>"  # this and the mode are as the interpreter has them
        buffered = io.BufferedWriter(raw) if fd else io.BufferedReader(raw)
        stream: Any = io.TextIOWrapper(buffered, "utf-8", "backslashreplace" if fd == 2 else "surrogateescape")
        stream.mode = "w" if fd else "r"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _serve(channel: socket.socket, job: dict[str, Any]) -> int:
    compiled = _compiled(channel, job, MODULE)
    if compiled is None:
        return 1
    module, code = compiled
    # only the run's first process answers; a fork that came back from the call would race it, and the score with them
    os.register_at_fork(after_in_child=channel.close)
    try:
        exec(code, module.__dict__)
        peer = Peer(channel, serves_everything, trusting=True)
        names = describe(module.__dict__, peer, job["wanted"])
        if "*" in job["wanted"]:
            names.append((INNER, "object", peer.keep(module)))  # whose globals change
        frames.send(channel, codec.dumps(("ready", names), peer.keep))
    except BaseException as error:  # noqa: BLE001 whatever a candidate raises is its own failure
        text = "".join(traceback.format_exception(error, limit=-5))
        frames.send(channel, codec.dumps(("failed", type(error).__name__, text[-_SHOWN:])))
        return 1
    peer.serve()
    return 0


def describe(names: dict[str, Any], peer: Peer, wanted: list[str]) -> list[tuple[str, str, Any]]:
    """Return (name, kind, value) of a module's global names: what the tests can know of them.

    The kinds are "exception", whose value lists the names of its classes, where they are ("module:name") and its
    handle ("Stack::Empty" is one that a class holds), and "object".  Wanted are names, and with "*" all others but
    large data, such as a table of primes; the peer keeps what is not data.
    """
    described: list[tuple[str, str, Any]] = []
    for name, value in list(names.items()):
        asked = name in wanted
        if not (asked or "*" in wanted):
            continue
        if name.startswith("__") or isinstance(value, types.ModuleType):
            continue
        inner = vars(value).items() if isinstance(value, type) else ()
        for path, kind in ((name, value), *((f"{name}{INNER}{word}", kind) for word, kind in inner if word[:1] != "_")):
            if isinstance(kind, type) and issubclass(kind, BaseException):
                words = [*(base.__name__ for base in kind.__mro__[:-1]), *places_of(kind)]
                described.append((path, "exception", [*words, peer.keep(kind)]))
        if isinstance(value, type) and issubclass(value, BaseException):
            continue
        sized: Any = value
        if not asked and type(sized) in _CONTAINERS and len(sized) > _MAX_DATA // 2:
            continue  # an item takes 2 bytes or more; to find that by writing three million would take seconds
        try:
            text = codec.dumps(value, peer.keep)
            if asked or len(text) <= _MAX_DATA:
                described.append((name, "object", codec.loads(text)))
                if asked:
                    peer.share(name, value)
        except (codec.CodecError, TypeError):
            continue
    return described
