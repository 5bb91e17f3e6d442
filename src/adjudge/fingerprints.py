"""Fingerprints of scorers: texts that differ wherever the same sample could get another score.

They depend on a scorer's name, its version, the options that are not their defaults, and on whatever engines, models,
prompts and scorers are behind it.  They do not depend on where a class lies, nor on options that came later and whose
default changes nothing: stored scores stay valid when code moves.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from adjudge import wire

_MISSING = type(dataclasses.MISSING)  # of a class that was pickled by value, each field has one of its own


def signed(name: str, *told: Any) -> str:
    """Return a name with 16 hex digits of the hash of plain data behind it."""
    return f"{name}:{hashlib.sha256(wire.dumps(plain(told)).encode()).hexdigest()[:16]}"


def fingerprint_of(scorer: Any, *more: Any, of: type | None = None, without: Collection[str] = ()) -> str:
    """Return the fingerprint of a scorer that is a dataclass of options.

    A class that takes its name from the one it derives from is told apart by its own name.

    Args:
        scorer: has `name` and `version`.
        more: what else its scores depend on.
        of: the class whose fields are the options, where `more` tells those of its subclasses.
        without: options that no score depends on, or that `more` tells.
    """
    kind = type(scorer)
    inherits = "name" not in vars(kind) and "name" not in {item.name for item in dataclasses.fields(kind)}
    own = [kind.__qualname__] if inherits else []
    return signed(scorer.name, scorer.version, changed_options(scorer, of or kind, without), *own, *more)


def changed_options(options: Any, of: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as plain data; scorers and engines always."""
    changed = {}
    for item in dataclasses.fields(of):
        if not item.init or item.name in without:
            continue
        given, usual = getattr(options, item.name), item.default
        if callable(item.default_factory):
            usual = item.default_factory()
        told = plain(given)
        versioned = isinstance(told, str) and not isinstance(given, str)  # a default, too, may change what it does
        if versioned or isinstance(usual, _MISSING) or wire.dumps(told) != wire.dumps(plain(usual)):
            changed[item.name] = told
    return changed


def plain(value: Any) -> Any:
    """Return plain data: scorers and engines by fingerprint, templates by digest, dataclasses by their options."""
    for identity in ("fingerprint", "digest"):
        if isinstance(text := getattr(value, identity, None), str):
            return text
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, changed_options(value, type(value))]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
