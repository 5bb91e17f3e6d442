"""The operations that one process asks of the other, by name, and how they are done.

The file uses the standard library alone, because the sandbox's Python loads it too.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import operator
from collections.abc import Callable
from typing import Any

from adjudge.sandbox import library_values
from adjudge.sandbox.remote import ARITHMETIC, ORDER

_MAX_ITEMS = 1_000_000
_MAX_UNTOLD = 10_000  # items of what does not say how many it has


def _fields_of(value: Any) -> list[tuple[str, Any, bool, dict[str, Any]]] | None:
    """Return the name, type, `init` and default, if it has one, of each field of a data class; None for all else."""
    if not dataclasses.is_dataclass(value):
        return None
    return [
        (one.name, one.type, one.init, {} if one.default is dataclasses.MISSING else {"default": one.default})
        for one in dataclasses.fields(value)
    ]


def _signature_of(function: Any) -> tuple[list[tuple[str, int, dict[str, Any]]], dict[str, Any]]:
    """Return the name and kind of each parameter, with its default and annotation if it has them, and of the result."""
    signature = inspect.signature(function)
    told = []
    for one in signature.parameters.values():
        more = {"default": one.default, "annotation": one.annotation}
        told.append((one.name, int(one.kind), {key: value for key, value in more.items() if value is not one.empty}))
    result = signature.return_annotation
    return told, {} if result is signature.empty else {"return_annotation": result}


def _items_of(value: Any) -> tuple[int, list[Any]] | None:
    """Return how many items an object says it has, and its items; None for an iterator, and what has none."""
    kind = type(value)
    if not hasattr(kind, "__iter__") or not (hasattr(kind, "__len__") or hasattr(kind, "__getitem__")):
        return None
    over = iter(value)
    if over is value or over is iter(value):
        return None
    if not hasattr(kind, "__len__"):
        items = list(itertools.islice(over, _MAX_UNTOLD + 1))
        return None if len(items) > _MAX_UNTOLD else (len(items), items)
    length = len(value)
    return length, list(itertools.islice(over, min(length, _MAX_ITEMS) + 1))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "bool": bool, "str": str, "repr": repr, "int": int, "float": float, "len": len, "iter": iter, "next": next,
    "index": operator.index, "neg": operator.neg, "abs": abs, "enter": lambda value: value.__enter__(),
    "pos": operator.pos, "invert": operator.invert, "complex": complex, "bytes": bytes, "hash": hash,
    "data": library_values.as_plain, "reversed": reversed, "copy": copy.copy, "deepcopy": copy.deepcopy,
    "items": _items_of, "fields": _fields_of, "signature": _signature_of,
    "kinds": lambda value: [kind.__name__ for kind in type(value).__mro__],
}  # fmt: skip
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in ("eq", "ne", *ORDER, *ARITHMETIC)},
    "divmod": divmod, "getattr": getattr, "getitem": operator.getitem, "delitem": operator.delitem,
    "contains": operator.contains, "instance": lambda kind, value: isinstance(value, kind),
    "subclass": lambda kind, value: issubclass(value, kind), "format": format, "delattr": delattr,
    **{f"i{name}": getattr(operator, f"__i{name}__") for name in ARITHMETIC},
}  # fmt: skip
READING = frozenset({"bool", "str", "repr", "int", "float", "len", "index", "hash", "items", "kinds", "getattr"})
"""What changes nothing of the views that the tests have of an object (`Notes.views`)."""

COMPARING = READING - {"getattr"} | {"data", "eq", "ne", "instance", "subclass", *ORDER}
"""What tests do in a comparison, during which their containers stay as they are (`Aliases.take`)."""


def perform(operation: str, thing: Any, values: list[Any], keywords: dict[str, Any]) -> Any:
    """Do an operation on an object and return its result."""
    if operation == "call":
        return thing(*values, **keywords)
    if operation == "throw":
        raise thing(*values, **keywords)
    if operation == "method":
        return getattr(thing(), values[0])(*values[1:], **keywords)
    if operation == "setattr":
        return setattr(thing, values[0], values[1])
    if operation == "round":
        return round(thing, *values)
    if operation == "setitem":
        return operator.setitem(thing, values[0], values[1])
    if operation in _UNARY:
        return _UNARY[operation](thing)
    if operation[:1] == "r" and operation[1:] in _BINARY:
        return _BINARY[operation[1:]](values[0], thing)
    return _BINARY[operation](thing, values[0])
