"""Exceptions that cross between the tests' process and the candidate's: taken apart as plain data, and made again.

The class is the nearest one that the receiver has: one that stands for the candidate's own, one of a library's that is
loaded there, or a built-in one.  No name that arrives is imported or asked for anything but a class in a module's own
namespace, and a library's class is not called.

What such an exception has not here, the candidate's own is asked for, if its class stands for one of the candidate's.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: tracebacks, and
operators, `__eq__` and `__repr__` of a candidate's classes.
"""

from __future__ import annotations

import builtins
import itertools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.sandbox import codec

SAID = "adjudge:said"
"""The attribute of an exception that holds what it said at the other end; no name of a candidate's."""

HOME = "adjudge:home"
"""The attribute of an exception that holds the handle of the one that it is made after; no name of a candidate's."""

INNER = "::"
"""Between the names of a class and of an exception that it holds."""

_SHOWN = 2000
_MAX_CAUSES = 3
_MAX_GROUP = 100
_OF_TESTS = frozenset({"pytest", "_pytest", "unittest", "adjudge", "__main__"})  # their exceptions steer who runs tests


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the other end.

    Attributes:
        names: the names of its class and the classes above it.
        text: what it says.
        arguments: what it was made with, where that is plain data.
        number: positive: the sender's number for it; negative: the receiver's, because it came from there.
        more: of a candidate's: "places", "module:name" of those classes; "attributes" that are plain data; "home", its
            number at the sender; "notes"; "alone", if its context is not shown; "cause" and "context", the names, text,
            arguments and more of those exceptions, "context" only if it is another one than the cause;
            "group", the message of a group and the same of those in it.
    """

    names: tuple[str, ...]
    text: str
    arguments: Any
    number: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)


def parts_of(
    error: BaseException, whole: bool, home: Callable[[BaseException], int] = lambda error: 0, depth: int = 0
) -> tuple[list[str], str, tuple[Any, ...], dict[str, Any]]:
    """Return an exception's names, text, arguments, and the rest of a `Raised` if the sender has nothing to hide.

    `home` returns the sender's number for an exception, or 0; `depth` says how many it is the cause or context of.
    """
    names = [kind.__name__ for kind in type(error).__mro__[:-1]]
    try:
        text = str(error)[:_SHOWN]
    except Exception:  # noqa: BLE001 an exception's own __str__ may raise
        text = ""
    values = tuple(error.args) if _is_plain(error.args) else (text,)
    if not whole:
        return names, text, values, {}
    held = {name: value for name, value in getattr(error, "__dict__", {}).items() if name[:1] != "_"}
    held |= {name: value for name, slot in _slots(type(error)).items() if (value := slot.__get__(error)) is not None}
    more: dict[str, Any] = {"places": places_of(type(error)), "home": home(error)}
    if held := {name: value for name, value in held.items() if _is_plain(value)}:
        more["attributes"] = held
    if text != (str(values[0]) if len(values) == 1 else str(values) if values else ""):
        more.setdefault("attributes", {})
    if type(notes := vars(error).get("__notes__")) is list:
        more["notes"] = [note for note in notes if type(note) is str]
    if error.__suppress_context__:
        more["alone"] = True
    if isinstance(error, BaseExceptionGroup) and depth < _MAX_CAUSES:
        more["group"] = [
            error.message,
            [parts_of(one, whole, home, depth + 1) for one in error.exceptions[:_MAX_GROUP]],
        ]
    context = None if error.__context__ is error.__cause__ else error.__context__
    for name, other in (("cause", error.__cause__), ("context", context)):
        if other is not None and depth < _MAX_CAUSES:
            more[name] = parts_of(other, whole, home, depth + 1)
    return names, text, values, more


def places_of(kind: type[BaseException]) -> list[str]:
    """Return "module:name" of a class of exceptions and those above it."""
    return [f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__[:-1]]


def _slots(kind: type) -> dict[str, types.MemberDescriptorType]:
    """Return by name what built-in exceptions hold beside their arguments, such as `errno`."""
    return {
        name: value
        for base in kind.__mro__
        if base.__module__ == "builtins"
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType) and name[0] != "_"
        if name not in ("obj", "message", "exceptions")
    }


def told_in(handle: codec.Handle) -> Raised | None:
    """Return what a handle says of the exception that it stands for; None for any other object."""
    match handle.parts:
        case (names, text, arguments, int(number), more) if told := _told((names, text, arguments, more)):
            return replace(told, number=number)
    return None


def _told(parts: Any) -> Raised | None:
    """Return what `parts_of` says of an exception; None where it is not that."""
    match parts:
        case (list(names), str(text), arguments, dict(more)):
            return Raised(tuple(map(str, names)), text, arguments, more=more)
    return None


def home_of(value: object) -> codec.Handle | None:
    """Return the handle of the other end's exception that one of ours is made after; None for any other object."""
    home = vars(value).get(HOME) if isinstance(value, BaseException) else None
    return home if type(home) is codec.Handle else None


def is_told(error: BaseException) -> bool:
    """Return whether an exception's parts say all of it: no class of the program's gave it methods."""
    return not any(
        word[:1] != "_" and (callable(value) or isinstance(value, property))
        for base in type(error).__mro__
        if base.__module__ == codec.OWN
        for word, value in vars(base).items()
    )


def _is_plain(value: Any) -> bool:
    try:
        codec.dumps(value)
    except (codec.CodecError, TypeError, ValueError):
        return False
    return True


class Exceptions:
    """The classes of exceptions that one end knows.

    Whether a module, by name, is of the tests' own, whose classes nobody else raises, is for `own` to say; None takes
    nothing from libraries.
    """

    def __init__(self, own: Callable[[object], bool] | None) -> None:
        self._own = own
        self.known: dict[str, type[BaseException]] = {}

    def bases_of(self, names: Sequence[str], places: Sequence[Any]) -> tuple[type[BaseException], ...]:
        """Return the first of an exception's classes that is known here, and others of them that it does not extend."""
        found: list[type[BaseException]] = []
        for kind in self._classes(names, places):
            if not found or (issubclass(kind, Exception) and not any(issubclass(known, kind) for known in found)):
                found.append(kind)
        return tuple(found) or (Exception,)

    def _classes(self, names: Sequence[str], places: Sequence[Any]) -> Iterator[type[BaseException]]:
        for name, place in itertools.zip_longest(names, places[: len(names)]):
            path = str(place).partition(":")[2]  # of one that a class holds: "Stack.Empty"
            kind: Any = self._of_library(place) or self.known.get(path) or self.known.get(name)
            if kind is None and (place is None or str(place).startswith("builtins:")):  # not only named like one
                kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, BaseException):
                yield kind

    def _of_library(self, place: Any) -> type[BaseException] | None:
        """Return the class of a loaded module that "module:name" says, or None."""
        if self._own is None or type(place) is not str:
            return None
        module, _, path = place.partition(":")
        kind: Any = sys.modules.get(module)
        if module.partition(".")[0] in _OF_TESTS or module == "builtins" or self._own(module):
            return None
        for name in path.split("."):
            kind = vars(kind).get(name) if isinstance(kind, type | type(sys)) else None
        known = isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == module
        return kind if known else None

    def make(self, raised: Raised, lifted: Callable[[Any], Any], depth: int = 0) -> BaseException:
        """Return an exception of ours that is like one of the other end's."""
        places = raised.more.get("places")
        kind, *_ = self.bases_of(raised.names, places if type(places) is list else ())
        values = raised.arguments if type(raised.arguments) is tuple else (raised.text,)
        match raised.more.get("group"):
            case [str(message), list(inner)] if depth < _MAX_CAUSES:
                values = message, [self.make(one, lifted, depth + 1) for one in map(_told, inner) if one]
        called = kind.__module__ == "builtins" or kind in self.known.values()
        try:  # a library's is not called: it is seldom made with its `args`
            # as if unasked: a class that stands for the other end's asks there what is made of it
            error = type.__call__(kind, *values) if called else kind.__new__(kind, *values)
        except Exception:  # noqa: BLE001 what a class makes of arguments that are not meant for it
            error = Exception(raised.text)
        attributes, home, notes = (raised.more.get(name) for name in ("attributes", "home", "notes"))
        slots = _slots(type(error))
        if type(attributes) is dict and hasattr(error, "__dict__"):
            for name, value in attributes.items():
                if name in slots:
                    if type(value) in (str, int, bytes):
                        slots[name].__set__(error, value)
                elif type(name) is str and name.isidentifier() and name[0] != "_" and not hasattr(Exception, name):
                    error.__dict__[name] = lifted(value)
            error.__dict__[SAID] = raised.text
        if type(home) is int and home:
            error.__dict__[HOME] = codec.Handle(home, kind.__name__)
        if type(notes) is list and all(type(note) is str for note in notes):
            error.__notes__ = notes
        for name in ("cause", "context"):
            if (other := _told(raised.more.get(name))) and depth < _MAX_CAUSES:
                setattr(error, f"__{name}__", self.make(other, lifted, depth + 1))
        if error.__context__ is None:
            error.__context__ = error.__cause__
        error.__suppress_context__ = raised.more.get("alone") is True
        return error
