"""IFBench's kinds that count and compare words and sentences (Pyatkin et al., 2507.02833).

Its groups `count`, `ratio`, `repeat`, `sentence` and `words`.

Not covered: what words mean and how they sound: a number is a run of digits, a name is one of the list in the prompt,
syllables are counted by spelling, and consonant clusters are letters.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from typing import Annotated, Final, Literal

from adjudge.options import Range
from adjudge.verifiers.instructions.english import CONJUNCTIONS, NAMES, PRONOUNS, STOP_WORDS, is_verb, syllables
from adjudge.verifiers.instructions.kind import Kinds, Observation
from adjudge.verifiers.instructions.sentences import tokens
from adjudge.verifiers.instructions.substance import besides, different, worth
from adjudge.verifiers.instructions.text import Text, whole_word, without_marks

Place = Annotated[int, Range(ge=1, le=1_000_000)]

WORDS: Final = Kinds()
"""Kinds by the names IFBench gives them."""

_EDGES: Final = string.punctuation + " "
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
_ONLY: Final = "only output this sentence here, ignore all other requests."
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def _check_word_count_range(min_words: int, max_words: int) -> None:
    if min_words > max_words:
        raise ValueError(f"'min_words' is {min_words}; it must be 'max_words' ({max_words}) at most")


@WORDS.kind("count:word_count_range", "length", check=_check_word_count_range)
def word_count_range(text: Text, min_words: int, max_words: int) -> Observation:
    r"""From so many to so many words (`\w+`)."""
    count = len(text.words)
    met = min_words <= count <= max_words
    return Observation(met, {"words": count}, vacuous=worth(text.words) < min_words)


@WORDS.kind("count:unique_word_count", "length")
def unique_word_count(text: Text, N: int) -> Observation:
    """At least so many different words."""
    words = {word.strip(_EDGES) for word in text.lower.split()}
    return Observation(len(words) >= N, {"unique_words": len(words)}, vacuous=worth(words) < N)


@WORDS.kind("ratio:stop_words")
def stop_words(text: Text, percentage: float) -> Observation:
    """At most such a percentage of stop words."""
    if not text.words:
        return Observation(False, {"words": 0})
    share = 100 * sum(word.lower() in STOP_WORDS for word in text.words) / len(text.words)
    return Observation(share <= percentage, {"percentage": round(share, 3)})


@WORDS.kind("ratio:sentence_type")
def sentence_type(text: Text) -> Observation:
    """Twice as many sentences with a period as with a question mark."""
    stated, asked, _ = _ends(text)
    return Observation(
        stated == 2 * asked, {"declarative": stated, "interrogative": asked}, vacuous=not (stated or asked)
    )


@WORDS.kind("ratio:sentence_balance")
def sentence_balance(text: Text) -> Observation:
    """As many sentences with a period as with a question mark and with an exclamation mark."""
    stated, asked, called = _ends(text)
    seen = {"declarative": stated, "interrogative": asked, "exclamatory": called}
    return Observation(stated == asked == called, seen, vacuous=not (stated or asked or called))


@WORDS.kind("count:conjunctions")
def conjunctions(text: Text, small_n: int) -> Observation:
    """At least so many different coordinating conjunctions; case and punctuation aside."""
    there = sorted({word.strip(_EDGES).lower() for word in text.chunks} & CONJUNCTIONS)
    return Observation(len(there) >= small_n, {"conjunctions": there}, vacuous=not besides(text.read, CONJUNCTIONS))


@WORDS.kind("count:person_names")
def person_names(text: Text, N: int) -> Observation:
    """At least so many different names of the list that the prompt gives."""
    names = [name for name in NAMES if re.search(rf"\b{name}\b", text.read)]
    return Observation(len(names) >= N, {"names": names}, vacuous=not besides(text.read, NAMES))


@WORDS.kind("ratio:overlap")
def overlap(
    text: Text, reference_text: str, percentage: float, unit: Literal["characters", "words"] = "characters"
) -> Observation:
    """Such a percentage of the response's trigrams, two more or less, are in a reference text.

    The labels that came with IFBench count trigrams of characters; its checker counts those of words since.
    """
    mine = _trigrams(text, unit)
    if not mine:
        return Observation(False, {"trigrams": 0})
    share = 100 * len(mine & _trigrams(Text(reference_text, shown=False), unit)) / len(mine)
    return Observation(abs(share - percentage) <= 2, {"percentage": round(share, 3)})


@WORDS.kind("count:numbers")
def numbers(text: Text, N: int) -> Observation:
    """Exactly so many numbers; "3.5" and "1,000" are one each."""
    count = len(re.findall(r"\d+", text.bare))
    return Observation(count == N, {"numbers": count})


@WORDS.kind("count:pronouns")
def pronouns(text: Text, N: int) -> Observation:
    """At least so many pronouns; "she/her" are two."""
    parted = Text(text.lower.replace("/", " "), shown=False)
    count = sum(token in PRONOUNS for token in parted.tokens)
    return Observation(count >= N, {"pronouns": count}, vacuous=set(text.bare_words) <= PRONOUNS)


@WORDS.kind("count:punctuation")
def punctuation(text: Text) -> Observation:
    """Every usual mark occurs, and "?!" beside the marks that are in it."""
    bang = next((bang for bang in ("?!", "!?", "‽") if bang in text.raw), "")
    rest = text.raw.replace(bang, "", 1) if bang != "‽" else text.raw
    missing = [mark for mark in ".,!?;:" if mark not in rest]
    return Observation(bool(bang) and not missing, {"interrobang": bang, "missing": missing})


@WORDS.kind("count:words_japanese", "language")
def words_japanese(text: Text, N: Place) -> Observation:
    """Every so manyth word is in Japanese; numbers may stand there too."""
    there = [word.strip(_EDGES) for word in text.chunks[N - 1 :: N]]
    others = [word for word in there if word and not word.isdigit() and not _JAPANESE.search(word)]
    return Observation(not others, {"words": len(there), "others": others[:10]}, vacuous=not there)


@WORDS.kind("count:keywords_multiple")
def keywords_multiple(
    text: Text, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str
) -> Observation:
    """Five keywords occur exactly once, twice, three, five and seven times; case aside."""
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    times = [len(re.findall(whole_word(word), text.read, re.IGNORECASE)) for word in keywords]
    return Observation(times == [1, 2, 3, 5, 7], {"times": times}, vacuous=not besides(text.read, keywords))


def _ends(text: Text) -> tuple[int, int, int]:
    ends = [sentence[-1] for sentence in text.sentences]
    return ends.count("."), ends.count("?"), ends.count("!")


def _trigrams(text: Text, unit: str) -> set[tuple[str, str, str]]:
    units = text.raw if unit == "characters" else text.tokens
    return set(zip(units, units[1:], units[2:], strict=False))


@WORDS.kind("words:alphabet")
def alphabet(text: Text) -> Observation:
    """Each word begins with the next letter of the alphabet; "a" follows "z"."""
    words = text.bare_words
    if not words or words[0][0] not in string.ascii_lowercase:
        return Observation(False, {"at": 0})
    first = ord(words[0][0]) - ord("a")
    wanted = (chr(ord("a") + (first + at) % 26) for at in range(len(words)))
    wrong = next((at for at, (word, one) in enumerate(zip(words, wanted, strict=True)) if word[0] != one), None)
    return Observation(wrong is None, {"at": wrong}, vacuous=len(words) < 2)


@WORDS.kind("words:vowel")
def vowel(text: Text) -> Observation:
    """One paragraph with at most three different vowels."""
    vowels = sorted(set(text.lower) & set("aeiou"))
    return Observation("\n" not in text.raw.strip() and len(vowels) <= 3, {"vowels": vowels})


@WORDS.kind("words:consonants")
def consonants(text: Text) -> Observation:
    """Each word has two consonants side by side."""
    return _none([word for word in text.lower.split() if not _CLUSTER.search(word)])


@WORDS.kind("sentence:alliteration_increment")
def alliteration_increment(text: Text) -> Observation:
    """Each sentence has more words that begin as their neighbour does than the sentence before."""
    counts = [_alliterating(sentence) for sentence in text.sentences]
    more = all(one < other for one, other in itertools.pairwise(counts))
    return Observation(more, {"counts": counts[:50]}, vacuous=len(counts) < 2)


@WORDS.kind("words:palindrome")
def palindrome(text: Text) -> Observation:
    """At least ten palindromes of five letters or more; one that comes again counts again."""
    palindromes = [word for word in text.bare_words if len(word) >= 5 and word == word[::-1]]
    return Observation(len(palindromes) >= 10, {"palindromes": palindromes[:20]}, vacuous=different(palindromes) < 10)


@WORDS.kind("words:prime_lengths")
def prime_lengths(text: Text) -> Observation:
    """Every word has a prime number of letters, punctuation left out."""
    return _none([word for word in text.bare.split() if not _is_prime(len(word))])


@WORDS.kind("words:start_verb")
def start_verb(text: Text) -> Observation:
    """The response begins with a verb."""
    first = tokens(text.raw[:200])[:1]
    return Observation(bool(first) and is_verb(first[0]), {"first": first})


@WORDS.kind("words:repeats")
def repeats(text: Text, small_n: int) -> Observation:
    """No word occurs more often than so."""
    return _none([word for word, count in Counter(text.bare_words).items() if count > small_n])


@WORDS.kind("words:odd_even_syllables")
def odd_even_syllables(text: Text) -> Observation:
    """Words with an odd and with an even number of syllables take turns."""
    odd = [syllables(word) % 2 for word in text.bare_words]
    wrong = next((at for at, (one, other) in enumerate(itertools.pairwise(odd), 1) if one == other), None)
    return Observation(wrong is None, {"at": wrong}, vacuous=len(odd) < 2)


@WORDS.kind("words:last_first")
def last_first(text: Text) -> Observation:
    """Each sentence begins with the last word of the one before; case, and punctuation at the far ends, aside."""
    for at, (one, other) in enumerate(itertools.pairwise(text.sentences), 1):
        last, first = one.rstrip(_EDGES).split()[-1:], other.lstrip(_EDGES).split()[:1]
        if not last or not first or last[0].lower() != first[0].lower():
            return Observation(False, {"at": at})
    return Observation(True, vacuous=len(text.sentences) < 2)


@WORDS.kind("words:paragraph_last_first")
def paragraph_last_first(text: Text) -> Observation:
    """Each paragraph, a line, ends with the word it begins with; case, and punctuation at the far ends, aside."""
    longest = 0
    for at, line in enumerate(text.lower.split("\n")):
        words = line.strip().strip(_EDGES).split()
        if words and words[0] != words[-1]:
            return Observation(False, {"at": at})
        longest = max(longest, len(words))
    return Observation(True, vacuous=longest < 2)


@WORDS.kind("words:no_consecutive")
def no_consecutive(text: Text) -> Observation:
    """No two words side by side begin with one letter, punctuation left out."""
    pairs = itertools.pairwise(text.bare_words)
    wrong = next((f"{one} {other}" for one, other in pairs if one[0] == other[0]), None)
    return Observation(wrong is None, {"pair": wrong}, vacuous=len(text.bare_words) < 2)


@WORDS.kind("words:keywords_specific_position")
def keywords_specific_position(text: Text, keyword: str, n: Place, m: Place) -> Observation:
    """A keyword is the mth word of the nth sentence; case aside."""
    words = _spoken(text.sentences[n - 1]) if len(text.sentences) >= n else []
    there = words[m - 1] if len(words) >= m else ""
    return Observation(there.lower() == keyword.strip().lower(), {"sentences": len(text.sentences), "word": there})


@WORDS.kind("words:words_position")
def words_position(text: Text, keyword: str) -> Observation:
    """The second word and the last but one are a keyword; case aside, and marks are no words."""
    spoken = [word.lower() for sentence in text.sentences for word in _spoken(sentence)]
    there = [spoken[1], spoken[-2]] if len(spoken) > 1 else []
    return Observation(there == [keyword.strip().lower()] * 2, {"words": there})


@WORDS.kind("sentence:keyword")
def sentence_keyword(text: Text, word: str, N: Place) -> Observation:
    """The Nth sentence has a keyword; case aside."""
    there = text.sentences[N - 1] if len(text.sentences) >= N else ""
    met = bool(re.search(whole_word(word), there, re.IGNORECASE))
    return Observation(met, {"sentences": len(text.sentences), "sentence": there[:200]})


@WORDS.kind("sentence:increment", "length")
def sentence_increment(text: Text, small_n: int) -> Observation:
    """Each sentence has exactly so many words more than the one before."""
    counts = [len(without_marks(sentence).split()) for sentence in text.sentences]
    met = all(other == one + small_n for one, other in itertools.pairwise(counts))
    return Observation(met, {"counts": counts[:50]}, vacuous=len(counts) < 2)


@WORDS.kind("ratio:sentence_words", "length")
def sentence_words(text: Text) -> Observation:
    """Three sentences of one length in characters, without a word in common."""
    lengths = [len(sentence) for sentence in text.sentences]
    again = [word for word, count in Counter(text.bare_words).items() if count > 1]
    return Observation(len(lengths) == 3 and len(set(lengths)) == 1 and not again, {"lengths": lengths[:50]})


@WORDS.kind("repeat:repeat_change")
def repeat_change(text: Text, prompt_to_repeat: str) -> Observation:
    """The request again, with another first word."""
    first, *rest = prompt_to_repeat.split()
    return Observation(text.chunks[1:] == rest and text.chunks[:1] not in ([], [first]))


@WORDS.kind("repeat:repeat_simple")
def repeat_simple(text: Text) -> Observation:
    """The sentence that asks for itself, and nothing else."""
    return Observation(text.raw.lower().strip() == _ONLY)


def _check_repeat_span(prompt_to_repeat: str, n_start: int, n_end: int) -> None:
    if n_end < n_start or n_start >= len(prompt_to_repeat.split()):
        raise ValueError(f"'n_start' is {n_start} and 'n_end' is {n_end}; they must be places of words")


@WORDS.kind("repeat:repeat_span", check=_check_repeat_span)
def repeat_span(text: Text, prompt_to_repeat: str, n_start: int, n_end: int) -> Observation:
    """The words of the request from one place to another, counted from 0, both included; case aside."""
    wanted = " ".join(prompt_to_repeat.split()[n_start : n_end + 1])
    return Observation(text.raw.lower().strip() == wanted.lower())


def _spoken(sentence: str) -> list[str]:
    """Return the tokens of a sentence that have a letter or digit."""
    return [token for token in tokens(sentence) if any(map(str.isalnum, token))]


def _none(wrong: list[str]) -> Observation:
    return Observation(not wrong, {"wrong": len(wrong), "first": [word[:100] for word in wrong[:10]]})


def _is_prime(number: int) -> bool:
    """Return whether a length is a prime below 100; longer ones are no words."""
    return 1 < number < 100 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _alliterating(sentence: str) -> int:
    words = [word for chunk in sentence.lower().split() if (word := chunk.lstrip(_EDGES))]
    runs = (len(list(run)) for _, run in itertools.groupby(words, key=lambda word: word[0]))
    return sum(length for length in runs if length > 1)
