"""Matchings of calls are as large as any, and keep the order they must keep."""

from __future__ import annotations

from itertools import combinations, permutations
from operator import eq

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.agents.matching import in_order, match, max_pairs

GRIDS = st.integers(0, 3).flatmap(
    lambda columns: st.lists(st.lists(st.booleans(), min_size=columns, max_size=columns), max_size=4)
)


def columns_of(grid: list[list[bool]]) -> list[int]:
    return list(range(len(grid[0]))) if grid else []


def largest(grid: list[list[bool]], *, ordered: bool) -> int:
    """Tried one after another: every choice of rows with every choice of columns."""
    rows, columns = range(len(grid)), columns_of(grid)
    for size in range(min(len(grid), len(columns)), 0, -1):
        for chosen in combinations(rows, size):
            for places in combinations(columns, size) if ordered else permutations(columns, size):
                if all(grid[row][column] for row, column in zip(chosen, places, strict=True)):
                    return size
    return 0


@settings(max_examples=60)
@given(grid=GRIDS)
def test_as_many_calls_are_matched_as_can_be(grid: list[list[bool]]) -> None:
    edges = [[column for column in columns_of(grid) if row[column]] for row in grid]
    for found, ordered in ((max_pairs(edges), False), (in_order(edges, len(columns_of(grid))), True)):
        assert len(found) == largest(grid, ordered=ordered)
        assert len(set(found.values())) == len(found)
        assert all(grid[row][column] for column, row in found.items())
        if ordered:
            assert [found[column] for column in sorted(found)] == sorted(found.values())


def test_a_greedy_choice_that_blocks_a_later_call_is_undone() -> None:
    assert max_pairs([[0, 1], [0]]) == {1: 0, 0: 1}


def test_a_chain_of_moves_as_long_as_a_response_may_be_is_followed() -> None:
    size = 256  # each call fits its place and the next one; the last fits the first place alone, so all must move
    assert len(max_pairs([*([row, row + 1] for row in range(size - 1)), [0]])) == size


def test_turns_are_matched_with_the_turn_of_the_same_number() -> None:
    assert match([["a"], ["b"]], [["a"], ["b"]], eq, "turns") == {(0, 0): (0, 0), (1, 0): (1, 0)}
    assert match([["a"], ["b"]], [["a", "b"]], eq, "turns") == {(0, 0): (0, 0)}
    assert match([["a", "b"]], [["b"], ["a"]], eq, "any") == {(0, 0): (0, 1), (1, 0): (0, 0)}
    assert len(match([["a", "b"]], [["b"], ["a"]], eq, "given")) == 1
