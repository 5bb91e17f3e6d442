"""What each scorer gets of something: one number for all, or a number by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Shares:
    """Numbers of scorers.

    Attributes:
        of_all: for a scorer without a number of its own, or None where nothing was said.
        by_name: numbers of their own.
    """

    of_all: float | None = None
    by_name: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> float | None:
        """Return a scorer's number, or None where nothing was said."""
        return self.by_name.get(name, self.of_all)

    @classmethod
    def read(cls, flag: str, given: float | str, names: Sequence[str], *, whole: bool) -> Self:
        """Return the numbers of an option: a number, `NAME=N,NAME=N`, or "" for nothing.

        Args:
            flag: how errors name the option.
            given: its value.
            names: the scorers there are; "" for one that has no name yet.
            whole: whether numbers must be whole, and 1 or more; otherwise they must be 0 or more.

        Raises:
            ValueError: it is no such thing, or names a scorer that is not there.
        """
        if given == "":
            return cls()
        if isinstance(given, int | float) or "=" not in given:
            return cls(of_all=_number(flag, given, whole))
        found: dict[str, float] = {}
        for part in given.split(","):
            name, _, number = part.partition("=")
            name = name.strip()
            if not name or name not in names:
                known = ", ".join(name for name in names if name) or "none has a name; give it one: --scorer NAME=SPEC"
                raise ValueError(f"{flag} is {given!r}, and no scorer has the name {name!r} (names: {known})")
            found[name] = _number(flag, number, whole)
        return cls(by_name=found)


def _number(flag: str, given: float | str, whole: bool) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    least = 1 if whole else 0
    if not math.isfinite(number) or number < least or (whole and number != int(number)) or isinstance(given, bool):
        raise ValueError(
            f"{flag} is {given!r}; it must be a {'whole ' if whole else ''}number, {least} or more, or NAME=N,NAME=N"
        )
    return number
