"""The inputs of tests that exist already, and of examples in a prompt, read without running anything.

Not covered: arguments that are computed (`f(list(range(9)))`); only literals are read.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.tasks.unit_tests.calls_guest import DEPTH, LONGEST_NUMBER

_LONGEST_CALL = 4_000  # characters of a call in a prompt
_MOST_CALLS = 200  # in a prompt; the end of each is looked for
_MOST_SOURCE = 1 << 20  # characters


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
    found: dict[str, Call] = {}
    shown = (call for text in _spoken(prompt, entry_point) for call in _calls_in(text, entry_point))
    for call in itertools.chain(_calls_of(tests, entry_point), shown):
        if call.usable:
            found.setdefault(call.text, call)
    return list(found.values())


def known_stdin(tests: Any) -> list[str]:
    """Return what programs read in tests, each once, in order."""
    found: dict[str, None] = {}
    for test in _listed(tests):
        if isinstance(test, Mapping) and isinstance(test.get("stdin"), str):
            found.setdefault(test["stdin"])
    return list(found)


def _listed(tests: Any) -> list[Any]:
    if isinstance(tests, Mapping):
        tests = tests.get("tests", [tests])
    if isinstance(tests, list | tuple):
        return [one for test in tests for one in (_listed(test) if isinstance(test, list | tuple) else _inner(test))]
    return [tests]


def _inner(test: Any) -> list[Any]:
    return _listed(test["tests"]) if isinstance(test, Mapping) and "tests" in test else [test]


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
    if len(source) > _MOST_SOURCE:
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
    for found in itertools.islice(re.finditer(rf"(?<!def )(?<!\w){name}\(", prompt), _MOST_CALLS):
        depth, quote = 0, ""
        for at in range(found.end() - 1, min(len(prompt), found.start() + _LONGEST_CALL)):
            letter = prompt[at]
            if quote:
                quote = "" if letter == quote and prompt[at - 1] != "\\" else quote
            elif letter in "'\"":
                quote = letter
            else:
                depth += (letter in "([{") - (letter in ")]}")
            if not depth and not quote:
                yield prompt[found.start() : at + 1]
                break


def _trees(source: str) -> Iterator[ast.AST]:
    """Yield the whole source as a tree, or where it is no Python each of its lines that is."""
    try:
        yield ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for line in source.splitlines():
            try:
                yield ast.parse(line.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
