"""Numbers in options: what they must be, and what is said where they are something else."""

from __future__ import annotations

from typing import Any


def check_number(value: Any, low: float, high: float, called: str) -> None:
    """Raise `ValueError` unless a value is a number within a range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{called} is {value!r}; it must be a number from {low:g} to {high:g}")


def check_count(value: Any, low: int, called: str) -> None:
    """Raise `ValueError` unless a value is a whole number from `low`."""
    if type(value) is not int or value < low:
        raise ValueError(f"{called} is {value!r}; it must be a whole number from {low}")
