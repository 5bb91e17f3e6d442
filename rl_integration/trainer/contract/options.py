"""Checks of rules' options, with errors that name the option, its value and the remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Raise `ValueError` unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{option}={value!r}; it must be one of {', '.join(choices)}")


def check_min(option: str, value: float, bound: float) -> None:
    """Raise `ValueError` unless the value is finite and at least so much."""
    if not (_is_number(value) and value >= bound):
        raise ValueError(f"{option}={value!r}; it must be a number from {bound:g}")


def check_above(option: str, value: float, bound: float) -> None:
    """Raise `ValueError` unless the value is finite and more than the bound."""
    if not (_is_number(value) and value > bound):
        raise ValueError(f"{option}={value!r}; it must be a number above {bound:g}")


def check_between(option: str, value: float, low: float, high: float) -> None:
    """Raise `ValueError` unless the value is in [low, high]."""
    if not (_is_number(value) and low <= value <= high):
        raise ValueError(f"{option}={value!r}; it must be a number from {low:g} to {high:g}")


def check_finite(option: str, value: float) -> None:
    """Raise `ValueError` unless the value is a finite number."""
    if not _is_number(value):
        raise ValueError(f"{option}={value!r}; it must be a finite number")


def check_whole(option: str, value: int, bound: int) -> None:
    """Raise `ValueError` unless the value is a whole number from a bound on."""
    if type(value) is not int or value < bound:
        raise ValueError(f"{option}={value!r}; it must be a whole number from {bound}")


def check_flag(option: str, value: object) -> None:
    """Raise `ValueError` unless the value is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{option}={value!r}; it must be true or false")


def check_kind(option: str, value: object, *kinds: type) -> None:
    """Raise `ValueError` unless the value is of one of the kinds."""
    if not isinstance(value, kinds):
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{option}={value!r}; it must be {names}; single options of it are set as {option}.NAME")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
