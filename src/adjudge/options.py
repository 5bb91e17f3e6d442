"""Options are declared once, on the field, and checked in one place.

A field's annotation says what its value may be::

    @dataclass(frozen=True, kw_only=True)
    class RunConfig(Options, what="run option"):
        seconds: Annotated[float, Range(gt=0, le=3600, unit="seconds")] = 30.0
        credit: Literal["all", "fraction"] = "all"
        seed: int | None = None

`RunConfig(seconds=0)` raises "run option seconds=0; it must be a number of seconds above 0 and at most 3600".
Checked are `bool`, `int`, `float`, `str`, `Literal`, `Mapping` with its values, `tuple[str, ...]`, and any of these or
None; the class checks the rest itself.  One text stands for a tuple of one text, and a list for a tuple.
"""

from __future__ import annotations

import difflib
import functools
import re
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

T = TypeVar("T")

# What options were called before 0.1; those that began with most_ and least_ begin with max_ and min_.
_EARLIER: Final[Mapping[str, str]] = {
    "least": "min_characters",
    "longest": "max_characters",
    "longest_passage": "max_passage_chars",
    "longest_response": "max_response_chars",
    "longest_step": "max_step_characters",
    "most": "max_statements",
    "no_verdict": "undecided",
    "relative": "rel_tol",
    "absolute": "abs_tol",
    "normalise": "normalize",
    "partial": "credit",
    "policy": "credit",
    "shortest": "min_words",
}

_NOUNS: Final[Mapping[Any, str]] = {int: "a whole number", float: "a finite number"}
_WORDS: Final[Mapping[Any, str]] = {bool: "true or false", str: "text", tuple: "a text or a list of texts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Bounds of a number, named as pydantic names them; those that are None do not bind.

    Attributes:
        gt: it is above this.
        ge: it is at least this.
        lt: it is below this.
        le: it is at most this.
        unit: what is counted, for the message: "seconds".
    """

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    unit: str = ""

    def holds(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        return (
            (self.gt is None or value > self.gt)
            and (self.ge is None or value >= self.ge)
            and (self.lt is None or value < self.lt)
            and (self.le is None or value <= self.le)
        )

    def __str__(self) -> str:
        """Return what a message says behind "a number": " of seconds above 0 and at most 3600"."""
        bounds = {"above": self.gt, "at least": self.ge, "below": self.lt, "at most": self.le}
        said = " and ".join(
            f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}"
            for word, bound in bounds.items()
            if bound is not None
        )
        return "".join((f" of {self.unit}" * bool(self.unit), "," * said.startswith("at"), f" {said}" * bool(said)))


Count: TypeAlias = Annotated[int, Range(ge=1)]
Share: TypeAlias = Annotated[float, Range(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the annotation of a field says of its value.

    Attributes:
        kind: `bool`, `int`, `float`, `str`, `Mapping`, or `tuple` for texts; None for one of several choices.
        choices: the values of a `Literal`.
        range: the bounds of a number.
        optional: whether it may be None.
        each: what the values of a mapping are; None where nothing is checked of them.
    """

    kind: type | None
    choices: tuple[Any, ...] = ()
    range: Range = Range()
    optional: bool = False
    each: Declared | None = None

    @classmethod
    def of(cls, hint: Any, within: Range = Range(), optional: bool = False) -> Declared | None:
        """Return what an annotation declares; None where it says nothing that is checked here."""
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return cls.of(inner[0], next((mark for mark in inner[1:] if isinstance(mark, Range)), within), optional)
        if origin is Literal:
            return cls(kind=None, choices=inner, optional=optional)
        if origin in (Union, types.UnionType):
            parts = [part for part in inner if part is not type(None)]
            if all(get_origin(part) is Literal for part in parts):
                parts = [Literal[tuple(value for part in parts for value in get_args(part))]]
            return cls.of(parts[0], within, len(parts) < len(inner)) if len(parts) == 1 else None
        if origin is Mapping:
            return cls(kind=Mapping, optional=optional, each=cls.of(inner[1]))
        if hint == tuple[str, ...]:
            return cls(kind=tuple, optional=optional)
        return cls(kind=hint, range=within, optional=optional) if hint in (bool, int, float, str) else None

    def allows(self, value: Any) -> bool:
        """Return whether a value is as declared."""
        if value is None:
            return self.optional
        if self.kind is None:
            return any(value == one and type(value) is type(one) for one in self.choices)
        if self.kind is Mapping:
            return isinstance(value, Mapping) and (self.each is None or all(map(self.each.allows, value.values())))
        if self.kind in (bool, str, tuple):
            return isinstance(value, self.kind)
        number = isinstance(value, int) or (self.kind is float and isinstance(value, float))
        finite = self.kind is int or (number and abs(value) <= sys.float_info.max)  # which no NaN is
        return number and finite and not isinstance(value, bool) and self.range.holds(value)

    def __str__(self) -> str:
        """Return what a message says of it: "a whole number, at least 1, or None"."""
        if self.kind is None:
            text = f"one of {', '.join(map(str, self.choices))}"
        elif self.kind in _NOUNS:
            text = f"{_NOUNS[self.kind]}{self.range}"
        elif self.kind is Mapping:
            text = f"a mapping, {{NAME: {self.each or 'VALUE'}, ...}}"
        else:
            text = _WORDS[self.kind]
        return f"{text}, or None" if self.optional else text


@functools.cache
def declared(kind: type) -> Mapping[str, Declared]:
    """Return what the fields of a dataclass declare, without those of which nothing is checked here."""
    hints = typing.get_type_hints(kind, include_extras=True)
    every = {item.name: Declared.of(hints[item.name]) for item in fields(kind) if item.init}
    return {name: one for name, one in every.items() if one is not None}


def check_options(config: Any, what: str) -> None:
    """Check a dataclass's values against the annotations of its fields, and make tuples of what stands for them.

    Args:
        config: the dataclass, with its values.
        what: what a field of it is called in messages: "engine option"; "--" where users know it as a flag.

    Raises:
        ValueError: a value is not as declared; the message names it and what it must be.
    """
    for name, one in declared(cast("Any", type(config))).items():
        value = getattr(config, name)
        if one.kind is tuple and isinstance(value, str | list | Set):
            value = (value,) if isinstance(value, str) else tuple(sorted(value) if isinstance(value, Set) else value)
            object.__setattr__(config, name, value)
        if not one.allows(value):
            text = one.kind in _NOUNS and isinstance(value, str)
            hint = " (YAML reads 1e-3 as text: write 0.001 or 1.0e-3)" if text else ""
            given = f"--{name.replace('_', '-')} is {value!r}" if what == "--" else f"{what} {name}={value!r}"
            raise ValueError(f"{given}; it must be {one}{hint}")


class Options:
    """Base of dataclasses whose values are checked when they are made.

    A subclass says what its fields are called in messages, `class RunConfig(Options, what="run option")`.  One that has
    rules of its own calls this `__post_init__` first.
    """

    _what: ClassVar[str] = "option"

    def __init_subclass__(cls, what: str = "", **others: Any) -> None:
        """Take the words for messages."""
        super().__init_subclass__(**others)
        if what:
            cls._what = what

    def __post_init__(self) -> None:
        """Check every option against its annotation."""
        check_options(self, self._what)


def options_of(
    body: Any, known: Sequence[str], *, inside: str, required: Sequence[str] = (), example: str = ""
) -> dict[str, Any]:
    """Return the options of a spec, or raise `ValueError` naming the unknown or missing one and listing all."""
    listing = ", ".join(known) or "none"
    if not isinstance(body, Mapping):
        raise ValueError(
            f"{inside} takes a mapping of options ({listing}), not {body!r}{example and f'; try {example}'}"
        )
    for key in body:
        if key not in known:
            raise ValueError(f"{inside} has no option {key!r}; its options are: {listing}{suggestion(str(key), known)}")
    for key in required:
        if key not in body:
            raise ValueError(f"{inside} needs the option {key!r}{example and f'; try {example}'}")
    if "name" in body and not (isinstance(body["name"], str) and body["name"]):
        raise ValueError(f"{inside} has the name {body['name']!r}; it must be text")
    return dict(body)


def named(table: Mapping[str, T], name: Any, what: str) -> T:
    """Return what a table holds under a name, or raise `ValueError` naming the nearest one and all.

    Args:
        table: names and what they stand for.
        name: the name that was given.
        what: what it should have been the name of: "kind of engine".
    """
    if isinstance(name, str) and name in table:
        return table[name]
    raise ValueError(f"unknown {what} {name!r}{suggestion(str(name), table)}; there are {', '.join(table)}")


def renamed(word: str) -> str:
    """Return the name that an option has now; the same where it never had another."""
    word = _spelt(word)
    return _EARLIER.get(word, re.sub("^least_", "min_", re.sub("^most_", "max_", word)))


def _spelt(word: str) -> str:
    """The word as our names are spelt: "REINFORCE++" is "reinforce_plus_plus"."""
    return word.lower().replace("-", "_").replace("+", "_plus")


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return `" (did you mean ...?)"` for the nearest of the known words, or nothing if none is near."""
    known, word, now = list(words), _spelt(word), renamed(word)
    near = [now] if now in known else difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
