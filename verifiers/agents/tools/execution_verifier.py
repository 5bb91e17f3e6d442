"""What do the calls of a response do?  They run against the task's own tools, in the sandbox; what came of it counts.

    credit="all":       value = 1 if every expected result came back and the final state is the expected one, else 0
    credit="fraction":  value = results matched / max(expected, made) if the final state is right, else 0

Results are matched with calls one to one, as many as possible, in the reference's order.  Calls beyond the expected
ones cost, but where a state alone is expected any calls may lead to it.  With gold calls in the place of expected
values, these run first, and what they give is expected.

Every response has a session of its own, but responses that make the same calls share what these gave: the tools are
taken to give the same each time.

A tool that raises has given an error, which equals no expected result; the session goes on.  A call that takes too long
or too much memory ends it, and the response is worth 0.

Not covered: tool results that stand in the response; they are neither read nor believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge import wire
from adjudge.options import Range, Share
from adjudge.protocol import Limits, Score, StepScore
from adjudge.responses.trajectories.trajectory import Call, steps_at
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.sandbox import Isolation
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.agents.matching import match
from adjudge.verifiers.agents.tools.arguments import plain
from adjudge.verifiers.agents.tools.reading import Called, CallsVerifier
from adjudge.verifiers.agents.tools.reference import ExecutionReference, read_execution_reference
from adjudge.verifiers.agents.tools.tool_session import Played, Returned, SessionLimits, Toolbox, is_data, play
from adjudge.verifiers.code.comparison import Rules, same_value
from adjudge.verifiers.code.outcome import shorten
from adjudge.verifiers.code.sandboxed import SandboxedVerifier

_SPARE_SECONDS: Final = 30.0  # starting sandboxes, killing, a second try
_MAX_KEPT: Final = 1024  # sessions, of at most so many characters:
_MAX_CHARACTERS: Final = 16_384
_SHOWN: Final = 8

_kept: dict[tuple[object, ...], Played] = {}


@dataclass(frozen=True, kw_only=True)
class ToolExecutionVerifier(CallsVerifier[ExecutionReference], SandboxedVerifier):
    """Run the tool calls of a response against the task's own Python tools, and compare results and final state.

    The reference is `{"tools_source": "def book(..): ..", "setup"?: source, "state"?: expression}` with any of
    "expected" (results), "final" (the value of the state) and "calls" (gold calls that give both), and "order" as for
    `tool_calls` (docs/agents.md).

    Attributes:
        extra: what calls beyond the expected results cost: "cost", or "ignore" for nothing.
        tolerance: relative difference that numbers may have if one of them is a float.
        seconds, total_seconds: for one call, and for all calls of a response.
        memory_mb: MiB for the tools.
        isolation: "bubblewrap", or "none" for tools you trust with any arguments.
    """

    name: ClassVar[str] = "tool_execution"
    version: ClassVar[str] = "6"

    extra: Literal["cost", "ignore"] = "cost"
    tolerance: Share = 1e-6
    seconds: Annotated[float, Range(ge=0.01, le=600, unit="seconds")] = 5.0
    total_seconds: Annotated[float, Range(ge=0.01, le=3600, unit="seconds")] = 30.0
    memory_mb: Annotated[int, Range(ge=32, unit="MiB")] = 512
    isolation: Isolation = "bubblewrap"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (SandboxUnavailableError,)

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: the gold's session and the response's, each a second time if a sandbox is lost."""
        return Limits(seconds=4 * self.total_seconds + _SPARE_SECONDS, memory_mb=2048, processes=4096)

    def read_reference(self, reference: Any) -> ExecutionReference:
        """Return what the reference says."""
        return read_execution_reference(reference)

    def judge(self, called: Called, gold: ExecutionReference) -> Score:
        """Return the score of what the calls of a response give."""
        expected = gold.expecting(self._gold(gold))
        played = self._played(gold.toolbox, () if called.fault else called.calls)
        if called.fault:
            return Score.scored(0.0, called.fault, made=len(called.calls))
        return self._score(called, expected, played)

    def _gold(self, reference: ExecutionReference) -> Played | None:
        """Return what the gold calls give; `BadReferenceError` if one fails, or gives what cannot be compared."""
        if reference.gold is None:
            return None
        played = self._played(reference.toolbox, reference.gold)
        faults = [result.error for result in played.results if result.error]
        if played.lost or faults:
            raise BadReferenceError(f"a gold call fails: {(faults or [played.lost])[0]}")
        compared = [] if reference.results is not None else [result.value for result in played.results]
        objects = [value for value in [*compared, played.state] if not is_data(value)]
        if objects:
            raise BadReferenceError(
                f"gold calls give {shorten(objects[0], 60)}, which stands for an object; "
                'let tools return plain data, or give "expected"'
            )
        return played

    def _played(self, toolbox: Toolbox, calls: Sequence[Call]) -> Played:
        """Return what calls give in a session of their own; the same calls on the same tools are not run twice."""
        calls = [call if call.fault else replace(call, arguments=plain(call.arguments)) for call in calls]
        text = wire.dumps([[call.name, call.fault, None if call.fault else call.arguments] for call in calls])
        key = (toolbox, hashlib.sha256(text.encode()).digest(), self._limits)
        played = _kept.get(key)
        if played is None:
            played = play(toolbox, calls, self._limits)
            if not played.lost and _is_small(played):
                if len(_kept) >= _MAX_KEPT:
                    _kept.clear()
                _kept[key] = played
        return played

    @property
    def _limits(self) -> SessionLimits:
        return SessionLimits(
            seconds=self.seconds,
            total_seconds=self.total_seconds,
            memory_mb=self.memory_mb,
            isolation=self.isolation,
        )

    def _score(self, called: Called, reference: ExecutionReference, played: Played) -> Score:
        rules = Rules(tolerance=self.tolerance)
        matched: dict[tuple[int, int], tuple[int, int]] = {}
        if reference.results is not None:
            rest = iter(played.results)
            returned = [[result for _, result in zip(calls, rest, strict=False)] for calls in called.turns]

            def gives(wanted: Any, got: Returned) -> bool:
                return not got.error and same_value(wanted, got.value, rules)

            matched = match(reference.results, returned, gives, reference.order)
        state = not reference.has_final or (not played.lost and same_value(reference.final, played.state, rules))
        evidence: dict[str, Any] = {
            "made": len(called.calls),
            "results": [shorten(result.error or result.value) for result in played.results[:_SHOWN]],
        }
        if reference.has_final:
            evidence |= {"state_right": state, "state": shorten(played.state)}
        value, reason = self._value(called, reference, played.lost, len(matched) if state else 0, state=state)
        return Score(value=value, reason=reason, steps=_steps(called, played, matched, reference), evidence=evidence)

    def _value(
        self, called: Called, reference: ExecutionReference, lost: str, matched: int, *, state: bool
    ) -> tuple[float, str]:
        made = len(called.calls)
        if lost:
            return 0.0, lost
        of = 0
        if reference.results is not None:
            of = reference.count if self.extra == "ignore" else max(reference.count, made)
        if state and matched == of:
            return 1.0, ""
        return self.share(called, matched, of)


def _is_small(played: Played) -> bool:
    try:
        return len(repr(played)) <= _MAX_CHARACTERS
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits
        return False


def _steps(
    called: Called, played: Played, matched: Mapping[tuple[int, int], Any], reference: ExecutionReference
) -> tuple[StepScore, ...]:
    """A step for each call; where a state alone is expected, none of them is judged but those that failed."""
    labels = []
    for number, place in enumerate((turn, at) for turn, calls in enumerate(called.turns) for at in range(len(calls))):
        if number >= len(played.results):
            labels.append("lost")
        elif played.results[number].error:
            labels.append("error")
        elif reference.results is None:
            labels.append("returned")
        else:
            labels.append("right" if place in matched else "other_result")
    return steps_at(called.calls, (None if one == "returned" else float(one == "right") for one in labels), labels)
