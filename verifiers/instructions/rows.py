"""Rows of public instruction-following sets as lists of constraints, the reference of the scorer `instructions`.

A row of IFEval or IFBench has "instruction_id_list" and, in the same order, "kwargs".  IFEval's ids come with a
language before them in some copies ("en:punctuation:no_comma"); IFBench's kwargs name every argument there is, most of
them null, and give whole numbers as 36.0.

Not covered: whether the kinds exist and the arguments fit, which `constraint` checks, and
constraints written as prose (`muldimif`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_LANGUAGES: Final = ("en:",)


def ifeval_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of IFEval asks for: `[{"kind": .., "args": {..}}, ..]`.

    Raises:
        ValueError: the row has no list of ids, or not as many arguments.
    """
    return _constraints(row, "an IFEval row")


def ifbench_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of IFBench asks for: `[{"kind": .., "args": {..}}, ..]`.

    Raises:
        ValueError: the row has no list of ids, or not as many arguments.
    """
    return _constraints(row, "an IFBench row")


def _constraints(row: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    ids = row.get("instruction_id_list")
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise ValueError(f'{what} has "instruction_id_list" {ids!r}; it must be a list of ids, "group:name"')
    given = row.get("kwargs")
    if not isinstance(given, list) or len(given) != len(ids):
        raise ValueError(f'{what} has "kwargs" {given!r}; it must be a list of {len(ids)} objects, one for each id')
    return [{"kind": _kind(one), "args": _args(args, one, what)} for one, args in zip(ids, given, strict=True)]


def _kind(one: str) -> str:
    for language in _LANGUAGES:
        one = one.removeprefix(language)
    return one


def _args(args: Any, one: str, what: str) -> dict[str, Any]:
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise ValueError(f"{what} has the kwargs {args!r} for {one!r}; they must be an object")
    return {str(name): _plain(value) for name, value in args.items() if value is not None}


def _plain(value: Any) -> Any:
    """Return a whole number as an `int`; other values stay."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
