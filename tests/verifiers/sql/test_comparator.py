"""Truth tables of the comparator and of the published policies, made by hand."""

from __future__ import annotations

import datetime
import math
import random
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.verifiers.sql.comparator import POLICIES, ColumnSearch, Comparator, SearchLimitError, comparator
from adjudge.verifiers.sql.engine import NAN, Row, Table, plain


def table(rows: list[Row], width: int = 0) -> Table:
    width = width or (len(rows[0]) if rows else 1)
    return Table(columns=tuple(f"c{at}" for at in range(width)), rows=rows)


def same(gold: list[Row], candidate: list[Row], options: Any = None, **more: Any) -> bool:
    return comparator(options or {}).difference(table(gold), table(candidate), **more) is None


AB: list[Row] = [(1, "a"), (2, "b")]
BA: list[Row] = [(2, "b"), (1, "a")]
SWAPPED: list[Row] = [("a", 1), ("b", 2)]
TWICE: list[Row] = [(1, "a"), (2, "b"), (2, "b")]
WIDER: list[Row] = [(1, "x", "a"), (2, "x", "b")]
BAG, SET, ORDERED, AUTO = ({"rows": rows} for rows in ("bag", "set", "ordered", "auto"))

CASES: dict[str, tuple[list[Row], list[Row], dict[str, Any], bool]] = {
    "bag: the same": (AB, AB, BAG, True),
    "bag: another order": (AB, BA, BAG, True),
    "bag: a row twice": (AB, TWICE, BAG, False),
    "bag: other row twice": (TWICE, [(1, "a"), (1, "a"), (2, "b")], BAG, False),
    "set: a row twice": (AB, TWICE, SET, True),
    "set: a row missing": (TWICE, [(1, "a")], SET, False),
    "set: a row too many": (AB, [*AB, (3, "c")], SET, False),
    "ordered: the same": (AB, AB, ORDERED, True),
    "ordered: another order": (AB, BA, ORDERED, False),
    "auto: unsorted reference": (AB, BA, AUTO, True),
    "columns: swapped": (AB, SWAPPED, BAG, True),
    "columns: swapped, by position": (AB, SWAPPED, {"columns": "position"}, False),
    "columns: swapped and in another order": (AB, SWAPPED[::-1], {"rows": "ordered"}, False),
    "columns: mixed between rows": ([(1, 2), (3, 4)], [(2, 1), (3, 4)], BAG, False),
    "columns: one more": (AB, WIDER, BAG, False),
    "columns: one more allowed": (AB, WIDER, {"extra_columns": 1}, True),
    "columns: one more allowed, rows wrong": (AB, [(1, "x", "b"), (2, "x", "a")], {"extra_columns": 1}, False),
    "columns: two more, one allowed": (AB, [(1, 0, 0, "a"), (2, 0, 0, "b")], {"extra_columns": 1}, False),
    "columns: one missing": (WIDER, AB, BAG, False),
    "columns: one missing allowed": (WIDER, AB, {"missing_columns": 1}, True),
    "columns: one column for two": ([(1, 1), (2, 2)], [(1, 3), (2, 3)], BAG, False),
    "columns: the same one twice": ([(1, 1), (2, 2)], [(1, 1), (2, 2)], BAG, True),
    "set: swapped columns": (AB, [*SWAPPED, ("a", 1)], SET, True),
    "set: extra column": (AB, [*WIDER, (1, "y", "a")], SET | {"extra_columns": 1}, True),
    "NULL: equal": ([(None,)], [(None,)], BAG, True),
    "NULL: differ": ([(None,)], [(None,)], {"nulls": "differ"}, False),
    "NULL: is not 0": ([(None,)], [(0,)], BAG, False),
    "NULL: is not empty": ([(None,)], [("",)], BAG, False),
    "numbers: 1 is 1.0": ([(1,)], [(1.0,)], {"rel_tol": 0.0}, True),
    "numbers: 1 is not '1'": ([(1,)], [("1",)], BAG, False),
    "numbers: the last bit": ([(0.3,)], [(0.1 + 0.2,)], BAG, True),
    "numbers: the last bit, exactly": ([(0.3,)], [(0.1 + 0.2,)], {"rel_tol": 0.0}, False),
    "numbers: a share off": ([(100.0,)], [(100.1,)], BAG, False),
    "numbers: a share off, allowed": ([(100.0,)], [(100.1,)], {"rel_tol": 0.01}, True),
    "numbers: a unit off, allowed": ([(100.0,)], [(100.4,)], {"abs_tol": 0.5}, True),
    "numbers: whole ones never": ([(1_000_000_001,)], [(1_000_000_000,)], {"rel_tol": 0.1}, False),
    "numbers: beyond the floats": ([(10**400,), (0.5,)], [(10**400,), (0.5,)], BAG, True),
    "numbers: infinite": ([(math.inf,)], [(math.inf,)], BAG, True),
    "numbers: infinite is not large": ([(1e308,)], [(math.inf,)], {"rel_tol": 1.0}, False),
    "numbers: NaN": ([(NAN,)], [(NAN,)], BAG, True),
    "numbers: tolerance keeps the bag": ([(1.0,), (1.0,)], [(1.0,), (2.0,)], BAG, False),
    "numbers: no bridge over a gap": ([(0.0,)], [(0.9,)], {"abs_tol": 0.5}, False),
    "both empty": ([], [], BAG, True),
    "one empty": (AB, [], SET, False),
    "the other empty": ([], AB, SET, False),
    "case counts": ([("a",)], [("A",)], BAG, False),
    "bytes are not text": ([(b"a",)], [("a",)], BAG, False),
}


@pytest.mark.parametrize(("gold", "candidate", "options", "equal"), CASES.values(), ids=CASES.keys())
def test_truth_table(gold: list[Row], candidate: list[Row], options: dict[str, Any], equal: bool) -> None:
    assert same(gold, candidate, options) is equal


def test_ties_may_change_places_and_nothing_else() -> None:
    gold: list[Row] = [("a", 3), ("b", 2), ("c", 2), ("d", 1)]
    tied: list[Row] = [("a", 3), ("c", 2), ("b", 2), ("d", 1)]
    moved: list[Row] = [("b", 2), ("a", 3), ("c", 2), ("d", 1)]
    runs = [0, 1, 1, 2]
    assert same(gold, tied, ordered=True, runs=runs)
    assert not same(gold, tied, ordered=True)
    assert not same(gold, tied, {"ties": "strict"}, ordered=True, runs=runs)
    assert not same(gold, moved, ordered=True, runs=runs)
    found = Comparator().difference(table(gold), table(moved), ordered=True, runs=runs)
    assert found is not None
    assert found.kind == "order"


POLICY_CASES: dict[str, tuple[list[Row], list[Row], set[str]]] = {
    "the same": (AB, AB, set(POLICIES)),
    "another order": (AB, BA, set(POLICIES)),
    "swapped columns": (AB, SWAPPED, set(POLICIES) - {"bird", "strict"}),
    "a row twice": (AB, TWICE, {"bird", "defog"}),
    "an extra column": (AB, WIDER, {"defog", "ibm_subset"}),
    "a missing column": (WIDER, AB, {"ibm_subset"}),
    "the last bit": ([(0.3,)], [(0.1 + 0.2,)], {"default", "defog", "ibm_subset"}),
    "both empty": ([], [], set(POLICIES)),
    "another value": (AB, [(1, "a"), (2, "c")], set()),
}


@pytest.mark.parametrize(("gold", "candidate", "accepted"), POLICY_CASES.values(), ids=POLICY_CASES.keys())
def test_published_policies(gold: list[Row], candidate: list[Row], accepted: set[str]) -> None:
    assert {name for name in POLICIES if same(gold, candidate, name)} == accepted


def test_a_policy_can_be_changed_by_name() -> None:
    changed = comparator({"policy": "bird", "rel_tol": 0.01})
    assert (changed.rows, changed.columns, changed.rel_tol) == ("set", "position", 0.01)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("nonesuch", "nonesuch"),
        ({"row": "bag"}, "row"),
        ({"rows": "heap"}, "heap"),
        ({"rel_tol": -1.0}, "rel_tol"),
        ({"rel_tol": math.nan}, "rel_tol"),
        ({"extra_columns": -1}, "extra_columns"),
        ({"columns": "position", "extra_columns": 1}, "extra_columns"),
        (7, "7"),
    ],
    ids=str,
)
def test_bad_options_are_named(options: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        comparator(options)


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=8),
    order=st.permutations(range(4)),
    seed=st.integers(0, 99),
)
def test_any_order_of_rows_and_columns_is_found(rows: list[Row], order: list[int], seed: int) -> None:
    moved = [tuple(row[at] for at in order) for row in rows]
    random.Random(seed).shuffle(moved)
    assert same(rows, moved)


@given(
    gold=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=5),
    candidate=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=5),
)
def test_the_search_agrees_with_trying_everything(gold: list[Row], candidate: list[Row]) -> None:
    expected = sorted(gold) in (sorted(candidate), sorted(row[::-1] for row in candidate))
    assert same(gold, candidate) is expected


def test_many_equal_columns_are_no_burden() -> None:
    rows: list[Row] = [tuple([at] * 60) for at in range(50)]
    assert same(rows, rows[::-1])
    assert not same(rows, [*rows[1:], tuple([0] * 59 + [1])])


def test_a_search_that_grows_too_large_stops() -> None:
    # Columns with the same contents but no two alike, and rows that fit nowhere.
    chooser = random.Random(5)
    wide = [chooser.sample([0, 1] * 200, 400) for _ in range(60)]
    narrow = [chooser.sample([0, 1] * 200, 400) for _ in range(30)]
    search = ColumnSearch(narrow, wide, [0] * 400, [0] * 400, distinct=True)
    with pytest.raises(SearchLimitError):
        search.found()


PLAIN: list[tuple[Any, Any]] = [
    (True, 1),
    (Decimal("1.50"), 1.5),
    (Decimal("2.00"), 2),
    (Decimal("NaN"), NAN),
    (Decimal("-Infinity"), -math.inf),
    (Decimal("1e999"), "1E+999"),
    (float("nan"), NAN),
    (datetime.date(2020, 1, 2), "2020-01-02"),
    (datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),  # noqa: DTZ001 what a database without zones gives
    (
        datetime.datetime(2020, 1, 2, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        "2020-01-02 00:00:00+00:00",
    ),
    (datetime.timedelta(days=1), ("interval", 86_400_000_000)),
    ([1, Decimal("2.5")], ("list", 1, 2.5)),
    ({"b": 1, "a": None}, ("map", ("a", None), ("b", 1))),
    (memoryview(b"x"), b"x"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
]


@pytest.mark.parametrize(
    ("value", "cell"), PLAIN, ids=lambda value: f"{type(value).__name__} {value!r}"[:40].partition(" at 0x")[0]
)
def test_values_of_engines_become_plain(value: Any, cell: Any) -> None:
    assert plain(value) == cell
    hash(plain(value))
