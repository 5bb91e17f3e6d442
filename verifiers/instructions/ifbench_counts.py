"""IFBench's kinds that count words and sentences (Pyatkin et al., 2507.02833): its groups `count` and `ratio`.

Not covered: what the words mean; a number is a run of digits, a name is one of the list in the prompt.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from adjudge.verifiers.instructions.check import Check, Finding
from adjudge.verifiers.instructions.english import CONJUNCTIONS, NAMES, PRONOUNS, STOP_WORDS
from adjudge.verifiers.instructions.substance import besides, worth
from adjudge.verifiers.instructions.text import Text, whole_word

_TIMES: Final = (1, 2, 3, 5, 7)
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_EDGES: Final = string.punctuation + " "


@dataclass(frozen=True, kw_only=True)
class WordCountRange(Check):
    r"""From so many to so many words (`\w+`)."""

    group = "length"
    min_words: int
    max_words: int

    def __post_init__(self) -> None:
        """Reject an empty range."""
        if self.min_words > self.max_words:
            raise ValueError(f"'min_words' is {self.min_words}; it must be 'max_words' ({self.max_words}) at most")

    def look(self, text: Text) -> Finding:
        """Count the words."""
        count = len(text.words)
        met = self.min_words <= count <= self.max_words
        return Finding(met, {"words": count}, vacuous=worth(text.words) < self.min_words)


@dataclass(frozen=True, kw_only=True)
class UniqueWordCount(Check):
    """At least so many different words."""

    group = "length"
    N: int

    def look(self, text: Text) -> Finding:
        """Count what is left of chunks without punctuation around them."""
        words = {word.strip(_EDGES) for word in text.lower.split()}
        return Finding(len(words) >= self.N, {"unique_words": len(words)}, vacuous=worth(words) < self.N)


@dataclass(frozen=True, kw_only=True)
class StopWords(Check):
    """At most such a percentage of stop words."""

    percentage: float

    def look(self, text: Text) -> Finding:
        """Count them among all words."""
        if not text.words:
            return Finding(False, {"words": 0})
        share = 100 * sum(word.lower() in STOP_WORDS for word in text.words) / len(text.words)
        return Finding(share <= self.percentage, {"percentage": round(share, 3)})


@dataclass(frozen=True, kw_only=True)
class SentenceType(Check):
    """Twice as many sentences with a period as with a question mark."""

    def look(self, text: Text) -> Finding:
        """Count the ends of sentences."""
        stated, asked, _ = _ends(text)
        return Finding(
            stated == 2 * asked, {"declarative": stated, "interrogative": asked}, vacuous=not (stated or asked)
        )


@dataclass(frozen=True, kw_only=True)
class SentenceBalance(Check):
    """As many sentences with a period as with a question mark and with an exclamation mark."""

    def look(self, text: Text) -> Finding:
        """Count the ends of sentences."""
        stated, asked, called = _ends(text)
        seen = {"declarative": stated, "interrogative": asked, "exclamatory": called}
        return Finding(stated == asked == called, seen, vacuous=not (stated or asked or called))


@dataclass(frozen=True, kw_only=True)
class Conjunctions(Check):
    """At least so many different coordinating conjunctions."""

    small_n: int

    def look(self, text: Text) -> Finding:
        """Count the different ones; case and punctuation aside."""
        found = sorted({word.strip(_EDGES).lower() for word in text.chunks} & CONJUNCTIONS)
        return Finding(
            len(found) >= self.small_n, {"conjunctions": found}, vacuous=not besides(text.read, CONJUNCTIONS)
        )


@dataclass(frozen=True, kw_only=True)
class PersonNames(Check):
    """At least so many different names of the list that the prompt gives."""

    N: int

    def look(self, text: Text) -> Finding:
        """Look for each name as a word."""
        found = [name for name in NAMES if re.search(rf"\b{name}\b", text.read)]
        return Finding(len(found) >= self.N, {"names": found}, vacuous=not besides(text.read, NAMES))


@dataclass(frozen=True, kw_only=True)
class Overlap(Check):
    """Such a percentage of the response's trigrams, two more or less, are in a reference text.

    The labels that came with IFBench count trigrams of characters; its checker counts those of words since.
    """

    reference_text: str
    percentage: float
    unit: Literal["characters", "words"] = "characters"

    def look(self, text: Text) -> Finding:
        """Compare the sets of trigrams."""
        mine = _trigrams(text, self.unit)
        if not mine:
            return Finding(False, {"trigrams": 0})
        share = 100 * len(mine & _trigrams(Text(self.reference_text, shown=False), self.unit)) / len(mine)
        return Finding(abs(share - self.percentage) <= 2, {"percentage": round(share, 3)})


@dataclass(frozen=True, kw_only=True)
class Numbers(Check):
    """Exactly so many numbers; "3.5" and "1,000" are one each."""

    N: int

    def look(self, text: Text) -> Finding:
        """Count the runs of digits, punctuation left out."""
        count = len(re.findall(r"\d+", text.bare))
        return Finding(count == self.N, {"numbers": count})


@dataclass(frozen=True, kw_only=True)
class Pronouns(Check):
    """At least so many pronouns."""

    N: int

    def look(self, text: Text) -> Finding:
        """Count the tokens that are one; "she/her" are two."""
        parted = Text(text.lower.replace("/", " "), shown=False)
        count = sum(token in PRONOUNS for token in parted.tokens)
        return Finding(count >= self.N, {"pronouns": count}, vacuous=set(text.bare_words) <= PRONOUNS)


@dataclass(frozen=True, kw_only=True)
class Punctuation(Check):
    """Every usual mark occurs, and "?!" beside the marks that are in it."""

    def look(self, text: Text) -> Finding:
        """Take one interrobang away, then look for each mark."""
        bang = next((bang for bang in ("?!", "!?", "‽") if bang in text.raw), "")
        rest = text.raw.replace(bang, "", 1) if bang != "‽" else text.raw
        missing = [mark for mark in ".,!?;:" if mark not in rest]
        return Finding(bool(bang) and not missing, {"interrobang": bang, "missing": missing})


@dataclass(frozen=True, kw_only=True)
class WordsJapanese(Check):
    """Every so manyth word is in Japanese; numbers may stand there too."""

    group = "language"
    N: int

    def __post_init__(self) -> None:
        """Reject every 0th."""
        if not self.N:
            raise ValueError("'N' is 0; it must be 1 or more")

    def look(self, text: Text) -> Finding:
        """Look at the words in these places."""
        there = [word.strip(_EDGES) for word in text.chunks[self.N - 1 :: self.N]]
        others = [word for word in there if word and not word.isdigit() and not _JAPANESE.search(word)]
        return Finding(not others, {"words": len(there), "others": others[:10]}, vacuous=not there)


@dataclass(frozen=True, kw_only=True)
class KeywordsMultiple(Check):
    """Five keywords occur exactly once, twice, three, five and seven times; case aside."""

    keyword1: str
    keyword2: str
    keyword3: str
    keyword4: str
    keyword5: str

    def look(self, text: Text) -> Finding:
        """Count each as a word."""
        keywords = (self.keyword1, self.keyword2, self.keyword3, self.keyword4, self.keyword5)
        found = [len(re.findall(whole_word(word), text.read, re.IGNORECASE)) for word in keywords]
        return Finding(tuple(found) == _TIMES, {"times": found}, vacuous=not besides(text.read, keywords))


COUNTS: Final[Mapping[str, type[Check]]] = {
    "count:word_count_range": WordCountRange,
    "count:unique_word_count": UniqueWordCount,
    "count:conjunctions": Conjunctions,
    "count:person_names": PersonNames,
    "count:numbers": Numbers,
    "count:pronouns": Pronouns,
    "count:punctuation": Punctuation,
    "count:words_japanese": WordsJapanese,
    "count:keywords_multiple": KeywordsMultiple,
    "ratio:stop_words": StopWords,
    "ratio:sentence_type": SentenceType,
    "ratio:sentence_balance": SentenceBalance,
    "ratio:overlap": Overlap,
}
"""Kinds by the names IFBench gives them."""


def _ends(text: Text) -> tuple[int, int, int]:
    ends = [sentence[-1] for sentence in text.sentences]
    return ends.count("."), ends.count("?"), ends.count("!")


def _trigrams(text: Text, unit: str) -> set[tuple[str, str, str]]:
    found = text.raw if unit == "characters" else text.tokens
    return set(zip(found, found[1:], found[2:], strict=False))
