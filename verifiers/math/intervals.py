r"""Sets of real numbers as sorted, merged intervals, so that `x \ne 2` and `(-\infty,2)\cup(2,\infty)` meet.

Not covered: sets with free variables in their ends, and conditions other than comparisons with constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from adjudge.verifiers.math.nodes import Collection, Constant, Node, Number, Operation, Relation, Symbol, is_expression
from adjudge.verifiers.math.scalars import less_at
from adjudge.verifiers.math.values import exact, free_names

MIRROR: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
PLUS: Final = Constant("oo")
MINUS: Final = Operation("neg", (PLUS,))
MAX_INTERVALS: Final = 40


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; a single point has equal, closed ends."""

    low: Node
    high: Node
    low_closed: bool = False
    high_closed: bool = False

    def bracket(self) -> Node:
        """Return the interval as the tree of `[a,b)`."""
        signs = ("[" if self.low_closed else "(") + ("]" if self.high_closed else ")")
        return Collection("bracket", (self.low, self.high), signs)


def intervals_of(node: Node, *, as_set: bool = False) -> list[Interval] | None:
    """Return the intervals that a node describes, merged and in order, or None when it describes no such set.

    Args:
        node: an interval, a union, a set of numbers, a condition on one unknown, or several joined by "or".
        as_set: read `{1, 2}` as a set of points (only beside an interval is that what is meant).
    """
    found = _parts(node, as_set)
    return _merged(found) if found is not None and 0 < len(found) <= MAX_INTERVALS else None


def _parts(node: Node, as_set: bool) -> list[Interval] | None:
    if isinstance(node, Collection):
        if node.kind == "bracket":
            if len(node.items) != 2 or node.brackets == "<>" or not all(_closed_end(item) for item in node.items):
                return None
            return [Interval(node.items[0], node.items[1], node.brackets[0] == "[", node.brackets[1] == "]")]
        if node.kind == "set" and as_set:
            return (
                [Interval(item, item, True, True) for item in node.items] if all(map(_closed_end, node.items)) else None
            )
        if node.kind == "union" or (
            node.kind == "list" and _one_unknown(node) and (node.brackets == "or" or _excludes(node))
        ):
            if node.kind == "list" and _excludes(node):
                return _without(node)
            found: list[Interval] = []
            for item in node.items:
                part = _parts(item, as_set=True)
                if part is None:
                    return None
                found += part
            return found
        return None
    if node == Constant("R"):
        return [Interval(MINUS, PLUS)]
    if isinstance(node, Operation):
        return _from_operation(node)
    return _from_relation(node) if isinstance(node, Relation) else None


def _excludes(node: Collection) -> bool:
    """Whether every condition takes out a point; these hold together, however they are joined."""
    return all(isinstance(item, Relation) and item.operators == ("!=",) for item in node.items)


def _from_operation(node: Operation) -> list[Interval] | None:
    if node.name == "such_that":
        head, condition = node.args
        if isinstance(head, Relation) and head.operators == ("in",) and head.sides[1] == Constant("R"):
            head = head.sides[0]
        fits = (
            isinstance(condition, Relation) and isinstance(head, Symbol) and any(_is(head, s) for s in condition.sides)
        )
        return _parts(condition, False) if fits else None
    if node.name == "setminus" and node.args[0] == Constant("R"):
        removed = node.args[1]
        if isinstance(removed, Collection) and removed.kind == "set" and all(map(_closed_end, removed.items)):
            return _line_without(list(removed.items))
    return None


def _is(unknown: Node, side: Node) -> bool:
    return side == unknown or side == Operation("abs", (unknown,))


def _unknown(node: Node) -> bool:
    return isinstance(node, Symbol) or (isinstance(node, Operation) and node.name == "call")


def _closed_end(node: Node) -> bool:
    return is_expression(node) and not free_names(node)


def _one_unknown(node: Collection) -> bool:
    names = [free_names(item) for item in node.items]
    return all(isinstance(item, Relation) for item in node.items) and len(set().union(*names)) == 1


def _from_relation(node: Relation) -> list[Interval] | None:
    sides, operators = node.sides, node.operators
    if operators == ("in",) and _unknown(sides[0]):
        return _parts(sides[1], True)
    if len(sides) == 2 and operators[0] in MIRROR and operators[0] != "=":
        left, operator, right = sides[0], operators[0], sides[1]
        if not (_unknown(left) or _absolute(left)):
            left, operator, right = right, MIRROR[operator], left
        if not _closed_end(right):
            return None
        if _unknown(left):
            return _compared(operator, right)
        return _absolute_compared(operator, right) if _absolute(left) else None
    if len(sides) == 3 and _closed_end(sides[0]) and _closed_end(sides[2]):
        low, high = sides[0], sides[2]
        if set(operators) <= {">", ">="}:
            low, high, operators = high, low, (MIRROR[operators[1]], MIRROR[operators[0]])
        if set(operators) <= {"<", "<="}:
            middle = Interval(low, high, operators[0] == "<=", operators[1] == "<=")
            if _unknown(sides[1]):
                return [middle]
            return _both_signs(middle) if _absolute(sides[1]) else None
    return None


def _both_signs(part: Interval) -> list[Interval] | None:
    """Return where |x| lies in an interval of positive numbers."""
    low, high = exact(part.low), exact(part.high)
    if low is None or high is None or low <= 0:
        return None
    return [Interval(Number(-high), Number(-low), part.high_closed, part.low_closed), part]


def _absolute(node: Node) -> bool:
    return isinstance(node, Operation) and node.name == "abs" and _unknown(node.args[0])


def _compared(operator: str, value: Node) -> list[Interval]:
    if operator == "!=":
        return _line_without([value])
    if operator in ("<", "<="):
        return [Interval(MINUS, value, False, operator == "<=")]
    return [Interval(value, PLUS, operator == ">=", False)]


def _absolute_compared(operator: str, value: Node) -> list[Interval] | None:
    number = exact(value)
    if number is None or number <= 0 or operator == "!=":
        return None
    negative = Number(-number)
    if operator in ("<", "<="):
        return [Interval(negative, value, operator == "<=", operator == "<=")]
    return [Interval(MINUS, negative, False, operator == ">="), Interval(value, PLUS, operator == ">=", False)]


def _without(node: Collection) -> list[Interval] | None:
    values = []
    for item in node.items:
        assert isinstance(item, Relation)
        value = item.sides[1] if _unknown(item.sides[0]) else item.sides[0]
        if not _closed_end(value):
            return None
        values.append(value)
    return _line_without(values)


def _line_without(values: list[Node]) -> list[Interval]:
    ordered = _sorted(values)
    if ordered is None:
        return []
    ends = [MINUS, *ordered, PLUS]
    return [Interval(low, high) for low, high in pairwise(ends)]


def _less(left: Node, right: Node) -> bool | None:
    if left == right:
        return False
    if left == MINUS or right == PLUS:
        return True
    if right == MINUS or left == PLUS:
        return False
    a, b = exact(left), exact(right)
    return a < b if a is not None and b is not None else less_at(left, right, {})


def _sorted(values: list[Node]) -> list[Node] | None:
    found: list[Node] = []
    for value in values:
        at = 0
        while at < len(found):
            less = _less(value, found[at])
            if less is None:
                return None
            if less:
                break
            at += 1
        found.insert(at, value)
    return found


def _merged(parts: list[Interval]) -> list[Interval] | None:
    ordered: list[Interval] = []
    for part in parts:
        if _less(part.high, part.low) is not False and part.high != part.low:
            return None
        at = 0
        while at < len(ordered):
            less, more = _less(part.low, ordered[at].low), _less(ordered[at].low, part.low)
            if less is None or more is None:
                return None
            if less or (not more and part.low_closed):
                break
            at += 1
        ordered.insert(at, part)
    found = ordered[:1]
    for part in ordered[1:]:
        last = found[-1]
        apart = _less(last.high, part.low)
        if apart is None:
            return None
        touching = not apart and (_less(part.low, last.high) or last.high_closed or part.low_closed)
        if not touching:
            found.append(part)
            continue
        beyond = _less(last.high, part.high)
        if beyond is None:
            return None
        same = not beyond and not _less(part.high, last.high)
        high, closed = (
            (part.high, part.high_closed) if beyond else (last.high, last.high_closed or (same and part.high_closed))
        )
        starts = last.low_closed or (part.low_closed and not _less(last.low, part.low))
        found[-1] = Interval(last.low, high, starts, closed)
    return found
