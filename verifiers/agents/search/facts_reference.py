"""A case whose facts an agent has to ask for: the facts, the answer, and what the facts are worth.

Not covered: splitting a case into facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.rubric.entries import entries_of, number_of, reject_unknown, shown, text_of
from adjudge.verifiers.rubric.phrases import plain

_KEYS = ("facts", "answer", "values", "shapley")
_MOST_FACTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One atomic fact of a case.

    Attributes:
        text: the fact.
        keys: phrases of which one makes the fact known; the text itself if none are given.
    """

    text: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCase:
    """A case.

    Attributes:
        facts: its facts, one at least.
        answer: the right answer, as it was given; None without one.
        values: the value of sets of facts, bit i for fact i; empty without a table.
        shapley: each fact's Shapley value; empty if they are to be found out.
    """

    facts: tuple[Fact, ...]
    answer: Any = None
    values: Mapping[int, float]
    shapley: tuple[float, ...] = ()

    @property
    def answer_text(self) -> str:
        """The answer as one text, the first of a list; "" without one."""
        first = self.answer[0] if isinstance(self.answer, list | tuple) and self.answer else self.answer
        return str(first).strip() if isinstance(first, str | int | float) and not isinstance(first, bool) else ""


def read_case(reference: Any) -> FactCase:
    """Return the case of `{"facts": [..], "answer": .., "values": [[[0, 2], 0.7], ..], "shapley": [..]}`.

    A fact is a text, or `{"text": .., "keys": [..]}`.  `values` and `shapley` are optional, and only one is given.

    Raises:
        BadReferenceError: it is not of this form.
    """
    if not isinstance(reference, Mapping):
        raise BadReferenceError(f'the reference is {shown(reference)}; give {{"facts": [..], "answer": ..}}')
    reject_unknown(reference, _KEYS, where="the reference")
    entries = entries_of(reference, "facts", inside="fact_gain")
    if len(entries) > _MOST_FACTS:
        raise BadReferenceError(f"the reference has {len(entries)} facts; at most {_MOST_FACTS} are valued")
    facts = tuple(_fact(entry, f"fact {at}") for at, entry in enumerate(entries))
    given = [key for key in ("values", "shapley") if reference.get(key) is not None]
    if len(given) > 1:
        raise BadReferenceError("the reference has values and shapley; give one of them")
    return FactCase(
        facts=facts,
        answer=reference.get("answer"),
        values=_values(reference["values"], len(facts)) if given == ["values"] else {},
        shapley=_shapley(reference["shapley"], len(facts)) if given == ["shapley"] else (),
    )


def _fact(entry: Any, where: str) -> Fact:
    made = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(made, Mapping):
        raise BadReferenceError(f'{where} is {shown(entry)}; give a text, or {{"text": .., "keys": [..]}}')
    reject_unknown(made, ("text", "keys"), where=where)
    text = text_of(made, ("text",), where=where)
    keys = made.get("keys") or [text]
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise BadReferenceError(f"{where} has the keys {shown(keys)}; give a list of phrases")
    for key in keys:
        if not isinstance(key, str) or not any(map(str.isalnum, plain(key))):
            raise BadReferenceError(f"{where} has the key {shown(key)}; a key must be a text with a letter or a digit")
    return Fact(text=text, keys=tuple(keys))


def _values(given: Any, facts: int) -> dict[int, float]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise BadReferenceError(f"the values are {shown(given)}; give a list of [[numbers of facts], value]")
    made: dict[int, float] = {}
    for entry in given:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise BadReferenceError(f"the values hold {shown(entry)}; each must be [[numbers of facts], value]")
        listed, value = entry
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise BadReferenceError(f"the values hold the set {shown(listed)}; give a list of numbers of facts")
        made_of = 0
        for fact in listed:
            if type(fact) is not int or not 0 <= fact < facts:
                raise BadReferenceError(f"the values name the fact {shown(fact)}; there are 0 to {facts - 1}")
            made_of |= 1 << fact
        if made_of in made:
            raise BadReferenceError(f"the values hold the set {shown(listed)} twice")
        made[made_of] = number_of(value, where="the values", what="value")
    return made


def _shapley(given: Any, facts: int) -> tuple[float, ...]:
    numbers = isinstance(given, list | tuple) and [
        float(one) for one in given if isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)
    ]
    if not numbers or len(numbers) != facts or len(given) != facts:
        raise BadReferenceError(f"shapley is {shown(given)}; give one finite number for each of the {facts} facts")
    return tuple(numbers)
