"""Answers in words: "no solution", "converges", "Tuesday"."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from adjudge.verifiers.math_answer.nodes import Constant, Node, Number, Words

MAX_WORDS: Final = 12  # a longer gold in words is an explanation that no rule can compare

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|textit|mathbf|operatorname|mbox|rm|bf)\b|\\[,;:! ]|[{}$~]|\\[()\[\]]")
_ARTICLES: Final = frozenset({"the", "a", "an"})

_SAME: Final[dict[str, str]] = {
    "no solutions": "no solution", "no real solution": "no solution", "no real solutions": "no solution",
    "dne": "does not exist",
    "infinitely many": "infinitely many solutions", "divergent": "diverges", "convergent": "converges",
    "it diverges": "diverges", "it converges": "converges", "series diverges": "diverges",
    "series converges": "converges", "none exist": "none", "all reals": "all real numbers", "correct": "true",
    "incorrect": "false", "not defined": "undefined",
    "even function": "even", "odd function": "odd", "even number": "even",
    "odd number": "odd",
}  # fmt: skip

PHRASES: Final = frozenset("yes no true false none dne odd even all never always undefined".split())
"""Short words that would otherwise read as products of letters."""

_MEANING: Final[dict[str, Node]] = {
    "no solution": Constant("empty"),
    "empty set": Constant("empty"),
    "all real numbers": Constant("R"),
    "infinity": Constant("oo"),
}

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS: Final[dict[str, int]] = {word: value for value, word in enumerate(_ONES)} | {
    f"{ten}-{_ONES[one]}" if one else ten: (at + 2) * 10 + one for at, ten in enumerate(_TENS) for one in range(10)
}

NUMBER_WORD: Final = rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_ONES[1:10])}))?|{'|'.join(reversed(_ONES))}"
"""A whole number below a hundred in English, as a pattern."""


def words(text: str) -> Words | None:
    """Return a text of a few words in a comparable form, or None when it is not one.

    Digits and signs make a text something other than words: they would have to be understood.
    """
    bare = _MARKUP.sub(" ", text).strip(" .,;:!?()[]\"'\n\t")
    if not bare or len(bare) > 200 or bare[0] in "-−+" or text.strip().endswith("!"):
        return None
    found = _WORD.findall(bare)
    if not found or len(found) > MAX_WORDS or any(any(sign.isdigit() for sign in word) for word in found):
        return None
    if _WORD.sub("", bare).strip(" ,.;:'\"-()!?\n\t，。、；："):
        return None
    if len(found) > 2 and [word.lower() for word in found[:2]] in (["there", "is"], ["there", "are"]):
        found = found[2:]
    kept = [word for word in (word.lower() for word in found) if word not in _ARTICLES] or [found[0].lower()]
    joined = " ".join(kept)
    return Words(_SAME.get(joined, joined))


def meaning(text: Words) -> Node:
    """Return the mathematical object that a phrase names, or the words themselves."""
    if text.text in _NUMBERS:
        return Number(Fraction(_NUMBERS[text.text]))
    return _MEANING.get(text.text, text)
