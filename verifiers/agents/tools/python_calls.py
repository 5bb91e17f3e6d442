"""Calls written as Python: `[f(a=1), g(b="x")]`, one call by itself, or several below each other.

The text is parsed and never evaluated.  Arguments are literals with a name: a positional argument, an unpacked one, an
expression or a bare word is a fault of its call, and so is a name that Python would read as another one, such as a
look-alike letter that its parser turns into the plain one.

Not covered: programs, in which other statements stand between the calls.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Final

from adjudge.responses.trajectories.trajectory import Call
from adjudge.verifiers.logic.literal import LiteralError, parse_python, value_of

MOST_CALLS: Final = 256
"""Calls of one response; one with more is not judged call by call."""

_BEGINS: Final = re.compile(r"[\[(#]|[^\W\d][\w.]{0,200}\s{0,20}\(")  # else there is nothing to parse, as in prose
_ATTEMPT: Final = re.compile(r"[\[(]\s{0,20}[^\W\d][\w.]{0,200}\(")  # but not "[see (1)]"
_TIGHT: Final = re.compile(r"[^\W\d][\w.]{0,200}\(")
_LINE: Final = re.compile(r"\r\n|\r|\n")


def python_calls(text: str, offset: int = 0) -> list[Call]:
    """Return the calls that a text consists of, at most `MOST_CALLS` + 1; none if it is something else.

    A text that begins as a list of calls and cannot be read is one call with a `fault`: whoever tried to call something
    has not refrained from it.

    Args:
        text: without blanks around it.
        offset: where it begins; added to all spans.
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
    spans = _spans(text, nodes[: MOST_CALLS + 1])
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
        return Call(name="", arguments=source, start=start, end=end, fault="it is no call")
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
    """Return a name with dots, or "" for anything else that is called."""
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
