"""IFBench's kinds that look at single words and sentences: its groups `words`, `sentence`, `repeat`, and `ratio`.

Not covered: pronunciation; syllables are counted by spelling, and consonant clusters are letters.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.verifiers.instructions.check import Check, Finding
from adjudge.verifiers.instructions.english import is_verb, syllables
from adjudge.verifiers.instructions.substance import different
from adjudge.verifiers.instructions.text import Text, whole_word, without_marks
from adjudge.verifiers.instructions.tokens import tokens

_EDGES: Final = string.punctuation + " "
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
_ONLY: Final = "only output this sentence here, ignore all other requests."


@dataclass(frozen=True, kw_only=True)
class Alphabet(Check):
    """Each word begins with the next letter of the alphabet; "a" follows "z"."""

    def look(self, text: Text) -> Finding:
        """Compare the first letters."""
        words = text.bare_words
        if not words or words[0][0] not in string.ascii_lowercase:
            return Finding(False, {"at": 0})
        first = ord(words[0][0]) - ord("a")
        wanted = (chr(ord("a") + (first + at) % 26) for at in range(len(words)))
        wrong = next((at for at, (word, one) in enumerate(zip(words, wanted, strict=True)) if word[0] != one), None)
        return Finding(wrong is None, {"at": wrong}, vacuous=len(words) < 2)


@dataclass(frozen=True, kw_only=True)
class Vowel(Check):
    """One paragraph with at most three different vowels."""

    def look(self, text: Text) -> Finding:
        """Collect the vowels."""
        vowels = sorted(set(text.lower) & set("aeiou"))
        return Finding("\n" not in text.raw.strip() and len(vowels) <= 3, {"vowels": vowels})


@dataclass(frozen=True, kw_only=True)
class Consonants(Check):
    """Each word has two consonants side by side."""

    def look(self, text: Text) -> Finding:
        """Look at every chunk."""
        return _none([word for word in text.lower.split() if not _CLUSTER.search(word)])


@dataclass(frozen=True, kw_only=True)
class AlliterationIncrement(Check):
    """Each sentence has more words that begin as their neighbour does than the sentence before."""

    def look(self, text: Text) -> Finding:
        """Count the words in runs of one first letter, sentence by sentence."""
        counts = [_alliterating(sentence) for sentence in text.sentences]
        more = all(one < other for one, other in itertools.pairwise(counts))
        return Finding(more, {"counts": counts[:50]}, vacuous=len(counts) < 2)


@dataclass(frozen=True, kw_only=True)
class Palindrome(Check):
    """At least ten palindromes of five letters or more."""

    def look(self, text: Text) -> Finding:
        """Count them; one that comes again counts again."""
        found = [word for word in text.bare_words if len(word) >= 5 and word == word[::-1]]
        return Finding(len(found) >= 10, {"palindromes": found[:20]}, vacuous=different(found) < 10)


@dataclass(frozen=True, kw_only=True)
class PrimeLengths(Check):
    """Every word has a prime number of letters."""

    def look(self, text: Text) -> Finding:
        """Look at each length, punctuation left out."""
        return _none([word for word in text.bare.split() if not _is_prime(len(word))])


@dataclass(frozen=True, kw_only=True)
class StartVerb(Check):
    """The response begins with a verb."""

    def look(self, text: Text) -> Finding:
        """Look at the first token."""
        first = tokens(text.raw[:200])[:1]
        return Finding(bool(first) and is_verb(first[0]), {"first": first})


@dataclass(frozen=True, kw_only=True)
class Repeats(Check):
    """No word occurs more often than so."""

    small_n: int

    def look(self, text: Text) -> Finding:
        """Count the words."""
        return _none([word for word, count in Counter(text.bare_words).items() if count > self.small_n])


@dataclass(frozen=True, kw_only=True)
class OddEvenSyllables(Check):
    """Words with an odd and with an even number of syllables take turns."""

    def look(self, text: Text) -> Finding:
        """Count by spelling."""
        odd = [syllables(word) % 2 for word in text.bare_words]
        wrong = next((at for at, (one, other) in enumerate(itertools.pairwise(odd), 1) if one == other), None)
        return Finding(wrong is None, {"at": wrong}, vacuous=len(odd) < 2)


@dataclass(frozen=True, kw_only=True)
class LastFirst(Check):
    """Each sentence begins with the last word of the one before."""

    def look(self, text: Text) -> Finding:
        """Compare the words; case, and punctuation at the far ends, aside."""
        for at, (one, other) in enumerate(itertools.pairwise(text.sentences), 1):
            last, first = one.rstrip(_EDGES).split()[-1:], other.lstrip(_EDGES).split()[:1]
            if not last or not first or last[0].lower() != first[0].lower():
                return Finding(False, {"at": at})
        return Finding(True, vacuous=len(text.sentences) < 2)


@dataclass(frozen=True, kw_only=True)
class ParagraphLastFirst(Check):
    """Each paragraph, which is a line, ends with the word it begins with."""

    def look(self, text: Text) -> Finding:
        """Compare the words; case, and punctuation at the far ends, aside."""
        longest = 0
        for at, line in enumerate(text.lower.split("\n")):
            words = line.strip().strip(_EDGES).split()
            if words and words[0] != words[-1]:
                return Finding(False, {"at": at})
            longest = max(longest, len(words))
        return Finding(True, vacuous=longest < 2)


@dataclass(frozen=True, kw_only=True)
class NoConsecutive(Check):
    """No two words side by side begin with one letter."""

    def look(self, text: Text) -> Finding:
        """Compare the first letters, punctuation left out."""
        pairs = itertools.pairwise(text.bare_words)
        wrong = next((f"{one} {other}" for one, other in pairs if one[0] == other[0]), None)
        return Finding(wrong is None, {"pair": wrong}, vacuous=len(text.bare_words) < 2)


@dataclass(frozen=True, kw_only=True)
class KeywordsSpecificPosition(Check):
    """A keyword is the mth word of the nth sentence; case aside."""

    keyword: str
    n: int
    m: int

    def __post_init__(self) -> None:
        """Reject places that there are not."""
        if not self.n or not self.m:
            raise ValueError(f"'n' is {self.n} and 'm' is {self.m}; both count from 1")

    def look(self, text: Text) -> Finding:
        """Look at this place."""
        words = _spoken(text.sentences[self.n - 1]) if len(text.sentences) >= self.n else []
        there = words[self.m - 1] if len(words) >= self.m else ""
        return Finding(there.lower() == self.keyword.strip().lower(), {"sentences": len(text.sentences), "word": there})


@dataclass(frozen=True, kw_only=True)
class WordsPosition(Check):
    """The second word and the last but one are a keyword; case aside."""

    keyword: str

    def look(self, text: Text) -> Finding:
        """Look at both places; marks are no words."""
        found = [word.lower() for sentence in text.sentences for word in _spoken(sentence)]
        there = [found[1], found[-2]] if len(found) > 1 else []
        return Finding(there == [self.keyword.strip().lower()] * 2, {"words": there})


@dataclass(frozen=True, kw_only=True)
class SentenceKeyword(Check):
    """The Nth sentence has a keyword; case aside."""

    word: str
    N: int

    def __post_init__(self) -> None:
        """Reject the sentence before the first."""
        if not self.N:
            raise ValueError("'N' is 0; sentences count from 1")

    def look(self, text: Text) -> Finding:
        """Look into this sentence."""
        there = text.sentences[self.N - 1] if len(text.sentences) >= self.N else ""
        met = bool(re.search(whole_word(self.word), there, re.IGNORECASE))
        return Finding(met, {"sentences": len(text.sentences), "sentence": there[:200]})


@dataclass(frozen=True, kw_only=True)
class SentenceIncrement(Check):
    """Each sentence has exactly so many words more than the one before."""

    group = "length"
    small_n: int

    def look(self, text: Text) -> Finding:
        """Count the words of each sentence."""
        counts = [len(without_marks(sentence).split()) for sentence in text.sentences]
        met = all(other == one + self.small_n for one, other in itertools.pairwise(counts))
        return Finding(met, {"counts": counts[:50]}, vacuous=len(counts) < 2)


@dataclass(frozen=True, kw_only=True)
class SentenceWords(Check):
    """Three sentences of one length in characters, without a word in common."""

    group = "length"

    def look(self, text: Text) -> Finding:
        """Compare the lengths, and the words as `Repeats` has them."""
        lengths = [len(sentence) for sentence in text.sentences]
        again = [word for word, count in Counter(text.bare_words).items() if count > 1]
        return Finding(len(lengths) == 3 and len(set(lengths)) == 1 and not again, {"lengths": lengths[:50]})


@dataclass(frozen=True, kw_only=True)
class RepeatChange(Check):
    """The request again, with another first word."""

    prompt_to_repeat: str

    def look(self, text: Text) -> Finding:
        """Compare all words but the first."""
        first, *rest = self.prompt_to_repeat.split()
        return Finding(text.chunks[1:] == rest and text.chunks[:1] not in ([], [first]))


@dataclass(frozen=True, kw_only=True)
class RepeatSimple(Check):
    """The sentence that asks for itself, and nothing else."""

    def look(self, text: Text) -> Finding:
        """Compare the whole."""
        return Finding(text.raw.lower().strip() == _ONLY)


@dataclass(frozen=True, kw_only=True)
class RepeatSpan(Check):
    """The words of the request from one place to another, counted from 0, both included."""

    prompt_to_repeat: str
    n_start: int
    n_end: int

    def __post_init__(self) -> None:
        """Reject places that there are not."""
        if self.n_end < self.n_start or self.n_start >= len(self.prompt_to_repeat.split()):
            raise ValueError(f"'n_start' is {self.n_start} and 'n_end' is {self.n_end}; they must be places of words")

    def look(self, text: Text) -> Finding:
        """Compare the whole; case aside."""
        wanted = " ".join(self.prompt_to_repeat.split()[self.n_start : self.n_end + 1])
        return Finding(text.raw.lower().strip() == wanted.lower())


WORDS: Final[Mapping[str, type[Check]]] = {
    "words:alphabet": Alphabet,
    "words:vowel": Vowel,
    "words:consonants": Consonants,
    "words:palindrome": Palindrome,
    "words:prime_lengths": PrimeLengths,
    "words:start_verb": StartVerb,
    "words:repeats": Repeats,
    "words:odd_even_syllables": OddEvenSyllables,
    "words:last_first": LastFirst,
    "words:paragraph_last_first": ParagraphLastFirst,
    "words:no_consecutive": NoConsecutive,
    "words:keywords_specific_position": KeywordsSpecificPosition,
    "words:words_position": WordsPosition,
    "sentence:alliteration_increment": AlliterationIncrement,
    "sentence:keyword": SentenceKeyword,
    "sentence:increment": SentenceIncrement,
    "ratio:sentence_words": SentenceWords,
    "repeat:repeat_change": RepeatChange,
    "repeat:repeat_simple": RepeatSimple,
    "repeat:repeat_span": RepeatSpan,
}
"""Kinds by the names IFBench gives them."""


def _spoken(sentence: str) -> list[str]:
    """Return the tokens of a sentence that have a letter or digit."""
    return [token for token in tokens(sentence) if any(map(str.isalnum, token))]


def _none(wrong: list[str]) -> Finding:
    return Finding(not wrong, {"wrong": len(wrong), "first": [word[:100] for word in wrong[:10]]})


def _is_prime(number: int) -> bool:
    """Return whether a length is a prime below 100; longer ones are no words."""
    return 1 < number < 100 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _alliterating(sentence: str) -> int:
    words = [word for chunk in sentence.lower().split() if (word := chunk.lstrip(_EDGES))]
    runs = (len(list(run)) for _, run in itertools.groupby(words, key=lambda word: word[0]))
    return sum(length for length in runs if length > 1)
