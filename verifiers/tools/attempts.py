"""Calls of a known tool in a form that nobody reads; whoever writes one has not refrained from calling.

| form | for example |
|---|---|
| JSON of another shape, or among prose | `{"tool": "book"}`, `Sure: {"name": "book", "arguments": {..}}` |
| tags and words of no dialect that is read | `<tool><name>book</name>`, `<book><city>`, `Action: book`, `>>>book` |
| Python between brackets in a sentence | `I take [book(city="Paris")] now` |
| Python on a line of its own, in a fence or not | `x = book(city="Paris")`, `print(book(..))`, `book(` |

Not covered: tools without a known name, and calls within a sentence, which may speak of a tool without calling it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from typing import Final

from adjudge.trajectories.trajectory import Call
from adjudge.verifiers.tools.python_calls import MOST_CALLS

_MARKED: Final = re.compile(
    r"""(?:["'](?:name|tool|tool_name|function|function_name|action)["']\s{0,20}:\s{0,20}["']"""
    r"""|<function=["']?|\bname=["']|<(?:name|tool|tool_name|function|function_name|action)>\s{0,9}"""
    r"""|<(?=[\w.-]{1,200}>\s{0,9}(?:<\w|\{)))([^\s"'`<>(){}\\]{1,200})"""
)
_WORDED: Final = re.compile(
    r"^(?:[ \t*✿]{0,20}(?:Action|Tool|Function|FUNCTION|Call)[✿*]{0,2}:[*`\s]{0,20}|>>>[ \t]{0,9})"
    r"([^\s`*(){}]{1,200})[`*]{0,3}[ \t]{0,9}(?:$|[({])",
    re.MULTILINE,
)
_LINE: Final = re.compile(
    r"^(?:[ \t`\[({\u200b\ufeff]|<[\w|]{1,40}>){0,20}(?:(?:await |return |print\(|[^\W\d]\w{0,60} ?= ?)[ \t]{0,4}){0,2}"
    r"([^\W\d][\w.]{0,200})\((.*)$",
    re.MULTILINE,
)
_LISTED: Final = re.compile(r"\[[ \t]{0,9}([^\W\d][\w.]{0,200})\(([^\]\n]*)")
_TAG: Final = re.compile(r"</?[\w|]{1,40}>")
_SIGN: Final = re.compile(r"""[()]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""")
_NEXT: Final = re.compile(r"\s{0,20}[,;]?\s{0,20}[\w.]{1,200}\(")
_VALUE: Final = re.compile(r"""[="'\d]""")  # a list of tools names parameters, `book(city, nights)`, and has no value


def attempted_calls(text: str, offset: int, names: Container[str]) -> list[Call]:
    """Return the attempts in a text as calls with a `fault`, in no order, at most four times `MOST_CALLS` + 4.

    Args:
        text: what the assistant wrote outside its thoughts.
        offset: where it begins; added to all spans.
        names: of the tools.
    """
    found: list[re.Match[str]] = []
    for pattern in (_MARKED, _WORDED, _LINE, _LISTED):
        matches = (match for match in pattern.finditer(text) if match[1] in names)
        marks = (match for match in matches if pattern.groups == 1 or _stands_alone(match[2]))
        found += itertools.islice(marks, MOST_CALLS + 1)
    fault = "it is not written as a call"
    return [
        Call(name=mark[1], arguments=mark[0], start=offset + mark.start(), end=offset + mark.end(), fault=fault)
        for mark in found
    ]


def _stands_alone(rest: str) -> bool:
    """Return whether a line behind `name(` is the rest of a call, with values, and nothing more but other calls."""
    depth, closing = 1, len(rest)
    for sign in _SIGN.finditer(rest):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if not depth:
            closing = sign.start()
            break
    inside, behind = rest[:closing], rest[closing + 1 :]
    if inside.strip() and not _VALUE.search(inside):
        return False
    return bool(_NEXT.match(behind)) or not re.search(r"\w", _TAG.sub("", behind))
