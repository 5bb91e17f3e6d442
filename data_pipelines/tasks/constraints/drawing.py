"""Constraints drawn at random for a prompt: the kinds of a class, with arguments that responses can have.

Not covered: constraints that only make sense for some prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from adjudge.instructions.check import Group
from adjudge.instructions.composed import COMPOSED, MARKS
from adjudge.instructions.conflicts import conflicts
from adjudge.instructions.constraint import CLASSES, Constraint
from adjudge.instructions.text_units import SCRIPTS, words

LEVELS: Final[Mapping[int, tuple[int, int]]] = {1: (1, 2), 2: (2, 4), 3: (3, 6), 4: (4, 7)}
"""Least and most constraints of a level; it has as many classes as its number (MulDimIF, 2505.07591)."""

_TRIES: Final = 40
_CASELESS = frozenset({"zh", "ar", "ko"})
_GENERAL = ("example", "reason", "result", "detail", "question", "important", "first", "together")
_STARTS = ("Certainly", "In short", "To begin with", "Here is the answer")
_ENDS = ("That is all", "Thank you for asking", "I hope this helps")
_COMMON = frozenset("about after also been before could does from have here into just like make more most much only "
                    "other over please some such than that their them then there these they this those very want what "
                    "when where which while will with would write your".split())  # fmt: skip


def drawn(level: int, prompt: str, random: Random) -> list[Constraint] | None:
    """Return constraints of a level that do not contradict each other; None if none were found in 40 tries each.

    Args:
        level: 1 to 4, which is the number of their classes.
        prompt: its own words are what keywords are taken from.
        random: where chance comes from.
    """
    least, most = LEVELS[level]
    topics = _topics(prompt)
    groups: list[Group] = random.sample(CLASSES, level)
    found: list[Constraint] = []
    for place in range(random.randint(least, most)):
        group = groups[place] if place < level else random.choice(groups)
        one = _fitting(group, found, topics, random)
        if one is not None:
            found.append(one)
        elif place < level:
            return None
    return found if len(found) >= least else None


def _fitting(group: Group, found: Sequence[Constraint], topics: list[str], random: Random) -> Constraint | None:
    taken = {one.kind for one in found}
    kinds = [kind for kind, rule in COMPOSED.items() if rule.group == group and kind not in taken]
    for _ in range(_TRIES if kinds else 0):
        kind = random.choice(kinds)
        one = Constraint(kind, _ARGS[kind](random, topics))
        if not conflicts([*found, one]) and not _senseless([*found, one]):
            return one
    return None


def _senseless(constraints: Sequence[Constraint]) -> bool:
    """Return whether letters without capitals are asked for in capitals: a stray Latin letter would meet that."""
    kinds = {one.kind for one in constraints}
    languages = {one.args["language"] for one in constraints if one.kind == "language"}
    return bool(languages & _CASELESS) and bool(kinds & {"upper_case", "lower_case", "capitalized"})


def _topics(prompt: str) -> list[str]:
    found = [
        word for word in dict.fromkeys(word.casefold() for word in words(prompt)) if len(word) > 3 and word.isalpha()
    ]
    return [word for word in found if word not in _COMMON] or list(_GENERAL)


def _range(random: Random, low: int, high: int, step: int) -> dict[str, int]:
    """Return a least, a most, or both, in round numbers."""
    first = random.randrange(low, high + 1, step)
    form = random.choice(("min", "max", "both"))
    if form == "both":
        return {"min": first, "max": first + step * random.randint(1, 4)}
    return {form: first}


_ARGS: Final[Mapping[str, Callable[[Random, list[str]], dict[str, Any]]]] = {
    "keywords": lambda random, topics: {"phrases": random.sample(topics, min(len(topics), random.randint(1, 3)))},
    "forbidden": lambda random, topics: {"phrases": random.sample(_GENERAL, random.randint(1, 3))},
    "keyword_count": lambda random, topics: {"phrase": random.choice(topics), "min": random.randint(1, 4)},
    "starts_with": lambda random, topics: {"text": random.choice(_STARTS)},
    "ends_with": lambda random, topics: {"text": random.choice(_ENDS)},
    "final_mark": lambda random, topics: {"mark": random.choice(MARKS)},
    "no_commas": lambda random, topics: {},
    "json": lambda random, topics: {},
    "bullets": lambda random, topics: {"count": random.randint(2, 8)},
    "headings": lambda random, topics: {"level": random.randint(1, 3), "min": random.randint(1, 3)},
    "table": lambda random, topics: {"max": random.randint(2, 6)},
    "title": lambda random, topics: {},
    "quoted": lambda random, topics: {},
    "language": lambda random, topics: {"language": random.choice(tuple(SCRIPTS))},
    "upper_case": lambda random, topics: {},
    "lower_case": lambda random, topics: {},
    "capitalized": lambda random, topics: {},
    "words": lambda random, topics: _range(random, 50, 400, 50),
    "sentences": lambda random, topics: _range(random, 2, 15, 1),
    "paragraphs": lambda random, topics: _range(random, 1, 5, 1),
    "characters": lambda random, topics: _range(random, 400, 2000, 100),
}
