"""Rows of public instruction-following sets as lists of constraints, the reference of the scorer `instructions`.

A row of IFEval or IFBench has "instruction_id_list" and, in the same order, "kwargs".  IFEval's ids come with a
language before them in some copies ("en:punctuation:no_comma"); IFBench's kwargs name every argument there is, most of
them null, and give whole numbers as 36.0.

Not covered: whether the kinds exist and the arguments fit, which `constraint` checks, and
constraints written as prose (`muldimif`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

IDS: Final = ("instruction_id_list", "instruction_id")
"""What the list of ids is called: in IFEval and IFBench, and in RLVR's `ground_truth`."""


def ifeval_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of IFEval asks for: `[{"kind": .., "args": {..}}, ..]`.

    Raises:
        ValueError: the row has no list of ids, or not as many arguments.
    """
    return _constraints(row, "an IFEval row")


def ifbench_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of IFBench asks for, as `ifeval_constraints`.

    Raises:
        ValueError: the row has no list of ids, or not as many arguments.
    """
    return _constraints(row, "an IFBench row")


def _constraints(row: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    name = next((name for name in IDS if name in row), IDS[0])
    ids = row.get(name)
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise ValueError(f'{what} has "{name}" {ids!r}; it must be a list of ids, "group:name"')
    given = row.get("kwargs")
    if isinstance(given, str):
        with contextlib.suppress(ValueError, RecursionError):
            given = json.loads(given)
    if not isinstance(given, list) or len(given) != len(ids):
        raise ValueError(f'{what} has "kwargs" {given!r}; it must be a list of {len(ids)} objects, one for each id')
    constraints = []
    for kind, args in zip(ids, given, strict=True):
        if not isinstance(args, Mapping | None):
            raise ValueError(f"{what} has the kwargs {args!r} for {kind!r}; they must be an object")
        plain = {str(name): _plain(value) for name, value in (args or {}).items() if value is not None}
        constraints.append({"kind": kind.removeprefix("en:"), "args": plain})
    return constraints


def _plain(value: Any) -> Any:
    """Return a whole number as an `int`; other values stay."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
