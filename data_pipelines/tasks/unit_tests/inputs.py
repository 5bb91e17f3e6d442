"""The inputs that are tried for a task: known ones first, then a model's, then changed ones.

Where no test and no example shows any, the first inputs of a function come from the types in its signature: built-in
containers and values.

Not covered: inputs of programs that read standard input where no example is known and no model is asked.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from adjudge.data_pipelines.tasks.unit_tests.config import Domain
from adjudge.data_pipelines.tasks.unit_tests.known_inputs import Call, known_calls, known_stdin
from adjudge.data_pipelines.tasks.unit_tests.mutation import mutated_calls
from adjudge.data_pipelines.tasks.unit_tests.problem import Problem

_CALLS: Final = 12
_DEEPEST: Final = 4  # types in types; a list has up to 6 items, so each level has three times as many
_WORDS = ("a", "ab", "abc", "hello", "Hello World", "racecar", "x1y2", "a b c", "")
_PLAIN: Final[dict[str, Callable[[Random], Any]]] = {
    "int": lambda random: random.choice((0, 1, 2, 3, 5, 7, 10, 12, 25, 100)),
    "float": lambda random: random.choice((0.0, 0.5, 1.0, 2.5, 3.75, 10.0)),
    "str": lambda random: random.choice(_WORDS),
    "bool": lambda random: random.random() < 0.5,
    "bytes": lambda random: random.choice((b"", b"a", b"abc")),
    "None": lambda random: None,
}


def calls_of_types(sources: Iterable[str], entry_point: str, random: Random) -> list[Call]:
    """Return calls with arguments of the types that the first annotated definition names; none where there is none."""
    name = entry_point.rpartition(".")[2]
    for source in sources:
        types = _types(source, name, method="." in entry_point)
        if types:
            found = [Call(tuple(_value(kind, random) for kind in types)) for _ in range(_CALLS)]
            return list({call.text: call for call in found}.values())
    return []


def _types(source: str, name: str, method: bool) -> list[ast.expr]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            given = node.args.posonlyargs + node.args.args
            given = given[1:] if method else given
            required = given[: len(given) - len(node.args.defaults)]
            types = [one.annotation for one in required]
            if all(kind is not None and _known(kind) for kind in types):
                return [kind for kind in types if kind is not None]
    return []


def _parts(kind: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name of a type, in lower case where it is a container, and what is in its brackets."""
    if isinstance(kind, ast.Constant):
        return "None" if kind.value is None else "", []
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return "union", [kind.left, kind.right]
    if isinstance(kind, ast.Subscript):
        inner = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        return _name(kind.value).lower(), list(inner)
    name = _name(kind)
    return name if name in _PLAIN else name.lower(), []


def _name(kind: ast.expr) -> str:
    return kind.id if isinstance(kind, ast.Name) else str(getattr(kind, "attr", ""))


def _known(kind: ast.expr, depth: int = 0) -> bool:
    name, inner = _parts(kind)
    if depth > _DEEPEST:
        return False
    if name in _PLAIN:
        return True
    if name == "tuple" and len(inner) == 2 and _is_ellipsis(inner[1]):
        return _known(inner[0], depth + 1)
    counts = {"list": (1, 1), "set": (1, 1), "dict": (2, 2), "tuple": (1, 9), "optional": (1, 1), "union": (1, 9)}
    least, most = counts.get(name, (1, 0))
    return least <= len(inner) <= most and all(_known(one, depth + 1) for one in inner)


def _is_ellipsis(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Constant) and kind.value is Ellipsis


def _value(kind: ast.expr, random: Random) -> Any:
    name, inner = _parts(kind)
    if name in _PLAIN:
        return _PLAIN[name](random)
    if name == "optional":
        return None if random.random() < 0.2 else _value(inner[0], random)
    if name == "union":
        return _value(random.choice(inner), random)
    if name == "tuple" and not _is_ellipsis(inner[-1]):
        return tuple(_value(one, random) for one in inner)
    size = random.randint(0, 6)
    if name == "dict":
        return dict(_hashable((_value(inner[0], random), _value(inner[1], random)) for _ in range(size)))
    items = [_value(inner[0], random) for _ in range(size)]
    if name == "set":
        return {one for one, _ in _hashable((item, None) for item in items)}
    return tuple(items) if name == "tuple" else items


def _hashable(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [pair for pair in pairs if not isinstance(pair[0], list | dict | set)]


_NUMBER = re.compile(r"(?<![\w.])-?\d{1,1000}(?![\w.])")  # Python refuses to read more than 4,300 digits
_LONGEST_INPUT: Final = 10_000  # characters
_TRIES: Final = 20


def call_inputs(problem: Problem, more: Sequence[Call], count: int, domain: Domain, random: Random) -> list[Call]:
    """Return up to `count` calls, each once; those of a model, `more`, come after the known ones."""
    entry = problem.entry_point
    known = known_calls(list(problem.known), problem.prompt, entry)
    if not known and not more:
        known = calls_of_types((problem.prompt, *problem.solutions), entry, random)
    given = list({call.text: call for call in (*known, *more) if len(call.text) <= _LONGEST_INPUT}.values())
    given += mutated_calls(given, max(0, count - len(given)), domain, random)
    return [call for call in given if len(call.text) <= _LONGEST_INPUT][:count]


def stdin_inputs(problem: Problem, more: Sequence[str], count: int, random: Random) -> list[str]:
    """Return up to `count` texts, each once."""
    found = dict.fromkeys(text for text in (*known_stdin(list(problem.known)), *more) if len(text) <= _LONGEST_INPUT)
    seeds = list(found)
    for _ in range(_TRIES * count):
        if not seeds or len(found) >= count:
            break
        found.setdefault(_other_numbers(random.choice(seeds), random))
    return list(found)[:count]


def written_inputs(printed: str, calls: bool) -> tuple[list[Any], int]:
    """Return the inputs that a model's program printed, and how many lines held none.

    Args:
        printed: one JSON value a line: a list of arguments, or the text of standard input.
        calls: whether they are arguments.
    """
    found: list[Any] = []
    unread = 0
    for line in filter(str.strip, printed.splitlines()):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if calls and isinstance(value, list) and Call(tuple(value)).usable:
            found.append(Call(tuple(value)))
        elif not calls and isinstance(value, str):
            found.append(value)
        else:
            unread += 1
    return found, unread


def _other_numbers(text: str, random: Random) -> str:
    """Change one number, but none that says how many words or lines follow it."""
    lines = text.splitlines()
    counts = {len(line.split()) for line in lines} | {len(lines) - at for at in range(1, len(lines) + 1)}
    places = [found for found in _NUMBER.finditer(text) if int(found[0]) not in counts]
    if not places:
        return text
    place = random.choice(places)
    value = int(place[0])
    other = abs(value + random.choice((1, -1, 2, 5, value, -(value // 2)))) or 1
    return f"{text[: place.start()]}{-other if value < 0 else other}{text[place.end() :]}"
