"""What every kind of constraint is: typed arguments, and a look at a response that says what it saw.

Not covered: how several constraints make one score; the scorer `instructions` does that.
"""

from __future__ import annotations

import dataclasses
import types
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

from adjudge.verifiers.instructions.text import Text

Group = Literal["content", "format", "language", "length"]
"""The four classes of MulDimIF."""

_MOST: Final = 1_000_000
_SHOWN: Final = 300  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at a response found.

    Attributes:
        met: whether it meets the constraint.
        seen: what was counted or found, as plain data.
        vacuous: whether there is nothing in it that could break the constraint, such as a second sentence.
    """

    met: bool
    seen: Mapping[str, Any] = field(default_factory=dict)
    vacuous: bool = False


@dataclass(frozen=True)
class Check(ABC):
    """A kind of constraint; its fields are the arguments, checked when it is made."""

    group: ClassVar[Group] = "content"

    @abstractmethod
    def look(self, text: Text) -> Finding:
        """Return whether a response, which is more than white space, meets the constraint."""


def read_args(kind: type[Check], args: Mapping[str, Any]) -> Check:
    """Return a constraint of a kind with the arguments that plain data gives.

    Raises:
        ValueError: one is missing, unknown, or of the wrong type or range.
    """
    expected = _expected(kind)
    unknown = set(args) - set(expected)
    if unknown:
        takes = f"it takes {', '.join(map(repr, expected))}" if expected else "it takes no arguments"
        raise ValueError(f"there is no argument {', '.join(map(repr, sorted(unknown)))}; {takes}")
    missing = [name for name, (_, required) in expected.items() if required and name not in args]
    if missing:
        raise ValueError(f"it needs {', '.join(map(repr, missing))}")
    return kind(**{name: _read(name, expected[name][0], value) for name, value in args.items()})


def shown(value: Any) -> str:
    """Return a value as a message names it: whole where it is short."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@cache
def _expected(kind: type[Check]) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    required = dataclasses.MISSING
    return {one.name: (hints[one.name], one.default is required) for one in dataclasses.fields(kind)}


def _read(name: str, wanted: Any, value: Any) -> Any:
    if get_origin(wanted) in (types.UnionType, Union):
        if value is None:
            return None
        wanted = next(one for one in get_args(wanted) if one is not type(None))
    if get_origin(wanted) is Literal:
        return _one_of(name, get_args(wanted), value)
    if get_origin(wanted) is tuple:
        return _texts(name, value)
    if wanted is int:
        return _whole(name, value)
    if wanted is float:
        return _number(name, value)
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"{name!r} is {shown(value)}; it must be a text")


def _one_of(name: str, allowed: tuple[Any, ...], value: Any) -> Any:
    if isinstance(value, str | int) and value in allowed:
        return value
    raise ValueError(f"{name!r} is {shown(value)}; it must be one of {', '.join(map(repr, allowed))}")


def _texts(name: str, value: Any) -> tuple[str, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) > 0
    if listed and all(isinstance(one, str) and one.strip() for one in value):
        return tuple(value)
    raise ValueError(f"{name!r} is {shown(value)}; it must be a list of texts, one at least")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 0 <= value <= _MOST:
        return value
    raise ValueError(f"{name!r} is {shown(value)}; it must be a whole number from 0 to {_MOST}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return float(value)
    raise ValueError(f"{name!r} is {shown(value)}; it must be a number from 0 to {_MOST}")
