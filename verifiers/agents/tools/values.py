"""Arguments of calls: which values are data, and when an argument is the one that was asked for.

An expected value is data, or a choice: `{"any_of": [..]}`, any one of these, and with `"optional": true` an argument or
a key that may be left out.  Choices may stand at any depth.

Not covered: expecting a mapping whose only keys are "any_of" and "optional"; it is always read as a choice.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Strings: TypeAlias = Literal["exact", "normal"]

MAX_DEPTH: Final = 64
MOST_ALLOWED: Final = 512
_LARGEST: Final = 10**300  # so that every number has a float
_CHOICE: Final = frozenset({"any_of", "optional"})
_BLANKS: Final = re.compile(r"\s+")
_AROUND: Final = re.compile(r" ?([,./*^_-]) ?")


class NotDataError(ValueError):
    """A value that no JSON text can hold, or that is beyond the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """When two values are the same.

    Attributes:
        tolerance: relative difference that numbers may have if one of them is a float.
        typed: whether a schema has judged the types, so that 5 and 5.0 are the same number; without one, a whole number
            is asked for where the expected value is one.
    """

    tolerance: float = 0.0
    typed: bool = False

    def same(self, expected: Any, offered: Any) -> bool:
        """Return whether a value is the expected one, or one of a choice."""
        if is_choice(expected):
            return any(self.same(one, offered) for one in expected["any_of"])
        if isinstance(expected, bool) or isinstance(offered, bool) or expected is None or offered is None:
            return expected is offered
        if isinstance(expected, int | float):
            return isinstance(offered, int | float) and self._close(expected, offered)
        if isinstance(expected, str):
            return isinstance(offered, str) and expected == offered
        if isinstance(expected, list):
            return (
                isinstance(offered, list)
                and len(expected) == len(offered)
                and all(self.same(one, other) for one, other in zip(expected, offered, strict=True))
            )
        return isinstance(offered, dict) and self.same_mapping(expected, offered)

    def same_mapping(self, expected: Mapping[str, Any], offered: Mapping[str, Any]) -> bool:
        """Return whether a mapping has the expected values, nothing else, and nothing less but what is optional."""
        if not offered.keys() <= expected.keys():
            return False
        return all(
            self.same(value, offered[name]) if name in offered else is_choice(value) and value.get("optional", False)
            for name, value in expected.items()
        )

    def _close(self, expected: float, offered: float) -> bool:
        if not self.typed and isinstance(expected, int) and isinstance(offered, float):
            return False
        if expected == offered:
            return True
        if isinstance(expected, int) and isinstance(offered, int):
            return False
        return math.isclose(expected, offered, rel_tol=self.tolerance)


def normal(value: Any) -> Any:
    """Return data, or what is expected of it, with every text but keys as `normal_text` has it."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, Mapping):
        return {name: normal(item) for name, item in value.items()}
    return value


def normal_text(text: str) -> str:
    """Return a text without case, the kind of quotes, the amount of white space, and blanks beside `, . / * ^ _ -`."""
    plain = _BLANKS.sub(" ", text.casefold()).strip()
    for quote in "'`‘’“”":
        plain = plain.replace(quote, '"')
    return _AROUND.sub(r"\1", plain)


def is_choice(value: Any) -> bool:
    """Return whether an expected value is a choice."""
    return isinstance(value, Mapping) and "any_of" in value and value.keys() <= _CHOICE


def allowed(expected: Any) -> list[Any]:
    """Return the values that an expected one allows; if they are more than `MOST_ALLOWED`, one more than that."""
    found: Iterator[Any]
    if is_choice(expected):
        found = itertools.chain.from_iterable(map(allowed, expected["any_of"]))
    elif isinstance(expected, dict):
        found = (
            dict(pair for pair in pairs if pair)
            for pairs in itertools.product(*(_pairs(name, value) for name, value in expected.items()))
        )
    elif isinstance(expected, list):
        found = map(list, itertools.product(*map(allowed, expected)))
    else:
        return [expected]
    return list(itertools.islice(found, MOST_ALLOWED + 1))


def _pairs(name: str, expected: Any) -> list[tuple[str, Any] | tuple[()]]:
    left_out: list[tuple[()]] = [()] if is_choice(expected) and expected.get("optional", False) else []
    return [*left_out, *((name, value) for value in allowed(expected))]


def data(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON holds it, tuples as lists.

    Raises:
        NotDataError: it is no JSON data, not finite, nested too deeply, or a number beyond 1e300.
    """
    if depth > MAX_DEPTH:
        raise NotDataError(f"it is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        if not -_LARGEST < value < _LARGEST:  # NaN is not between them either
            raise NotDataError("a number is not finite, or beyond 1e300")
        return value
    if isinstance(value, list | tuple):
        return [data(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise NotDataError("the keys of a mapping must be texts")
        return {name: data(item, depth + 1) for name, item in value.items()}
    raise NotDataError(f"a {type(value).__name__} is no JSON data")


def check_choices(expected: Any) -> None:
    """Look at the choices in an expected value that is data.

    Raises:
        NotDataError: one offers nothing, or says neither true nor false to being optional.
    """
    if is_choice(expected):
        options = expected["any_of"]
        if not isinstance(options, list) or not options:
            raise NotDataError('"any_of" must be a list that is not empty')
        if type(expected.get("optional", False)) is not bool:
            raise NotDataError('"optional" must be true or false')
        expected = options
    for item in expected.values() if isinstance(expected, dict) else expected if isinstance(expected, list) else ():
        check_choices(item)
