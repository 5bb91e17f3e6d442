"""Are the calls of a response those that were asked for?

    credit="all":       value = 1 if every wanted call is made once and nothing else is, else 0
    credit="fraction":  value = matched / max(wanted, made)

Calls are matched one to one, as many as possible (`matching`).  A call matches if its name and its arguments are the
wanted ones (`values`) and, where the reference has the tool's schema, if it is valid (`schemas`).  With no calls
wanted, a response is right exactly if it makes none; with tools alone, if it makes calls and all of them are valid.

Not covered: what the calls do; `tool_execution` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.trajectories.trajectory import Call, steps_at
from adjudge.verifiers.agents.matching import match
from adjudge.verifiers.agents.tools.arguments import Equality, Strings, normal
from adjudge.verifiers.agents.tools.reading import Called, CallsVerifier
from adjudge.verifiers.agents.tools.reference import CallReference, Wanted, read_reference

_SHOWN = 8  # faults in the evidence


@dataclass(frozen=True, kw_only=True)
class ToolCallVerifier(CallsVerifier[CallReference]):
    """Are the tool calls of a response the wanted ones, each once and no others?

    The reference is `{"calls": [{"name": .., "arguments": {..}}, ..]}`, where a value may be a choice
    `{"any_of": [..], "optional": true}`, with "tools" (JSON schemas) and "order" ("any", "given", or "turns" with a
    list of calls for each turn) if wanted.  An empty list of calls wants none made, and "tools" alone wants valid
    calls, whichever (docs/agents.md).

    Attributes:
        strings: "exact", or "normal": case, quotes and blanks do not matter (`arguments.normal_text`).
        tolerance: relative difference that numbers may have if one of them is a float.
    """

    name: ClassVar[str] = "tool_calls"
    version: ClassVar[str] = "6"

    strings: Strings = "exact"
    tolerance: Annotated[float, Range(ge=0, lt=1)] = 0.0

    def read_reference(self, reference: Any) -> CallReference:
        """Return what the reference asks for."""
        return read_reference(reference)

    def judge(self, called: Called, gold: CallReference) -> Score:
        """Return the score of the calls of a response beside the wanted ones; the steps are the calls."""
        if called.fault:
            return Score.scored(0.0, called.fault, made=len(called.calls))
        verdicts = self._verdicts(called, gold)
        labels = [label for _, label, _ in verdicts]
        steps = steps_at(called.calls, (float(label == "right") for label in labels), labels)
        right, made = labels.count("right"), len(called.calls)
        wanted = made if gold.turns is None else gold.count
        evidence: dict[str, Any] = {"made": made, **({} if gold.turns is None else {"wanted": wanted}), "right": right}
        faults = [f"{call.name}: {why}" for call, _, why in verdicts if why]
        if faults:
            evidence["faults"] = [shorten(fault) for fault in faults[:_SHOWN]]
        if of := max(wanted, made):
            value, reason = (1.0, "") if right == of else self.share(called, right, of)
        else:
            value, reason = (0.0, "no_answer") if gold.turns is None else (1.0, "")
        return Score(value=value, reason=reason, steps=steps, evidence=evidence)

    def _verdicts(self, called: Called, reference: CallReference) -> list[tuple[Call, str, str]]:
        tools = reference.tools
        faults = [
            [call.fault or ("" if tools is None else tools.fault(call.name, call.arguments)) for call in calls]
            for calls in called.turns
        ]
        made = [list(zip(calls, whys, strict=True)) for calls, whys in zip(called.turns, faults, strict=True)]
        matched = {} if reference.turns is None else self._matched(reference.turns, made, reference)
        names = {target.name for turn in reference.turns or () for target in turn}
        return [
            (call, _label(call, fault, (turn, at) in matched or reference.turns is None, names), fault)
            for turn, calls in enumerate(made)
            for at, (call, fault) in enumerate(calls)
        ]

    def _matched(
        self, wanted: Sequence[Sequence[Wanted]], made: Sequence[Sequence[tuple[Call, str]]], reference: CallReference
    ) -> Mapping[tuple[int, int], tuple[int, int]]:
        equality = Equality(tolerance=self.tolerance, typed=reference.tools is not None)
        if self.strings == "normal":  # once for each text, not for each pair
            wanted = [[replace(call, arguments=normal(call.arguments)) for call in calls] for calls in wanted]
            made = [
                [(call if fault else replace(call, arguments=normal(call.arguments)), fault) for call, fault in calls]
                for calls in made
            ]

        def fits(target: Wanted, offered: tuple[Call, str]) -> bool:
            call, fault = offered
            return not fault and call.name == target.name and equality.same_mapping(target.arguments, call.arguments)

        return match(wanted, made, fits, reference.order)


def _label(call: Call, fault: str, matched: bool, names: set[str]) -> str:
    if call.fault:
        return "unreadable"
    if fault:
        return "invalid"
    if matched:
        return "right"
    return "other_arguments" if call.name in names else "other_tool"
