"""Read a sample's response as a trajectory: turns, tagged blocks, tool calls, and what tools returned.

Chat turns say themselves who wrote what.  For a flat text `Sample.extra["tool_spans"]` does, unless the form trusts the
tags: what stands in those spans is a tool's, all the rest is the assistant's.

Blocks are found in one scan from left to right.  Tags are written just so (`<search>`, `</search>`) and never nest: a
block ends at the first closing tag of its name, and an opening tag that is never closed opens nothing.  Thoughts are
the exception, for a plan is not an act: one that is never closed reaches to the end of the turn, and a closing tag
without an opening one ends a thought that began with the turn, as where the prompt wrote the opening tag.

A call is `{"name": .., "arguments": {..}}`, as JSON in a tag or beside the text of a chat turn: in `tool_calls`, in the
older `function_call`, or as a part `tool_use` of its content.  The arguments may be JSON text themselves, as the OpenAI
form has them, and may be called `parameters`.  A call that stands in the text and beside it is one.  JSON is read
strictly: beyond what it forbids, NaN and the infinities, a key that stands twice in one object, and nesting or numbers
beyond what Python reads are refused.  What a model wrote wrongly is a call with a `fault`; what a rollout recorded
wrongly, or in a form that is not read, is a `ValueError`.

Not covered: trajectories whose earlier turns stand in the prompt; addresses of pages
(`adjudge.judges.items.citation_rules` reads those); attributes, entities and other spellings of a tag,
which are ordinary text; whether a tool has such arguments.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from adjudge.protocol import THINK_END, THINK_START, Sample, content_text, response_text
from adjudge.responses.markup import text_end
from adjudge.responses.trajectories.documents import documents_of
from adjudge.responses.trajectories.trajectory import Block, Call, Result, Trajectory, TrajectoryForm, Turn


def read_json(text: str) -> tuple[Any, str]:
    """Return what a JSON text holds and "", or None and why it cannot be read."""
    try:
        return _DECODER.decode(text.strip()), ""
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)[:200]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


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


def call_in(block: Block) -> Call:
    """Return the call that a block holds."""
    data, fault = read_json(block.text)
    if not fault and not isinstance(data, dict):
        fault = "it is not a JSON object"
    if fault:
        return Call(name="", arguments=block.text, start=block.start, end=block.end, fault=fault)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        return Call(name="", arguments=block.text, start=block.start, end=block.end, fault="it has no name")
    key = "parameters" if "parameters" in data and "arguments" not in data else "arguments"
    arguments, fault = _arguments(data.get(key))
    return Call(name=name, arguments=arguments, start=block.start, end=block.end, fault=fault)


_STRUCTURED = re.compile(r"(?:tool|function)[_-]?(?:calls?|uses?|results?|responses?|outputs?)\Z", re.IGNORECASE)


def calls_of(turn: Mapping[str, Any], where: str, start: int, end: int) -> list[Call]:
    """Return the calls that a chat turn, whose text stands from `start` to `end`, carries beside its text.

    Raises:
        ValueError: a field is not what its form says, or has another form; the message names the turn as `where`.
    """
    for key, value in turn.items():
        if key not in ("tool_calls", "function_call") and _is_structured(key, value):
            raise ValueError(f"{where}: {key} is not read; give its calls as tool_calls")
    given = turn.get("tool_calls")
    if given is None:
        given = []
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise ValueError(f"{where}: tool_calls is a {type(given).__name__}; give a list of calls")
    calls = [_recorded(one, f"{where}, tool_calls[{at}]", start, end) for at, one in enumerate(given)]
    if turn.get("function_call") is not None:
        older = _recorded({"function": turn["function_call"]}, f"{where}, function_call", start, end)
        calls += unrecorded(calls, [older])
    parts = []
    for at, part in _parts_of(turn, "tool_use", where):
        function = {"name": part.get("name"), "arguments": part.get("input")}
        parts.append(_recorded({"id": part.get("id"), "function": function}, f"{where}, content[{at}]", start, end))
    return [*calls, *unrecorded(calls, parts)]


def _parts_of(turn: Mapping[str, Any], kind: str, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The parts of one type of a turn's content, with their places; other parts may be no calls or results."""
    content = turn.get("content")
    for at, part in enumerate(content) if isinstance(content, list | tuple) else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == kind:
            yield at, part
        elif any(_is_structured(key, value) for key, value in (*part.items(), (part.get("type"), part))):
            raise ValueError(
                f"{where}, content[{at}]: a part with {', '.join(map(str, part))} (type {part.get('type')!r}) is not "
                "read; give calls as tool_calls, and results as turns of the tool"
            )


def _is_structured(key: Any, value: Any) -> bool:
    """Return whether a key names calls or results, and its value holds some."""
    return bool(value) and isinstance(value, Mapping | list | tuple) and bool(_STRUCTURED.search(str(key)))


def unrecorded(
    recorded: Sequence[Call], written: Sequence[Call], key: Callable[[Call], Call] = lambda call: call
) -> list[Call]:
    """Return the written calls that are not the recorded ones again, as where an engine has kept the text that it read.

    Args:
        recorded: the calls that stand beside a text.
        written: the calls in it.
        key: makes calls alike that are the same.
    """
    if not recorded or not written:
        return list(written)
    left, made = Counter(_text_of(key(call)) for call in recorded), list[Call]()
    for call in written:
        text = "" if call.fault else _text_of(key(call))
        if text and left[text]:
            left[text] -= 1
        else:
            made.append(call)
    return made


def _text_of(call: Call) -> str:
    try:
        return json.dumps([call.name, call.arguments], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return ""


def _recorded(given: Any, where: str, start: int, end: int) -> Call:
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError(f'{where}: it must be {{"id": .., "function": {{"name": .., "arguments": ..}}}}')
    identity = given.get("id")
    if identity is not None and not isinstance(identity, str):
        raise ValueError(f"{where}: its id is {identity!r}; it must be a text")
    written = function.get("arguments")
    if written is not None and not isinstance(written, str | Mapping):
        raise ValueError(f"{where}: arguments is a {type(written).__name__}; give JSON text or a mapping")
    arguments, fault = _arguments(written)
    return Call(name=function["name"], arguments=arguments, id=identity or "", start=start, end=end, fault=fault)


def _arguments(written: Any) -> tuple[Any, str]:
    if written is None:
        return {}, ""
    if isinstance(written, Mapping):
        return dict(written), ""
    if not isinstance(written, str):
        return written, "its arguments are not a JSON object"
    if not written.strip():
        return {}, ""
    data, fault = read_json(written)
    if fault:
        return written, f"its arguments: {fault}"
    return (data, "") if isinstance(data, dict) else (written, "its arguments are not a JSON object")


def blocks_of(text: str, form: TrajectoryForm, *, offset: int = 0) -> list[Block]:
    """Return the blocks of a turn in order, its thoughts and what stands outside them; `offset` is where it begins."""
    pattern, pairs, lone = _marks(form.tags, form.think)
    blocks: list[Block] = []
    last: dict[str, int] = {}
    tag, closing, opened, inside = "", "", 0, 0
    thought = _begun_before(text, lone)  # where the last closing tag without an opening one stands
    for mark in pattern.finditer(text, thought[1]):
        if closing:
            if mark[0] == closing:
                blocks.append(_block(text, tag, (opened, inside, mark.start(), mark.end()), offset))
                closing = ""
        elif mark[0] == f"</{form.think}>":
            blocks, thought = [], mark.span()
        elif mark[0] in pairs:
            tag, closing = pairs[mark[0]]
            opened, inside = mark.span()
            if closing not in last:
                last[closing] = text.rfind(closing)
            if last[closing] < inside:
                closing = ""
                if tag == form.think:
                    blocks.append(_block(text, tag, (opened, inside, len(text), len(text)), offset))
                    break
    return [_block(text, form.think, (0, 0, thought[0], thought[1]), offset), *blocks] if thought[1] else blocks


def _begun_before(text: str, lone: Mapping[str, str]) -> tuple[int, int]:
    """Where a thought ends that the text does not open, (0, 0) without one; tags that it mentions open nothing."""
    close, end = min(((at, end) for end in lone if (at := text.find(end)) >= 0), default=(0, ""))
    return (0, 0) if any(opening in text[:close] for opening in lone.values()) else (close, close + len(end))


def _block(text: str, tag: str, places: tuple[int, int, int, int], offset: int) -> Block:
    start, inside, close, end = places
    return Block(tag=tag, text=text[inside:close].strip(), start=offset + start, end=offset + end)


_ANALYSIS = "<|channel|>analysis<|message|>"  # of gpt-oss, whose turns all end in <|end|>


@lru_cache(maxsize=64)
def _marks(
    tags: tuple[str, ...], think: str
) -> tuple[re.Pattern[str], Mapping[str, tuple[str, str]], Mapping[str, str]]:
    """Return what finds all marks, the tag and the closing mark of each that opens, and what would open each thought.

    Thoughts are also those in the marks of models that have their own, unless the form has another use for these.
    """
    pairs = {f"<{tag}>": (tag, f"</{tag}>") for tag in tags}
    if think:
        others = {start: (think, end) for start, end in zip(THINK_START, THINK_END, strict=True)}
        pairs = {**others, _ANALYSIS: (think, "<|end|>"), **pairs}
    lone = {end: start for start, (tag, end) in pairs.items() if think and tag == think and start != _ANALYSIS}
    marks = sorted({*pairs, *(end for _, end in pairs.values())}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, marks))), pairs, lone


TOOL_ROLES = ("tool", "function", "ipython")
OTHER_ROLES = ("user", "system", "developer")


def check_trajectory(sample: Sample, form: TrajectoryForm) -> None:
    """Look at everything that the rollout, not the policy, has to say; what the text says does not matter.

    Raises:
        ValueError: a chat turn is malformed; or the response is flat, the form wants spans, and
            `extra["tool_spans"]` is missing or malformed.
    """
    for _ in _pieces(sample, form):
        pass


def read_trajectory(sample: Sample, form: TrajectoryForm) -> Trajectory:
    """Return the turns of a response; linear in its length.

    Raises:
        ValueError: as `check_trajectory` says; never for what the assistant or a tool wrote.
    """
    text = response_text(sample)
    turns: list[Turn] = []
    written: list[_Written] = []
    heard: list[Result | str] = []
    for piece in _pieces(sample, form):
        if not isinstance(piece, _Written):
            heard.append(piece)
            continue
        if heard:
            turns.append(_turn(written, heard, text, form))
            written, heard = [], []
        written.append(piece)
    if written or heard:
        turns.append(_turn(written, heard, text, form))
    return Trajectory(turns=tuple(turns), text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    start: int
    end: int
    calls: tuple[Call, ...] = ()


def _turn(written: Sequence[_Written], heard: Sequence[Result | str], text: str, form: TrajectoryForm) -> Turn:
    start, end = (written[0].start, written[-1].end) if written else (0, 0)
    blocks = blocks_of(text[start:end], form, offset=start)
    recorded = [call for piece in written for call in piece.calls]
    tagged = [call_in(block) for block in blocks if block.tag == form.tool_call]
    return Turn(
        text=text[start:end],
        start=start,
        end=end,
        blocks=tuple(block for block in blocks if block.tag != form.result),
        calls=(*recorded, *unrecorded(recorded, tagged)),
        recorded=tuple(recorded),
        results=tuple(replace(one, documents=documents_of(one.text)) for one in heard if isinstance(one, Result)),
        forged=tuple(block for block in blocks if block.tag == form.result),
        replies=tuple(one for one in heard if isinstance(one, str)),
    )


def _pieces(sample: Sample, form: TrajectoryForm) -> Iterator[_Written | Result | str]:
    """What was written, in order: by the assistant, by a tool (a result without its documents), by a user (a text)."""
    if isinstance(sample.response, str):
        return _flat(sample.response, _spans(sample, form), form)
    return _chat(sample.response, form)


def _chat(turns: Sequence[Mapping[str, Any]], form: TrajectoryForm) -> Iterator[_Written | Result | str]:
    start = 0
    for at, turn in enumerate(turns):
        where = f"response[{at}]"
        if not isinstance(turn, Mapping):
            raise ValueError(f"{where} is a {type(turn).__name__}; a chat turn is a mapping with role and content")
        role = turn.get("role")
        try:
            text = content_text(turn.get("content"))
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{where}: its content must be text or a list of parts ({error})") from error
        if role == "assistant":
            end = start + text_end(text)
            yield _Written(start=start, end=end, calls=tuple(calls_of(turn, where, start, end)))
            start += len(text) + 1  # `response_text` joins the turns by a newline
        elif role in TOOL_ROLES:
            if told := list(_results_in(turn, where)):
                yield from told
                continue
            name, call_id = turn.get("name") or "", turn.get("tool_call_id") or ""
            if not isinstance(name, str) or not isinstance(call_id, str):
                raise ValueError(f"{where}: name and tool_call_id are {name!r} and {call_id!r}; they must be texts")
            wrapped = _wrapped(text, form)
            inside = "\n".join(one.text for one in wrapped) if wrapped else text
            yield Result(text=inside, name=name, call_id=call_id, ok=turn.get("ok") is not False)
        elif role == "user":
            told = list(_results_in(turn, where))
            wrapped = _wrapped(text, form)
            yield from (*told, *wrapped)
            if not wrapped and (text or not told):
                yield text
        elif role not in OTHER_ROLES:
            known = ", ".join(("assistant", *TOOL_ROLES, *OTHER_ROLES))
            raise ValueError(f"{where}: the role is {role!r}; it must be one of {known}")


def _wrapped(text: str, form: TrajectoryForm) -> list[Result]:
    """The results that a turn consists of, each in its tag, as templates such as Qwen's show them to the agent."""
    for tag in (form.result, "tool_response"):
        if (told := text.strip()).startswith(f"<{tag}>") and told.endswith(f"</{tag}>"):
            inside = re.split(rf"</{tag}>\s*<{tag}>", told[len(tag) + 2 : -len(tag) - 3])
            return [Result(text=one.strip()) for one in inside]
    return []


def _results_in(turn: Mapping[str, Any], where: str) -> Iterator[Result]:
    """The results among the parts of a turn's content."""
    for at, part in _parts_of(turn, "tool_result", where):
        call_id = part.get("tool_use_id") or ""
        try:
            text = content_text(part.get("content"))
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{where}, content[{at}]: its content must be text or a list ({error})") from error
        if not isinstance(call_id, str):
            raise ValueError(f"{where}, content[{at}]: its tool_use_id is {call_id!r}; it must be a text")
        yield Result(text=text, call_id=call_id, ok=part.get("is_error") is not True)


def _flat(text: str, spans: Sequence[tuple[int, int]], form: TrajectoryForm) -> Iterator[_Written | Result]:
    end = 0
    for start, stop in spans:
        if text[end:start].strip():
            yield _Written(start=end, end=end + text_end(text[end:start]))
        tag = form.result  # which may stand around it
        inside = text[start:stop].strip().removeprefix(f"<{tag}>").removesuffix(f"</{tag}>")
        yield Result(text=inside.strip())
        end = stop
    if text[end:].strip():
        yield _Written(start=end, end=end + text_end(text[end:]))


def _spans(sample: Sample, form: TrajectoryForm) -> list[tuple[int, int]]:
    text = str(sample.response)
    if form.tool_text == "tags":
        return _tagged_spans(text, form.result)
    given = sample.extra.get("tool_spans")
    if given is None:
        raise ValueError(
            'a flat response does not say what tools wrote: give extra["tool_spans"], a list of [start, end], [] if no '
            "tool spoke (label: --extra-column tool_spans); or chat turns; or form: {tool_text: tags}, which trusts "
            "tags that a policy can forge"
        )
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise ValueError(f'extra["tool_spans"] is {given!r}; give a list of [start, end]')
    spans = [_span(one, at, len(text)) for at, one in enumerate(given)]
    for at, (before, after) in enumerate(itertools.pairwise(spans), 1):
        if after[0] < before[1]:
            raise ValueError(f'extra["tool_spans"][{at}] is {list(after)}, and the one before ends at {before[1]}')
    return spans if text else []


def _span(given: Any, at: int, length: int) -> tuple[int, int]:
    where = f'extra["tool_spans"][{at}]'
    if not isinstance(given, list | tuple) or len(given) != 2 or any(type(one) is not int for one in given):
        raise ValueError(f"{where} is {given!r}; it must be [start, end], two whole numbers of type int")
    start, end = given
    # An empty text stands for one that could not be judged: whether it can be judged must not hang on the spans.
    if not (0 <= start <= end and (end <= length or not length)):
        raise ValueError(f"{where} is {given!r}; the response has the characters 0 to {length}")
    return start, end


def _tagged_spans(text: str, tag: str) -> list[tuple[int, int]]:
    """Where result tags stand; one that is never closed was cut off, so it reaches to the end."""
    spans, end = [], 0
    while (start := text.find(f"<{tag}>", end)) >= 0:
        close = text.find(f"</{tag}>", start)
        end = len(text) if close < 0 else close + len(tag) + 3
        spans.append((start, end))
    return spans
