"""What references of tool calls ask for: of `tool_calls`, of `tool_execution`, and those of BFCL as the first.

The Berkeley Function-Calling Leaderboard (`gorilla/berkeley-function-call-leaderboard`, categories simple, multiple,
parallel and irrelevance) gives every argument a list of accepted values, in which an empty text marks that the argument
may be left out.  Here that becomes a choice with "optional", so that an empty text is accepted only where it is really
meant: as a value of a required text.  Mappings inside have such lists for their keys.

Not covered: whether the tools of `tool_execution` load, which shows when they run; BFCL's Java and JavaScript
categories, and multi-turn ones, whose tools are classes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from adjudge.responses.trajectories.trajectory import Call
from adjudge.sandbox import codec
from adjudge.scoring.bad_reference import ReferenceFormError
from adjudge.scoring.reference_fields import fields_of
from adjudge.verifiers.agents.matching import ORDERS, Order
from adjudge.verifiers.agents.tools.arguments import (
    MAX_ALLOWED,
    NotDataError,
    Tools,
    allowed,
    check_choices,
    data,
    json_text,
    read_tools,
)
from adjudge.verifiers.agents.tools.dialects import MAX_CALLS
from adjudge.verifiers.agents.tools.tool_session import Played, Toolbox, make_toolbox
from adjudge.verifiers.code.outcome import shorten

_FIELDS: Final = frozenset({"calls", "tools", "order"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is asked for; its arguments may hold choices."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReference:
    """A reference of `tool_calls`: the wanted calls, and the tools there are, None where nothing is said of them.

    There is one turn unless the order is "turns"; None if any valid calls are right.
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

    def allows(self, name: str, argument: str, value: Any) -> bool:
        """Return whether a tool may take a value for an argument."""
        return self.tools is None or self.tools.allows(name, argument, value)


def read_reference(reference: Any) -> CallReference:
    """Return what a reference asks for; its own tools must allow each wanted call, which needs `jsonschema`."""
    return _read(json_text(unpacked(reference), "the reference"))


def unpacked(reference: Any) -> Any:
    """Return what a reference holds that is a JSON text, as in a column of a table; any other as it is."""
    if not isinstance(reference, str):
        return reference
    try:
        return json.loads(reference)
    except (ValueError, RecursionError) as error:
        raise ReferenceFormError(
            f"the reference is the text {shorten(reference, 60)}, which is not JSON: {str(error)[:80]}"
        ) from error


@lru_cache(maxsize=1024)
def _read(text: str) -> CallReference:
    reference = json.loads(text)
    if isinstance(reference, list):
        reference = {"calls": reference}
    if not isinstance(reference, Mapping) or not reference or not reference.keys() <= _FIELDS:
        raise ReferenceFormError(
            f'the reference is {shorten(reference, 80)}; give {{"calls": [{{"name": .., "arguments": {{..}}}}, ..]}}, '
            '"tools", or both'
        )
    tools = read_tools(reference["tools"]) if reference.get("tools") is not None else None
    order = read_order(reference)
    if reference.get("calls") is None:
        if tools is None:
            raise ReferenceFormError(f'the reference is {shorten(reference, 80)}; it needs "calls" or "tools"')
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
    if len(ways) > MAX_ALLOWED:
        return
    faults = [tools.fault(call.name, way) for way in ways]
    if all(faults):
        raise ReferenceFormError(
            f'the "tools" allow no wanted call of {call.name!r}: {faults[0]}; correct the call or the schema'
        )


def read_order(reference: Mapping[str, Any]) -> Order:
    """Return the order that a reference names."""
    order = reference.get("order", "any")
    for known in ORDERS:
        if order == known:
            return known
    raise ReferenceFormError(f'"order" is {shorten(order, 40)}; give one of {", ".join(ORDERS)}')


def by_turns(given: Any, order: Order, field: str) -> Sequence[Sequence[Any]]:
    """Return the lists of a field, one for each turn if the order is "turns", else one."""
    turns = given if order == "turns" else [given]
    if not _is_list(turns) or not all(map(_is_list, turns)):
        shape = "a list of lists, one for each turn" if order == "turns" else "a list"
        raise ReferenceFormError(f'"{field}" is {shorten(given, 60)}; give {shape}')
    if order == "turns" and not all(turns):
        raise ReferenceFormError(f'a turn of "{field}" is empty; only turns with calls are counted')
    if sum(map(len, turns)) > MAX_CALLS:
        raise ReferenceFormError(f'"{field}" has more than {MAX_CALLS} entries')
    return list(turns)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def read_wanted(call: Any, where: str) -> Wanted:
    """Return a call of a reference, which errors name as `where`."""
    if not isinstance(call, Mapping) or not {"name"} <= call.keys() <= {"name", "arguments"}:
        raise ReferenceFormError(f'{where} is {shorten(call, 60)}; give "name" and "arguments"')
    name = call["name"]
    if not isinstance(name, str) or not name:
        raise ReferenceFormError(f"{where} has the name {shorten(name, 40)}; give a text")
    try:
        arguments = data(call.get("arguments", {}))
        if not isinstance(arguments, dict):
            raise NotDataError(f"they are a {type(arguments).__name__}; give a mapping of names to values")
        for value in arguments.values():
            check_choices(value)
    except NotDataError as error:
        raise ReferenceFormError(f"the arguments of {where}: {error}") from error
    return Wanted(name, arguments)


def bfcl_reference(functions: Sequence[Mapping[str, Any]], ground_truth: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reference of a row of BFCL by its "function" and its "ground_truth", empty for irrelevance."""
    known = {function.get("name"): function.get("parameters") or {} for function in functions}
    calls = []
    for call in ground_truth:
        if not isinstance(call, Mapping) or len(call) != 1:
            raise ReferenceFormError(f"a call is {shorten(call, 60)}; give one name with arguments")
        ((name, arguments),) = call.items()
        if name not in known or not isinstance(arguments, Mapping):
            raise ReferenceFormError(f"{name!r} is not a function of the row, or has no arguments")
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
        raise ReferenceFormError(f"accepted values are {shorten(accepted, 40)}; give a list")
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


_OPTIONAL: Final = ("setup", "state", "expected", "final", "calls", "order")
_kept_toolbox = lru_cache(maxsize=256)(make_toolbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReference:
    """Tools, and what is expected of calling them.

    Attributes:
        results: of each turn, one turn unless the order is "turns"; None if they do not matter.
        final: the state, if `has_final`.
        gold: calls that give what is expected, and in `turns` how many each turn has; None where it is given.
    """

    toolbox: Toolbox
    order: Order
    results: tuple[tuple[Any, ...], ...] | None = None
    final: Any = None
    has_final: bool = False
    gold: tuple[Call, ...] | None = None
    turns: tuple[int, ...] = ()

    @property
    def names(self) -> Collection[str]:
        """The tools that there are."""
        return self.toolbox.names

    def allows(self, name: str, argument: str, value: Any) -> bool:
        """Return whether a tool may take a value for an argument, by its source or else by the gold calls."""
        given = [call.arguments.get(argument, ...) for call in self.gold or () if call.name == name]
        kinds = self.toolbox.kinds.get((name, argument)) or {type(one) for one in given if one is not ...}
        return not kinds or type(value) in kinds or (type(value) is int and float in kinds)

    @property
    def count(self) -> int:
        """How many results are expected."""
        return sum(map(len, self.results or ()))

    def expecting(self, gold: Played | None) -> ExecutionReference:
        """Return the same with what gold calls gave in the place of what is not given."""
        if gold is None:
            return self
        made = self
        if self.results is None:
            values = iter([result.value for result in gold.results])
            results = tuple(tuple(next(values) for _ in range(count)) for count in self.turns)
            made = replace(made, results=results)
        if self.toolbox.has_state and not self.has_final:
            made = replace(made, final=gold.state, has_final=True)
        return made


def read_execution_reference(reference: Any) -> ExecutionReference:
    """Return what a reference says; `BadReferenceError` if a field is missing, unknown or malformed."""
    give = f'{{"tools_source": .., "expected": [..]}}; it may have {", ".join(_OPTIONAL)}'
    reference = fields_of(unpacked(reference), ("tools_source",), _OPTIONAL, give=give)
    source, setup, state = (_text(reference, name) for name in ("tools_source", "setup", "state"))
    toolbox = _kept_toolbox(source, setup, state)
    order = read_order(reference)
    made = ExecutionReference(toolbox=toolbox, order=order)
    if not reference.keys() & {"expected", "final", "calls"}:
        raise ReferenceFormError('give "expected" results, a "final" state, or gold "calls"')
    if state and not reference.keys() & {"final", "calls"}:
        raise ReferenceFormError('"state" needs "final", its expected value, or gold "calls"')
    if reference.get("expected") is not None:
        results = by_turns(reference["expected"], order, "expected")
        made = replace(made, results=tuple(tuple(map(_plain, turn)) for turn in results))
    if "final" in reference:
        if not state:
            raise ReferenceFormError('"final" needs "state", the expression whose value it is')
        made = replace(made, final=_plain(reference["final"]), has_final=True)
    if reference.get("calls") is not None:
        return _with_gold(made, by_turns(reference["calls"], order, "calls"))
    return made


def _with_gold(made: ExecutionReference, turns: Sequence[Sequence[Any]]) -> ExecutionReference:
    gold = []
    for turn, calls in enumerate(turns):
        for at, call in enumerate(calls):
            wanted = read_wanted(call, f"call {at} of turn {turn}")
            if wanted.name not in made.toolbox.names:
                raise ReferenceFormError(f"a gold call is of {wanted.name!r}, which is not a tool")
            gold.append(Call(name=wanted.name, arguments=wanted.arguments, start=0, end=0))
    return replace(made, gold=tuple(gold), turns=tuple(map(len, turns)))


def _text(reference: Mapping[str, Any], name: str) -> str:
    value = reference.get(name)
    if value is None:
        value = ""
    if not isinstance(value, str) or (name == "tools_source" and not value.strip()):
        raise ReferenceFormError(f'"{name}" is {shorten(value, 40)}; give Python source as a text')
    return value


def _plain(value: Any) -> Any:
    """Return an expected value as it is, if it is data that could come back."""
    try:
        codec.dumps(value)
    except codec.CodecError as error:
        raise ReferenceFormError(f"an expected value is not data: {error}") from error
    return value
