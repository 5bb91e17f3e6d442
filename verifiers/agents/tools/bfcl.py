"""References of the Berkeley Function-Calling Leaderboard (BFCL) as references of `tool_calls`.

BFCL gives every argument a list of accepted values, in which an empty text marks that the argument may be left out.
Here that becomes a choice with "optional", so that an empty text is accepted only where it is really meant: as a value
of a required text.  Mappings inside have such lists for their keys.

Source: the data format of `gorilla/berkeley-function-call-leaderboard`, categories simple, multiple, parallel and
irrelevance.  Not covered: its Java and JavaScript categories, and multi-turn ones, whose tools are classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.code.outcome import shorten


def bfcl_reference(functions: Sequence[Mapping[str, Any]], ground_truth: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reference of one row.

    Args:
        functions: the row's "function": names, with parameters as BFCL writes them.
        ground_truth: its "ground_truth": `[{"name": {"argument": [accepted, ..]}}, ..]`; empty for irrelevance.

    Raises:
        BadReferenceError: the row is malformed, or calls a function that it does not have.
    """
    known = {function.get("name"): function.get("parameters") or {} for function in functions}
    calls = []
    for call in ground_truth:
        if not isinstance(call, Mapping) or len(call) != 1:
            raise BadReferenceError(f"a call is {shorten(call, 60)}; give one name with arguments", mistake=True)
        ((name, arguments),) = call.items()
        if name not in known or not isinstance(arguments, Mapping):
            raise BadReferenceError(f"{name!r} is no function of the row, or has no arguments", mistake=True)
        calls.append({"name": name, "arguments": _mapping(arguments, known[name])})
    return {"calls": calls, "tools": [dict(function) for function in functions], "order": "any"}


def _mapping(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: _choice(accepted, properties.get(name) or {}, required=name in required)
        for name, accepted in arguments.items()
    }


def _choice(accepted: Any, schema: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    if not isinstance(accepted, list) or not accepted:
        raise BadReferenceError(f"accepted values are {shorten(accepted, 40)}; give a list", mistake=True)
    optional = "" in accepted and not required
    values = [_value(one, schema) for one in accepted if not (optional and one == "")]
    return {"any_of": values or [""], "optional": optional}


def _value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return one accepted value; in a mapping each key has a list of accepted values."""
    if isinstance(value, Mapping):
        return _mapping(value, schema)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_value(item, items) for item in value]
    return value
