"""The array types of this package, how given data become one, and checks of numbers and of parts of an option."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from adjudge.options import Declared, Range

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
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{what} are {array.dtype}; give whole numbers")
    return array.astype(np.int64)


def flags(what: str, values: npt.ArrayLike) -> Bools:
    """Return values as booleans.

    Raises:
        ValueError: they are neither booleans nor all 0 and 1.
    """
    array = np.asarray(values)
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{what} are {array.dtype}; give true and false")
    return array.astype(np.bool_)


def same_shape(what: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise `ValueError` if an array has not the shape that it must have."""
    if shape != wanted:
        raise ValueError(f"{what} has the shape {shape}; it must be {wanted}, as what it belongs to")


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
