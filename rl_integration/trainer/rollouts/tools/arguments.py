"""Whether a call's arguments are those that a tool takes.

Not covered: schemas within schemas; a tool looks into its lists and objects itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def objection(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with arguments, for the policy to read; "" if nothing is.

    Args:
        parameters: JSON schema of the arguments.
        arguments: as they were called with.
    """
    properties: Mapping[str, Mapping[str, Any]] = parameters.get("properties", {})
    taken = ", ".join(properties) or "none"
    for name in parameters.get("required", ()):
        if name not in arguments:
            return f"the argument {name!r} is missing; it takes {taken}"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no argument {str(name)[:60]!r}; it takes {taken}"
        wanted = properties[name].get("type")
        if wanted is not None and not _fits(wanted, value):
            return f"the argument {name!r} is of the type {type(value).__name__}; it must be a JSON {wanted}"
        choices = properties[name].get("enum")
        if choices is not None and value not in choices:
            return f"the argument {name!r} must be one of {', '.join(map(str, choices))}"
    return ""


def only_text(parameters: Mapping[str, Any]) -> str | None:
    """Return the name of the one argument that a call must have, if it is a text and there is but one."""
    required = list(parameters.get("required", ()))
    if len(required) != 1:
        return None
    name: str = required[0]
    return name if parameters.get("properties", {}).get(name, {}).get("type") == "string" else None


def _fits(wanted: str, value: Any) -> bool:
    if isinstance(value, bool) and wanted in ("integer", "number"):
        return False
    return isinstance(value, _TYPES.get(wanted, (object,)))
