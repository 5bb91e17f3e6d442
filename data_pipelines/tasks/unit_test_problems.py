"""A task for which tests are made, read from rows, with the inputs of its known tests and of its prompt's examples.

Nothing is run: arguments that are computed (`f(list(range(9)))`) are not read, only literals are.  Whether the
solutions are right is what agreement is for.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.tasks.calls_guest import DEPTH, LONGEST_NUMBER
from adjudge.io.jobs.maker import DroppedError, Unit
from adjudge.io.jobs.row_maker import texts_in

_LONGEST_CALL = 4_000  # characters of a call in a prompt
_MAX_CALLS = 200  # in a prompt; the end of each is looked for
_MAX_SOURCE = 1 << 20  # characters


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments of one call; values of built-in types."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The call as a literal `(args, kwargs)`."""
        return repr((self.args, dict(self.kwargs)))

    @property
    def usable(self) -> bool:
        """Whether it has such a literal, and a row can hold it: what results may be, arguments may be."""
        return all(depth <= DEPTH and _has_literal(one) for one, depth in inside((*self.args, *self.kwargs.values())))


def inside(value: Any) -> Iterator[tuple[Any, int]]:
    """Yield a value and everything in it, each with how deep it lies; a value may be nested as deeply as it likes."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        yield one, depth
        if isinstance(one, Mapping):
            waiting += [(part, depth + 1) for pair in one.items() for part in pair]
        elif isinstance(one, list | tuple | set):
            waiting += [(part, depth + 1) for part in one]


def _has_literal(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= LONGEST_NUMBER
    return not isinstance(value, float) or math.isfinite(value)


def known_calls(tests: Any, prompt: str, entry_point: str) -> list[Call]:
    """Return the calls in tests and in the examples of a prompt, each once, in order."""
    calls: dict[str, Call] = {}
    shown = (call for text in _spoken(prompt, entry_point) for call in _calls_in(text, entry_point))
    for call in itertools.chain(_calls_of(tests, entry_point), shown):
        if call.usable:
            calls.setdefault(call.text, call)
    return list(calls.values())


def known_stdin(tests: Any) -> list[str]:
    """Return what programs read in tests, each once, in order."""
    given = (test.get("stdin") for test in _listed(tests) if isinstance(test, Mapping))
    return list(dict.fromkeys(text for text in given if isinstance(text, str)))


def _listed(tests: Any) -> list[Any]:
    if isinstance(tests, Mapping):
        tests = tests.get("tests", [tests])
    if not isinstance(tests, list | tuple):
        return [tests]
    nested = [isinstance(test, list | tuple) or (isinstance(test, Mapping) and "tests" in test) for test in tests]
    return [one for test, more in zip(tests, nested, strict=True) for one in (_listed(test) if more else [test])]


def _calls_of(tests: Any, entry_point: str) -> Iterator[Call]:
    for test in _listed(tests):
        if isinstance(test, str):
            yield from _calls_in(test, entry_point)
        elif isinstance(test, Mapping) and isinstance(test.get("args", []), list | tuple) and "stdin" not in test:
            kwargs = test.get("kwargs") or {}
            if isinstance(kwargs, Mapping) and ("args" in test or kwargs):
                yield Call(tuple(test.get("args", ())), dict(kwargs))


def _calls_in(source: str, entry_point: str) -> Iterator[Call]:
    """Yield the calls of the function, or of `candidate` as HumanEval's tests call it, that have literal arguments."""
    if len(source) > _MAX_SOURCE:
        return
    name = entry_point.rpartition(".")[2]
    for tree in _trees(source):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called not in (name, "candidate"):
                continue
            try:
                args = tuple(ast.literal_eval(argument) for argument in node.args)
                kwargs = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords if word.arg}
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            if len(kwargs) == len(node.keywords):
                yield Call(args, kwargs)


def _spoken(prompt: str, entry_point: str) -> Iterator[str]:
    """Yield the calls in a prompt's text, however it writes examples: `>>> f(1)`, "f(1) == 2", "f(1) ➞ 2"."""
    name = re.escape(entry_point.rpartition(".")[2])
    for call in itertools.islice(re.finditer(rf"(?<!def )(?<!\w){name}\(", prompt), _MAX_CALLS):
        depth, quote = 0, ""
        for at in range(call.end() - 1, min(len(prompt), call.start() + _LONGEST_CALL)):
            letter = prompt[at]
            if quote:
                quote = "" if letter == quote and prompt[at - 1] != "\\" else quote
            elif letter in "'\"":
                quote = letter
            else:
                depth += (letter in "([{") - (letter in ")]}")
            if not depth and not quote:
                yield prompt[call.start() : at + 1]
                break


def _trees(source: str) -> Iterator[ast.AST]:
    """Yield the whole source as a tree, or where it is not Python each of its lines that is."""
    try:
        yield ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for line in source.splitlines():
            try:
                yield ast.parse(line.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


_DEEPEST = DEPTH + 10  # of known tests: a list of tests holds objects, which hold arguments
_ENTRY = re.compile(r"[A-Za-z_]\w*(?:\(\)\.[A-Za-z_]\w*)?", re.ASCII)
_RIGHT = {"pass", "passed", "right", "correct", "true", "1"}
_WRONG = {"fail", "failed", "wrong", "incorrect", "timeout", "error", "false", "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What there is to make tests from.

    Attributes:
        entry_point: the function under test, or "Class().method"; "" for a program that reads standard input.
        solutions: programs that are taken to be right, no two of them the same but for layout and comments.
        wrong: programs that are known to be wrong, likewise.
        known: tests that exist already, in whatever form.
        copies: how many solutions were left out for being the same.
    """

    prompt: str
    entry_point: str = ""
    solutions: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    known: tuple[Any, ...] = field(default_factory=tuple)
    copies: int = 0


def read_problem(unit: Unit, cell: Callable[[Mapping[str, Any], str], Any], *, labelled: bool) -> Problem:
    """Return the task of a row, or of the rows of a group.

    `cell` returns what a row has in the column of a role; `labelled` says whether a column tells which programs are
    right.
    """
    right: list[str] = []
    wrong: list[str] = []
    known: list[Any] = []
    for row in unit.rows:
        mine = right if not labelled or _is_right(cell(row, "label")) else wrong
        mine += texts_in(cell(row, "solutions"), "bad_program")
        wrong += texts_in(cell(row, "wrong"), "bad_program")
        tests = cell(row, "tests")
        if any(depth > _DEEPEST for _, depth in inside(tests)):
            raise DroppedError("nested_too_deeply")
        if tests is not None and tests not in known:
            known.append(tests)
    prompts = {_text(cell(row, "prompt")) for row in unit.rows}
    entries = {_entry_point(cell(row, "entry_point")) for row in unit.rows}
    if len(prompts) > 1 or len(entries) > 1:
        raise DroppedError("tasks_differ")
    right = list(filter(str.strip, right))
    distinct = distinct_programs(right)
    return Problem(
        prompt=prompts.pop(),
        entry_point=entries.pop(),
        solutions=distinct,
        wrong=distinct_programs(filter(str.strip, wrong)),
        known=tuple(known),
        copies=len(right) - len(distinct),
    )


def distinct_programs(programs: Iterable[str]) -> tuple[str, ...]:
    """Return programs without those that repeat an earlier one: copies agree, and that says nothing."""
    distinct: dict[str, str] = {}
    for program in programs:
        distinct.setdefault(_form(program), program)
    return tuple(distinct.values())


def _form(program: str) -> str:
    """Return a program without layout, comments and docstrings, if it is Python; else without trailing blanks."""
    try:
        tree = ast.parse(program)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Module):
                node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n".join(line.rstrip() for line in program.strip().splitlines())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_right(label: Any) -> bool:
    text = str(int(label)) if isinstance(label, bool | float) and label in (0, 1) else str(label).strip().lower()
    if text not in _RIGHT | _WRONG:
        raise DroppedError("unknown_label")
    return text in _RIGHT


def _entry_point(value: Any) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _ENTRY.fullmatch(value):
        raise DroppedError("bad_entry_point")
    return value


def _text(prompt: Any) -> str:
    if prompt is None or prompt == "":
        raise DroppedError("no_prompt")
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        turns = [turn for turn in prompt if isinstance(turn, Mapping) and turn.get("role") == "user"]
        if turns and isinstance(turns[-1].get("content"), str):
            return str(turns[-1]["content"])
    raise DroppedError("bad_prompt")
