"""The error of a reference that a scorer cannot use."""

from __future__ import annotations

import json
from typing import Any


class BadReferenceError(ValueError):
    """A reference that cannot be used.

    Attributes:
        mistake: True when its type or shape is wrong, which the user can repair for all samples at once; False when
            one value of the right shape says nothing that the scorer understands.
        limit: True when it ran into a limit, which may be the machine's fault and not its own.
    """

    def __init__(self, message: str, *, mistake: bool = False, limit: bool = False) -> None:
        super().__init__(message)
        self.mistake = mistake
        self.limit = limit


def object_in(reference: Any) -> Any:
    """Return the object, or list of objects, whose JSON text a reference is; None for any other reference.

    Rows of files are read that way; where a reference counts as it is, such a text is mostly a mistake.
    """
    if not isinstance(reference, str) or reference.lstrip()[:1] not in ("{", "["):
        return None
    try:
        read = json.loads(reference)
    except (ValueError, RecursionError):
        return None
    listed = isinstance(read, list) and read and all(isinstance(item, dict) for item in read)
    return read if isinstance(read, dict) or listed else None


def json_hint(reference: Any) -> str:
    """Return what is to be said of a reference that is the JSON text of an object; "" for any other."""
    if (read := object_in(reference)) is None:
        return ""
    what, itself = ("a list of objects", "list") if isinstance(read, list) else ("an object", "object")
    return f"the reference is the JSON text of {what}; give the {itself} itself (adjudge score: --reference-json)"


class ReferenceFormError(BadReferenceError):
    """A reference of a wrong type or shape, which the user can repair for all samples at once."""

    def __init__(self, message: str) -> None:
        super().__init__(message, mistake=True)
