"""Corpora in parts: `make test` takes some rows of each kind, and `make test-full` runs the same tests on all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import pytest

Row = TypeVar("Row")


def in_parts(every: int) -> pytest.MarkDecorator:
    """Give a test the argument `every`: this many, and 1 under the marker `full`, which `make test` leaves out."""
    values = [pytest.param(every, id="part"), pytest.param(1, id="whole", marks=pytest.mark.full)]
    return pytest.mark.parametrize("every", values)


def part(rows: Iterable[Row], every: int, kind: Callable[[Row], Hashable] = lambda row: None) -> list[Row]:
    """Return one of so many rows of each kind, and always the first of its kind."""
    seen = Counter[Hashable]()
    found = []
    for row in rows:
        if seen[kind(row)] % every == 0:
            found.append(row)
        seen[kind(row)] += 1
    return found
