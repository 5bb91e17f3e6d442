"""What a kind of constraint is: a function of a response and of typed arguments that says what it saw.

Not covered: how several constraints make one score; the scorer `instructions` does that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, TypeVar, get_origin, get_type_hints

from adjudge.options import Declared, Range

Group = Literal["content", "format", "language", "length"]
"""The four classes of MulDimIF."""

MAX_COUNT: Final = 100_000  # of a range; no response has more of anything
_MAX_NUMBER: Final = 1_000_000
_SHOWN: Final = 300  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen in a response: whether it meets the constraint, and what was counted, as plain data.

    `vacuous` says that there is nothing in it that could break the constraint, such as a second sentence, or that it
    is met in form alone.
    """

    met: bool
    seen: Mapping[str, Any] = field(default_factory=dict)
    vacuous: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """A range of a count, given by the arguments `min` and `max`, of which one may be open."""

    min: int | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        """Reject a range without ends, an empty one, and one that no response reaches."""
        ends = [end for end in (self.min, self.max) if end is not None]
        if not ends or max(ends) > MAX_COUNT:
            raise ValueError(f"it needs 'min' or 'max', whole numbers from 0 to {MAX_COUNT}")
        if ends != sorted(ends):
            raise ValueError(f"its 'min', {self.min}, is above its 'max', {self.max}")

    @property
    def least(self) -> int:
        """The lower end."""
        return self.min or 0

    def holds(self, count: int) -> bool:
        """Return whether a count lies in the range."""
        return self.least <= count and (self.max is None or count <= self.max)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of constraint.

    Attributes:
        look: looks at a response that is more than white space; its parameters behind the first are the arguments.
        group: its class.
        check: raises `ValueError` for arguments of the right types that mean nothing together.
    """

    look: Callable[..., Observation]
    group: Group
    check: Callable[..., None] | None = None

    def read_args(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that plain data gives, typed.

        Raises:
            ValueError: one is missing, unknown, or of the wrong type or range.
        """
        types_of, required, in_limits = _parameters(self.look)
        if unknown := set(args) - set(types_of):
            takes = f"it takes {', '.join(map(repr, types_of))}" if types_of else "it takes no arguments"
            raise ValueError(f"there is no argument {', '.join(map(repr, sorted(unknown)))}; {takes}")
        if missing := [name for name in required if name not in args]:
            raise ValueError(f"it needs {', '.join(map(repr, missing))}")
        read = {name: _read(name, types_of[name], value) for name, value in args.items()}
        if in_limits:
            read["limits"] = Limits(read.pop("min", None), read.pop("max", None))
        if self.check:
            self.check(**read)
        return read


_Look = TypeVar("_Look", bound=Callable[..., Observation])


class Kinds(dict[str, Kind]):
    """Kinds by name, added where each function is defined."""

    def kind(
        self, name: str, group: Group = "content", *, check: Callable[..., None] | None = None
    ) -> Callable[[_Look], _Look]:
        """Return a decorator that adds a function as a kind of this name."""

        def added(look: _Look) -> _Look:
            self[name] = Kind(look, group, check)
            return look

        return added


def shown(value: Any) -> str:
    """Return a value as a message names it: whole where it is short."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@cache
def _parameters(look: Callable[..., Observation]) -> tuple[dict[str, Any], list[str], bool]:
    """Return the types of the arguments, the names of those that must be given, and whether they give `Limits`."""
    hints = get_type_hints(look, include_extras=True)
    _, *parameters = inspect.signature(look).parameters.values()
    in_limits = any(hints[one.name] is Limits for one in parameters)
    parameters = [one for one in parameters if hints[one.name] is not Limits]
    types_of = {one.name: hints[one.name] for one in parameters} | (get_type_hints(Limits) if in_limits else {})
    return types_of, [one.name for one in parameters if one.default is one.empty], in_limits


def _read(name: str, hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        listed = isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) > 0
        if listed and all(isinstance(one, str) and one.strip() for one in value):
            return tuple(value)
        raise ValueError(f"{name!r} is {shown(value)}; it must be a list of texts, one at least")
    wanted = Declared.of(hint, Range(ge=0, le=_MAX_NUMBER))
    assert wanted is not None, hint
    if wanted.kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not wanted.allows(value) or (isinstance(value, str) and not value.strip()):
        raise ValueError(f"{name!r} is {shown(value)}; it must be {wanted}")
    return float(value) if wanted.kind is float else value
