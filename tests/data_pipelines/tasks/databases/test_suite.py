"""Which databases are chosen, and what the scorer says each is good for."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.tasks.databases import Aim, Judges, chosen

AIMS = st.lists(
    st.builds(
        Aim,
        runs=st.just(True),
        finds=st.booleans(),
        apart=st.frozensets(st.integers(0, 6)),
    ),
    max_size=8,
)


def aim(*told: int, finds: bool = True, runs: bool = True) -> Aim:
    return Aim(runs=runs, finds=finds, apart=frozenset(told))


@pytest.mark.parametrize(
    ("aims", "most", "distill", "kept"),
    [
        ([aim(0), aim(0, 1, 2), aim(3)], 3, False, [1, 2, 0]),
        ([aim(0), aim(0, 1, 2), aim(3)], 3, True, [1, 2]),
        ([aim(0), aim(0, 1, 2), aim(3)], 1, True, [1]),
        ([aim(0, 1, 2, finds=False), aim(0)], 2, True, [1, 0]),  # the first must show an answer
        ([aim(0, 1, runs=False), aim(0)], 2, False, [1]),
        ([aim(), aim()], 2, True, [0]),
        ([aim(finds=False)], 2, False, []),
        ([], 2, False, []),
    ],
)
def test_each_database_adds_the_most(aims: list[Aim], most: int, distill: bool, kept: list[int]) -> None:
    assert chosen(aims, most, distill=distill) == kept


@given(aims=AIMS)
def test_a_distilled_choice_tells_all_apart_that_any_tells_once_one_finds_something(aims: list[Aim]) -> None:
    kept = chosen(aims, len(aims), distill=True)
    assert len(set(kept)) == len(kept)
    every = frozenset[int]().union(*(one.apart for one in aims))
    told = frozenset[int]().union(*(aims[at].apart for at in kept))
    assert told == (every if any(one.finds for one in aims) else frozenset())


def test_aims_say_what_runs_what_finds_something_and_what_differs(tmp_path: Path) -> None:
    full, empty = (str(tmp_path / f"{name}.sqlite") for name in ("full", "empty"))
    for path, rows in ((full, [(1,), (2,)]), (empty, [])):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (a INT)")
            connection.executemany("INSERT INTO t VALUES (?)", rows)
    judges = Judges.of("2025-01-01 00:00:00", 5.0)
    others = [
        "SELECT a FROM t WHERE a > 1",
        "SELECT a FROM t ORDER BY a",
        "SELECT b FROM t",
        "DELETE FROM t",
        "SELECT 1",
    ]
    found = asyncio.run(judges.aims([full, empty], ["SELECT a FROM t"], others))
    assert (found[0].runs, found[0].finds, found[0].apart, found[0].ran) == (
        True,
        True,
        frozenset({0}),
        frozenset({0, 1}),
    )
    assert (found[1].runs, found[1].finds, found[1].apart, found[1].ran) == (
        True,
        False,
        frozenset(),
        frozenset({0, 1}),
    )
    (broken,) = asyncio.run(judges.aims([full], ["SELECT b FROM t"], others))
    assert not broken.runs
    assert "no such column" in broken.fault
