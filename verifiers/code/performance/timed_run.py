"""One call of a function in a fresh process, timed from outside.

The process is a fork of a warm Python that has seen no other program.  Our driver in it reads the case, loads the
program, calls the function and writes what it returns as plain data; the clock is ours and stands outside of the
sandbox.  It runs from the moment the job is sent to the moment the process has ended with its answer written, so there
is no time in which a program could work unseen: loading, the call, turning the result into plain data and waiting for
its threads are all inside, and what it started is killed with its namespace before the next run begins.

With `loading=False` the program is loaded first and the case is sent when that is done: only then the clock starts.

Not covered: what the driver itself takes, 2 to 4 ms of every run; it makes every ratio a little more like 1.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import time
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.sandbox import codec, frames
from adjudge.sandbox.bubblewrap import wait_readable
from adjudge.sandbox.capture import Captured, Streams, converse
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.time_limit import TimeLimit
from adjudge.sandbox.warm_python import Flavour, WarmPython, begun, ending_of
from adjudge.verifiers.code.run import ENDINGS

_LOADED: Final = b"\n"
_MAX_ITEMS: Final = 20_000_000
_PLAIN: Final = frozenset({int, float, complex, str, bytes, bool, type(None)})
_DRIVER: Final = r"""
import builtins, marshal, os, sys, types
from adjudge.sandbox import codec

def _case():
    data = b"".join(iter(lambda: os.read(0, 1 << 20), b""))
    return marshal.loads(data[1:]) if data[:1] == b"m" else codec.loads(data[1:])

def _main(source, name, loading):
    answer, null = os.dup(1), os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    module = types.ModuleType("solution")
    module.__dict__["__builtins__"] = builtins
    sys.modules["solution"] = module
    try:
        case = _case() if loading else None
        exec(compile(source, "solution.py", "exec", dont_inherit=True), module.__dict__)
        if case is None:
            os.write(answer, b"\n")
            case = _case()
        if not callable(module.__dict__.get(name)):
            told = codec.dumps(("absent",))
        else:
            value = module.__dict__[name](*case[0], **case[1])
            try:
                told = codec.dumps(("done", value))
            except codec.CodecError as error:
                told = codec.dumps(("shapeless", str(error)[:500]))
    except BaseException as error:
        told = codec.dumps(("raised", type(error).__name__, str(error)[:500]))
    told = memoryview(told)
    while told:
        told = told[os.write(answer, told):]

"""


@dataclass(frozen=True, slots=True)
class Callee:
    """A program and the function in it that is called."""

    source: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What came of a call.

    Attributes:
        waited: of these, the seconds in which the machine gave it no processor.
    """

    value: Any = None
    seconds: float = 0.0
    waited: float = 0.0
    reason: str = ""
    detail: str = ""


def packed(args: Any, kwargs: Any) -> bytes:
    """Return a case as the driver reads it.

    Raises:
        CodecError: it is not plain data.
    """
    case = ([*args], {**kwargs})
    if _simple(case):
        with contextlib.suppress(ValueError):  # nested too deeply, as the codec will say
            return b"m" + marshal.dumps(case)  # ten times as fast to read as the codec, and only ours to write
    return b"c" + codec.dumps(case)


def _simple(value: Any) -> bool:
    """Return whether `marshal` keeps a value as it is; of an array or a bytearray it silently makes bytes."""
    left = [value]
    for _ in range(_MAX_ITEMS):  # what contains itself has no end
        if not left:
            return True
        item = left.pop()
        if type(item) is dict:
            left += [*item, *item.values()]
        elif type(item) in (list, tuple, set, frozenset):
            left += item
        elif type(item) not in _PLAIN:
            return False
    return False


def timed_call(
    warm: WarmPython, callee: Callee, case: bytes, limits: RunLimits, flavour: Flavour, *, loading: bool = True
) -> Timed:
    """Call a function in a process of its own.

    The case is one of `packed`; where `loading` is false, the time to load the program does not count.

    Raises:
        SandboxUnavailableError: there is no sandbox.
        OverloadedError: the machine let it wait for too long.
        ZygoteLostError: the sandbox was lost during the run.
        CodecError: the program is too long to be sent.
    """
    source = f"{_DRIVER}_main({callee.source!r}, {callee.name!r}, {loading!r})\n"
    with warm.lock, contextlib.ExitStack() as held:
        run = held.enter_context(warm.zygote("candidate", flavour).run(limits))
        started = time.monotonic()
        limit = TimeLimit(limits.seconds, [run.pid])
        stdin, stdout, stderr = begun(run, {"source": source, "filename": "driver.py", "argv": []}, held)
        with contextlib.suppress(frames.FrameError):
            frames.receive(run.channel, limit.left)  # our driver can be parsed; nothing to learn
        got = None if loading else _loaded(stdout, run.ended, limit)
        if got is not None:
            os.close(stdin)
        else:
            started = started if loading else time.monotonic()
            streams = Streams(stdin, stdout, stderr, run.ended)
            got = converse(streams, case, limit, limits.output_bytes, run.over_memory)
        seconds = time.monotonic() - started
        limit.look()
        ending, code = ending_of(got, run.end())
    if ending != "exited" or code != 0:
        detail = f"the process ended with {ending}{'' if code is None else f' {code}'}"
        return Timed(seconds=seconds, reason=ENDINGS.get(ending, "candidate_error"), detail=detail)
    return replace(_told(bytes(got.stdout), seconds), waited=limit.waited)


def _loaded(stdout: int, ended: int, limit: TimeLimit) -> Captured | None:
    """Wait until the program is loaded; return what it wrote where it never was."""
    while not wait_readable(stdout, max(0.0, min(0.05, left := limit.left()))):
        if wait_readable(ended, 0.0):
            return Captured()
        if left <= 0:
            return Captured(excess="timeout")
    said = os.read(stdout, 1)
    return None if said == _LOADED else Captured(stdout=bytearray(said + os.read(stdout, 1 << 16)))


def _told(text: bytes, seconds: float) -> Timed:
    """Return what the driver says; what it does not say is what the program wrote in its place."""
    if not text:
        return Timed(seconds=seconds, reason="candidate_error", detail="the process ended before it gave an answer")
    try:
        answer = codec.loads(text)
    except codec.CodecError as error:
        return Timed(seconds=seconds, reason="tampering", detail=f"no well-formed answer: {error}")
    match answer:
        case ("done", value):
            return Timed(value=value, seconds=seconds)
        case ("absent",):
            return Timed(seconds=seconds, reason="no_answer", detail="it does not define the function")
        case ("shapeless", str(why)):
            return Timed(seconds=seconds, reason="unparsable_answer", detail=why)
        case ("raised", "MemoryError", str(why)):
            return Timed(seconds=seconds, reason="candidate_memory", detail=why)
        case ("raised", str(kind), str(why)):
            return Timed(seconds=seconds, reason="candidate_error", detail=f"{kind}: {why}")
        case _:
            return Timed(seconds=seconds, reason="tampering", detail="not an answer that our driver gives")
