r"""Vectors and points written otherwise than as tuples: `\mathbf{i}+2\mathbf{j}`, `P(1,2)`."""

from __future__ import annotations

from fractions import Fraction

from adjudge.verifiers.math_answer.nodes import Collection, Matrix, Node, Number, Operation, Symbol, walk

_AXES = tuple(Symbol(f"unit vector {axis}") for axis in "ijk")
_ZERO = Number(Fraction(0))


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
    found = tuple(Operation("add", tuple(entries[axis])) if entries[axis] else _ZERO for axis in _AXES[:size])
    return Collection("bracket", found, "<>")


def _without(term: Node) -> Node | None:
    """Return what a term multiplies its unit vector by, or None where it is no multiple of one."""
    if term in _AXES:
        return Number(Fraction(1))
    if not isinstance(term, Operation):
        return None
    if term.name in ("neg", "div") and (inner := _without(term.args[0])) is not None:
        return Operation(term.name, (inner, *term.args[1:]))
    if term.name == "mul":
        return Operation("mul", tuple(Number(Fraction(1)) if arg in _AXES else arg for arg in term.args))
    return None
