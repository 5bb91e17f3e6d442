"""Whole numbers below a hundred, written as English words.

Not covered: hundreds and more, fractions, other languages.
"""

from __future__ import annotations

import re
from typing import Final

from adjudge.responses.markup import without_tex

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBER_WORDS: Final[dict[str, int]] = {word: value for value, word in enumerate(_ONES)} | {
    f"{ten}-{_ONES[one]}" if one else ten: (at + 2) * 10 + one for at, ten in enumerate(_TENS) for one in range(10)
}
NUMBER_WORD: Final = rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_ONES[1:10])}))?|{'|'.join(reversed(_ONES))}"
"""A whole number below a hundred in English, as a pattern."""

# Whoever says "one" may mean a thing: "the one who ran", "one of them".
_ANSWER: Final = re.compile(
    rf"(?P<lead>\W*(?:(?:there|it) (?:is|are|was|were) |(?:only|exactly|just) |(?:in|a) total of ){{0,2}}\W*)"
    rf"(?P<word>{NUMBER_WORD})(?P<unit>(?:[*_]{{0,2}}\s(?!who|that|which|of|in|or|and|another)[^\W\d]+){{0,2}}\W*)",
    re.IGNORECASE,
)


def in_digits(text: str) -> str:
    """Return an answer that is a number word, with its unit at most ("Two", "there were two goals"), with digits."""
    answer = _ANSWER.fullmatch(without_tex(text)) if len(text) < 80 else None
    return f"{answer['lead']}{NUMBER_WORDS[answer['word'].lower()]}{answer['unit']}" if answer else text
