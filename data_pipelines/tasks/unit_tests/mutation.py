"""New inputs from known ones: a value is changed and keeps its type and its shape.

`seen` stays within what the known inputs show of the same argument, because a task rarely says what it does elsewhere:
no number below the least known one, unless negative ones are known; no empty value where none is; no letter that does
not occur.  `wide` leaves that.

Not covered: conditions between arguments ("k is at most the length"); the reference solutions then raise, or disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from adjudge.data_pipelines.tasks.unit_tests.config import Domain
from adjudge.data_pipelines.tasks.unit_tests.known_inputs import Call, inside

_TRIES: Final = 20  # for each input that is wanted
_MOST_ITEMS: Final = 40
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
    found: dict[str, Call] = {call.text: call for call in known}
    for _ in range(_TRIES * count):
        if len(found) >= len(known) + count:
            break
        call = random.choice(known)
        for _ in range(random.choice((1, 1, 2, 3))):
            call = mutator.call(call, known)
        if call.usable:
            found.setdefault(call.text, call)
    return list(found.values())[len({call.text for call in known}) :]


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
        """Return a value of the same type."""
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
        return _MOST_ITEMS if self.wide else min(_MOST_ITEMS, max(3, 2 * self.seen.longest))

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
