"""The program that a response holds: which of its Markdown code blocks, under an explicit policy.

A fence is a line of three or more backticks or tildes; a block ends at a fence of the same kind that is at least as
long, or, unclosed, at the end.  Blocks labelled with another language than the one asked for (shell sessions, sample
output) do not count as long as there are others.

Not covered: code in running text, indented blocks, and prompts that end in the middle of a function's statements.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import Literal

from adjudge.verifiers.code.languages import PYTHON_LABELS

Block = Literal["last", "first", "longest", "all", "only"]
BLOCKS: tuple[Block, ...] = ("last", "first", "longest", "all", "only")

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`{]*)[^\n`]*$", re.MULTILINE)
_CODE = re.compile(r"^(?:@|(?:from|import|async|def|class)[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was found.

    Attributes:
        source: the program; "" when there is none.
        fault: the reason for a zero when there is none, else "".
        blocks: how many code blocks were candidates.
    """

    source: str
    fault: str = ""
    blocks: int = 0


def extract(text: str, labels: frozenset[str], block: Block = "last", bare: bool = True) -> Extracted:
    """Return the program in a text.

    Args:
        text: the answer part of a response.
        labels: names of the language in fences, in lower case.
        block: which of several blocks: the last, the first or the longest one, all of them joined, or "only", with
            which several different blocks are no answer.
        bare: whether a text without any block is itself the program.
    """
    found = _blocks(text)
    ours = [body for label, body in found if label in labels and body.strip()]
    if not ours:
        ours = [body for label, body in found if not label and body.strip()]
    if not ours:
        ours = [body for _, body in found if body.strip()]
    if not ours:
        if found or not bare or not text.strip():
            return Extracted("", "no_answer")
        return Extracted(text)
    if block == "only" and len({body.strip() for body in ours}) > 1:
        return Extracted("", "several_answers", len(ours))
    if block == "all":
        return Extracted("\n\n".join(ours), blocks=len(ours))
    chosen = {"first": ours[0], "longest": max(ours, key=len)}.get(block, ours[-1])
    return Extracted(chosen, blocks=len(ours))


def completed(source: str, prompt: str, function: str) -> str:
    """Return the program of a response: with the prompt's code before it where it is only the body of its function.

    So completions of HumanEval are.  A response that is Python by itself or defines the function stays as it is, and
    so does one to a prompt in which the function has statements: what is judged must be the response's.

    Args:
        source: what the response holds.
        prompt: the task's text, which ends in the function's header, imports or docstring, bare or in a code block.
        function: what the tests call.
    """
    defined = re.compile(rf"^(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(function)}\b", re.MULTILINE)
    if not defined.search(prompt) or defined.search(source) or syntax_tree(source) is not None:
        return source
    text = re.sub(r"\r\n?", "\n", prompt)
    first = _CODE.search(text)
    after_prose = text[first.start() :] if first else ""
    for code in (text, extract(text, PYTHON_LABELS).source, after_prose):
        code += "" if re.search(r"\n[ \t]*\Z", code) else "\n"
        if _is_body(code + source, code.count("\n"), function):
            return code + source
    return source


def _is_body(program: str, lines: int, function: str) -> bool:
    """Return whether a function that begins in the first lines has all its statements after them, but for imports."""
    tree = syntax_tree(program)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in tree.body if isinstance(node, kinds) and node.name == function] if tree else []
    if not functions or functions[-1].lineno > lines:
        return False
    does = [node for node in functions[-1].body if not _is_preamble(node)]
    return bool(does) and does[0].lineno > lines


def _is_preamble(node: ast.stmt) -> bool:
    """Return whether a statement is an import or a docstring."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Import | ast.ImportFrom)


def syntax_tree(source: str) -> ast.Module | None:
    """Return the syntax tree of a Python program, without warnings about it; None where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return (label, body) of every code block."""
    found = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            found.append((opened[2].lower(), text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        found.append((opened[2].lower(), text[opened.end() + 1 :]))
    return found
