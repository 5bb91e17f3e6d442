"""What a cell of a row says: a prompt, a response, a reference, from whatever file or framework the row comes.

Every command and every adapter reads cells here, so that one row means one thing everywhere:

- a prompt is text or a chat, and a chat may be JSON text;
- a response is text, the turns of a trajectory, or a whole chat, which begins with the prompt again;
- a reference is a value, or JSON text of an object or of a list of objects;
- Arrow gives every object the fields of all others and fills them with None; such fields are left out.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from adjudge import wire
from adjudge.io.questions import OPTIONS
from adjudge.protocol import Message, content_text

MISSING: Final = object()
"""Stands for the value of a column that a row does not have."""

Text: TypeAlias = str | Sequence[Message]
"""A prompt or a response: text, or chat turns."""

_LARGEST: Final = 1e300
_FEW_BITS: Final = 12
_LIST: Final = re.compile(
    r"\s*\[\s*(?:['\"]|\{\s*['\"](?:role|from|message|text|index|finish_reason)\b).*['\"}]\s*\]\s*", re.S
)
_EMPTY: Final = ("", "nan", "NaN", "<NA>")

_ROLES: Final = {"human": "user", "gpt": "assistant", "bot": "assistant"}
"""Names that ShareGPT's layout has for roles."""

_OF_A_CHOICE: Final = {
    "text", "index", "finish_reason", "stop_reason", "matched_stop", "logprobs", "prompt_logprobs", "token_ids",
    "prompt_token_ids",
}  # fmt: skip
"""Fields beside the text of a completion."""


def plain(value: Any) -> Any:
    """Return a copy of plain data in which arrays, array scalars and configuration nodes are Python's own types.

    Args:
        value: what a data set's column or a configuration file holds: NumPy arrays and scalars, tensors, decimals
            (which become text), OmegaConf nodes, and any nesting of them.
    """
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Decimal):  # of Arrow's decimal columns; as text it keeps its digits
        return format(value, "f")
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays, their scalars, and tensors, none of which is a Sequence
        return plain(value.tolist())
    return value


_OF_A_CALL: Final = ("args", "kwargs", "expected", "expected_any")


def without_absent(value: Any) -> Any:
    """Return plain data from Arrow without the fields that it filled with None.

    `{"answer": null}` stays, which says that there is no answer.  Any other object of one field may be an empty one,
    filled where no object of the file has another field.
    A test that calls a function keeps what it says of the call: None may be an argument, and what is expected.  An
    object inside these may have been filled or not, so the first such field is named in `null_field`, for a verifier to
    refuse the test.
    """
    if isinstance(value, Mapping):
        call = isinstance(value.get("args"), list) or value.get("kwargs") is not None
        right = "expected" if value.get("expected_any") is None else "expected_any"
        kept = _OF_A_CALL if call and right in value else ()
        data = {
            key: item if key in kept else without_absent(item)
            for key, item in value.items()
            if item is not None or list(value) == ["answer"] or (kept and key == right)
        }
        null = _null_field({key: data[key] for key in kept if key in data})
        return {**data, "null_field": null} if null else data
    return [without_absent(item) for item in value] if isinstance(value, list) else value


def _null_field(value: Any, place: str = "") -> str:
    """Return where an object holds None, such as "args[0].age"; "" for nowhere."""
    if isinstance(value, list | tuple):
        inside = [(f"{place}[{at}]", item) for at, item in enumerate(value)]
    elif isinstance(value, Mapping):
        inside = [(f"{place}.{key}" if place else key, item) for key, item in value.items()]
        if place and (null := next((at for at, item in inside if item is None), "")):
            return null
    else:
        return ""
    return next(filter(None, (_null_field(item, at) for at, item in inside)), "")


def reference_of(value: Any) -> Any:
    """Return a reference as plain data; None where the cell is empty.

    JSON text of an object, or of a list of objects, becomes what it stands for: columns are often text alone, and
    references such as `{"tests": [...]}` are not.  A text that readers of JSON disagree about (a key said twice, NaN)
    stays a text.  Of an object, fields that hold None are left out, unless it has but one: `{"answer": null}` says
    that there is no answer, and `{"target": [..]}` (Search-R1) holds the accepted ones.  NaN, and what pandas writes
    for it, is an empty cell.
    """
    reference = _with_options(_as_written(_parsed(plain(value))))
    if isinstance(reference, Mapping) and list(reference) == ["target"]:
        reference = reference["target"]
    if isinstance(reference, Mapping) and len(reference) != 1:
        reference = {key: item for key, item in reference.items() if item is not None} or None
    return None if is_empty(reference) else reference


def _with_options(reference: Any) -> Any:
    """A question's options as a list where they are JSON text, as CSV has them, and the position as a number.

    A digit that is the position of one option and the text of another says neither; the options then stay a text, which
    the scorer refuses.
    """
    name = next((name for name in OPTIONS if isinstance(reference, Mapping) and name in reference), "")
    if not name or not isinstance(reference[name], str):
        return reference
    options, answer = _read(reference[name], ("[", "{")), reference.get("answer")
    if isinstance(options, str):
        return reference
    text = answer.strip() if isinstance(answer, str) else ""
    if isinstance(options, list) and text.isdecimal() and int(text) < len(options) and options[int(text)] != text:
        if text in options:
            return reference
        answer = int(text)
    return {**reference, name: options, **({"answer": answer} if "answer" in reference else {})}


def given_reference(value: Any) -> Any:
    """Return a reference as a caller gives it, or, where pandas or NumPy hold it, as the row that they read says it.

    They are known by arrays where a row has lists, and by NaN where it has nothing.  What Python itself holds stays as
    it is: a None, a tuple or an array among a test's arguments means something.
    """
    if hasattr(value, "tolist"):
        return plain(value)
    return reference_of(without_absent(plain(_without_nan(value)))) if _is_from_arrays(value) else value


def _is_from_arrays(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        hasattr(item, "tolist") or is_nan(item) or _is_from_arrays(item) for item in value.values()
    )


def _without_nan(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _without_nan(item) for key, item in value.items() if not is_nan(item)}


def is_nan(value: Any) -> bool:
    """Return whether a value is the number that pandas and NumPy have where a cell is empty."""
    return isinstance(value, float) and math.isnan(value)


def is_empty(value: Any) -> bool:
    """Return whether plain data says that a cell is empty: None, "", and what pandas writes for a missing one."""
    return value is None or value is MISSING or (isinstance(value, str | float) and str(value) in _EMPTY)


def name_of(value: Any) -> str:
    """Return what a cell names, such as a row; "" where it is empty or holds neither text nor a number.

    Numbers that pandas made floats of, since another cell was empty, are whole numbers again.
    """
    name = plain(value)
    if is_empty(name) or isinstance(name, bool) or not isinstance(name, str | int | float):
        return ""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _as_written(value: Any) -> Any:
    """Data whose numbers went through 32 bits, as columns of float32 have them: 0.1 for 0.10000000149011612.

    A number of few bits, such as 2^52 or 3/2^30, was written with all its digits: decimals that 32 bits hold have more.
    """
    if isinstance(value, float) and len(repr(value).partition("e")[0]) > 15 and _in_32_bits(value) == value:
        if (math.frexp(value)[0] * 2**_FEW_BITS).is_integer():
            return value
        return next(near for digits in range(1, 10) if _in_32_bits(near := float(f"{value:.{digits}g}")) == value)
    if isinstance(value, Mapping):
        return {key: _as_written(item) for key, item in value.items()}
    return [_as_written(item) for item in value] if isinstance(value, list) else value


def _in_32_bits(value: float) -> float:
    try:
        (near,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.inf
    return float(near)


def number_of(value: Any) -> float | None:
    """Return a number, true and false as 1 and 0, text that spells one of these; None for anything else.

    A score counts where it was given.  Numbers beyond 1e300 are none: their sums are not finite.
    """
    if isinstance(value, Mapping):
        value = value.get("value") if value.get("status", "scored") == "scored" else None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return {"true": 1.0, "false": 0.0}.get(value.strip().lower())
    if not isinstance(value, int | float | Decimal):  # databases write 1.0 as a decimal
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= _LARGEST else None  # NaN is not either


def prompt_of(value: Any, column: str = "") -> Text:
    """Return the prompt of a cell: text, or chat turns; of several columns ("instruction+input"), their texts in order.

    Raises:
        ValueError: the cell holds something else.
    """
    prompt = plain(value)
    if isinstance(prompt, Mapping) and "+" in column and all(isinstance(part, str | None) for part in prompt.values()):
        return "\n\n".join(part for part in prompt.values() if part)
    if isinstance(prompt, str) and prompt.lstrip().startswith("[{"):
        turns = _parsed(prompt)
        prompt = turns if is_chat(turns) else prompt
    return text_or_chat(prompt, "prompt", column)


def response_of(value: Any, column: str = "") -> Text:
    """Return the response of a cell: text, or chat turns; of several columns ("prompt+completion"), one text.

    Raises:
        ValueError: the cell holds something else, or one of the columns holds no text.
    """
    response = plain(value)
    if isinstance(response, Mapping) and list(response) == column.split("+"):
        response = "".join(response.values()) if all(isinstance(part, str) for part in response.values()) else response
    return text_or_chat(response, "response", column)


def text_or_chat(value: Any, what: str, column: str = "") -> Text:
    """Return text, or turns with role and content.

    Raises:
        ValueError: it is neither; the message says what it is.
    """
    if isinstance(value, str):
        return value
    if value is MISSING:
        raise ValueError(f"the row has no {what}: no field {column!r}")
    if isinstance(value, int | float) and not isinstance(value, bool) and not is_nan(value):
        return str(value)
    if isinstance(value, Mapping) and is_chat([value]):
        value = [value]
    where = f" in {column!r}" if column else ""
    if not is_chat(value):
        raise ValueError(f"the {what}{where} is {kind_of(value)}; it must be text or chat turns with a role")
    turns = [_turn(turn) for turn in value]  # pyright: ignore[reportGeneralTypeIssues]
    for turn in turns:
        parts = turn.get("content")
        known = all(isinstance(part, str | Mapping) for part in parts) if isinstance(parts, list) else True
        if not known or not isinstance(parts, str | list | None):
            raise ValueError(f"a turn of the {what}{where} has the content {kind_of(parts)}; it must be text or parts")
    return turns


def exchange(prompt: Text, response: Text) -> tuple[Text, Text]:
    """Return a prompt and its response, from a response that may be the whole chat.

    A whole chat begins with a system or user turn.  It repeats the prompt, and what follows is the response; where
    there is no other prompt, the response is what follows the last turn of a user.

    Raises:
        ValueError: a whole chat does not begin with the prompt, or says nothing after it.
    """
    if isinstance(response, str) or not response or response[0].get("role") not in ("system", "user"):
        return prompt, response
    begun = turns_of(prompt)
    if not begun:
        asked = [place for place, turn in enumerate(response) if turn.get("role") == "user"]
        cut = asked[-1] + 1 if asked else 1
        prompt = list(response[:cut])
    elif same_turns(response[: len(begun)], begun):
        cut = len(begun)
    elif response[0].get("role") == "system" and same_turns(response[1 : len(begun) + 1], begun):
        cut = len(begun) + 1
        prompt = list(response[:cut])
    else:
        raise ValueError("the response is a whole chat, and it does not begin with the prompt")
    if cut >= len(response):
        raise ValueError("the response is a whole chat without an answer: nothing follows the prompt")
    return prompt, list(response[cut:])


def are_answered(prompts: Iterable[Any]) -> bool:
    """Return whether all prompts are chats that end with an answer, as those of data for fine-tuning do."""
    chats = [list_of(prompt) for prompt in prompts if not is_empty(prompt)]
    return bool(chats) and all(is_chat(chat) and turns_of(chat)[-1]["role"] == "assistant" for chat in chats)


def unanswered(prompt: Text) -> Text:
    """Return a prompt without the answer that it ends with."""
    if isinstance(prompt, str):
        return prompt
    asked = [place for place, turn in enumerate(prompt, 1) if turn.get("role") != "assistant"]
    return prompt[: asked[-1]] if asked else ""


def said_in_choice(value: Any) -> Any:
    """Return what is said in one of the `choices` of an OpenAI-compatible server: its message, or its text."""
    if isinstance(value, Mapping) and "role" not in value:
        if isinstance(value.get("message"), Mapping):
            return value["message"]
        if isinstance(value.get("text"), str) and value.keys() <= _OF_A_CHOICE:
            return value["text"]
    return value


def is_chat(value: Any) -> bool:
    """Return whether plain data is a list of turns, each with a role (or with ShareGPT's `from`)."""
    turns = value if isinstance(value, list) and value else [None]
    return all(isinstance(turn, Mapping) and ("role" in turn or {"from", "value"} <= turn.keys()) for turn in turns)


def each_message(value: Any) -> Any:
    """Return each of an assistant's messages as a chat of its own, as an API's samples are saved; else the value."""
    alone = is_chat(value) and all(turn["role"] == "assistant" for turn in turns_of(value))
    return [[turn] for turn in value] if alone else value


def turns_of(prompt: Text) -> list[Message]:
    """Return a prompt as turns: text is what a user says, and empty text nothing."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}] if prompt else []
    return [_turn(turn) for turn in prompt]


def same_turns(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Return whether the same roles say the same, white space at the ends aside."""
    return len(one) == len(other) and all(map(_same, one, other))


def kind_of(value: Any) -> str:
    """Return what a value is, in a few words."""
    if value is None or is_nan(value):
        return "null" if value is None else "NaN, as an empty cell is written"
    if isinstance(value, Mapping):
        return f"an object with the fields {', '.join(map(str, list(value)[:8]))}" if value else "an empty object"
    return {list: "a list", bool: "true or false", str: "text"}.get(type(value), f"a {type(value).__name__}")


def _same(one: Message, other: Message) -> bool:
    if one.get("role") != other.get("role"):
        return False
    try:
        return content_text(one.get("content")).strip() == content_text(other.get("content")).strip()
    except ValueError:
        return one == other


def _turn(turn: Mapping[str, Any]) -> Message:
    if "role" in turn:
        return dict(turn)
    return {"role": _ROLES.get(str(turn["from"]), turn["from"]), "content": turn["value"]}


def _parsed(value: Any) -> Any:
    """The object, or list of objects, that a text of JSON stands for; anything else as it is.

    RLVR has constraints as Python writes them.
    """
    if isinstance(value, str) and value.lstrip().startswith("[{'instruction_id"):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(value.strip())
    data = _read(value, ("{", "["))
    items = data if isinstance(data, list) else [data]
    return data if items and all(isinstance(item, dict) for item in items) else value


def list_of(value: Any) -> Any:
    """Return the list that a text of JSON stands for; anything else as it is."""
    return _read(value, ("[",))


def _read(value: Any, begins: tuple[str, ...]) -> Any:
    """What a text of JSON that begins with one of these signs stands for; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(begins):
        return value
    try:
        return json.loads(value, object_pairs_hook=wire.unique_keys, parse_constant=wire.no_constant)
    except (ValueError, RecursionError):
        return value


def looks_like_list(value: Any) -> bool:
    """Return whether a text is a list of texts, turns or completions, as JSON, Python or NumPy write one."""
    if not isinstance(value, str):
        return False
    items = list_of(value)
    return all(map(_may_be_said, items)) if isinstance(items, list) else _LIST.fullmatch(value) is not None


def refuse_unread(name: str, cells: Iterable[Any]) -> None:
    """Raise `ValueError` if a cell of a column is a text that looks like a list, and is not JSON."""
    bad = next((cell for cell in cells if looks_like_list(cell) and not isinstance(list_of(cell), list)), None)
    if bad is not None:
        raise ValueError(
            f"the column {name!r} holds lists as texts that are not JSON ({bad[:60]!r}); save the rows as JSON "
            "Lines or Parquet, which have lists, or write each list with json.dumps"
        )


def _may_be_said(item: Any) -> bool:
    return item is None or isinstance(said_in_choice(item), str) or is_chat([said_in_choice(item)])


def is_no_response(value: Any) -> bool:
    """Return whether a value is an object that is not a response: no turn, and no completion."""
    return isinstance(value, Mapping) and not is_chat([value]) and not {"message", "text"} & set(value)


def are_completions(value: Any) -> bool:
    """Return whether a value is a list of completions, as servers return them: objects with a message or a text."""
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and {"message", "text"} & set(item) for item in value
    )


def nested_names(rows: Sequence[Mapping[str, Any]], depth: int = 3) -> list[str]:
    """Return the dotted paths of the objects nested in these rows, each once, in order of appearance."""
    paths: dict[str, None] = {}

    def walk(value: Mapping[str, Any], prefix: str, left: int) -> None:
        for key, item in value.items():
            if prefix:
                paths[f"{prefix}{key}"] = None
            if left > 1 and isinstance(item, Mapping):
                walk(item, f"{prefix}{key}.", left - 1)

    for row in rows:
        walk(row, "", depth)
    return list(paths)
