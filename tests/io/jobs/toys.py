"""Makers for the tests of the job over rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobSnapshot
from adjudge.protocol import Cost


class Doubler:
    """Makes two rows of each row with an even `x`, and drops the others."""

    name = "doubler"
    fingerprint = "doubler:1"
    fields: Mapping[str, Kind] = {"x": "whole", "word": "text"}
    grouped = False

    def __init__(self) -> None:
        self.made: list[int] = []

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        if "x" not in columns:
            raise ValueError(f"there is no column 'x' among {', '.join(columns)}")
        return ("x is doubled",)

    async def make(self, unit: Unit) -> Made:
        (row,) = unit.rows
        self.made.append(unit.first)
        if row["x"] % 2:
            return Made(dropped={"odd": 1}, counts={"seen": 1}, cost=Cost(prompt_tokens=1))
        rows = tuple({"x": 2 * row["x"], "word": word} for word in ("a", "b\ud800"))
        return Made(rows=rows, counts={"seen": 1, "halves": 0.5}, cost=Cost(prompt_tokens=2))


class Careful(Doubler):
    """A doubler that does something before it makes a unit."""

    def __init__(self, before: Callable[[Unit], Awaitable[object]]) -> None:
        super().__init__()
        self._before = before

    async def make(self, unit: Unit) -> Made:
        await self._before(unit)
        return await super().make(unit)


class Backwards(Doubler):
    """Answers its first `count` units last first."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._held = [asyncio.Event() for _ in range(count)]
        self._begun = 0

    async def make(self, unit: Unit) -> Made:
        mine = self._begun
        self._begun += 1
        if self._begun == len(self._held):
            self._held[-1].set()
        if mine < len(self._held):
            await asyncio.wait_for(self._held[mine].wait(), 60)
            if mine:
                self._held[mine - 1].set()
        return await super().make(unit)


class Sums:
    """Adds up the `x` of each group, as a share of the whole input's sum."""

    name = "sums"
    fingerprint = "sums:1"
    fields: Mapping[str, Kind] = {"group": "text", "first": "whole", "xs": "wholes", "share": "number"}
    grouped = True

    def __init__(self) -> None:
        self.total = 0
        self.prepared = 0

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        return ()

    def prepare(self, units: Iterable[Unit]) -> None:
        self.prepared += 1
        self.total = sum(row["x"] for unit in units for row in unit.rows)

    async def make(self, unit: Unit) -> Made:
        xs = [row["x"] for row in unit.rows]
        return Made(rows=({"group": unit.group, "first": unit.first, "xs": xs, "share": sum(xs) / self.total},))


class Gives:
    """Makes of row n whatever `rows[n]` is."""

    name = "gives"
    fingerprint = "gives:1"
    grouped = False

    def __init__(self, fields: Mapping[str, Kind], made: Sequence[Any], *, keeps_columns: bool = False) -> None:
        self.fields = fields
        self.keeps_columns = keeps_columns
        self._made = made

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        return ()

    async def make(self, unit: Unit) -> Made:
        made: Any = self._made[unit.first]
        if made is None:  # a maker that forgot its answer
            return cast("Made", made)
        return made if isinstance(made, Made) else Made(rows=(made,))


class Watch:
    """Keeps what a job tells."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.snapshots: list[JobSnapshot] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def update(self, snapshot: JobSnapshot) -> None:
        self.snapshots.append(snapshot)


def jsonl(path: Path, rows: Iterable[Any]) -> str:
    """Write rows, and return the path as a config takes it."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def numbers(path: Path, count: int) -> str:
    """Write rows with `x` from 0 on."""
    return jsonl(path, ({"x": x} for x in range(count)))


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def config(source: str, output: Path | str, **options: Any) -> JobConfig:
    return JobConfig(input=source, output=str(output), **options)
