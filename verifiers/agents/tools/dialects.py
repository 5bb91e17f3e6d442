"""Calls in the marks of models that have their own, read wherever they stand, as `<tool_call>` is; and in Python.

| mark | then | used by |
|---|---|---|
| `<function=NAME>`, `<invoke name="NAME">` | JSON, or `<parameter=KEY>VALUE</parameter>` | Llama, Qwen3-Coder, Claude |
| `<tool_call>NAME` | `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` | GLM |
| `[TOOL_CALLS]`, `[TOOL_CALLS]NAME[ARGS]` | JSON calls; JSON | Mistral |
| `<|python_tag|>`, `<|python_start|>`, `<|tool_call_start|>` | JSON or Python calls | Llama 3, Llama 4, LFM |
| `<function_calls>`, `<TOOLCALL>`, `<|START_ACTION|>`, `functools` | the same | OLMo 3, Nemotron, Command, Phi-4-mini |
| a fence ```` ```tool_code ````, in which `print(f(a=1))` is `f(a=1)` | the same | Gemma |
| `NAME<｜tool▁sep｜>`, `functions.NAME:0<|tool_call_argument_begin|>` | JSON | DeepSeek, Kimi |
| `to=functions.NAME ..<|message|>` | JSON | gpt-oss |
| `✿FUNCTION✿: NAME ✿ARGS✿:`, `Action: NAME`, `Action Input:` | JSON | Qwen, ReAct |
| a line `>>>NAME`, or at the beginning one with the name of a known tool alone | a JSON object | Functionary, GLM-4 |

A mark with nothing behind it that can be read is a call with a `fault`.  Where JSON calls are expected, the same as a
Python literal (`{'name': 'f', 'arguments': {'a': 1}}`) will do.

Python is `[f(a=1), g(b="x")]`, one call by itself, or several below each other.  It is parsed and never evaluated.
Arguments are literals with a name: a positional argument, an unpacked one, an expression or a bare word is a fault of
its call, and so is a name that Python would read as another one, such as a look-alike letter that its parser turns into
the plain one.

Not covered: programs, in which other statements stand between the calls.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any, Final

from adjudge.responses.trajectories.reading import read_json
from adjudge.responses.trajectories.trajectory import Call
from adjudge.verifiers.agents.tools.arguments import spelled
from adjudge.verifiers.logic.literal import LiteralError, parse_python, read_unambiguous, value_of

MAX_CALLS: Final = 256  # of one response; one with more is not judged call by call

_BEGINS: Final = re.compile(r"[\[(#]|[^\W\d][\w.]{0,200}\s{0,20}\(")  # else there is nothing to parse, as in prose
_ATTEMPT: Final = re.compile(r"[\[(]\s{0,20}[^\W\d][\w.]{0,200}\(")  # but not "[see (1)]"
_TIGHT: Final = re.compile(r"[^\W\d][\w.]{0,200}\(")
_LINE: Final = re.compile(r"\r\n|\r|\n")


def python_calls(text: str, offset: int = 0) -> list[Call]:
    """Return the calls that a text at `offset` consists of, at most `MAX_CALLS` + 1; none if it is something else.

    A text that begins as a list of calls and cannot be read is one call with a `fault`: whoever tried to call something
    has not refrained from it.
    """
    if not _BEGINS.match(text):
        return []
    try:
        tree = parse_python(text)
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    except LiteralError as error:
        nodes = _lines_of_calls(text) if error.reason == "unparsable_answer" else []
        if not nodes and _ATTEMPT.match(text):
            return [Call(name="", arguments=text, start=offset, end=offset + len(text), fault=str(error))]
    if not any(isinstance(node, ast.Call) for node in nodes):
        return []
    spans = _spans(text, nodes[: MAX_CALLS + 1])
    calls = [_read(node, text[start:end], offset + start, offset + end) for node, (start, end) in spans]
    if all(call.fault and not _TIGHT.match(text, call.start - offset) for call in calls):
        return []  # "Paris (France)" is prose
    return calls


def _lines_of_calls(text: str) -> list[ast.expr]:
    """Return the calls that a text consists of, below each other or behind semicolons; none if it is something else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = [line.value for line in lines if isinstance(line, ast.Expr)]
    return nodes if len(nodes) == len(lines) and all(isinstance(node, ast.Call) for node in nodes) else []


def _read(node: ast.expr, source: str, start: int, end: int) -> Call:
    if not isinstance(node, ast.Call):
        return Call(name="", arguments=source, start=start, end=end, fault="it is not a call")
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[ast.Call() as inner], keywords=[]):
            node = inner
    name = _name(node.func)
    try:
        if not name or _has_look_alike(source):
            raise LiteralError("unparsable_answer", "what is called has no plain name")
        if node.args:
            raise LiteralError("unparsable_answer", "an argument has no name")
        names = [keyword.arg for keyword in node.keywords]
        if None in names or len(set(names)) < len(names):
            raise LiteralError("unparsable_answer", "an argument is unpacked, or given twice")
        arguments = {str(keyword.arg): value_of(keyword.value) for keyword in node.keywords}
    except LiteralError as error:
        return Call(name=name, arguments=source, start=start, end=end, fault=str(error))
    return Call(name=name, arguments=arguments, start=start, end=end)


def _has_look_alike(source: str) -> bool:
    """Return whether Python reads a name in a source as another one; what stands in texts does not matter."""
    if unicodedata.normalize("NFKC", source) == source:
        return False
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return True
    names = (token.string for token in tokens if token.type == tokenize.NAME)
    return any(unicodedata.normalize("NFKC", name) != name for name in names)


def _name(node: ast.expr) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _spans(text: str, nodes: Sequence[ast.expr]) -> list[tuple[ast.expr, tuple[int, int]]]:
    """Return each node with its first character and one past its last; Python counts bytes of lines."""
    lines = _LINE.split(text)
    starts = [0, *(ending.end() for ending in _LINE.finditer(text))]

    def place(line: int, column: int) -> int:
        row = lines[line - 1]
        return starts[line - 1] + (column if row.isascii() else len(row.encode()[:column].decode(errors="ignore")))

    return [
        (node, (place(node.lineno, node.col_offset), place(node.end_lineno or 1, node.end_col_offset or 0)))
        for node in nodes
    ]


_NAME: Final = r"(?=\w)[^\s\"'<>={}\[\]()]{1,200}"
_NAMED_MARKS: Final = (  # one group each, the name; its arguments come next
    rf"""<function=["']?({_NAME})["']?>""",
    rf"""<[\w:｜|]{{0,20}}invoke name=["']({_NAME})["']>""",
    rf"<tool_call>\s{{0,9}}({_NAME})\s{{0,9}}(?=<arg_key>|</tool_call>)",
    rf"\[TOOL_CALLS\]\s{{0,9}}({_NAME})(?:\[CALL_ID\]\w{{1,40}})?(?:\[ARGS\])?(?=\s{{0,9}}\{{)",
    rf"<｜tool▁call▁begin｜>\s{{0,9}}(?:function<｜tool▁sep｜>)?({_NAME})(?:<｜tool▁sep｜>)?",
    rf"<\|tool_call_begin\|>\s{{0,9}}(?:functions\.)?({_NAME}?)(?::\d{{1,4}})?\s{{0,9}}<\|tool_call_argument_begin\|>",
    rf"\bto=functions\.({_NAME})[^{{}}\n]{{0,100}}?<\|message\|>",
    rf"✿FUNCTION✿:[ \t]{{0,9}}({_NAME})\s{{0,9}}✿ARGS✿:",
    rf"^[ \t*]{{0,9}}Action:[* \t`]{{0,9}}({_NAME}?)[`*]{{0,3}}[ \t]{{0,9}}\r?\n[ \t*]{{0,9}}Action Input:\**",
    rf"^>>>(?!all\s)({_NAME})[ \t]{{0,9}}\r?\n(?=\s{{0,9}}\{{)",
    rf"\A\s{{0,9}}(?P<known>{_NAME})[ \t]{{0,9}}\r?\n(?=\s{{0,9}}\{{)",
)
_MARKS: Final = (  # calls in JSON or Python come next
    r"<\|(?:python_tag|python_start|tool_call|tool_call_start|START_ACTION)\|>",
    r"<\|action_start\|><\|plugin\|>",
    r"<(?:function_?calls?|tool_calls|TOOLCALL|tool_code|tool_use)>",
    r"</?tool_call\|>",
    r"\[TOOL_CALLS\]",
    r"(?<![\w.])functools(?=\[\s{0,9}\{)",
    r"^```tool_code[ \t]{0,9}\r?\n",
)
_OPENING: Final = re.compile(
    rf"{'|'.join(_NAMED_MARKS)}|(?:{'|'.join(_MARKS)})(?=\s{{0,9}}(?:[\[{{`]|[^\W\d][\w.]{{0,200}}\())", re.MULTILINE
)
_FENCE: Final = re.compile(r"\s{0,9}(?:```[\w-]{0,20}\s{0,9})?")
_PARAMETER: Final = re.compile(
    rf"""\s*+(?:</?arg_key>|<[\w:｜|]{{0,20}}parameter(?:=|[ ]name=)["']?)\s{{0,9}}({_NAME})["']?"""
    r"""(?:\s{0,9}</arg_key>\s{0,9}<arg_value>|[ ]string=["'](true|false)["']>|>)"""
)
_PARAMETER_END: Final = re.compile(r"\n?</(?:arg_value|[\w:｜|]{0,20}parameter)>")
_PYTHON_END: Final = re.compile(r""""(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|(<[/|]|```|\Z)""")  # not in a text
_BETWEEN: Final = re.compile(r"\s{0,9}[;,]?\s{0,9}")
_DECODER: Final = json.JSONDecoder()
_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
_NAMES: Final = ("name", "tool_name", "tool", "function", "action")


def dialect_calls(text: str, offset: int, names: Container[str] = ()) -> list[Call]:
    """Return the calls in a text outside thoughts that are marked in one of the ways above, with `offset` added.

    A line with nothing but a name is a mark if it is one of the `names`.  The first call behind a mark begins with it;
    the mark that exceeds `MAX_CALLS` is the last.
    """
    made: list[Call] = []
    at = 0
    while len(made) <= MAX_CALLS and (mark := _OPENING.search(text, at)):
        if mark["known"] and mark["known"] not in names:
            at = mark.end()
            continue
        name = next(filter(None, mark.groups()), "")
        start = _FENCE.match(text, mark.end()).end()  # type: ignore[union-attr]  # it matches the empty text
        calls, at = _named(name, text, start) if name else bare_calls(text, start)
        unread = Call(name=name, arguments="", start=mark.start(), end=mark.end(), fault="it cannot be read")
        made += [replace(calls[0], start=mark.start()), *calls[1:]] if calls else [unread]
        at = max(at, mark.end())
    return [replace(call, start=call.start + offset, end=call.end + offset) for call in made]


def unwrapped(data: Any) -> Any:
    """Return what stands in the field of an object that is `tool_calls` or the like, beside texts; else the data."""
    found = [key for key in data if key in ("tool_calls", "function_call", "calls")] if isinstance(data, dict) else []
    if len(found) != 1 or any(key in _NAMES or _may_be_arguments(one) for key, one in data.items() if key != found[0]):
        return data
    return data[found[0]]


def named_call(item: Any, *, argued: bool = True) -> tuple[Any, Any] | None:
    """Return the name and the arguments of a call in JSON, whichever keys a model gives them; None if it is none.

    What has two names, or two sets of arguments, is none, and unless `argued` is false what has no arguments.
    """
    outer = item if isinstance(item, dict) else {}
    inner = outer["function"] if isinstance(outer.get("function"), dict) else outer
    names, keys = [key for key in _NAMES if key in inner], [key for key in _KEYS if key in inner]
    rest = [value for key, value in inner.items() if key not in (*names, *keys)]
    if inner is not outer:
        rest += [{} if key in (*_NAMES, *_KEYS) else value for key, value in outer.items() if key != "function"]
    if len(names) != 1 or not argued <= len(keys) <= 1 or any(map(_may_be_arguments, rest)):
        return None
    return inner[names[0]], inner[keys[0]] if keys else {}


def _may_be_arguments(value: Any) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and value.lstrip()[:1] in ("{", "["))


def json_call(item: Any, start: int, end: int) -> Call:
    """Return the call that JSON data is."""
    parts = named_call(item)
    if parts is None:
        return Call(name="", arguments="", start=start, end=end, fault="it is not a call")
    name, arguments = parts
    fault = "" if isinstance(name, str) and name else "it has no name"
    if isinstance(arguments, str):
        arguments, wrong = read_json(arguments)
        fault = fault or wrong
    if not fault and not isinstance(arguments, dict):
        fault = "its arguments are not a JSON object"
    return Call(name="" if fault else name, arguments=arguments, start=start, end=end, fault=fault)


def _named(name: str, text: str, start: int) -> tuple[list[Call], int]:
    """Return the call of a name with the arguments that begin at a place, and where they end."""
    if text[start : start + 1] == "{":
        end = json_end(text, start)
        arguments, fault = read_json(text[start:end]) if end else (None, "its arguments cannot be read")
        return [Call(name=name, arguments=arguments, start=start, end=end or start + 1, fault=fault)], end or start + 1
    arguments, at = dict[str, Any](), start
    while parameter := _PARAMETER.match(text, at):
        closing = _PARAMETER_END.search(text, parameter.end())
        if not closing or parameter[1] in arguments:
            return [], parameter.end()
        value = text[parameter.end() : closing.start()].removeprefix("\n")
        arguments[parameter[1]], at = value if parameter[2] == "true" else spelled(value), closing.end()
    closed = re.compile(r"\s{0,9}</|(?:None|null)[ \t]{0,9}(?:\r?\n|\Z)").match(text, at)
    return ([Call(name=name, arguments=arguments, start=start, end=at)] if closed else []), at


def bare_calls(text: str, start: int) -> tuple[list[Call], int]:
    """Return the calls, in JSON or Python, that begin at a place, and where they end."""
    calls: list[Call] = []
    at = start
    while text[at : at + 1] in ("{", "[") and len(calls) <= MAX_CALLS and (end := json_end(text, at)):
        value, fault = read_json(text[at:end])
        value = unwrapped(value)
        items = value if isinstance(value, list) else [value]
        if fault or not all(named_call(item) for item in items):
            return [], at
        calls += [json_call(item, at, end) for item in items]
        at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]  # it matches the empty text
    if calls:
        return calls, at
    end = next(mark.start() for mark in _PYTHON_END.finditer(text, start) if mark[1] is not None)
    source = text[start:end].rstrip()
    if source[:1] in ("{", "["):
        try:
            value = unwrapped(read_unambiguous(source))
        except LiteralError:
            value = None
        items = value if isinstance(value, list) else [value]
        if all(map(named_call, items)):
            return [json_call(item, start, start + len(source)) for item in items], end
    return [replace(call, name=call.name.removesuffix(".call")) for call in python_calls(source, start)], end


def json_end(text: str, start: int) -> int:
    """Return where the JSON value ends that begins at a place; 0 where none does."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0
