"""The calls that a response makes, turn by turn.

| where a call stands | read by |
|---|---|
| beside the text of a chat turn; `<tool_call>{"name": .., "arguments": {..}}</tool_call>` | `adjudge.responses` |
| marks of models that have their own, such as `<function=f>` and `[TOOL_CALLS]` | `dialects` |
| a turn that is nothing but a JSON object or list of such objects, or Python calls, in a code fence or not | here |

Calls inside thoughts, comments and texts are none.  An attempt that cannot be read is a call with a `fault`: a
`<tool_call>` that is never closed, say, or a call of a known tool in another form (`attempts`).  So is a call that the
turn takes back.

Not covered: calls in running text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from adjudge.protocol import THINK_END, Sample, Score, split_reasoning
from adjudge.responses.answer_span import shorten
from adjudge.responses.rendering import without_hidden
from adjudge.responses.trajectories.reading import call_in, check_trajectory, read_json, read_trajectory, unrecorded
from adjudge.responses.trajectories.trajectory import Block, Call, TrajectoryForm, Turn
from adjudge.responses.visible import visible
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.verifiers.agents.scoring import ReadsTrajectories
from adjudge.verifiers.agents.tools.arguments import (
    NoSchemasError,
    NotDataError,
    Spelled,
    Tools,
    data,
    narrowed,
    plain,
    spelled,
)
from adjudge.verifiers.agents.tools.attempts import attempted_calls, makes_up_results, takes_back
from adjudge.verifiers.agents.tools.dialects import (
    MAX_CALLS,
    bare_calls,
    dialect_calls,
    json_call,
    json_end,
    named_call,
    python_calls,
    unwrapped,
)

Bare: TypeAlias = Literal["auto", "json", "python", "none"]

_MAX_JSON: Final = 200_000  # characters of a bare text; a `<tool_call>` is read whatever its length
_FENCE: Final = re.compile(r"\A```[\w-]{0,20}[ \t]{0,8}\r?\n(.*?)\r?\n?```\Z", re.DOTALL)
_NEXT_FENCE: Final = re.compile(r"\n```\s{0,9}\n```[\w-]{0,20}[ \t]{0,8}(?=\r?\n)")
_APART: Final = re.compile(r"[\s,]*")
_MAY_HIDE: Final = re.compile(r"<[!?A-Za-z]|\]:|\A---")
_SIGNS: Final = tuple(map(chr, range(0xF0000, 0xF0000 + MAX_CALLS + 2)))  # one for each call, as what stands there
_SIGN: Final = re.compile(r"[\U000f0000-\U000f1000]")
_TAG: Final = re.compile(r"<[^<>\s][^<>]{0,100}>")
_WORD: Final = re.compile(r"[^\W_]|[\u2600-\u27bf\U0001f300-\U0001faff]")
_JSON_ATTEMPT: Final = re.compile(r'(?:\[\s{0,20})?\{\s{0,20}["\'](?:name|type|id|function|arguments|parameters)["\']')


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The calls of each turn that makes any, and why the response is worth nothing whatever it calls, "" otherwise."""

    turns: tuple[tuple[Call, ...], ...]
    fault: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, in order."""
        return tuple(call for turn in self.turns for call in turn)


class KnowsTools(Protocol):
    """What says which tools there are, and which values their arguments may have."""

    @property
    def names(self) -> Container[str]:
        """The tools that are known by name."""
        ...

    def allows(self, name: str, argument: str, value: Any) -> bool:
        """Return whether a tool may take a value for an argument."""
        ...


Wants = TypeVar("Wants", bound=KnowsTools)
"""What a reference asks for."""


@dataclass(frozen=True, kw_only=True)
class ReadsCalls(ReadsTrajectories):
    """Part of every scorer that reads calls; results stand in `tool_response` tags, as Hermes and Qwen have it.

    Attributes:
        bare: how a turn that is nothing but calls, without tags, may be written: "json", "python", "auto" for both, or
            "none".
    """

    result_tag: ClassVar[str] = "tool_response"

    bare: Bare = "auto"


@dataclass(frozen=True, kw_only=True)
class CallsVerifier(ReadsCalls, ReferenceVerifier[Wants, Called], Generic[Wants]):
    """Base of the verifiers that compare calls, or what they give, with wanted ones.

    Attributes:
        credit: "all", or "fraction" for a share; see the module.
        truncated: what a response with `finish_reason="length"` gets: "zero", or "grade" as if it were complete.
    """

    credit: Literal["all", "fraction"] = "all"
    truncated: Literal["zero", "grade"] = "zero"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (NoSchemasError,)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference, or what the rollout recorded, is malformed; nothing is run."""
        super().validate(sample)
        check_response(sample, self.shape)

    def find(self, sample: Sample, gold: Wants) -> Called | Score:
        """Return the calls of a response."""
        try:
            return read_calls(sample, self.shape, bare=self.bare, truncated=self.truncated, tools=gold)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))

    def share(self, called: Called, right: int, of: int) -> tuple[float, str]:
        """Return value and reason of a response of which not all is right."""
        if not called.calls:
            return 0.0, "no_answer"
        value = right / of if self.credit == "fraction" and of else 0.0
        return value, "unparsable_answer" if any(call.fault for call in called.calls) else "wrong"


def with_spans(sample: Sample) -> Sample:
    """Return a sample whose flat text is all the assistant's, where nobody says that a tool wrote some of it."""
    if isinstance(sample.response, str) and "tool_spans" not in sample.extra:
        return replace(sample, extra={**sample.extra, "tool_spans": []})
    return sample


def check_response(sample: Sample, form: TrajectoryForm) -> None:
    """Raise `ValueError` if what the rollout recorded is malformed; what a model wrote never matters."""
    check_trajectory(with_spans(sample), form)


def read_calls(
    sample: Sample,
    form: TrajectoryForm,
    *,
    bare: Bare,
    truncated: Literal["zero", "grade"],
    tools: KnowsTools,
) -> Called:
    """Return what a response calls; a result that the assistant wrote itself is `tampering`.

    Attempts to call the `tools` that are known count.  Raises `ValueError` as `check_response` does.
    """
    trajectory = read_trajectory(with_spans(sample), form)
    by_turn, rests, made, made_up = list[list[Call]](), list[str](), set[str](), False
    for turn in trajectory.turns:
        written = _written(turn, form, bare, tools.names)
        calls = [meant(call, tools) for call in _all(turn, written)]
        rests.append(rest := _rest(turn, form, written))
        ends = [call.end for call in (*turn.recorded, *written)]
        made_up |= bool(ends) and makes_up_results(rest[min(ends) - turn.start :])
        if calls and takes_back(rest, calls):
            calls = [replace(call, fault=call.fault or "the turn takes it back") for call in calls]
        recorded = {call.name for call in turn.recorded}
        told = made | recorded if recorded or not calls else set()  # a report of calls is not an attempt at more
        tried = [call for call in attempted_calls(rest, turn.start, tools.names) if call.name not in told]
        by_turn.append([*calls, *(one for one in tried if not any(_announces(one, call) for call in calls))])
        made.update(call.name for call in calls)
    turns = tuple(tuple(calls) for calls in by_turn if calls)
    fault = ""
    if made_up or any(turn.forged for turn in trajectory.turns):
        fault = "tampering"
    elif sum(map(len, turns)) > MAX_CALLS:
        fault = "too_complex"
    elif truncated == "zero" and sample.finish_reason == "length":
        fault = "truncated"
    elif trajectory.turns and form.think and _still_thinking(trajectory.turns[-1], form.think):
        fault = "unfinished_reasoning"
    elif not turns and not any(_says_something(rest, form) for rest in rests):
        fault = "no_answer"
    return Called(turns=turns, fault=fault)


def _says_something(rest: str, form: TrajectoryForm) -> bool:
    """Return whether a turn's text outside its thoughts shows a word or a picture, and not tags alone."""
    said = split_reasoning(rest)[1] if form.think else rest
    return bool(_WORD.search(_TAG.sub(" ", visible(said))))


def _still_thinking(turn: Turn, tag: str) -> bool:
    last = max((block.end for block in turn.tagged(tag)), default=-1)
    return split_reasoning(turn.text)[2] or (last == turn.end and not turn.text.endswith((f"</{tag}>", *THINK_END)))


def calls_of_turn(turn: Turn, form: TrajectoryForm, *, bare: Bare, names: Container[str]) -> list[Call]:
    """Return the calls of one turn, its tools known by `names`, with arguments that are JSON data or `Spelled`."""
    return _all(turn, _written(turn, form, bare, names))


def _all(turn: Turn, written: Sequence[Call]) -> list[Call]:
    """Return the recorded calls, and those of the text that are not these again."""
    return [*map(_checked, turn.recorded), *unrecorded(turn.recorded, written, _as_spelled)]


def _as_spelled(call: Call) -> Call:
    if call.fault:
        return call
    given = {name: spelled(value) if isinstance(value, str) else value for name, value in call.arguments.items()}
    return replace(call, arguments=plain(given))


def _written(turn: Turn, form: TrajectoryForm, bare: Bare, names: Container[str]) -> list[Call]:
    """Return the calls that stand in the text of a turn."""
    blocks = turn.tagged(form.tool_call)
    thoughts = _thoughts(turn, form)
    calls = [call for block in blocks for call in _in_tag(block)]
    if form.tool_call:
        names = names if bare in ("auto", "json") else ()
        written = [call for start, text in turn.outside(form.think) for call in dialect_calls(text, start, names)]
        calls = [call for call in calls if not any(_overlap(call, other) for other in written if call.fault)]
        written = [call for call in written if not any(_overlap(call, other) for other in calls)]
        calls = _seen([*calls, *written, *_unread(turn, form.tool_call, thoughts)], turn)
    if not calls and not turn.recorded and bare != "none":
        calls = _bare_calls(turn, max((end for _, end in thoughts), default=turn.start), bare)
    return [_checked(call) for call in calls]


def _in_tag(block: Block) -> list[Call]:
    """Return the calls of one tag: several in a list or below each other, in a fence, or with other keys."""
    call = call_in(block)
    if not call.fault and named_call(read_json(block.text)[0], argued=False):
        return [call]
    text = _unfenced(block.text)[0]
    calls, end = bare_calls(text, 0)
    if calls and end == len(text):
        return [replace(inner, start=block.start, end=block.end) for inner in calls]
    return [call if call.fault else replace(call, name="", arguments=block.text, fault="it is not a call, or several")]


def _rest(turn: Turn, form: TrajectoryForm, written: Sequence[Call]) -> str:
    """Return a turn's text with blanks in the place of its thoughts and of the calls that are read in it."""
    covered = [*_thoughts(turn, form), *((call.start, call.end) for call in written)]
    parts, at = [], turn.start
    for start, end in sorted(covered):
        if end > (before := max(at, start)):
            parts += [turn.text[at - turn.start : before - turn.start], "\n".rjust(end - before)]
            at = end
    return "".join([*parts, turn.text[at - turn.start :]])


def _announces(attempt: Call, call: Call) -> bool:
    """Return whether what looks like an attempt is the name of a call that follows, "Action: book"."""
    return not attempt.arguments and attempt.name == call.name and attempt.end <= call.start


def _overlap(one: Call, other: Call) -> bool:
    return one.start < other.end and other.start < one.end


def _seen(calls: list[Call], turn: Turn) -> list[Call]:
    """Return the calls, those that a reader of the turn does not see, as in a comment, with a fault."""
    if not _MAY_HIDE.search(turn.text):
        return calls
    kept, at, signs = [], 0, dict(zip(sorted({call.start for call in calls}), _SIGNS, strict=False))
    for call in sorted(calls, key=lambda call: call.start):
        start, end = call.start - turn.start, call.end - turn.start
        if start >= at and end > start and (start, end) != (0, len(turn.text)):
            kept += [_SIGN.sub(" ", turn.text[at:start]), signs.get(call.start, "")]
            at = end
    shown = without_hidden("".join([*kept, _SIGN.sub(" ", turn.text[at:])]))
    hidden = {start for start, sign in signs.items() if sign in kept and sign not in shown}
    return [replace(call, fault=call.fault or "it is hidden") if call.start in hidden else call for call in calls]


def _thoughts(turn: Turn, form: TrajectoryForm) -> list[tuple[int, int]]:
    return [(block.start, block.end) for block in turn.tagged(form.think)]


def _unread(turn: Turn, tag: str, thoughts: Sequence[tuple[int, int]]) -> list[Call]:
    """Return the openings of the call tag that are part of no call: never closed, or hidden in another block."""
    covered = [*thoughts, *((block.start, block.end) for block in turn.tagged(tag))]
    covered.sort()
    openings: list[Call] = []
    opening, at, next_cover = f"<{tag}>", 0, 0
    while (at := turn.text.find(opening, at)) >= 0:
        start = turn.start + at
        while next_cover < len(covered) and covered[next_cover][1] <= start:
            next_cover += 1
        inside = next_cover < len(covered) and covered[next_cover][0] <= start
        if not inside:
            end = start + len(opening)
            openings.append(Call(name="", arguments="", start=start, end=end, fault="it is never closed, or hidden"))
        at += len(opening)
    return openings[: MAX_CALLS + 1]


def _bare_calls(turn: Turn, start: int, bare: Bare) -> list[Call]:
    raw = turn.text[start - turn.start :]
    text, inside = _unfenced(raw)
    start += inside
    if bare != "python" and text[:1] in ("[", "{"):
        calls = _json_calls(text, start)
        if calls is not None:
            return calls
    return python_calls(text, start) if bare != "json" and text else []


def _unfenced(raw: str) -> tuple[str, int]:
    """Return a text without blanks and a code fence around it, or several in a row, and where it begins."""
    text, start = raw.strip(), len(raw) - len(raw.lstrip())
    if fenced := _FENCE.match(text):
        start, text = start + fenced.start(1), _NEXT_FENCE.sub(lambda between: " " * len(between[0]), fenced[1])
        start, text = start + len(text) - len(text.lstrip()), text.strip()
    return text, start


def _json_calls(text: str, start: int) -> list[Call] | None:
    """Return the calls of a JSON text, an attempt as a faulty one; None if the text is something else."""
    value, fault = read_json(text) if len(text) <= _MAX_JSON else (None, f"it has more than {_MAX_JSON} characters")
    if fault:
        attempt = _JSON_ATTEMPT.match(text)
        calls, end = bare_calls(text, 0) if (attempt or text[0] == "{") and len(text) <= _MAX_JSON else ([], 0)
        if calls and end == len(text):  # objects below each other, or written as Python has them
            return [replace(call, start=call.start + start, end=call.end + start) for call in calls]
        return [Call(name="", arguments=text, start=start, end=start + len(text), fault=fault)] if attempt else None
    if unwrapped(value) is not value:
        value, spans = unwrapped(value), []
    else:
        spans = _item_spans(text) if isinstance(value, list) else []
    items = value if isinstance(value, list) else [value]
    if not any(map(named_call, items)):
        return []
    spans = spans or [(0, len(text))] * len(items)
    return [json_call(item, start + first, start + last) for item, (first, last) in zip(items, spans, strict=True)]


def _item_spans(text: str) -> list[tuple[int, int]]:
    spans, at = [], 1
    while text[at := _APART.match(text, at).end()] != "]":  # type: ignore[union-attr]  # it matches the empty text
        spans.append((at, json_end(text, at)))
        at = spans[-1][1]
    return spans


def meant(call: Call, tools: KnowsTools | Tools) -> Call:
    """Return a call with arguments as its tool takes them, as far as that is known."""
    if call.fault:
        return call
    return replace(call, arguments=narrowed(call.arguments, partial(tools.allows, call.name)))


def _checked(call: Call) -> Call:
    if call.fault:
        return replace(call, fault=shorten(call.fault))
    try:
        return replace(
            call,
            arguments={name: one if isinstance(one, Spelled) else data(one, 1) for name, one in call.arguments.items()},
        )
    except NotDataError as error:
        return replace(call, fault=f"its arguments: {error}")
