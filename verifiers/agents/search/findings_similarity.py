"""How alike two findings are, by their words: a rule for where no model of meaning is at hand.

| rule | value in [0, 1] |
|---|---|
| `token_f1` | F1 of the two bags of words; what one says beyond the other lowers it |
| `cosine` | cosine of the two vectors of word counts; saying the same words twice changes nothing |

Words are in small letters without marks; every character of a script without blanks is a word.

Not covered: meaning.  "Prices rose" and "prices fell" share half of their words; give a scorer for that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from adjudge.verifiers.text.token_f1 import TokenF1Verifier, token_f1

Rule: TypeAlias = Literal["token_f1", "cosine"]
RULES: tuple[Rule, ...] = get_args(Rule)

_WORDS = TokenF1Verifier(language="any")


def words_of(text: str) -> Counter[str]:
    """Return the words of a text with their counts."""
    return Counter(_WORDS.tokens(text))


def likeness(one: Counter[str], other: Counter[str], rule: Rule) -> float:
    """Return how alike two bags of words are; 0 where either is empty."""
    if rule == "token_f1":
        return token_f1(one, other)
    small, large = sorted((one, other), key=len)
    dot = sum(count * large[word] for word, count in small.items())
    if not dot:
        return 0.0
    squares = sum(count * count for count in one.values()) * sum(count * count for count in other.values())
    return min(1.0, dot / math.sqrt(squares))


def spread(similar: Sequence[float]) -> float:
    """Return the diversity of a list from its pairs' similarities: 1 less their mean, and 0 without a pair."""
    return 1.0 - sum(similar) / len(similar) if similar else 0.0
