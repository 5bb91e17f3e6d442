"""Calls between the process that runs the tests and the process that runs the candidate, as plain data.

Each side asks for operations on objects that the other let it have: the tests use the candidate's functions and
instances; the candidate uses what a test passed it, as far as `served` lists it.  Values cross by copy (`codec`);
objects stay home and are known by number, and lists, sets, dictionaries and arrays that both ends hold are one and the
same for both (`aliases`).  **An operation is done on an object that
the other end was given, never on data that it sends.**

What the tests rely on: **no value of theirs reaches the candidate except as an argument, an index or an attribute name
of an operation they ask for, or in a list or the like that the candidate has, too, and no comparison of theirs is
decided by the candidate** unless both sides of it are the candidate's objects, or the tests' text uses that operator on
what they make of the object's class (`remote`).  Else `==` with plain data is False, and arithmetic or ordering with it
raises `TypeError`.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: asynchronous
callables.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from adjudge.sandbox import codec, frames, served
from adjudge.sandbox.aliases import MAX_TOLD, SHARED, Aliases
from adjudge.sandbox.operations import COMPARING, READING, perform
from adjudge.sandbox.raised import Exceptions, home_of, is_told, parts_of, told_in
from adjudge.sandbox.raised import Raised as Raised
from adjudge.sandbox.remote import (
    Notes,
    Remote,
    class_of,
    forget,
    handle_of,
    is_remote,
    remote_of,
)

_MAX_OBJECTS = 1_000_000
_BY_NAME = 0  # the number of a handle that stands for what both ends have, such as `math.sqrt`
_MAX_HOMES = 1000  # of a program's own exceptions that were raised and can be asked; each keeps its frames alive
_MAX_THROWN = 10_000  # exceptions that keep their identity on their way through the other end
_PER_CALL, _PER_BYTE = 5e-4, 5e-7  # seconds to get across and back: twice what a quiet machine takes
_MUCH = 0.25
_CONTAINERS = (list, tuple, set, frozenset, deque)
_NESTED = (*_CONTAINERS, dict)


class PeerLostError(Exception):
    """The other process is gone, or talks nonsense."""


class Peer:
    """One end of the connection.

    Args:
        connection: a connected stream socket.
        serves: returns whether the other end may do an operation on an object of ours, with these arguments.
        own: returns whether a module, by name, is of the tests' own; the other end takes its own for what is of other
            modules.  None sends no such names.
        named: names of the classes whose instances may be compared and combined with each other.
        trusting: for the end of a candidate, which has nothing to hide: objects of the other end are asked for
            everything, and names of modules and functions are looked up.
        lifts: whether objects of the other end become a `Remote`, which asks it for what is done with them, even to be
            shown or told true from false.  Without, they stay the `codec.Handle` that stands for them, which does
            nothing: for an end that must not be led anywhere.
    """

    def __init__(
        self,
        connection: socket.socket,
        serves: Callable[[str, Any, Sequence[Any]], bool],
        own: Callable[[object], bool] | None = None,
        named: frozenset[str] = frozenset(),
        trusting: bool = False,
        lifts: bool = True,
    ) -> None:
        self._connection = connection
        self._serves = serves
        self._own = own
        self.named = named
        self.trusting = trusting
        self._sign = -1 if trusting else 1  # handles of one end are positive, those of the other negative
        self._lifts = lifts
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._by_name: dict[str, Any] = {}
        self._remotes: dict[int, Any] = {}
        self._here: dict[int, codec.Handle] = {}  # of the other end's exceptions that are like ours, by identity
        self._homes = self._calls = 0
        self._lock = threading.RLock()  # a candidate may call what it was given from several threads
        self._turn = threading.Condition(self._lock)
        self._serving = 0  # operations of ours that are going on; the other end listens while there are any
        self._thrown: dict[int, BaseException] = {}
        self._came: dict[int, int] = {}  # the other end's numbers of `raised`, by identity
        self._types: dict[str, Any] = {}
        self._kinds: dict[int, list[str]] = {}
        self.uses: dict[str, frozenset[str]] = {}
        self.aliases = Aliases(self._sign, lambda value: codec.dumps(value, self.keep))
        self.notes = Notes()
        self.exceptions = Exceptions(own)
        self.received = 0
        self.raised: list[BaseException] = []  # what the other end's code raised
        self.deadline: frames.Deadline = None
        self.crossing: Callable[[float], None] | None = None  # told before the first request, then now and then
        self._crossing = 0.0  # seconds that it may have taken since to get across, which are not the other end's doing

    def keep(self, value: object, told: bool = True) -> codec.Handle:
        """Return the handle of an object that is not data; the other end's objects go home under their own number."""
        if (home := self._here.get(id(value)) or home_of(value)) or is_remote(value):
            return home or handle_of(value)
        if text := self._global_name(value):
            return codec.Handle(_BY_NAME, text)
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._objects) >= _MAX_OBJECTS:
                raise codec.CodecError("too many objects cross over")
            number = self._sign * (len(self._objects) + 1)
            self._objects[number] = value
            self._numbers[id(value)] = number
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        if told and self.trusting and isinstance(value, BaseException) and is_told(value):
            return codec.Handle(number, kind, parts=self.described(value))
        return codec.Handle(number, kind)

    def _home(self, error: BaseException) -> int:
        """Return our number of an exception of the program's own; 0 for any other."""
        new = id(error) not in self._numbers
        if type(error).__module__ != codec.OWN or (new and self._homes == _MAX_HOMES):
            return 0
        self._homes += new
        return self.keep(error, told=False).number

    def _global_name(self, value: Any) -> str:
        """Return the name by which both ends have an object, or ""."""
        if self.trusting:
            return next((text for text, known in self._by_name.items() if known is value), "")
        if self._own is None:
            return ""
        if text := served.global_name(value, self._own):
            self._by_name[text] = value
        return text

    def renew(self) -> None:
        """Note that another test begins."""
        self.aliases.renew()

    def settle(self) -> None:
        """Have containers be what they became in a comparison; not in what the other end calls, during one."""
        if not self._serving:
            self.aliases.settle()

    def share(self, name: str, value: Any) -> None:
        """Follow a global of the program's, which both ends know by its name."""
        self.aliases.share(name, value)

    def stand_in(self, handle: codec.Handle, module: str, uses: frozenset[str] | None) -> Any:
        """Return the stand-in for what a module of the other end defines.

        For a class of the task's, `uses` is what the tests use on its instances (`remote`); None for anything else.
        """
        if uses is not None and handle.number not in self._remotes:
            self._remotes[handle.number] = self._types[handle.kind] = class_of(self, handle, module)
            self.uses[handle.kind] = uses
        return self._lifted(handle)

    def is_here(self, handle: codec.Handle, value: Any) -> Any:
        """Note and return what is here for an exception of the other end's, or for a class of them."""
        known = self._remotes.setdefault(handle.number, value)
        self._here[id(known)] = handle
        return known

    def used(self, remote: Remote) -> frozenset[str]:
        """Return what the tests use on instances of an object's class."""
        kinds = self._kinds_of(remote) if self.uses else ()
        return next((self.uses[kind] for kind in kinds if kind in self.uses), frozenset())

    def is_of_task(self, remote: Remote) -> bool:
        """Return whether the tests' text shows that an object's class is one that they are about."""
        return any(kind in self.uses for kind in self._kinds_of(remote))

    def is_named(self, remote: Remote) -> bool:
        """Return whether the tests name an object's class, or one above it."""
        return any(kind in self.named for kind in self._kinds_of(remote))

    def _kinds_of(self, remote: Remote) -> Sequence[str]:
        handle = handle_of(remote)
        if handle.kind in self.named:
            return (handle.kind,)
        if handle.number not in self._kinds:
            kinds = self.exchange("kinds", handle, (), {})
            self._kinds[handle.number] = kinds if type(kinds) is list else []
        return [kind for kind in self._kinds[handle.number] if type(kind) is str]

    def request(self, operation: str, target: Any, *arguments: Any, keywords: dict[str, Any] | None = None) -> Any:
        """Have the other end do something and return its result.

        Raises:
            PeerLostError: it is gone or broke the protocol.
            Exception: what its code raised, as the nearest built-in exception; for StopIteration see `exception`.
        """
        answer = self.exchange(operation, target, arguments, keywords or {})
        if isinstance(answer, Raised):
            raise self.exception(answer, operation)
        return answer

    def exchange(self, operation: str, target: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Have the other end do something and return its result, or a `Raised` that says what its code raised.

        Raises:
            PeerLostError: it is gone or broke the protocol.
            FrameTimeoutError: it did not answer before `deadline`.
            CodecError: an argument is not plain data.
        """
        with self._lock:
            while self.trusting and not self._serving:  # a thread that goes on between what the tests ask
                self._turn.wait()
            if operation not in READING:
                self.notes.views.clear()
            return self._exchange(operation, target, arguments, keywords)

    def _exchange(self, operation: str, target: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        if self.crossing is not None and (not self._calls or self._crossing >= _MUCH):
            self.crossing(self._crossing)
            self._crossing = 0.0
        self._calls += 1
        self._crossing += _PER_CALL
        call = self._calls
        notes = None
        if self._lifts:
            packed, notes = self.aliases.pack([*arguments, *keywords.values()])
            arguments, keywords = packed[: len(arguments)], dict(zip(keywords, packed[len(arguments) :], strict=True))
        try:
            self._send(("do", call, operation, target, tuple(arguments), keywords, notes))
        except codec.CodecError:
            if notes is not None:
                self.aliases.untold(notes)
            raise
        while True:
            message = self._receive()
            if message[0] == "do":
                self._serve(message)
            elif message[:2] == ("done", call):
                (value,) = self._taken([message[2]], message[3], later=operation in COMPARING)
                return value
            elif message[:2] == ("raised", call):
                _, _, names, text, values, number, more, notes = message
                self._taken([], notes, later=operation in COMPARING)
                names = tuple(map(str, _checked(names, list)))
                return Raised(names, str(text), values, _checked(number, int), _checked(more, dict))
            else:
                raise PeerLostError("an answer to a question that nobody asked")

    def _taken(self, values: Sequence[Any], notes: Any, *, later: bool = False) -> list[Any]:
        """Return received values as objects, once the containers are as the other end says; see `Aliases.take`."""
        if notes is None or not self._lifts:
            return [self._lifted(value) for value in values]
        if len(_checked(notes, tuple)) != 2:
            raise PeerLostError("notes that are none")
        table, gone = _checked(notes[0], dict), _checked(notes[1], list)
        if max(len(table), len(gone)) > MAX_TOLD:
            raise PeerLostError(f"more than {MAX_TOLD} containers")
        self.aliases.busy += 1
        try:
            self.aliases.take(table, self._lifted, later=later and not self.trusting)
            lifted = [self._lifted(value) for value in values]
        except codec.CodecError as error:
            raise PeerLostError(str(error)) from None
        finally:
            self.aliases.busy -= 1
        self.aliases.drop([number for number in gone if type(number) is int])
        return lifted

    def serve(self) -> None:
        """Do what the other end asks until it closes the connection."""
        while (frame := frames.receive(self._connection)) is not None:
            message = codec.loads(frame, trusted=self.trusting)
            if type(message) is not tuple or message[0] != "do":
                break
            self._serve(message)
        self._turns(1)  # threads that wait for one learn that there is nobody any more

    def _turns(self, more: int) -> None:
        with self._lock:
            self._serving += more
            self._turn.notify_all()

    def _serve(self, message: tuple[Any, ...]) -> None:
        _, call, *_, notes = message
        self._turns(1)
        try:
            answer, values = self._performed(message)
        except BaseException:
            self._turns(-1)
            raise
        with self._lock:  # so that no thread asks something when the other end listens no longer
            self._serving -= 1
            try:
                if notes is not None:
                    values, notes = self.aliases.pack(values, answering=True)
                self._send((answer[0], call, *(answer[1:] or values), notes))
            except BaseException as error:
                if isinstance(error, frames.FrameError | PeerLostError):
                    raise
                self._send(("raised", call, *self.described(error), None))

    def _performed(self, message: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """Do something, and return ("done",) and its result, or ("raised", ...) and nothing."""
        _, _, operation, target, arguments, keywords, notes = message
        try:
            values = self._taken([*arguments, *keywords.values()], notes)
            if type(target) is not codec.Handle or target.number not in self._objects:
                raise TypeError("an operation on what is not an object of this end")
            thing = self._objects[target.number]
            if not self._serves(operation, thing, arguments):
                kind = AttributeError if operation == "getattr" else TypeError  # which `hasattr` expects
                raise kind(f"{operation} is not allowed here")
            named = dict(zip(keywords, values[len(arguments) :], strict=True))
            return ("done",), [self._perform(operation, thing, values[: len(arguments)], named)]
        except BaseException as error:
            if isinstance(error, frames.FrameError | PeerLostError):
                raise
            return ("raised", *self.described(error)), []

    def _perform(self, operation: str, thing: Any, values: list[Any], keywords: dict[str, Any]) -> Any:
        if operation == "exit":
            error = self.exception(Raised(*values), operation) if values else None
            return bool(thing.__exit__(error and type(error), error, None))
        return perform(operation, thing, values, keywords)

    def _lifted(self, value: Any) -> Any:
        """Return a received value with handles replaced by the objects they stand for."""
        kind = type(value)
        if not self._lifts:
            return value
        if kind is codec.Handle:
            if value.kind == SHARED:
                if (held := self.aliases.get(value)) is None:
                    raise PeerLostError("a container that is none")
                return held
            if value.number == _BY_NAME:
                return self._global(value)
            if value.number in self._objects:
                return self._objects[value.number]
            return self._remote(value)
        if not (kind in _CONTAINERS or isinstance(value, tuple | dict)) or not _holds_handle(value):
            return value
        if isinstance(value, dict):
            pairs = [(self._lifted(key), self._lifted(item)) for key, item in value.items()]
            value.clear()
            value.update(pairs)
            if isinstance(value, defaultdict):
                value.default_factory = self._lifted(value.default_factory)
            return value
        items = map(self._lifted, value)
        if isinstance(value, deque):
            return deque(items, value.maxlen)
        whole: Any = value
        return kind(items) if kind in _CONTAINERS else whole._make(items)

    def _remote(self, handle: codec.Handle) -> Any:
        """Return the stand-in for an object: the same for the same one."""
        remote = self._remotes.get(handle.number)
        if remote is None and (raised := told_in(handle)):
            return self.is_here(handle, self._thrown.get(-raised.number) or self.exceptions.make(raised, self._lifted))
        if remote is None:
            kind = Remote if self.trusting else self._types.get(handle.kind, Remote)
            remote = self._remotes[handle.number] = remote_of(self, handle, kind)
        forget(remote)
        return remote

    def _global(self, handle: codec.Handle) -> Any:
        if handle.kind not in self._by_name and self.trusting:
            value = served.global_value(handle.kind)
            if value is not None:
                self._by_name[handle.kind] = value
        known = self._by_name.get(handle.kind)
        return Remote(self, handle) if known is None else known

    def exception(self, raised: Raised, operation: str) -> BaseException:
        """Return the nearest exception of ours.

        Only `next` may say that there is nothing more: `map` and `iter` take a StopIteration of what they call for
        their own end, and `for got, want in zip(map(f, xs), ys)` would then compare nothing.
        """
        ours = self._objects.get(raised.number) if self.trusting else self._thrown.get(-raised.number)
        error = ours if isinstance(ours, BaseException) else self.exceptions.make(raised, self._lifted)
        if home := home_of(error):
            self._remotes.setdefault(home.number, error)
        if operation != "next" and error is not ours and isinstance(error, StopIteration | StopAsyncIteration):
            error = RuntimeError(f"raised {type(error).__name__}")  # as Python does in generators (PEP 479)
        self.raised.append(error)
        if raised.number > 0:
            self._came[id(error)] = -raised.number
        return error

    def made(self, handle: codec.Handle, values: Sequence[Any], named: dict[str, Any]) -> BaseException | None:
        """Return an exception as the other end's class makes it, or what went wrong there."""
        answer = self.exchange("throw", handle, values, named)
        return self.exception(answer, "throw") if isinstance(answer, Raised) else None

    def described(self, error: BaseException) -> tuple[Any, ...]:
        """Return what a `Raised` needs: class names, text, arguments if they are plain data, a number, and more.

        What an assertion of the tests says stays with them.
        """
        names, text, values, more = parts_of(error, self.trusting, self._home)
        if not self.trusting and (isinstance(error, AssertionError) or not isinstance(error, Exception)):
            text, values = "", ()
        number = home.number if (home := home_of(error)) else self._came.get(id(error), 0)
        if not number and not self.trusting and len(self._thrown) < _MAX_THROWN:
            number = len(self._thrown) + 1
            self._thrown[number] = error
        return names, text, values, number, more

    def _send(self, message: tuple[Any, ...]) -> None:
        frame = codec.dumps(message, self.keep)
        self._crossing += _PER_BYTE * len(frame)
        try:
            frames.send(self._connection, frame, self.deadline)
        except frames.FrameTimeoutError:
            raise
        except frames.FrameError as error:
            raise PeerLostError(str(error)) from None

    def _is_late(self) -> bool:
        if self.deadline is None:
            return False
        return (self.deadline() if callable(self.deadline) else self.deadline - time.monotonic()) <= 0

    def _receive(self) -> tuple[Any, ...]:
        try:
            frame = frames.receive(self._connection, self.deadline)
            self._crossing += _PER_BYTE * len(frame or b"")
            self.received += frame is not None  # before it is read: what comes of that is the other end's doing
            message = frame and codec.loads(frame, self._lifts, self.trusting, self.uses if self._lifts else None)
            if self._is_late():  # to read it takes time, too
                raise frames.FrameTimeoutError("an answer that took too long to read")
        except frames.FrameTimeoutError:
            raise
        except (frames.FrameError, codec.CodecError) as error:
            if isinstance(error, codec.SlowError) and self.deadline is not None:
                raise frames.FrameTimeoutError(str(error)) from None
            raise PeerLostError(str(error)) from None
        if message is None:
            raise PeerLostError("the other process has ended")
        lengths = {"do": 7, "done": 4, "raised": 8}
        if type(message) is not tuple or not message or lengths.get(str(message[0])) != len(message):
            raise PeerLostError("a message that is none")
        return message


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise PeerLostError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _holds_handle(value: Any) -> bool:
    items = (*value, *value.values(), getattr(value, "default_factory", None)) if isinstance(value, dict) else value
    return any(type(item) is codec.Handle or isinstance(item, _NESTED) for item in items)


def serves_everything(operation: str, thing: Any, arguments: Sequence[Any]) -> bool:
    """Say yes: the candidate's side has nothing to hide from the tests."""
    return True


def serves_nothing(operation: str, thing: Any, arguments: Sequence[Any]) -> bool:
    """Say no."""
    return False
