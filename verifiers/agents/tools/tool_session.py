"""A task's own tools in the sandbox of the code verifier, called one after another with data.

The tools are Python functions of the reference.  What a response calls can be nothing but one of these, and its
arguments cross over as values, never as source.  One session keeps its state from call to call, across turns.

Not covered: tools in other languages, classes as tools, and tools that need files or the network.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from adjudge.responses.trajectories.trajectory import Call
from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import Peer, PeerLostError, Raised, serves_nothing
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Isolation
from adjudge.sandbox.warm_python import flavour_of, shared
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.outcome import shorten
from adjudge.verifiers.code.python_candidate import Candidate, NotLoadedError
from adjudge.verifiers.code.sandboxed import tried_twice

_STATE: Final = "adjudge_final_state"
_PROCESSES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """A program that defines tools and how to read their state, and the functions that may be called.

    `kinds` has the types of (tool, parameter) of which the source says that they are data.
    """

    source: str
    names: tuple[str, ...]
    has_state: bool
    kinds: Mapping[tuple[str, str], frozenset[type]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What a session may use: seconds for each call and for all of them, and MiB of memory."""

    seconds: float
    total_seconds: float
    memory_mb: int
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class Returned:
    """What one call gave: a value (see `is_data`), or the exception of the tool, or why it was not called."""

    value: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of all calls: results, fewer than calls if the session was `lost` (a reason), and the final state."""

    results: tuple[Returned, ...]
    state: Any = None
    lost: str = ""


def make_toolbox(source: str, setup: str, state: str) -> Toolbox:
    """Return the public functions that a Python source defines at its top level.

    `setup` runs after it, once for each session; `state` is an expression whose value is the state, "" for none.
    """
    tree = _parsed(source, "tools_source")
    _parsed(setup, "setup")
    if state:
        _parsed(state.strip(), "state", "eval")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    names = tuple(dict.fromkeys(node.name for node in functions))
    if not names:
        raise ReferenceFormError('"tools_source" defines no function whose name begins without "_"')
    if _STATE in names:
        raise ReferenceFormError(f"{_STATE} is a name that the verifier uses; rename that tool")
    look = f"def {_STATE}():\n    return (\n{state}\n    )\n" if state else ""
    kinds = {(node.name, name): kind for node in functions for name, kind in _kinds_of(node.args) if kind}
    return Toolbox(source=f"{source}\n\n{setup}\n\n{look}", names=names, has_state=bool(state), kinds=kinds)


_KINDS: Final = {kind.__name__: kind for kind in (str, int, float, bool, list, dict)}


def _kinds_of(arguments: ast.arguments) -> Iterator[tuple[str, frozenset[type]]]:
    """The parameters of a function, with the types that their annotations name, or else their defaults have."""
    named = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(named) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
    for one, default in zip([*named, *arguments.kwonlyargs], defaults, strict=True):
        value = default.value if isinstance(default, ast.Constant) else None
        yield one.arg, _kinds(one.annotation) or frozenset({type(value)} & {*_KINDS.values()})


def _kinds(annotation: ast.expr | None) -> frozenset[type]:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return frozenset({_KINDS[name.lower()]} if name.lower() in _KINDS else ())
        case ast.Constant(value=None):
            return frozenset({type(None)})
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _kinds(left) | _kinds(right)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Literal":
                return frozenset(type(part.value) for part in parts if isinstance(part, ast.Constant))
            if name in ("Optional", "Union", "Annotated"):
                return frozenset[type]().union(*map(_kinds, parts), {type(None)} if name == "Optional" else ())
            return _kinds(annotation.value)
    return frozenset()


def _parsed(source: str, what: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    try:
        return ast.parse(source, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ReferenceFormError(f'"{what}" is not Python: {error}') from error


def play(toolbox: Toolbox, calls: Sequence[Call], limits: SessionLimits) -> Played:
    """Return what calls give, in order, in a fresh session; `BadReferenceError` if the tools or their state fail."""

    def broken(error: str) -> Played:
        if not calls:
            raise BadReferenceError(f"the tools break the sandbox: {error}")
        play(toolbox, (), limits)  # raises where the tools break it without any call
        return Played((), lost="candidate_crash")

    with shared(limits.isolation).lock:
        return tried_twice(limits.isolation, lambda: _play(toolbox, calls, limits), broken)


def _play(toolbox: Toolbox, calls: Sequence[Call], limits: SessionLimits) -> Played:
    warm = shared(limits.isolation)
    wanted = [*toolbox.names, *([_STATE] if toolbox.has_state else [])]
    run = RunLimits(seconds=limits.seconds, memory_mb=limits.memory_mb, processes=_PROCESSES)
    try:
        with Candidate(warm, toolbox.source, run, flavour_of(toolbox.source), wanted) as loaded:
            return _Session(loaded, toolbox, limits).played(calls)
    except NotLoadedError as error:
        raise BadReferenceError(f"the tools do not load: {error}") from error


class _LostError(Exception):
    """The session's process is gone; the argument says why, a code of `adjudge.reasons`."""


class _Session:
    def __init__(self, loaded: Candidate, toolbox: Toolbox, limits: SessionLimits) -> None:
        self._loaded = loaded
        self._toolbox = toolbox
        self._limits = limits
        self._peer = Peer(loaded.run.channel, serves_nothing, lifts=False)

    def played(self, calls: Sequence[Call]) -> Played:
        """Make the calls, and read the state before and after."""
        results: list[Returned] = []
        for name in self._toolbox.names:
            self._handle(name)
        if self._toolbox.has_state:
            try:
                before = self._ask(_STATE, {})
            except _LostError as error:
                raise BadReferenceError(f"reading the state loses the tools: {error}") from error
            if isinstance(before, Raised):
                raise BadReferenceError(f'"state" raises {_said(before)}')
            if not is_data(before):
                raise BadReferenceError(
                    f'"state" is {shorten(before, 60)}, which stands for an object; give an expression of plain data'
                )
        try:
            for call in calls:
                results.append(self._returned(call))  # noqa: PERF401 what came before a loss is kept
            state = self._ask(_STATE, {}) if self._toolbox.has_state else None
        except _LostError as error:
            return Played(tuple(results), lost=str(error))
        if isinstance(state, Raised):
            return Played(tuple(results), lost="candidate_error")
        return Played(tuple(results), state)

    def _returned(self, call: Call) -> Returned:
        if call.fault:
            return Returned(error=call.fault)
        if call.name not in self._toolbox.names:
            return Returned(error="there is no such tool")
        answer = self._ask(call.name, call.arguments)
        return Returned(error=_said(answer)) if isinstance(answer, Raised) else Returned(answer)

    def _ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        handle = self._handle(name)
        self._loaded.limit.restart(self._limits.seconds, within=self._limits.total_seconds)
        self._peer.deadline = self._loaded.limit.left
        try:
            return self._peer.exchange("call", handle, (), dict(arguments))
        except frames.FrameTimeoutError:
            raise _LostError(self._loaded.fate("candidate_timeout")) from None
        except PeerLostError:
            raise _LostError(self._loaded.fate("candidate_error")) from None

    def _handle(self, name: str) -> codec.Handle:
        handle = self._loaded.names.get(name, ("", None))[1]
        if type(handle) is not codec.Handle:
            raise BadReferenceError(f"{name!r} is not a function once the tools are loaded")
        return handle


def is_data(value: Any) -> bool:
    """Return whether what came back is data throughout; a `codec.Handle` stands for an object that is none."""
    kind = type(value)
    if kind is dict:
        return all(is_data(key) and is_data(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_data, value))
    return kind is not codec.Handle


def _said(raised: Raised) -> str:
    return f"{raised.names[0] if raised.names else 'an exception'}: {raised.text}"[:200]
