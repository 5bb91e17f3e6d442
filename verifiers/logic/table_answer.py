"""Is the answer to a question about a table right: one value, or several?

    value = 1     if the answer has the reference's values, and no others
            0     else

Values that are numbers on both sides are compared as numbers ("1,250" is 1250, "50 %" one half), all others as texts
without regard to case, white space and quotes.  Several values stand in a list, on lines of their own, or apart by
"|", semicolons, commas or "and".

Not covered: sums and units that have to be worked out; "5 km" is not "5000 m".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

from adjudge.options import Range
from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.number_text import NumberError, Quantity, read_quantity
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.ordering import MAX_ITEMS, is_item, normal_item, read_items, readings

_ENDING: Final = " .。"
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?:\D|\Z))")


@dataclass(frozen=True, slots=True)
class TableValues:
    """What the answer must hold, and whether the order matters."""

    values: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True, kw_only=True)
class TableAnswerVerifier(MarkedAnswerVerifier[TableValues]):
    """1 when an answer has the values that a table gives, else 0.

    The reference is a number, a text, a list of them in any order, or `{"answer": [...], "ordered": true}`.  A text
    with "|" in it is a list, as Guru writes it.

    Attributes:
        tolerance: accepted difference between two numbers, as a share of the reference's.
        units: whether the words behind a number ("5 cm") are compared where both sides have them.
    """

    name: ClassVar[str] = "table_answer"
    version: ClassVar[str] = "5"

    tolerance: Annotated[float, Range(ge=0, lt=1)] = 0.0
    units: bool = True

    def read_reference(self, reference: Any) -> TableValues:
        """Return the values."""
        shown = shorten(repr(reference), 60)
        given, ordered = reference, False
        if isinstance(reference, Mapping):
            given, ordered = reference.get("answer"), reference.get("ordered", False)
            if not {"answer"} <= set(reference) <= {"answer", "ordered"} or type(ordered) is not bool:
                raise ReferenceFormError(f'the reference is {shown}; give {{"answer": .., "ordered": ..}}')
        values = given.split("|") if isinstance(given, str) else given if isinstance(given, list | tuple) else [given]
        if not all(map(is_item, values)):
            raise ReferenceFormError(f"the reference is {shown}; give a number, a text, or a list of them")
        if not values or len(values) > MAX_ITEMS or not all(str(value).strip() for value in values):
            raise BadReferenceError("the reference is empty, too long, or holds an empty text")
        return TableValues(tuple(str(value).strip() for value in values), ordered)

    def judge_text(self, answer: str, gold: TableValues) -> Score:
        """Return 1 when the values are the gold's."""
        whole = len(gold.values) == 1 and self._same(answer, gold.values[0])
        offered = [[answer]] if whole else list(readings(_values(answer)))
        if any(len(values) == len(gold.values) and self._match(values, gold) for values in offered):
            return Score.scored(1.0, answer=shorten(answer), values=len(gold.values))
        return Score.scored(0.0, "wrong", answer=shorten(answer), values=len(offered[0]), wanted=len(gold.values))

    def _match(self, offered: Sequence[str], gold: TableValues) -> bool:
        if gold.ordered:
            return all(map(self._same, offered, gold.values))
        # With a tolerance the least first, so that no value takes the place of one that fits nowhere else; without one
        # equal texts first, so that "5" does not take the place of "5 cm".
        golds, left = list(gold.values), list(offered)
        if self.tolerance:
            golds, left = sorted(golds, key=_size), sorted(left, key=_size)
        else:
            common = Counter(map(normal_item, golds)) & Counter(map(normal_item, left))
            golds, left = _without(golds, common), _without(left, common)
        for value in golds:
            at = next((i for i, one in enumerate(left) if self._same(one, value)), None)
            if at is None:
                return False
            del left[at]
        return True

    def _same(self, offered: str, value: str) -> bool:
        mine, theirs = offered.strip().rstrip(_ENDING), value.rstrip(_ENDING)
        if normal_item(mine) == normal_item(theirs):
            return True
        wanted = _number(theirs)
        number = _number(mine) if wanted else None
        if wanted is None or number is None:
            return False
        if self.units and wanted.unit and number.unit and wanted.unit != number.unit:
            return False
        if wanted.currency and number.currency and wanted.currency != number.currency:
            return False
        return abs(number.value - wanted.value) <= Fraction(str(self.tolerance)) * abs(wanted.value)


def _number(text: str) -> Quantity | None:
    """The number of a text that begins with one, or with its sign or currency."""
    if not re.match(r"[\d$€£¥+−.-]", text):
        return None
    try:
        return read_quantity(text)
    except NumberError:
        return None


def _without(texts: Sequence[str], common: Mapping[str, int]) -> list[str]:
    """The texts that remain when so many of each normal form are taken away."""
    waiting, left = Counter(common), []
    for text in texts:
        form = normal_item(text)
        if waiting[form]:
            waiting[form] -= 1
        else:
            left.append(text)
    return left


def _size(text: str) -> Fraction:
    number = _number(text.strip().rstrip(_ENDING))
    return number.value if number else Fraction(0)


def _values(answer: str) -> list[str]:
    """The values of an answer; commas between thousands are none between values, unless white space follows."""
    return read_items(answer if answer[:1] in ("[", "(", "{") else _THOUSANDS.sub("", answer))
