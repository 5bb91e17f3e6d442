"""What a reference asks for: calls, with the tools they may be made with.

Not covered: references of `tool_execution`, whose expected values are results.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.agents.tools.matching import ORDERS, Order
from adjudge.verifiers.agents.tools.python_calls import MOST_CALLS
from adjudge.verifiers.agents.tools.schemas import Tools, json_text, read_tools
from adjudge.verifiers.agents.tools.values import MOST_ALLOWED, NotDataError, allowed, check_choices, data
from adjudge.verifiers.code.outcome import shorten

_FIELDS: Final = frozenset({"calls", "tools", "order"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is asked for; its arguments may hold choices."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReference:
    """A reference of `tool_calls`.

    Attributes:
        turns: the wanted calls of each turn, one turn unless the order is "turns"; None if any valid calls are right.
        order: see `matching.match`.
        tools: the tools there are; None where nothing is said of them.
    """

    turns: tuple[tuple[Wanted, ...], ...] | None
    order: Order
    tools: Tools | None

    @property
    def count(self) -> int:
        """How many calls are wanted."""
        return sum(map(len, self.turns or ()))

    @property
    def names(self) -> Collection[str]:
        """The tools that are known by name."""
        if self.tools is not None:
            return self.tools.validators
        return {call.name for turn in self.turns or () for call in turn}


def read_reference(reference: Any) -> CallReference:
    """Return what a reference asks for.

    Raises:
        BadReferenceError: it is malformed, or a wanted call is none that its own tools allow.
        NoSchemasError: it has tools, and `jsonschema` is not installed.
    """
    return _read(json_text(unpacked(reference), "the reference"))


def unpacked(reference: Any) -> Any:
    """Return what a reference holds that is a JSON text, as in a column of a table; any other as it is."""
    if not isinstance(reference, str):
        return reference
    try:
        return json.loads(reference)
    except (ValueError, RecursionError) as error:
        raise BadReferenceError(
            f"the reference is the text {shorten(reference, 60)}, which is no JSON: {str(error)[:80]}", mistake=True
        ) from error


@lru_cache(maxsize=1024)
def _read(text: str) -> CallReference:
    reference = json.loads(text)
    if isinstance(reference, list):
        reference = {"calls": reference}
    if not isinstance(reference, Mapping) or not reference or not reference.keys() <= _FIELDS:
        raise BadReferenceError(
            f'the reference is {shorten(reference, 80)}; give {{"calls": [{{"name": .., "arguments": {{..}}}}, ..]}}, '
            '"tools", or both',
            mistake=True,
        )
    tools = read_tools(reference["tools"]) if reference.get("tools") is not None else None
    order = read_order(reference.get("order", "any"))
    if reference.get("calls") is None:
        if tools is None:
            raise BadReferenceError(
                f'the reference is {shorten(reference, 80)}; it needs "calls" or "tools"', mistake=True
            )
        return CallReference(turns=None, order=order, tools=tools)
    turns = tuple(
        tuple(read_wanted(call, f"call {at} of turn {turn}") for at, call in enumerate(calls))
        for turn, calls in enumerate(by_turns(reference["calls"], order, "calls"))
    )
    if tools is not None:
        for call in (call for turn in turns for call in turn):
            _check_valid(call, tools)
    return CallReference(turns=turns, order=order, tools=tools)


def _check_valid(call: Wanted, tools: Tools) -> None:
    """Raise `BadReferenceError` if no choice makes a wanted call valid: nobody could be right."""
    ways = allowed(call.arguments)
    if len(ways) > MOST_ALLOWED:
        return
    faults = [tools.fault(call.name, way) for way in ways]
    if all(faults):
        raise BadReferenceError(
            f'the "tools" allow no wanted call of {call.name!r}: {faults[0]}; correct the call or the schema',
            mistake=True,
        )


def read_order(order: Any) -> Order:
    """Return an order by its name.

    Raises:
        BadReferenceError: there is none of that name.
    """
    for known in ORDERS:
        if order == known:
            return known
    raise BadReferenceError(f'"order" is {shorten(order, 40)}; give one of {", ".join(ORDERS)}', mistake=True)


def by_turns(given: Any, order: Order, field: str) -> Sequence[Sequence[Any]]:
    """Return the lists of a field, one for each turn if the order is "turns", else one.

    Raises:
        BadReferenceError: it is no list, no list of lists, or too long.
    """
    turns = given if order == "turns" else [given]
    if not _is_list(turns) or not all(map(_is_list, turns)):
        shape = "a list of lists, one for each turn" if order == "turns" else "a list"
        raise BadReferenceError(f'"{field}" is {shorten(given, 60)}; give {shape}', mistake=True)
    if order == "turns" and not all(turns):
        raise BadReferenceError(f'a turn of "{field}" is empty; only turns with calls are counted', mistake=True)
    if sum(map(len, turns)) > MOST_CALLS:
        raise BadReferenceError(f'"{field}" has more than {MOST_CALLS} entries', mistake=True)
    return list(turns)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def read_wanted(call: Any, where: str) -> Wanted:
    """Return a call of a reference.

    Raises:
        BadReferenceError: it is none; the message names it as `where`.
    """
    if not isinstance(call, Mapping) or not {"name"} <= call.keys() <= {"name", "arguments"}:
        raise BadReferenceError(f'{where} is {shorten(call, 60)}; give "name" and "arguments"', mistake=True)
    name = call["name"]
    if not isinstance(name, str) or not name:
        raise BadReferenceError(f"{where} has the name {shorten(name, 40)}; give a text", mistake=True)
    try:
        arguments = data(call.get("arguments", {}))
        if not isinstance(arguments, dict):
            raise NotDataError(f"they are a {type(arguments).__name__}; give a mapping of names to values")
        for value in arguments.values():
            check_choices(value)
    except NotDataError as error:
        raise BadReferenceError(f"the arguments of {where}: {error}", mistake=True) from error
    return Wanted(name, arguments)
