"""JSON that a model wrote: read strictly, and never a reason to raise.

Refused beyond what JSON forbids: NaN and the infinities, a key that stands twice in one object, and nesting or numbers
beyond what Python reads.

Not covered: schemas.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def read_json(text: str) -> tuple[Any, str]:
    """Return what a JSON text holds and "", or None and why it cannot be read."""
    try:
        return _DECODER.decode(text.strip()), ""
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)[:200]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object")
    return read


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number, object_pairs_hook=_once)
