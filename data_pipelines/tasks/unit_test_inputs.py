"""The inputs that are tried for a task: known ones first, then a model's, then changed ones.

Where no test and no example shows any, the first inputs of a function come from the types in its signature: built-in
containers and values.

A value that is changed keeps its type and its shape.  `seen` stays within what the known inputs show of the same
argument, because a task rarely says what it does elsewhere: no number below the least known one, unless negative ones
are known; no empty value where none is; no letter that does not occur.  `wide` leaves that.

Not covered: conditions between arguments ("k is at most the length"): the reference solutions then raise, or disagree;
inputs of programs that read standard input where no example is known and no model is asked.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from adjudge.data_pipelines.tasks.config import Domain
from adjudge.data_pipelines.tasks.unit_test_problems import Call, Problem, inside, known_calls, known_stdin

_TRIES: Final = 20  # for each input that is wanted
_MAX_ITEMS: Final = 40
_LETTERS = "abcxyzABCXYZ012 ,.-()"


@dataclass(slots=True)
class _Seen:
    """What known inputs show of one argument."""

    numbers: list[float]
    letters: str
    shortest: int
    longest: int

    @classmethod
    def of(cls, given: Sequence[Any]) -> _Seen:
        values = [value for value, _ in inside(given)][1:]
        sizes = [len(value) for value in values if isinstance(value, str | list | tuple | set | dict)]
        return cls(
            numbers=[value for value in values if isinstance(value, int | float) and not isinstance(value, bool)],
            letters="".join(sorted(set("".join(value for value in values if isinstance(value, str))))),
            shortest=min(sizes, default=0),
            longest=max(sizes, default=8),
        )


def mutated_calls(known: Sequence[Call], count: int, domain: Domain, random: Random) -> list[Call]:
    """Return up to `count` calls that differ from the known ones and from each other."""
    if not known:
        return []
    mutator = _Mutator(known, domain, random)
    calls: dict[str, Call] = {call.text: call for call in known}
    for _ in range(_TRIES * count):
        if len(calls) >= len(known) + count:
            break
        call = random.choice(known)
        for _ in range(random.choice((1, 1, 2, 3))):
            call = mutator.call(call, known)
        if call.usable:
            calls.setdefault(call.text, call)
    return list(calls.values())[len({call.text for call in known}) :]


class _Mutator:
    def __init__(self, known: Sequence[Call], domain: Domain, random: Random) -> None:
        given: dict[Any, list[Any]] = {}
        for call in known:
            places: list[Any] = [*enumerate(call.args), *call.kwargs.items()]
            for place, value in places:
                given.setdefault(place, []).append(value)
        self.all_seen = {place: _Seen.of(values) for place, values in given.items()}
        self.seen = _Seen.of(())
        self.wide, self.random = domain == "wide", random

    def call(self, call: Call, known: Sequence[Call]) -> Call:
        """Change one argument, or take that of another known call."""
        args, kwargs = list(call.args), dict(call.kwargs)
        places: list[Any] = [*range(len(args)), *kwargs]
        if not places:
            return call
        place = self.random.choice(places)
        held: Any = args if isinstance(place, int) else kwargs
        other = self.random.choice(known)
        others: Any = other.args if isinstance(place, int) else other.kwargs
        there = place < len(others) if isinstance(place, int) else place in others
        if there and len(places) > 1 and self.random.random() < 0.2:
            held[place] = others[place]
        else:
            self.seen = self.all_seen[place]
            held[place] = self.value(held[place])
        return Call(tuple(args), kwargs)

    def value(self, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            return self.real(value)
        if isinstance(value, str):
            return self.sized(list(value), self.letter, "".join)
        if isinstance(value, list):
            return self.sized(value, self.item_of(value), list)
        if isinstance(value, tuple):
            changed = list(value)
            if changed:
                place = self.random.randrange(len(changed))
                changed[place] = self.value(changed[place])
            return tuple(changed)
        if isinstance(value, set):
            items = sorted(value, key=repr)
            return set(self.sized(items, self.item_of(items), list))
        if isinstance(value, Mapping):
            return self.mapping(dict(value))
        return value

    def integer(self, value: int) -> int:
        step = self.random.choice((1, -1, 2, -2, 5, -5, value, -(value // 2), self.random.randint(-20, 20)))
        changed = value + step
        if self.wide:
            return self.random.choice((changed, changed, 0, -value, 1))
        return int(self.bounded(changed))

    def real(self, value: float) -> float:
        changed = round(
            value + self.random.choice((1.0, -1.0, 0.5, value, -value / 2, self.random.uniform(-10, 10))), 3
        )
        if self.wide:
            return self.random.choice((changed, changed, 0.0, -value))
        return self.bounded(changed)

    def bounded(self, value: float) -> float:
        """Return a number that is not below the least one known, unless that is negative: then signs may be any."""
        least = min(self.seen.numbers, default=0)
        return value if least < 0 or value >= least else least + (least - value)

    def letter(self, near: str | None = None) -> str:
        known = self.seen.letters
        letters = known + _LETTERS if self.wide or not known else known
        return self.random.choice(letters)

    def item_of(self, items: Sequence[Any]) -> Any:
        """Return a function that makes another item like those of a container."""
        return lambda near=None: self.value(near if near is not None or not items else self.random.choice(items))

    def sized(self, items: list[Any], another: Any, join: Any) -> Any:
        """Change, drop, double, add, swap or turn around items, within the lengths that were seen."""
        changed = list(items)
        random = self.random
        deed = random.choice(("change", "change", "drop", "double", "add", "swap", "turn", "sort", "empty"))
        place = random.randrange(len(changed)) if changed else 0
        if deed == "empty" and (self.wide or self.seen.shortest == 0):
            changed = []
        elif deed == "add" and (changed or isinstance(items, list)) and len(changed) < self.limit():
            if changed:
                changed.insert(place, another(changed[place]))
        elif not changed:
            changed = [another()] if join is not list else changed
        elif deed == "drop" and len(changed) > (0 if self.wide else max(1, self.seen.shortest)):
            del changed[place]
        elif deed == "double" and 2 * len(changed) <= self.limit():
            changed += changed
        elif deed == "swap":
            other = random.randrange(len(changed))
            changed[place], changed[other] = changed[other], changed[place]
        elif deed == "turn":
            changed.reverse()
        elif deed == "sort":
            changed.sort(key=lambda item: (type(item).__name__, repr(item)))
        else:
            changed[place] = another(changed[place])
        return join(changed)

    def limit(self) -> int:
        return _MAX_ITEMS if self.wide else min(_MAX_ITEMS, max(3, 2 * self.seen.longest))

    def mapping(self, value: dict[Any, Any]) -> dict[Any, Any]:
        if not value:
            return value
        key = self.random.choice(list(value))
        deed = self.random.choice(("value", "value", "key", "drop"))
        if deed == "drop" and (len(value) > 1 or self.wide):
            del value[key]
        elif deed == "key" and isinstance(key, str | int) and not isinstance(key, bool):
            value[self.value(key)] = value.pop(key)
        else:
            value[key] = self.value(value[key])
        return value


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
            calls = [Call(tuple(_value(kind, random) for kind in types)) for _ in range(_CALLS)]
            return list({call.text: call for call in calls}.values())
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
_DRAWS: Final = 20


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
    texts = dict.fromkeys(text for text in (*known_stdin(list(problem.known)), *more) if len(text) <= _LONGEST_INPUT)
    seeds = list(texts)
    for _ in range(_DRAWS * count):
        if not seeds or len(texts) >= count:
            break
        texts.setdefault(_other_numbers(random.choice(seeds), random))
    return list(texts)[:count]


def written_inputs(printed: str, calls: bool) -> tuple[list[Any], int]:
    """Return the inputs that a model's program printed, and how many lines held none.

    Each line is a JSON value: a list of arguments where `calls`, else the text of standard input.
    """
    inputs: list[Any] = []
    unread = 0
    for line in filter(str.strip, printed.splitlines()):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if calls and isinstance(value, list) and Call(tuple(value)).usable:
            inputs.append(Call(tuple(value)))
        elif not calls and isinstance(value, str):
            inputs.append(value)
        else:
            unread += 1
    return inputs, unread


def _other_numbers(text: str, random: Random) -> str:
    """Change one number, but none that says how many words or lines follow it."""
    lines = text.splitlines()
    counts = {len(line.split()) for line in lines} | {len(lines) - at for at in range(1, len(lines) + 1)}
    places = [place for place in _NUMBER.finditer(text) if int(place[0]) not in counts]
    if not places:
        return text
    place = random.choice(places)
    value = int(place[0])
    other = abs(value + random.choice((1, -1, 2, 5, value, -(value // 2)))) or 1
    return f"{text[: place.start()]}{-other if value < 0 else other}{text[place.end() :]}"
