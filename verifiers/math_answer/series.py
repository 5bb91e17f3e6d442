r"""Finite sums and products written with a sign: `\sum_{k=1}^{10} k^2`, `\prod_{k=2}^{5} \left(1-\frac1k\right)`.

Not covered: bounds that are no whole numbers, infinite series, and sums too long to be written out.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Final

from adjudge.verifiers.math_answer.nodes import (
    Constant,
    Node,
    Number,
    Operation,
    Relation,
    Symbol,
    children,
    is_expression,
    rebuild,
    walk,
)

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
