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

The documents that a tool's output lists:

| output | documents |
|---|---|
| JSON list of objects with `text`, `content`, `contents`, `snippet` or `document` | one each, with `title` if given |
| JSON object with such a list as `results`, `documents`, `result` or `data` | the list's |
| lines `Doc 1(Title: "Name") text`, numbered from 1 (Search-R1) | one each |
| texts behind `<##Title: Name##>`, with or without a `Doc 1` before it (StepSearch) | one each |
| anything else that is not blank | one without a title |

`contents` whose first line stands in quotes is a title and a text, as in the Wikipedia dump that Search-R1 serves.

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

from adjudge.protocol import Sample, content_text, response_text
from adjudge.responses.trajectories.trajectory import Block, Call, Document, Result, Trajectory, TrajectoryForm, Turn


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
    blocks: list[Block] = []
    last = {tag: text.rfind(f"</{tag}>") for tag in form.tags}
    tag, opened, inside = "", 0, 0
    thought = _begun_before(text, form.think)  # where the last closing tag without an opening one stands
    for mark in _pattern(form.tags).finditer(text, thought[1]):
        name, closing = mark["name"], bool(mark["slash"])
        if tag:
            if closing and name == tag:
                blocks.append(_block(text, tag, (opened, inside, mark.start(), mark.end()), offset))
                tag = ""
        elif closing and name == form.think:
            blocks, thought = [], mark.span()
        elif not closing and last[name] >= mark.end():
            tag, opened, inside = name, mark.start(), mark.end()
        elif not closing and name == form.think:
            blocks.append(_block(text, name, (mark.start(), mark.end(), len(text), len(text)), offset))
            break
    return [_block(text, form.think, (0, 0, thought[0], thought[1]), offset), *blocks] if thought[1] else blocks


def _begun_before(text: str, think: str) -> tuple[int, int]:
    """Where a thought ends that the text does not open, (0, 0) without one; tags that it mentions open nothing."""
    close = text.find(f"</{think}>") if think else -1
    if close < 0 or f"<{think}>" in text[:close]:
        return 0, 0
    return close, close + len(think) + 3


def _block(text: str, tag: str, places: tuple[int, int, int, int], offset: int) -> Block:
    start, inside, close, end = places
    return Block(tag=tag, text=text[inside:close].strip(), start=offset + start, end=offset + end)


@lru_cache(maxsize=64)
def _pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(?P<slash>/?)(?P<name>{'|'.join(map(re.escape, tags))})>")


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
    return _chat(sample.response)


def _chat(turns: Sequence[Mapping[str, Any]]) -> Iterator[_Written | Result | str]:
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
            yield _Written(
                start=start, end=start + len(text), calls=tuple(calls_of(turn, where, start, start + len(text)))
            )
            start += len(text) + 1  # `response_text` joins the turns by a newline
        elif role in TOOL_ROLES:
            if told := list(_results_in(turn, where)):
                yield from told
                continue
            name, call_id = turn.get("name") or "", turn.get("tool_call_id") or ""
            if not isinstance(name, str) or not isinstance(call_id, str):
                raise ValueError(f"{where}: name and tool_call_id are {name!r} and {call_id!r}; they must be texts")
            yield Result(text=text, name=name, call_id=call_id, ok=turn.get("ok") is not False)
        elif role == "user":
            told = list(_results_in(turn, where))
            yield from told
            if text or not told:
                yield text
        elif role not in OTHER_ROLES:
            known = ", ".join(("assistant", *TOOL_ROLES, *OTHER_ROLES))
            raise ValueError(f"{where}: the role is {role!r}; it must be one of {known}")


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
            yield _Written(start=end, end=start)
        tag = form.result  # which may stand around it
        inside = text[start:stop].strip().removeprefix(f"<{tag}>").removesuffix(f"</{tag}>")
        yield Result(text=inside.strip())
        end = stop
    if text[end:].strip():
        yield _Written(start=end, end=len(text))


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


_TEXT_KEYS = ("text", "content", "contents", "snippet", "document")
_LIST_KEYS = ("results", "documents", "result", "data")
_MARKED = re.compile(r"(?:^[ \t]{0,8}Doc ?\d{1,4} ?)?<##([^\n<>]{0,1000}?)##>", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]{0,8}Doc ?(\d{1,4}) ?\(Title: ?", re.MULTILINE)


def documents_of(output: str) -> tuple[Document, ...]:
    """Return the documents of a tool's output, in order; none if it is blank."""
    text = output.strip()
    if not text:
        return ()
    listed = _from_json(text)
    if listed is None:
        listed = _numbered(text) or _marked(text) or [Document(text=text)]
    return tuple(listed)


def _from_json(text: str) -> list[Document] | None:
    if text[0] not in "[{":
        return None
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, Mapping):
        data = next((data[key] for key in _LIST_KEYS if isinstance(data.get(key), list)), None)
    if not isinstance(data, list):
        return None
    listed = [document for entry in data if (document := _entry(entry)) is not None]
    return [document for document in listed if document.text or document.title] if listed or not data else None


def _entry(entry: Any) -> Document | None:
    if isinstance(entry, str):
        return Document(text=entry.strip())
    if isinstance(entry, Mapping) and isinstance(entry.get("document"), Mapping):
        entry = entry["document"]
    if not isinstance(entry, Mapping):
        return None
    key = next((key for key in _TEXT_KEYS if isinstance(entry.get(key), str)), "")
    title = entry.get("title")
    if not key:
        return None
    text = entry[key].strip()
    if isinstance(title, str):
        return Document(title=title.strip(), text=text)
    first, _, rest = text.partition("\n")
    if key == "contents" and len(first) > 2 and first[0] == first[-1] == '"':
        return Document(title=first[1:-1].strip(), text=rest.strip())
    return Document(text=text)


def _numbered(text: str) -> list[Document]:
    """The numbered documents, as long as their numbers count up: a document's text brings in none of its own."""
    heads: list[re.Match[str]] = []
    for head in _NUMBERED.finditer(text):
        if int(head[1]) == len(heads) + 1:
            heads.append(head)
    if not heads:
        return []
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_titled(text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _marked(text: str) -> list[Document]:
    """The documents behind marked titles; what stands before the first title belongs to none."""
    heads = list(_MARKED.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        Document(title=head[1].strip().removeprefix("Title:").strip(), text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]


def _titled(text: str) -> Document:
    line = text.partition("\n")[0]
    close = line.find('")') + 1 if line.startswith('"') else line.find(")")
    if close <= 0:
        return Document(text=text.strip())
    return Document(title=line[:close].strip().strip('"').strip(), text=text[close + 1 :].strip())
