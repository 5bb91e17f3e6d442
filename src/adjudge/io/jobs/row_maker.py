"""What most makers share: named columns in, rows or a reason why there are none out, and a fingerprint of what decides.

A maker that learns from the whole input, filters, or works on whole groups in its own way is a `Maker` all the same.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from adjudge import wire
from adjudge.io.columns import Choice, Column
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.protocol import NO_COST, Cost

C = TypeVar("C", bound=JobConfig)


@dataclass(slots=True)
class Account:
    """What one unit came to while it is worked on."""

    dropped: Counter[str] = field(default_factory=Counter)
    counts: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](int))
    cost: Cost = NO_COST

    def drop(self, reason: str, times: int = 1) -> None:
        """Count what was left out."""
        if times:
            self.dropped[reason] += times

    def made(self, rows: Sequence[Mapping[str, Any]]) -> Made:
        """Return what the unit came to."""
        return Made(rows=tuple(rows), dropped=dict(self.dropped), counts=dict(self.counts), cost=self.cost)


def fingerprint_of(name: str, *parts: Any) -> str:
    """Return a name with 16 hexadecimal digits that change with plain data: options, versions, fingerprints."""
    text = wire.dumps(list(parts))
    return f"{name}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


class RowMaker(ABC, Generic[C]):
    """A maker that turns a row, or the rows of a group, into rows, or into a reason why there are none.

    Args:
        config: its options; of each role that it reads, `ROLE_column` names the column, and `group_column`, where there
            is one, what the rows of a unit share.
    """

    name: ClassVar[str]
    fields: ClassVar[Mapping[str, Kind]]
    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: C) -> None:
        self.config = config
        named = {role: str(getattr(config, f"{role}_column")) for role in self.reads}
        self._columns = {role: Column(name) for role, name in named.items() if name}

    @property
    def grouped(self) -> bool:
        """Whether a unit is a group."""
        return bool(getattr(self.config, "group_column", ""))

    @abstractmethod
    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a unit.

        Raises:
            DroppedError: there are none, and why.
            JobError: the work cannot go on.
        """

    async def make(self, unit: Unit) -> Made:
        """Return what a unit comes to; see `Maker`."""
        account = Account()
        try:
            return account.made(await self.rows_of(unit, account))
        except DroppedError as error:
            account.drop(error.reason)
            return account.made([])

    def check_columns(
        self, columns: Sequence[str], first: Sequence[Mapping[str, Any]], *, optional: Collection[str] = ()
    ) -> Choice:
        """Raise `ValueError` unless each role's column is there; of `optional` roles the usual one may be missing."""
        choice, usual = Choice(columns, first), type(self.config)
        for role, column in self._columns.items():
            if role not in optional or column.name != getattr(usual, f"{role}_column"):
                choice.given(role, column.name)
        return choice

    def cell(self, row: Mapping[str, Any], role: str) -> Any:
        """Return what a row has in the column of a role; None where there is none."""
        return self._columns[role].cell(row) if role in self._columns else None

    def chat(self, row: Mapping[str, Any], role: str = "prompt") -> Any:
        """Return text or chat turns of a column, to be handed on; None where there is none."""
        try:
            return fitted(self.cell(row, role), "chat")
        except Unfit as error:
            raise DroppedError("bad_prompt") from error

    def id_of(self, unit: Unit) -> str:
        """Return the id of a unit's row; without one, its number."""
        named = self.cell(unit.rows[0], "id")
        return str(unit.first if named is None else named)


def texts_in(value: Any, reason: str) -> list[str]:
    """Return a text, or the texts of a list; none where a cell is empty.

    Raises:
        DroppedError: it is something else.
    """
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list | tuple) or not all(isinstance(item, str) for item in texts):
        raise DroppedError(reason)
    return list(texts)
