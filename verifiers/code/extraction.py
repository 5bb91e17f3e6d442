"""The program that a response holds: which of its Markdown code blocks, under an explicit policy.

A fence is three or more backticks or tildes at the start of a line, where indentation, list markers and tags such as
`<answer>` may come before it; a fence with a label may also end a line of text.  A block ends at a fence of the same
kind that is at least as long and no deeper indented than a list makes it, behind the last line of its program, or,
unclosed, at the end; the lines of an indented block lose its indentation.  Python before a first fence that nothing
opened is a block, too, which the prompt has opened.  Without a fence, `<pre><code>` is a block of Python, and tags or
MBPP's `[BEGIN]` and `[DONE]` may stand around a program.  Blocks
labelled with another language than the one asked for (shell sessions, sample output) do not count as long as there are
others.

A text that is Python as it stands is one program, whatever fences its strings and comments hold.

Not covered: code in running text, blocks without fences, and prompts that end in the middle of a function's statements.
"""

from __future__ import annotations

import ast
import functools
import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.protocol import Score
from adjudge.verifiers.code.languages import PYTHON_LABELS
from adjudge.verifiers.code.names import after_future, defined, missing, names_any, syntax_tree


def fenced(program: str, language: str) -> str:
    """Return a program as a code block that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", program)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{program}\n{fence}"


Block = Literal["last", "first", "longest", "all", "only"]
BLOCKS: tuple[Block, ...] = ("last", "first", "longest", "all", "only")

_MAX_SOURCE = 1 << 20  # characters of a program
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<before>(?:(?:<[\w|-]+>|[-*+]|\d{1,3}[.)])[ \t]*)*)(?P<fence>`{3,}|~{3,})"
    r"[ \t]*(?P<label>[^\s`{<]*)(?P<rest>[^\n`]*)$"
    r"|^[^\n`]*[^\n`\s][ \t]*(?P<late>```)(?P<word>[A-Za-z+#]\w*)[ \t]*$"
    r"|^[^\n`#]*[^\n`#\s][ \t]*(?P<glued>```)[ \t]*$",
    re.MULTILINE,
)
_HTML = re.compile(
    r"<pre[^<>]*>\s*<code(?:[^<>]*class=[\"'](?:language-|lang-)?(?P<label>[\w+#]+)[^<>]*)?>(?P<body>[^<]*)</code>\s*</pre>",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"`{3}|~{3}")
_TAG = re.compile(r"<[\w|-]+>[ \t]*")
_CLOSING = re.compile(r"[ \t]*(?:</?[\w|-]+>[^\n]*)?")
_SENTENCE = re.compile(r"[ \t]+[A-Z]\w*[ \t,][^\n={}]*")  # behind the end of a block
_TAGGED = tuple((f"<{tag}>", f"</{tag}>") for tag in ("answer", "solution", "code", "python")) + tuple(
    (f"[{mark}]", f"[/{mark}]") for mark in ("PYTHON", "CODE", "ANSWER")
)
_DONE = re.compile(r"^\[DONE\]", re.MULTILINE)
_GLUED_END = re.compile(r"```\s*(?:</?[\w|-]+>\s*)*\Z")
# What binds a name at the top level: a function or class, or an assignment.
_BINDS = re.compile(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_DOES = (ast.Call, ast.Assign, ast.Return, ast.FunctionDef, ast.ClassDef)  # no prose parses as one of these
_CODE = re.compile(r"^(?:@|(?:from|import|async|def|class)[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was found.

    There is none where `source` is "", and `fault` is the reason for a zero then; `blocks` are those that were
    candidates.
    """

    source: str
    fault: str = ""
    blocks: int = 0


def extract(
    text: str,
    labels: frozenset[str],
    block: Block = "last",
    bare: bool = True,
    whole: Callable[[str], bool] | None = None,
) -> Extracted:
    """Return the program in a text.

    Args:
        text: the answer part of a response.
        labels: names of the language in fences, in lower case.
        block: which of several blocks: the last, the first or the longest one, all of them joined, or "only", with
            which several different blocks are not an answer.
        bare: whether a text without any block is itself the program.
        whole: says whether a block can be the program that is asked for, by its look; the first and the last are
            chosen among those of which it says so, if there are any: a block of usage or of tests is not the answer.
    """
    text = text.removeprefix("\ufeff")
    blocks = _blocks(f"```python\n{text}" if bare and "python" in labels and _is_continued(text) else text)
    if not blocks and "python" in labels:
        blocks = [((pre["label"] or "").lower(), html.unescape(pre["body"])) for pre in _HTML.finditer(text)]
    bare = bare and not text.lstrip().startswith(("```", "~~~"))  # no Python begins so
    if blocks and bare and "python" in labels and syntax_tree(text) is not None:
        return Extracted(text)
    filled = [(label, body) for label, body in blocks if body.strip()]
    ours = [body for label, body in filled if label in labels] or [body for label, body in filled if not label]
    ours = ours or [body for _, body in filled]
    if not ours:
        if blocks or not bare or not text.strip():
            return Extracted("", "no_answer")
        shown = _few_shot(text)
        tagged = _last_tagged(text) or shown
        text = tagged if tagged and (syntax_tree(text) is None or (shown and syntax_tree(shown))) else text
        return Extracted(_legible(text) if "python" in labels else text)
    if block == "only" and len({body.strip() for body in ours}) > 1:
        return Extracted("", "several_answers", len(ours))
    if block == "all":
        return Extracted("\n\n".join(ours), blocks=len(ours))
    can = list(range(len(ours)))
    if len(ours) > 1 and block in ("first", "last") and whole is not None:
        can = [number for number in can if whole(ours[number])] or can
    chosen = {"first": can[0], "longest": max(can, key=lambda number: len(ours[number]))}.get(block, can[-1])
    source = ours[chosen]
    if "python" in labels:
        source = _legible(
            source if block == "longest" else _with_parts(source, [*ours[:chosen][::-1], *ours[chosen + 1 :]])
        )
    return Extracted(source, blocks=len(ours))


def program_in(
    text: str,
    labels: frozenset[str],
    block: Block = "last",
    bare: bool = True,
    whole: Callable[[str], bool] | None = None,
    most: int = _MAX_SOURCE,
    **evidence: Any,
) -> str | Score:
    """Return the program in a text, as `extract` finds it, or the zero for having none or too long a one."""
    extracted = extract(text, labels, block, bare, whole)
    if extracted.fault:
        return Score.scored(0.0, extracted.fault, **evidence, blocks=extracted.blocks)
    if len(extracted.source) > most:
        return Score.scored(0.0, "too_complex", **evidence, error=f"more than {most} characters")
    return extracted.source


def _last_tagged(text: str) -> str:
    """Return what stands between the last pair of tags, or ""."""
    ends = [(text.rfind(closing), opening) for opening, closing in _TAGGED]
    pairs = [
        (end, start + len(opening)) for end, opening in ends if (start := text.rfind(opening, 0, max(end, 0))) >= 0
    ]
    end, start = max(pairs, default=(0, 0))
    return text[start:end].strip("\n")


def _few_shot(text: str) -> str:
    """Return what stands before a first line of [DONE], and behind a [BEGIN] there, as in MBPP's examples, or ""."""
    done = _DONE.search(text)
    program = text[: done.start()] if done else text
    return program.rpartition("[BEGIN]")[2].strip("\n") if done or "[BEGIN]" in program else ""


def _legible(source: str) -> str:
    """Return a program with plain spaces where pages and editors put others, if it is none as it stands."""
    if source.isascii():
        return source
    plain = re.sub(r"[\u00a0\u202f\u2007]", " ", re.sub(r"[\ufeff\u200b]", "", source))
    return plain if plain != source and syntax_tree(source) is None and syntax_tree(plain) is not None else source


def _with_parts(source: str, parts: list[str]) -> str:
    """Return a program with those other blocks that define at their top level what it reads and does not define.

    They stand before it, but for those that read what it defines.
    """
    for part in parts:
        tree, other = syntax_tree(source), syntax_tree(part)
        if tree is None or other is None:
            continue
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
        theirs = set().union(*(defined(node) for node in other.body if isinstance(node, kinds)))
        if missing(tree) & theirs and not _top_level(tree) & _top_level(other):
            pieces = (source, part) if missing(other) & _top_level(tree) else (part, source)
            source = f"{pieces[0].rstrip()}\n\n{pieces[1]}"
    return source


def _top_level(tree: ast.Module) -> set[str]:
    """Return the functions and classes of a program."""
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def defines(source: str, names: Iterable[str]) -> bool:
    """Return whether a Python source, by its look, defines all of these functions or classes at its top level."""
    if not (names := set(names)):
        return True
    return names <= {name for either in _BINDS.findall(source) for name in either}


def completed(source: str, prompt: str, function: str) -> str:
    """Return the program of a response: with the prompt's code before it where it is only the body of its function.

    So completions of HumanEval are.  A response that is Python by itself gets the prompt's imports that it lacks.  One
    that defines the function stays as it is, and so does one to a prompt in which the function has statements: what is
    judged must be the response's.

    The prompt ends in the function's header, imports or docstring, bare or in a code block.
    """
    if not _has_header(prompt, function):
        return source
    whole = _has_header(source, function)
    imports = [
        (line, names)
        for line, names in _imports(prompt)
        if names_any(source, names)
        and not (line in source and re.search(rf"^{re.escape(line)}[ \t]*(?:[,;#]|$)", source, re.MULTILINE))
    ]
    if whole and not imports:
        return source
    if (tree := syntax_tree(source)) is not None:
        lines = [line for line, names in imports if names & (missing(tree) | {"*"})] if missing(tree) else []
        return after_future(source, tree, *lines) if lines else source
    for code in () if whole else _codes(prompt):
        code += "" if re.search(r"\n[ \t]*\Z", code) else "\n"
        if _is_body(code + source, code.count("\n"), function):
            return code + source
    return source


def _has_header(source: str, function: str) -> bool:
    return function in source and any(name == function for name, _ in _BINDS.findall(source))


def _codes(prompt: str) -> tuple[str, ...]:
    """Return what of a prompt may be its code."""
    text = re.sub(r"\r\n?", "\n", prompt)
    first = _CODE.search(text)
    return text, extract(text, PYTHON_LABELS).source, text[first.start() :] if first else ""


@functools.lru_cache(maxsize=64)
def _imports(prompt: str) -> list[tuple[str, frozenset[str]]]:
    """Return the imports at the top of a prompt's code, each with the names that it binds."""
    trees = (syntax_tree(code) or syntax_tree(f"{code.rstrip()}\n    pass") for code in _codes(prompt))
    tree = next(filter(None, trees), None)
    nodes = [node for node in (tree.body if tree else ()) if isinstance(node, ast.Import | ast.ImportFrom)]
    return [(ast.unparse(node), frozenset(defined(node))) for node in nodes]


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


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return (label, body) of every code block."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _fences(text):
        if fence["glued"]:
            if opened is not None and _ends_program(opened, text[opened.end() + 1 : fence.start("glued")]):
                blocks.append(_block(opened, text[opened.end() + 1 : fence.start("glued")]))
                opened = None
        elif opened is None or (opened["late"] and fence["label"]):
            opened = fence
        elif _closes(fence, opened):
            blocks.append(_block(opened, text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append(_block(opened, _GLUED_END.sub("", text[opened.end() + 1 :])))
    return blocks


def _is_continued(text: str) -> bool:
    """Return whether a text goes on in a block that the prompt has opened: it is code up to a fence that closes."""
    fences = [fence for fence in _fences(text) if not fence["glued"]]
    opened = _FENCE.match("```python")
    if len(fences) % 2 == 0 or opened is None or not _closes(fences[0], opened):
        return False
    head = text[: fences[0].start()]
    trees = (syntax_tree(start + head) for start in ("", "if 1:\n", "if 1:\n    "))  # a body, too
    tree = next(filter(None, trees), None)
    return tree is not None and any(isinstance(node, _DOES) for node in ast.walk(tree))


def _ends_program(opened: re.Match[str], body: str) -> bool:
    """Return whether what stands before a fence at the end of a line can be all of a block, and not text in it."""
    if (opened["fence"] or opened["late"]) != "```":
        return False
    label, source = _block(opened, body)
    python = label in PYTHON_LABELS or not label
    return syntax_tree(source) is not None if python else body.rstrip()[-1:] in (";", "}", ")")


def _fences(text: str) -> Iterator[re.Match[str]]:
    """Yield the fences; only lines that hold the signs of one are looked at closely, which few of a program's do."""
    end = -1
    for signs in _SIGNS.finditer(text):
        if signs.start() > end:
            end = text.find("\n", signs.end())
            end = len(text) if end < 0 else end
            if fence := _FENCE.match(text, text.rfind("\n", 0, signs.start()) + 1, end):
                yield fence


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    return (
        (fence["fence"] or "").startswith(opened["fence"] or opened["late"])
        and not fence["before"]
        and (
            _CLOSING.fullmatch(fence["label"] + fence["rest"])
            or _SENTENCE.fullmatch(fence.string, fence.end("fence"), fence.end())
        )
        is not None
        and len(fence["indent"].expandtabs(4)) < _depth(opened) + 4
    )


def _depth(opened: re.Match[str]) -> int:
    """Return how many columns of indentation and list markers a fence has before it."""
    return len((opened["indent"] or "").expandtabs(4) + _TAG.sub("", opened["before"] or ""))


def _block(opened: re.Match[str], body: str) -> tuple[str, str]:
    """Return the label, and the body without the indentation that it shares with its fence."""
    lines = body.splitlines(keepends=True)
    first = next((line for line in lines if line.strip()), "").expandtabs(4)
    if depth := min(_depth(opened), len(first) - len(first.lstrip())):
        lines = [line.expandtabs(4) for line in lines]
        body = "".join(line[min(depth, len(line) - len(line.lstrip(" "))) :] for line in lines)
    return (opened["label"] or opened["word"] or "").lower(), body
