"""Stand-ins for objects of the other process.

A `Remote` asks for what is done with it.  Where the tests run, an expected value must not travel that way, and an
object must not pass for the plain data that is expected:

- two objects of the candidate's may be compared with each other, and combined where the tests name their classes;
- with plain data, an object is combined or compared only by an operator that the tests' text uses on what they made of
  its class, and only if they made it: what a method returns may stand for a number.  So an object has two stand-ins:
  one for the tests that made it, one wherever it comes as an answer.  Where tests ask which of two objects is which
  (`is`), it has one, which an answer makes one of the second kind, unless it is that of the object's own method and
  the tests do nothing with such an answer (`Notes.idle`);
- what the tests did not make has one value as a number, one length and one sequence of items, and, where the tests are
  about no class, no methods that say yes or no of plain data (`_VERDICTS`).

What is refused raises what no test takes for the candidate's own error (`RefusedError`).

The end of a candidate has nothing to hide (`Peer.trusting`) and asks for all.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: asynchronous
callables; classes of the tests' that extend one of the candidate's.
"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from adjudge.sandbox import codec
from adjudge.sandbox.library_values import Kept, as_plain
from adjudge.sandbox.raised import Raised

T = TypeVar("T")

_PARAMETERS = tuple(getattr(inspect.Parameter, name) for name in (
    "POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD"
))  # fmt: skip
_PROBES = ("_mock_name", "_pytestfixturefunction", "_fields")  # what pytest and the codec ask of whatever they meet
_TOLD = ("__name__", "__qualname__", "__doc__", "__dict__", "__annotations__", "__signature__", "__code__")
_TOLD_TESTS = (*_TOLD[:-2], "__defaults__", "__kwdefaults__", "__match_args__", "__wrapped__", "__members__")
_UNKNOWN = ("unsupported operand", "not supported between")  # Python's words for what a class does not define
_LIKE: dict[type, Any] = {int: 1, float: 1.5, complex: 1j, bool: True, str: "a", bytes: b"a", type(None): None}
_LIKE |= {list: [], tuple: (), dict: {}, set: set()}
"""A value of each type, which says nothing of what tests expect."""
ARITHMETIC = tuple("add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split())
"""Binary operators that have a reflected form."""
ORDER = ("lt", "le", "gt", "ge")
_SCALING = frozenset({"mul", "rmul", "matmul", "rmatmul", "pow"})  # no test scales by what it expects
_MAKING = frozenset({"enter", "copy", "deepcopy", "neg", "pos", "abs", "invert", "round"}).union(
    f"{way}{name}" for name in ARITHMETIC for way in ("", "r", "i")
)
"""What gives the tests an object of their making, if they do it to one."""
_VERDICTS = frozenset(
    "startswith endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace "
    "istitle isupper is_integer issubset issuperset isdisjoint count index equals eq ne all any".split()
)
_FACTS = frozenset({"is_unique", "is_monotonic_increasing", "is_monotonic_decreasing"})
"""Methods and attributes of texts, sets, lists and tables that judge plain data, or what they hold."""


class RefusedError(BaseException):
    """The tests may not have what they ask for; no exception that they expect, or mean to ignore."""


class Remote:
    """An object of the other process, known there by its handle; `peer` is this end of the connection."""

    __slots__ = ("__weakref__", "_handle", "_made", "_peer", "_times")

    def __init__(self, peer: Any, handle: codec.Handle, made: bool = False) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_made", made)
        object.__setattr__(self, "_times", 0)  # that it came as an answer

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it over there."""
        notes, number = _peer(self).notes, handle_of(self).number
        if number in notes.barred:
            raise RefusedError(
                "a method of the program's own class is not the one of plain data that it is called like"
            )
        owner = notes.owners.get(number)
        times = None if owner is None or not _is_made(owner) else object.__getattribute__(owner, "_times")
        result = _ask(self, "call", *arguments, keywords=keywords)
        if times is not None and result is owner and object.__getattribute__(owner, "_times") == times + 1:
            object.__setattr__(owner, "_made", True)
        return result

    def __getattr__(self, name: str) -> Any:
        dunder = name.startswith("__") and name.endswith("__")
        trusting = _peer(self).trusting
        if name == "__dataclass_fields__" and not trusting:
            return _fields(self)
        if name in _PROBES or (dunder and name not in (_TOLD if trusting else _TOLD_TESTS)):
            raise AttributeError(name)
        if name == "__wrapped__" and not _peer(self).received:
            raise AttributeError(name)  # pytest asks for it when it reads a file
        if dunder and trusting:
            return _MADE_HERE.get(name, _told)(self, name)
        value = _ask(self, "getattr", name)
        notes = _peer(self).notes
        if notes.idle and is_remote(value) and type(self) is not RemoteClass:
            number = handle_of(value).number
            notes.owners[number] = self if name in notes.idle and notes.owners.get(number, self) is self else None
        if not (_may(self, name) or _peer(self).uses):
            if name in _FACTS:
                raise RefusedError(f"an object of the program's own class has not the {name!r} of plain data")
            if name in _VERDICTS and is_remote(value):
                notes.barred.add(handle_of(value).number)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delattr", name)

    def __getitem__(self, key: Any) -> Any:
        if type(key) in (int, slice) and (items := _items(self)) is not None:
            return items[key]
        return _ask(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _ask(self, "delitem", key)

    def __iter__(self) -> Iterator[Any]:
        if (items := _items(self)) is not None:
            return iter(items)
        over: Any = _ask(self, "iter")
        if is_remote(over) and handle_of(over).number == handle_of(self).number:
            over = self  # and not its stand-in as an answer
        return over if over is self else _steps(over)

    def __reversed__(self) -> Iterator[Any]:
        if (items := _items(self)) is not None:
            return iter(items[::-1])
        if _peer(self).trusting:
            return iter([self[at] for at in range(len(self) - 1, -1, -1)])
        return _steps(_ask(self, "reversed"))

    def __contains__(self, value: Any) -> bool:
        if _peer(self).trusting or is_remote(value) or _may(self, "__contains__"):
            return bool(_ask(self, "contains", value))
        return any(item is value or item == value for item in self)  # here, so that the value stays here

    def __instancecheck__(self, value: Any) -> bool:
        return (is_remote(value) or isinstance(value, Kept)) and _plain(_ask(self, "instance", value), bool)

    def __len__(self) -> int:
        items = _items(self)
        return _plain(_ask(self, "len"), int) if items is None else len(items)

    def __float__(self) -> float:
        return _plain(_once(self, "float"), float)

    def __complex__(self) -> complex:
        return complex(float(self)) if _peer(self).trusting else _plain(_once(self, "complex"), complex)

    def __bytes__(self) -> bytes:
        return bytes([*self]) if _peer(self).trusting else _plain(_ask(self, "bytes"), bytes)

    def __format__(self, spec: str) -> str:
        return str(self) if _peer(self).trusting and not spec else _plain(_ask(self, "format", spec), str)

    def __hash__(self) -> int:
        peer = _peer(self)
        return handle_of(self).number if peer.trusting else _plain(_ask(self, "hash"), int)

    def __abs__(self) -> Any:
        return _once(self, "abs")

    def __round__(self, digits: int | None = None) -> Any:
        return _once(self, "round", *(() if digits is None else (digits,)))

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> bool:
        """End a block; an error of the tests' is told, and taken away only if nothing decides it."""
        peer = _peer(self)
        answer = _ask(self, "exit", *(() if error is None else peer.described(error)))
        return answer is True and (peer.trusting or _is_certain(error, peer.notes.certain))

    def __eq__(self, other: object) -> bool:
        if is_remote(other) and handle_of(self).number == handle_of(other).number:
            return True
        if _peer(self).trusting or is_remote(other):
            return _plain(_ask(self, "eq", other), bool)
        if not _may(self, "__eq__"):
            data = _peer(self).exchange("data", handle_of(self), (), {})
            plain = not is_remote(data) and not isinstance(data, Raised)
            return plain and bool(data == other)  # compared here, as plain data
        return _peer(self).exchange("eq", handle_of(self), (other,), {}) is True

    def __ne__(self, other: object) -> bool:
        """Return whether it is not equal, and its own `__ne__`, where its `__eq__` is asked, says so, too."""
        if self == other:
            return False
        asked = is_remote(other) or _may(self, "__eq__")
        return not asked or _plain(_ask(self, "ne", other), bool)


class RemoteClass(type):
    """The type of stand-ins for classes of the other process, whose instances are instances of them here, too."""

    def __new__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> Any:
        """Refuse a class that extends one."""
        raise TypeError("a class of the tests' cannot extend one of the candidate's: the two run apart")

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Call it over there; what comes is the tests' to compare and combine."""
        return _ask(cls, "call", *arguments, keywords=keywords)

    def __bool__(cls) -> bool:
        return True

    def __subclasscheck__(cls, other: Any) -> bool:
        return type(other) is RemoteClass and _plain(_ask(cls, "subclass", other), bool)


for _name in "getattr setattr delattr getitem iter len contains instancecheck".split():
    setattr(RemoteClass, f"__{_name}__", vars(Remote)[f"__{_name}__"])
setattr(Remote, "__doc__", property(lambda self: self.__getattr__("__doc__")))  # noqa: B010 an object's own is asked for


def _steps(over: Any) -> Iterator[Any]:
    """Return an iterator of ours over what the other end gave for one."""
    return _Steps(over) if is_remote(over) else iter(over)


class _Steps:
    def __init__(self, over: Any) -> None:
        self._over = over

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._over)


def class_of(peer: Any, handle: codec.Handle, module: str) -> Any:
    """Return a stand-in for a class."""
    return type.__new__(
        RemoteClass, handle.kind, (Remote,), {"__slots__": (), "__module__": module, "_class": (peer, handle)}
    )


def remote_of(peer: Any, handle: codec.Handle, kind: Any, made: bool = False) -> Remote:
    """Return a stand-in for an object: of a class that has one, or of `Remote`; `made` by the tests or not."""
    remote: Remote = object.__new__(kind)
    Remote.__init__(remote, peer, handle, made)
    return remote


def is_remote(value: Any) -> bool:
    """Return whether a value is a stand-in."""
    return type(value) is RemoteClass or issubclass(type(value), Remote)


def handle_of(remote: Any) -> codec.Handle:
    """Return what the other end knows an object by."""
    if type(remote) is RemoteClass:
        return type.__getattribute__(remote, "_class")[1]  # type: ignore[no-any-return]
    return object.__getattribute__(remote, "_handle")  # type: ignore[no-any-return]


def forget(remote: Any) -> None:
    """Note that an object came as an answer: it is not, or no longer, only what the tests made."""
    if issubclass(type(remote), Remote):
        object.__setattr__(remote, "_made", False)
        object.__setattr__(remote, "_times", object.__getattribute__(remote, "_times") + 1)


class Notes:
    """What the end that runs the tests notes of the other end's objects, by their numbers.

    Attributes:
        idle: None where the tests do not ask which of two objects is which; else the methods with whose answers they
            do nothing but that, and go on with another method.
        owners: of methods that go by an idle name alone, the objects that they are of.
        made: stand-ins for the tests that made an object.
        once: numbers that objects gave for themselves.
        barred: methods that are not called.
        views: their items, until something may have changed them.
        certain: the places, as file and line, where the tests raise an error that depends on nothing.
    """

    def __init__(self) -> None:
        self.idle: frozenset[str] | None = None
        self.owners: dict[int, Any] = {}
        self.made: dict[int, Remote] = {}
        self.once: dict[Any, Any] = {}
        self.barred: set[int] = set()
        self.views: dict[int, Any] = {}
        self.certain: set[tuple[str, int]] = set()


def _is_certain(error: BaseException | None, places: set[tuple[str, int]]) -> bool:
    """Return whether an error was raised at one of the places."""
    if error is None or isinstance(error, AssertionError):
        return False
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return (frame.f_code.co_filename, line) in places


def _made(remote: Remote) -> Remote:
    """Return the stand-in for the tests that made an object."""
    notes, handle = _peer(remote).notes, handle_of(remote)
    if notes.idle is None:
        if handle.number not in notes.made:
            notes.made[handle.number] = remote_of(_peer(remote), handle, type(remote), made=True)
        return notes.made[handle.number]  # type: ignore[no-any-return]
    object.__setattr__(remote, "_made", True)
    return remote


def _peer(remote: Any) -> Any:
    if type(remote) is RemoteClass:
        return type.__getattribute__(remote, "_class")[0]
    return object.__getattribute__(remote, "_peer")


def _is_made(remote: Any) -> bool:
    return bool(type(remote) is RemoteClass or object.__getattribute__(remote, "_made"))


def _ask(remote: Any, operation: str, *arguments: Any, keywords: dict[str, Any] | None = None) -> Any:
    peer = _peer(remote)
    made = not peer.trusting and _is_made(remote)
    result = peer.request(operation, handle_of(remote), *arguments, keywords=keywords)
    if not made or not is_remote(result) or type(result) is RemoteClass:
        return result
    return _made(result) if operation in _MAKING or type(remote) is RemoteClass else result


def _told(remote: Any, name: str) -> Any:
    """Return what a function of the tests' is called and says of itself; `functools.wraps` takes what there is."""
    try:
        return _ask(remote, "getattr", name)
    except (TypeError, AttributeError):
        raise AttributeError(name) from None


def _once(remote: Any, operation: str, *arguments: Any) -> Any:
    """Ask for a number; what the tests did not make has one answer."""
    peer = _peer(remote)
    if peer.trusting or _is_made(remote):
        return _ask(remote, operation, *arguments)
    key = (handle_of(remote).number, operation, arguments)
    if key not in peer.notes.once:
        peer.notes.once[key] = _ask(remote, operation, *arguments)
    return peer.notes.once[key]


def _items(remote: Any) -> list[Any] | None:
    """Return the items of a sequence that the tests did not make, read once; None for anything else.

    Raises:
        TypeError: it says that it has more items, or fewer, than it gives.
    """
    peer = _peer(remote)
    if peer.trusting or _is_made(remote) or "__getitem__" in peer.used(remote):
        return None
    number = handle_of(remote).number
    if number not in peer.notes.views:
        given = _ask(remote, "items")
        if given is not None:
            length, items = given
            if type(items) is not list or type(length) is not int or length != len(items):
                raise TypeError(f"an object that has {length} items gives others")
        peer.notes.views[number] = given and given[1]
    return peer.notes.views[number]  # type: ignore[no-any-return]


def _fields(remote: Any) -> dict[str, Any]:
    """Return the fields of a data class, or of an instance of one, as `dataclasses` has them.

    Raises:
        AttributeError: it is none.
    """
    told = _ask(remote, "fields")
    if type(told) is not list:
        raise AttributeError("__dataclass_fields__")
    fields = [(name, kind, dataclasses.field(init=init, **default)) for name, kind, init, default in told]
    made = dataclasses.make_dataclass("Told", fields, init=False, repr=False, eq=False, kw_only=True)
    return {one.name: one for one in dataclasses.fields(made)}


def _signature(remote: Any, name: str) -> inspect.Signature:
    """Return the signature of a function of the tests'."""
    try:
        told, result = _ask(remote, "signature")
    except TypeError:
        raise AttributeError(name) from None
    return inspect.Signature(
        [inspect.Parameter(word, _PARAMETERS[kind], **more) for word, kind, more in told], **result
    )


def _code(remote: Any, name: str) -> types.SimpleNamespace:
    """Return what programs ask of the code of a function of the tests': how many parameters it has, and their names."""
    parameters = _signature(remote, name).parameters.values()
    names = tuple(one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))
    count = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
    return types.SimpleNamespace(co_argcount=count, co_varnames=names, co_name=_told(remote, "__name__"))


_MADE_HERE: dict[str, Callable[[Any, str], Any]] = {"__signature__": _signature, "__code__": _code}


def _plain(value: Any, kind: type[T]) -> T:
    value = as_plain(value) if isinstance(value, Kept) else value
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _may(remote: Any, word: str) -> bool:
    """Return whether plain data may meet an object in an attribute or operator that the tests use on its class."""
    peer = _peer(remote)
    return bool(peer.trusting or (_is_made(remote) and word in peer.used(remote)))


def _together(one: Any, other: Any, operation: str) -> bool:
    """Return whether an operation may be asked for."""
    peer = _peer(one)
    if peer.trusting:
        return True
    if is_remote(other):
        return bool(peer.is_named(one) and peer.is_named(other))
    if operation in _SCALING or (operation == "radd" and type(other) is int and other == 0):  # the start of a sum
        return bool(peer.is_of_task(one))
    return _may(one, f"__{operation}__")


def _binary(operation: str) -> Callable[[Remote, Any], Any]:
    def method(self: Remote, other: Any) -> Any:
        if _together(self, other, operation):
            return _ask(self, operation, other)
        _peer(self).received += 1  # an object where a number is asked for is the other end's doing
        if type(other) not in _LIKE or (operation in ("mul", "rmul") and isinstance(other, list | tuple | str | bytes)):
            return NotImplemented
        answer = _peer(self).exchange(operation, handle_of(self), (_LIKE[type(other)],), {})
        if isinstance(answer, Raised) and any(words in answer.text for words in _UNKNOWN):
            return NotImplemented
        if isinstance(answer, Raised) and "TypeError" in answer.names:
            raise _peer(self).exception(answer, operation)
        raise RefusedError(f"an object of the program's own class is not the number that it is used like ({operation})")

    return method


def _in_place(name: str) -> Callable[[Remote, Any], Any]:
    def method(self: Remote, other: Any) -> Any:
        if _peer(self).trusting or not _together(self, other, name):
            return NotImplemented
        return _ask(self, f"i{name}", other)

    return method


def _asking(operation: str, kind: Any = None, ask: Callable[..., Any] = _ask) -> Callable[..., Any]:
    """Return a method that asks for an operation of nothing else; of a `kind`, its answer must be just that."""

    def method(self: Remote, *_: Any) -> Any:  # `__deepcopy__` is given a memory
        answer = ask(self, operation)
        return answer if kind is None else _plain(answer, kind)

    return method


for _name in ("next", "neg", "pos", "invert", "copy", "deepcopy", "enter"):
    setattr(Remote, f"__{_name}__", _asking(_name))
for _name, _kind in (("bool", bool), ("str", str), ("repr", str)):
    setattr(Remote, f"__{_name}__", _asking(_name, _kind))
for _name in ("int", "index"):
    setattr(Remote, f"__{_name}__", _asking(_name, int, _once))
for _name in (*ARITHMETIC, *ORDER, "divmod"):
    setattr(Remote, f"__{_name}__", _binary(_name))
for _name in (*ARITHMETIC, "divmod"):
    setattr(Remote, f"__r{_name}__", _binary(f"r{_name}"))
for _name in ARITHMETIC:
    setattr(Remote, f"__i{_name}__", _in_place(_name))
