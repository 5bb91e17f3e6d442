"""The array types of this package, and how given data become one."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]


def floats(what: str, values: npt.ArrayLike) -> Floats:
    """Return values as 64-bit floats, None as NaN, or raise `ValueError`."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be read as an array of numbers: {error}") from None


def integers(what: str, values: npt.ArrayLike) -> Integers:
    """Return values as 64-bit integers, or raise `ValueError`."""
    found = np.asarray(values)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"{what} are {found.dtype}; give whole numbers")
    return found.astype(np.int64)


def flags(what: str, values: npt.ArrayLike) -> Bools:
    """Return values as booleans.

    Raises:
        ValueError: they are neither booleans nor all 0 and 1.
    """
    found = np.asarray(values)
    if found.dtype.kind != "b" and not np.isin(found, (0, 1)).all():
        raise ValueError(f"{what} are {found.dtype}; give true and false")
    return found.astype(np.bool_)


def same_shape(what: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise `ValueError` if an array has not the shape that it must have."""
    if found != wanted:
        raise ValueError(f"{what} has the shape {found}; it must be {wanted}, as what it belongs to")
