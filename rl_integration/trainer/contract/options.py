"""Checks of what the annotations of `adjudge.options` do not say: arguments of functions, and parts of an option."""

from __future__ import annotations

from adjudge.options import Declared, Range

_ANY = Range()


def check_number(option: str, value: object, within: Range = _ANY, *, whole: bool = False) -> None:
    """Raise `ValueError` unless the value is a finite (or a whole) number within the bounds."""
    wanted = Declared(kind=int if whole else float, range=within)
    if not wanted.allows(value):
        raise ValueError(f"{option}={value!r}; it must be {wanted}")


def check_kind(option: str, value: object, *kinds: type) -> None:
    """Raise `ValueError` unless the value is of one of the kinds."""
    if not isinstance(value, kinds):
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{option}={value!r}; it must be {names}; single options of it are set as {option}.NAME")
