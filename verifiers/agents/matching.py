"""Which things are which others, one to one and as many as possible: calls and wanted calls, findings and references.

Taking for each wanted call the first that fits can leave a later one without: if the calls A and B are wanted, x fits
both and y fits A alone, A must not take x.

Not covered: what fits; the caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

Order: TypeAlias = Literal["any", "given", "turns"]
ORDERS: tuple[Order, ...] = ("any", "given", "turns")

Wanted = TypeVar("Wanted")
Made = TypeVar("Made")


def match(
    wanted: Sequence[Sequence[Wanted]],
    made: Sequence[Sequence[Made]],
    fits: Callable[[Wanted, Made], bool],
    order: Order,
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (turn, place) of matched calls that were made, with that of the wanted call each is.

    The order "any" takes calls of any turn in any order; "given" in the wanted order, across turns; "turns" those of
    the first turn that has any, in any order, for the first wanted turn, and so on.  Else there is one wanted turn.
    """

    def edges(these: Sequence[Wanted], those: Sequence[Made]) -> list[list[int]]:
        return [[at for at, call in enumerate(those) if fits(target, call)] for target in these]

    if order == "turns":
        return {
            (turn, place): (turn, target)
            for turn, (these, those) in enumerate(zip(wanted, made, strict=False))
            for place, target in max_pairs(edges(these, those)).items()
        }
    places = [(turn, place) for turn, calls in enumerate(made) for place in range(len(calls))]
    allowed = edges([call for turn in wanted for call in turn], [call for turn in made for call in turn])
    pairs = in_order(allowed, len(places)) if order == "given" else max_pairs(allowed)
    return {places[at]: (0, target) for at, target in pairs.items()}


def max_pairs(edges: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return a largest matching, columns with the row of each, from the columns that each row may have, best first.

    Berge's augmenting paths, breadth first, so without recursion: each row in its order takes the first of its columns
    that is free, and others give way where that helps.
    """
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for start in range(len(edges)):
        _augment(start, edges, row_of, column_of)
    return row_of


def _augment(start: int, edges: Sequence[Sequence[int]], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Find a column for a row, and others for the rows that give way to it."""
    came: dict[int, int] = {}  # a column -> the row that reached it
    rows = [start]
    for row in rows:
        for column in edges[row]:
            if column in came:
                continue
            came[column] = row
            if column in row_of:
                rows.append(row_of[column])
                continue
            end: int | None = column
            while end is not None:
                owner = came[end]
                row_of[end] = owner
                column_of[owner], end = end, column_of.get(owner)
            return


def in_order(edges: Sequence[Sequence[int]], columns: int) -> dict[int, int]:
    """Return a longest matching that keeps the order of both: columns, of so many, with the row of each."""
    rows, fit = len(edges), [frozenset(row) for row in edges]
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            both = best[row + 1][column + 1] + 1 if column in fit[row] else 0
            best[row][column] = max(both, best[row + 1][column], best[row][column + 1])
    pairs, row, column = {}, 0, 0
    while row < rows and column < columns:
        if column in fit[row] and best[row][column] == best[row + 1][column + 1] + 1:
            pairs[column] = row
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs
