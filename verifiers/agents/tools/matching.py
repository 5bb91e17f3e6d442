"""Which calls that were made are which calls that were asked for: one to one, as many as possible.

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
Fits: TypeAlias = Callable[[Wanted, Made], bool]


def match(
    wanted: Sequence[Sequence[Wanted]], made: Sequence[Sequence[Made]], fits: Fits[Wanted, Made], order: Order
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (turn, place) of matched calls that were made, with that of the wanted call each is.

    Args:
        wanted: the calls of each turn; one turn unless the order is "turns".
        made: the calls of each turn that has any.
        fits: whether a call that was made is a wanted one.
        order: "any" takes calls of any turn in any order; "given" in the wanted order, across turns; "turns" takes
            those of the first turn in any order for the first wanted turn, and so on.
    """
    if order == "turns":
        found = {}
        for turn, (these, those) in enumerate(zip(wanted, made, strict=False)):
            pairs = most_pairs(these, those, fits)
            found.update({(turn, place): (turn, target) for place, target in pairs.items()})
        return found
    all_wanted = [call for turn in wanted for call in turn]
    places = [(turn, place) for turn, calls in enumerate(made) for place in range(len(calls))]
    all_made = [call for turn in made for call in turn]
    pairs = (in_order if order == "given" else most_pairs)(all_wanted, all_made, fits)
    return {places[at]: (0, target) for at, target in pairs.items()}


def most_pairs(wanted: Sequence[Wanted], made: Sequence[Made], fits: Fits[Wanted, Made]) -> dict[int, int]:
    """Return a largest matching: places of made calls, each with the place of its wanted call.

    Kuhn's augmenting paths: O(n) searches of O(n * m) steps.
    """
    edges = [[at for at, call in enumerate(made) if fits(target, call)] for target in wanted]
    owner: dict[int, int] = {}
    for target in range(len(wanted)):
        _augment(target, edges, owner)
    return owner


def _augment(start: int, edges: Sequence[Sequence[int]], owner: dict[int, int]) -> None:
    """Find a place for one more wanted call, moving others where that helps; breadth first, so no recursion."""
    came: dict[int, int] = {}  # a made call -> the wanted call that reached it
    queue = [start]
    for target in queue:
        for at in edges[target]:
            if at in came:
                continue
            came[at] = target
            if at in owner:
                queue.append(owner[at])
                continue
            _take(at, start, came, owner)
            return


def _take(free: int, start: int, came: dict[int, int], owner: dict[int, int]) -> None:
    """Hand a free made call to the end of the path that reached it, and each one's former call to the one before."""
    held = {target: at for at, target in owner.items()}
    at = free
    while True:
        target = came[at]
        owner[at] = target
        if target == start:
            return
        at = held[target]


def in_order(wanted: Sequence[Wanted], made: Sequence[Made], fits: Fits[Wanted, Made]) -> dict[int, int]:
    """Return a longest matching that keeps the order of both: places of made calls with those of wanted ones."""
    rows, columns = len(wanted), len(made)
    fit = [[fits(target, call) for call in made] for target in wanted]
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            both = best[row + 1][column + 1] + 1 if fit[row][column] else 0
            best[row][column] = max(both, best[row + 1][column], best[row][column + 1])
    found, row, column = {}, 0, 0
    while row < rows and column < columns:
        if fit[row][column] and best[row][column] == best[row + 1][column + 1] + 1:
            found[column] = row
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return found
