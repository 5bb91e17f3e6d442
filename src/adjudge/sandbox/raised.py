"""Exceptions that cross between the tests' process and the candidate's: taken apart as plain data, and made again.

The class is the nearest one that the receiver has: one that stands for the candidate's own, one of a library's that is
loaded there, or a built-in one.  No name that arrives is imported or asked for anything but a class in a module's own
namespace, and a library's class is not called.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: tracebacks, groups,
and attributes that are not plain data.
"""

from __future__ import annotations

import builtins
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.sandbox import codec

SAID = "adjudge:said"
"""The attribute of an exception that holds what it said at the other end; no name of a candidate's."""

INNER = "::"
"""Between the names of a class and of an exception that it holds."""

_SHOWN = 2000
_MAX_CAUSES = 3
_OF_TESTS = frozenset({"pytest", "_pytest", "unittest", "adjudge", "__main__"})  # their exceptions steer who runs tests


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the other end.

    Attributes:
        names: the names of its class and the classes above it.
        text: what it says.
        arguments: what it was made with, where that is plain data.
        number: positive: the sender's number for it; negative: the receiver's, because it came from there.
        more: of a candidate's: "places", "module:name" of those classes; "attributes" that are plain data; "cause",
            the names, text, arguments and more of the exception that it was raised from.
    """

    names: tuple[str, ...]
    text: str
    arguments: Any
    number: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)


def parts_of(
    error: BaseException, whole: bool, depth: int = 0
) -> tuple[list[str], str, tuple[Any, ...], dict[str, Any]]:
    """Return an exception's names, text, arguments, and the rest of a `Raised` if the sender has nothing to hide.

    `depth` says how many exceptions it is the cause of.
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
    more: dict[str, Any] = {"places": places_of(type(error))}
    if held := {name: value for name, value in held.items() if _is_plain(value)}:
        more["attributes"] = held
    if text != (str(values[0]) if len(values) == 1 else str(values) if values else ""):
        more.setdefault("attributes", {})
    if error.__cause__ is not None and depth < _MAX_CAUSES:
        more["cause"] = parts_of(error.__cause__, whole, depth + 1)
    return names, text, values, more


def places_of(kind: type[BaseException]) -> list[str]:
    """Return "module:name" of a class of exceptions and those above it."""
    return [f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__[:-1]]


def told_in(handle: codec.Handle) -> Raised | None:
    """Return what a handle says of the exception that it stands for; None for any other object."""
    match handle.parts:
        case (list(names), str(text), arguments, int(number), dict(more)):
            return Raised(tuple(map(str, names)), text, arguments, number, more)
    return None


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

    def class_of(self, names: Sequence[str], places: Sequence[Any]) -> type[BaseException]:
        """Return the first of an exception's classes that is known here."""
        for name, place in itertools.zip_longest(names, places[: len(names)]):
            path = str(place).partition(":")[2]  # of one that a class holds: "Stack.Empty"
            kind: Any = self._of_library(place) or self.known.get(path) or self.known.get(name)
            if kind is None and (place is None or str(place).startswith("builtins:")):  # not only named like one
                kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, BaseException):
                return kind
        return Exception

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
        kind = self.class_of(raised.names, places if type(places) is list else ())
        values = raised.arguments if type(raised.arguments) is tuple else (raised.text,)
        called = kind.__module__ == "builtins" or kind in self.known.values()
        try:  # a library's is not called: it is seldom made with its `args`
            # as if unasked: a class that stands for the other end's asks there what is made of it
            error = type.__call__(kind, *values) if called else kind.__new__(kind, *values)
        except Exception:  # noqa: BLE001 what a class makes of arguments that are not meant for it
            error = Exception(raised.text)
        attributes, cause = raised.more.get("attributes"), raised.more.get("cause")
        if type(attributes) is dict and hasattr(error, "__dict__"):
            for name, value in attributes.items():
                if type(name) is str and name.isidentifier() and name[0] != "_" and not hasattr(Exception, name):
                    error.__dict__[name] = lifted(value)
            error.__dict__[SAID] = raised.text
        match cause:
            case (list(names), str(text), arguments, dict(more)) if depth < _MAX_CAUSES:
                above = Raised(tuple(map(str, names)), text, arguments, more=more)
                error.__cause__ = self.make(above, lifted, depth + 1)
        return error
