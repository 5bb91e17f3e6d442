"""Designs that differ from a reference in one place, as wrong answers do.

One change each: another operator, a negation dropped, a condition or an assigned value turned round, an edge or a
number changed.  Changes are made at the places that the syntax tree names, in the text as it was written.

Not covered: whether a mutant behaves differently.  Some do not; a comparison of both must say so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from adjudge.hardware.front_end import SyntaxFaultError, is_token, parse

_OPERATORS = {
    "+": "-", "-": "+", "*": "+", "&": "|", "|": "&", "^": "|", "~^": "^", "^~": "^", "&&": "||", "||": "&&",
    "==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
    "<<": ">>", ">>": "<<", ">>>": ">>",
}  # fmt: skip
_EDGES = {"posedge": "negedge", "negedge": "posedge"}
_ASSIGNMENTS = frozenset({"AssignmentExpression", "NonblockingAssignmentExpression"})
_RANGES = frozenset({"VariableDimension", "SimpleRangeSelect"})

Edit = tuple[int, int, str]
"""First and last byte of what is replaced, and what stands there then."""


def design_mutants(source: str, most: int, seed: str) -> list[str]:
    """Return up to `most` designs, each with one change, drawn by a seed; none if the source is no Verilog."""
    try:
        parsed = parse(source)
    except SyntaxFaultError:
        return []
    data = source.encode()  # slang counts bytes
    edits = sorted({edit for module in parsed.modules.values() for edit in _edits(module, data)})
    chosen = random.Random(seed).sample(edits, min(most, len(edits)))
    return [(data[:start] + new.encode() + data[end:]).decode() for start, end, new in sorted(chosen)]


def _edits(module: Any, data: bytes) -> Iterator[Edit]:
    """Yield the changes of a module; numbers in ranges of bits are left alone, because they change its ports."""
    waiting = [module]
    while waiting:
        node = waiting.pop()
        if node.kind.name not in _RANGES:
            yield from _changes(node, data)
            waiting += [part for part in node if part is not None and not is_token(part)]


def _changes(node: Any, data: bytes) -> Iterator[Edit]:
    kind = node.kind.name
    operator = getattr(node, "operatorToken", None)
    if kind.endswith("Expression") and operator is not None and is_token(operator):
        if kind.startswith("Unary"):
            new = " " if operator.rawText in ("~", "!") else ""
        else:
            new = "" if "Assignment" in kind else _OPERATORS.get(operator.rawText, "")
            if kind in _ASSIGNMENTS:
                yield from _wrapped(node.right, "~", data)
        yield from _replaced(operator, new, data)
    elif kind == "SignalEventExpression":
        yield from _replaced(node.edge, _EDGES.get(node.edge.rawText, ""), data)
    elif kind == "ConditionalPredicate":
        yield from _wrapped(node, "!", data)
    elif kind == "IntegerVectorExpression":
        yield from _replaced(node.value, _other_digits(node.value.rawText, node.base.rawText[-1].lower()), data)
    elif kind == "IntegerLiteralExpression" and len(node.literal.rawText) < 20:
        number = node.literal.rawText
        yield from _replaced(node.literal, str(int(number) + 1) if number.isdecimal() else "", data)


def _other_digits(digits: str, base: str) -> str:
    """Return a number one bit, or one, away; "" for digits that are unknown."""
    last = digits[-1:].lower()
    if base == "d":
        number = digits.replace("_", "")
        return str(int(number) - 1 if int(number) else 1) if number.isdecimal() else ""
    if base in "bho" and last in "0123456789abcdef":
        return digits[:-1] + f"{int(last, 16) ^ 1:x}"
    return ""


def _replaced(token: Any, new: str, data: bytes) -> Iterator[Edit]:
    """Yield the change of a token, unless there is none, or the token stands in a macro's text."""
    start = token.location.offset
    end = start + len(token.rawText.encode())
    if new and data[start:end] == token.rawText.encode():
        yield start, end, new


def _wrapped(node: Any, operator: str, data: bytes) -> Iterator[Edit]:
    """Yield the change that puts an operator before an expression, unless it stands in a macro's text."""
    start, end = node.sourceRange.start.offset, node.sourceRange.end.offset
    old = data[start:end].decode(errors="replace")
    if old.split() == str(node).split():
        yield start, end, f"{operator}({old})"
