"""What a reference of `tool_execution` says: the tools, and what is expected to come of calling them.

Not covered: whether the tools load; that shows when they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.responses.trajectories.trajectory import Call
from adjudge.verifiers.agents.tools.matching import Order
from adjudge.verifiers.agents.tools.reference import by_turns, read_order, read_wanted, unpacked
from adjudge.verifiers.agents.tools.tool_session import Played, Toolbox, make_toolbox
from adjudge.verifiers.code.outcome import shorten
from adjudge.verifiers.execution import codec

_FIELDS: Final = frozenset({"tools_source", "setup", "state", "expected", "final", "calls", "order"})
_kept_toolbox = lru_cache(maxsize=256)(make_toolbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReference:
    """Tools, and what is expected of calling them.

    Attributes:
        toolbox: the tools.
        order: how results are matched with calls; see `matching.match`.
        results: expected results of each turn, one turn unless the order is "turns"; None if they do not matter.
        final: the expected state.
        has_final: whether the state matters.
        gold: calls that give what is expected; None where it is given.
        turns: how many gold calls each turn has.
    """

    toolbox: Toolbox
    order: Order
    results: tuple[tuple[Any, ...], ...] | None = None
    final: Any = None
    has_final: bool = False
    gold: tuple[Call, ...] | None = None
    turns: tuple[int, ...] = ()

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
    """Return what a reference says.

    Raises:
        BadReferenceError: a field is missing, unknown or malformed.
    """
    reference = unpacked(reference)
    if not isinstance(reference, Mapping) or "tools_source" not in reference or not reference.keys() <= _FIELDS:
        raise BadReferenceError(
            f'the reference is {shorten(reference, 80)}; give {{"tools_source": .., "expected": [..]}}; '
            f"its fields are {', '.join(sorted(_FIELDS))}",
            mistake=True,
        )
    source, setup, state = (_text(reference, name) for name in ("tools_source", "setup", "state"))
    toolbox = _kept_toolbox(source, setup, state)
    order = read_order(reference.get("order", "any"))
    made = ExecutionReference(toolbox=toolbox, order=order)
    if not reference.keys() & {"expected", "final", "calls"}:
        raise BadReferenceError('give "expected" results, a "final" state, or gold "calls"', mistake=True)
    if state and not reference.keys() & {"final", "calls"}:
        raise BadReferenceError('"state" needs "final", its expected value, or gold "calls"', mistake=True)
    if reference.get("expected") is not None:
        results = by_turns(reference["expected"], order, "expected")
        made = replace(made, results=tuple(tuple(map(_plain, turn)) for turn in results))
    if "final" in reference:
        if not state:
            raise BadReferenceError('"final" needs "state", the expression whose value it is', mistake=True)
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
                raise BadReferenceError(f"a gold call is of {wanted.name!r}, which is no tool", mistake=True)
            gold.append(Call(name=wanted.name, arguments=wanted.arguments, start=0, end=0))
    return replace(made, gold=tuple(gold), turns=tuple(map(len, turns)))


def _text(reference: Mapping[str, Any], name: str) -> str:
    value = reference.get(name)
    if value is None:
        value = ""
    if not isinstance(value, str) or (name == "tools_source" and not value.strip()):
        raise BadReferenceError(f'"{name}" is {shorten(value, 40)}; give Python source as a text', mistake=True)
    return value


def _plain(value: Any) -> Any:
    """Return an expected value as it is, if it is data that could come back."""
    try:
        codec.dumps(value)
    except codec.CodecError as error:
        raise BadReferenceError(f"an expected value is no data: {error}", mistake=True) from error
    return value
