"""Whether what meets a constraint says something, or meets it in form alone: filler, empty items, one word again.

What is judged is form too: words must be words (two different letters), units must hold something and differ from each
other, and n words need at least 2 * sqrt(n) different ones, which the plainest prose has several times over.

Not covered: random words, and sentences about nothing.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from adjudge.verifiers.instructions.english import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_KEY = re.compile(r"(?<!\w)[^\W\d_][+#-]+(?!\w)|[^\W_]+|(?<!\w)[-−](?=\d)")  # "C++" is not "C", nor "-2" a "2"
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_QUOTE = re.compile(r'(?<!\\)"')
_BEFORE_QUOTE = frozenset("([{'-\u2014*_")
_BEFORE_MARK = re.compile(r"([A-Za-z]+)[ \t]+[\"'“‘*_(]{0,3}\Z")
_SHORT = frozenset("aio")
_COMMAS = re.compile(
    r"[,\u055d\u060c\u066c\u07f8\u1363\u1802\u1808\u2e32\u2e34\u2e41\u2e4c\u3001\ua4fe\ua60d\ufe10\ufe11\ufe50\ufe51\uff0c\uff64"
    # \u201a also opens quotations, as in German; without an end of one it is a comma's look-alike.
    r"\u2e49\ua6f5\U0001144d\U0001145a\U00016e97\U0001da87]|\u201a(?!(?<!\w\u201a)\w[^\u201a]*[\u2018\u2019])"
)


def worth(words: Iterable[str]) -> int:
    """Return how many words there are that are not filler: numbers and single letters are half of them at most."""
    folded = [word.casefold() for word in words]
    real = [word for word in folded if _is_word(word)]
    different, runs = len(set(real)), len(set(zip(real, real[1:], real[2:], real[3:], strict=False)))
    count = min(len(real), max(different, different**2 // 4), 2 * runs + 3)
    return count + min(len(folded) - len(real), count // 2)


def different(units: Iterable[str], least: int = 1) -> int:
    """Return how many units hold something and are said once; where there are many, some may come again."""
    keys = [key for unit in units if holds_something(unit, least) and (key := " ".join(_KEY.findall(unit.casefold())))]
    return min(len(keys), max(len(set(keys)), len(set(keys)) ** 2 // 4))


def holds_something(text: str, least: int = 1) -> bool:
    """Return whether a text has so many letters or digits, and not one letter again and again.

    One of a script that needs no more is enough.
    """
    signs = [sign for sign in text[:2_000].casefold() if sign.isalnum()]
    if len(set(signs)) > 1 or not all(map(str.isascii, signs)):
        return True
    return len(signs) >= least and (len(signs) == 1 or signs[0].isdigit())


def besides(text: str, phrases: Iterable[str]) -> bool:
    """Return whether a text holds something besides phrases."""
    alone = "|".join(re.escape(phrase.strip()) for phrase in sorted(phrases, key=len, reverse=True))
    return holds_something(re.sub(alone, " ", text, flags=re.IGNORECASE), least=2)


def apart(matches: Sequence[re.Match[str]], text: str) -> int:
    """Return how many finds there are; of those that stand in a row and are the same, two."""
    same = [
        one[0].casefold() == two[0].casefold() and not _WORD.search(text, one.end(), two.start())
        for one, two in itertools.pairwise(matches)
    ]
    return len(matches) - sum(one and other for one, other in itertools.pairwise(same))


def times_apart(phrase: str, text: str) -> int:
    """Return how many words of a text hold a phrase; of those that stand in a row and are the same, two."""
    phrase = phrase.strip()
    if not (phrase.isalnum() and phrase.isascii()):
        return apart(list(re.finditer(re.escape(phrase), text, re.IGNORECASE)), text)
    folded = phrase.casefold()
    return apart([word for word in re.finditer(r"\w+", text) if folded in word[0].casefold()], text)


def letters_apart(letter: str, words: Sequence[str]) -> int:
    """Return how often a letter occurs in words; in the same one few times, and once where it is stretched."""
    counts = Counter(word.casefold() for word in words)
    most = max(3, len(words) // 8)
    return sum(min(count, most) * _STRETCHED.sub(r"\1", word).count(letter) for word, count in counts.items())


def commas(text: str) -> int:
    """Return how many commas of any script a text has, and signs that look like one."""
    return len(_COMMAS.findall(text))


def is_quoted_as_one(text: str) -> bool:
    """Return whether the quotation that begins a text may be the one that ends it, and holds something."""
    depth, closed = 0, False
    for quote in _QUOTE.finditer(text):
        before, after = text[quote.start() - 1 : quote.start()], text[quote.end() : quote.end() + 1]
        opens = not quote.start() or (after.strip() != "" and (before.isspace() or before in _BEFORE_QUOTE))
        depth += 1 if opens else -1
        closed |= depth <= 0 and quote.end() < len(text)
    return holds_something(text) and not (closed and depth == 0)


def is_mentioned(mark: re.Match[str]) -> bool:
    """Return whether a mark stands in running prose, behind "with" or "no", where nothing begins with it."""
    before = _BEFORE_MARK.search(mark.string, max(0, mark.start() - 40), mark.start())
    return before is not None and before[1].lower() in STOP_WORDS


def has_values(data: Any) -> bool:
    """Return whether JSON is an object or a list with a text that is not blank or a number in it."""
    todo, deep = [data], isinstance(data, dict | list)
    while deep and todo:
        node = todo.pop()
        if isinstance(node, dict | list):
            todo += node.values() if isinstance(node, dict) else node
        elif isinstance(node, bool | int | float) or (isinstance(node, str) and any(map(str.isalnum, node))):
            return True
    return False


def _is_word(word: str) -> bool:
    return (
        word in _SHORT
        or (not word.isascii() and any(map(str.isalpha, word)))
        or (not word.isdigit() and len(set(filter(str.isalpha, word))) > 1)
    )
