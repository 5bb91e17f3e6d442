"""The syntax tree of a mathematical answer.

Two layers.  *Expressions* have a value: `Number`, `Symbol`, `Constant`, `Unit`, `Operation`.  *Structures* arrange
expressions: `Collection` (tuples, sets, bare lists, intervals), `Matrix`, `Relation`, and `Words` for an answer
that is text.  All are immutable and compare by structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeGuard


class NotMathError(ValueError):
    """The text is not mathematics this parser reads; the message says where it stopped."""


class MisleadingMathError(NotMathError):
    """The text prints as something else than it says to a parser, so no other parser must be asked either."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal.

    Attributes:
        value: its exact value.
        places: digits written after the decimal point; -1 for anything that is not a terminating decimal.
        digits: significant digits written; 0 unless `places >= 0`.
    """

    value: Fraction
    places: int = -1
    digits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A free variable or named quantity, subscripts included: `x`, `c_1`, `y'`."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A fixed value: "pi", "e", "i", "oo" (infinity), or a named set: "R", "Z", "N", "Q", "C", "empty"."""

    name: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement (see `units`), or a counted noun when the name starts with "?"."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on expressions: "add", "mul", "div", "neg", "pow", "root", "sin", "log", "pm", ..."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Several items.

    Attributes:
        kind: "bracket" (a tuple, vector or interval, told apart by `brackets`), "set" (braces), "list" (bare,
            order not meant), "union" (items joined by a cup).
        items: the members, in the order written.
        brackets: the delimiters of a "bracket", such as "()", "[)", "<>"; else "".
    """

    kind: Literal["bracket", "set", "list", "union"]
    items: tuple[Node, ...]
    brackets: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of entries; `cases` marks the rows of a piecewise definition or a system."""

    rows: tuple[tuple[Node, ...], ...]
    cases: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain `side op side op side ...`, with operators "=", "!=", "<", "<=", ">", ">=", "in", "~" (approximately)."""

    operators: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words, lower-cased, with single spaces."""

    text: str


Expression: TypeAlias = Number | Symbol | Constant | Unit | Operation
Node: TypeAlias = Expression | Collection | Matrix | Relation | Words


_LEAVES: Final = frozenset((Number, Symbol, Constant, Unit, Words))


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct children of a node, in order."""
    kind = type(node)
    if kind is Operation:
        return node.args  # type: ignore[union-attr]
    if kind in _LEAVES:
        return ()
    if isinstance(node, Collection):
        return node.items
    if isinstance(node, Relation):
        return node.sides
    if isinstance(node, Matrix):
        return tuple(entry for row in node.rows for entry in row)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        below = children(node)
        if below:
            stack.extend(below[::-1])


def is_op(node: Node | None, *names: str) -> TypeGuard[Operation]:
    """Whether a node is an operation of one of these names."""
    return isinstance(node, Operation) and node.name in names


def minus(left: Node, right: Node) -> Operation:
    """Return the difference of two expressions."""
    return Operation("add", (left, Operation("neg", (right,))))


def rebuild(node: Node, parts: tuple[Node, ...]) -> Node:
    """Return the node with its direct children replaced, in the order of `children`."""
    if isinstance(node, Operation):
        return Operation(node.name, parts)
    if isinstance(node, Collection):
        return Collection(node.kind, parts, node.brackets)
    if isinstance(node, Relation):
        return Relation(node.operators, parts)
    if isinstance(node, Matrix):
        rows, at = [], 0
        for row in node.rows:
            rows.append(parts[at : at + len(row)])
            at += len(row)
        return Matrix(tuple(rows), node.cases)
    return node


def is_expression(node: Node) -> bool:
    """Whether the node has a value: no structure anywhere inside."""
    return all(isinstance(item, Number | Symbol | Constant | Unit | Operation) for item in walk(node))


def expand(node: Node) -> Node:
    r"""Write out plus-minus signs: `x = 2 \pm a` becomes the two equations, all signs of one choice together."""
    if isinstance(node, Collection) and node.kind in ("list", "set"):
        items: list[Node] = []
        for item in node.items:
            opened = expand(item)
            items.extend(
                opened.items
                if isinstance(opened, Collection) and opened is not item and opened.kind == "list"
                else [opened]
            )
        return (
            Collection(node.kind, tuple(items), node.brackets)
            if len(items) != len(node.items) or tuple(items) != node.items
            else node
        )
    if not any(is_op(item, "pm", "mp") for item in walk(node)):
        return node
    return Collection("list", (_choose(node, "pm"), _choose(node, "mp")))


def _choose(node: Node, plus: str) -> Node:
    if is_op(node, "pm", "mp"):
        left, right = (_choose(arg, plus) for arg in node.args)
        right = right if node.name == plus else Operation("neg", (right,))
        return right if left == ZERO else Operation("add", (left, right))
    return rebuild(node, tuple(_choose(part, plus) for part in children(node)))


ZERO: Final = Number(Fraction(0))
ONE: Final = Number(Fraction(1))
_AXES = tuple(Symbol(f"unit vector {axis}") for axis in "ijk")


def as_vector(node: Node, other: Node) -> Node:
    """Return a sum of unit vectors, or a point with its name, as the tuple it is beside another tuple or a column."""
    if not isinstance(other, Collection | Matrix) or not isinstance(node, Operation):
        return node
    if node.name in ("mul", "call") and len(node.args) == 2 and isinstance(other, Collection):
        name, point = node.args
        named = isinstance(name, Symbol) and name.name[:1].isupper()
        return point if named and isinstance(point, Collection) and point.kind == "bracket" else node
    size = len(other.items) if isinstance(other, Collection) else max(len(other.rows), len(other.rows[0]))
    if size not in (2, 3) or not any(item in _AXES for item in walk(node)):
        return node
    entries: dict[Node, list[Node]] = {axis: [] for axis in _AXES}
    for term in node.args if node.name == "add" else (node,):
        axes = [item for item in walk(term) if item in _AXES]
        share = _without(term)
        if len(axes) != 1 or share is None:
            return node
        entries[axes[0]].append(share)
    if size == 2 and entries[_AXES[2]]:
        return node
    vector = tuple(Operation("add", tuple(entries[axis])) if entries[axis] else ZERO for axis in _AXES[:size])
    return Collection("bracket", vector, "<>")


def _without(term: Node) -> Node | None:
    """Return what a term multiplies its unit vector by, or None where it is not a multiple of one."""
    if term in _AXES:
        return ONE
    if not isinstance(term, Operation):
        return None
    if term.name in ("neg", "div") and (inner := _without(term.args[0])) is not None:
        return Operation(term.name, (inner, *term.args[1:]))
    if term.name == "mul":
        return Operation("mul", tuple(ONE if arg in _AXES else arg for arg in term.args))
    return None


MAX_TERMS: Final = 200
MAX_NODES: Final = 4000  # of all terms together


def series(name: str, low: Node, high: Node, term: Node) -> Node | None:
    """Return the sum or product with its terms written out, or None where that cannot be done.

    Args:
        name: "sum" or "prod".
        low: what stands under the sign, `k = 1`.
        high: what stands over it.
        term: what is added or multiplied.
    """
    if not (isinstance(low, Relation) and low.operators == ("=",)):
        return None
    letter, first = low.sides
    if not (isinstance(letter, Symbol) or letter == Constant("i")):
        return None
    if not (isinstance(first, Number) and isinstance(high, Number) and is_expression(term)):
        return None
    if first.value.denominator != 1 or high.value.denominator != 1 or not 0 <= high.value - first.value < MAX_TERMS:
        return None
    numbers = range(int(first.value), int(high.value) + 1)
    if sum(1 for _ in islice(walk(term), MAX_NODES)) * len(numbers) > MAX_NODES:
        return None
    terms = tuple(put(term, letter, Number(Fraction(number))) for number in numbers)
    return terms[0] if len(terms) == 1 else Operation("add" if name == "sum" else "mul", terms)


def put(node: Node, letter: Node, value: Node) -> Node:
    """Return the tree with a value put for a letter."""
    return value if node == letter else rebuild(node, tuple(put(part, letter, value) for part in children(node)))
