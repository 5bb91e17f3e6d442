"""The contract of what turns rows into other rows; `run_job` does everything else.

A maker never reads or writes files, never retries a job, and keeps nothing from one unit to the next: the same unit
makes the same rows, whatever came before it.  What it must know of the whole input it learns in `prepare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from adjudge.protocol import NO_COST, Cost

Kind: TypeAlias = Literal["text", "number", "whole", "flag", "texts", "numbers", "wholes", "flags", "chat", "any"]
"""What a field holds; each may be None.  "chat" is text or chat turns, the same in all rows of a file; "any" is plain
JSON data of any shape, which Parquet holds as Arrow's JSON type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Rows that belong together, in the order of the input.

    Attributes:
        rows: at least one; columns as they were read.
        first: number of the first of them in the input, from 0.
        group: what they share, or "" for a single row of a maker that asks for no groups.
    """

    rows: tuple[Mapping[str, Any], ...]
    first: int
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """New rows, and what there is to say about those that were not made.

    Attributes:
        rows: plain JSON data, each with exactly the maker's `fields`; None where a field has no value.
        dropped: how often something was left out, by a short reason in snake_case: {"one_label": 1}.
        counts: numbers that are summed over the job and shown in its report: {"calls": 12}.
        cost: seconds and tokens of models and scorers.
    """

    rows: tuple[Mapping[str, Any], ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    cost: Cost = NO_COST


class DroppedError(Exception):
    """A row, or a unit, that comes to nothing; `Account` counts it."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


@runtime_checkable
class Maker(Protocol):
    """Makes rows of rows."""

    @property
    def name(self) -> str:
        """What the report and the card call it."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same unit could make other rows: options, models, scorers."""
        ...

    @property
    def fields(self) -> Mapping[str, Kind]:
        """The columns of what it makes, in order."""
        ...

    @property
    def grouped(self) -> bool:
        """Whether a unit is a group; otherwise it is a row."""
        ...

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look at the input before any work.

        Args:
            columns: its top-level columns.
            first: up to 100 of its first readable rows.

        Returns:
            Sentences about how the input was understood.
        """
        ...

    async def make(self, unit: Unit) -> Made:
        """Return what a unit comes to.

        A bad row is no exception: it is counted in `dropped`.  Several units are made at once in one event loop.
        """
        ...


@runtime_checkable
class Prepares(Protocol):
    """A maker that must see the whole input first: near-duplicates, shares, limits."""

    def prepare(self, units: Iterable[Unit]) -> None:
        """Take the units in order, once, before the first `make`; again when an interrupted job goes on."""
        ...


@runtime_checkable
class KeepsColumns(Protocol):
    """A maker whose rows hold columns of the input beside its own fields: one that filters, or adds a column.

    Its rows hold each of `fields`, and any others; those are written as they were read.  In Parquet and datasets
    a kept column has the kind that fits all its values, and where none does, or they are objects, it is JSON.
    """

    @property
    def keeps_columns(self) -> bool:
        """Whether it does."""
        ...
