"""Whether a text holds a gold phrase, and which documents are the same.

A phrase is held where it stands as whole words in any case, accents and invisible characters aside
(`adjudge.verifiers.rubric.phrases`), or where its words stand in a row once both are normalised as in SQuAD's
evaluation: small letters, without ASCII punctuation and articles.  So "The U.S." is held by "in the US".

Not covered: paraphrases.

What the turns of a search add: evidence that is new, documents that are not.

    gain_t   = mean over gold documents g of max(0, s_tg - max_{u<t} s_ug)
    repeat_t = share of turn t's documents that came before, in an earlier turn or earlier in the same one

s_tg is the best similarity in [0, 1] of a document of turn t to gold document g, and 0 before any turn.  With s in
{0, 1} the gain is the share of gold documents that a turn finds first.  StepSearch (arXiv 2505.15107) rewards
gain - repeat; a sum of gains never passes 1, however many turns there are.

Not covered: the similarity, and what makes two documents one; scorers say both.

StepSearch's key-word score: how well the queries ask what each sub-question should be asked.

A query counts for the one sub-question that it fits best, by token F1 with the ways to ask it; a sub-question keeps the
best of its queries; the score is the mean over sub-questions.  Released code lets a later and worse query take the
place of a better one; here it does not.

Not covered: queries that mean the same in other words.

The similarity of documents to gold texts that StepSearch's code takes: a TF-IDF cosine.

For each document by itself, scikit-learn's `TfidfVectorizer` with its own options learns from the document and the gold
texts together, n texts in all, each normalised as in SQuAD's evaluation.  Of words of two characters or more

    weight = count * (1 + ln((1 + n) / (1 + texts with the word)))

and the similarity is the cosine of two texts' weights, in [0, 1].  That is written out here, for importing the package
takes seconds in each worker process, longer than all else.

Not covered: other similarities.

How alike two findings are, by their words: a rule for where no model of meaning is at hand.

| rule | value in [0, 1] |
|---|---|
| `token_f1` | F1 of the two bags of words; what one says beyond the other lowers it |
| `cosine` | cosine of the two vectors of word counts; saying the same words twice changes nothing |

Words are in small letters without marks; every character of a script without blanks is a word.

Not covered: meaning.  "Prices rose" and "prices fell" share half of their words; give a scorer for that.

Findings beside reference findings: one-to-one, as many pairs as can be, and the F1 of that.

    precision = pairs / findings,  recall = pairs / reference findings,  F1 = 2 * pairs / (findings + references)

The released code of O2-Searcher keeps for each reference the most similar finding alone and then maximises similarity,
which can lose pairs: a finding that is the best for two references blocks the second-best finding of both.  Here the
number of pairs is a maximum.

Not covered: similarity (`findings_similarity`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from adjudge.responses.trajectories.trajectory import Document
from adjudge.verifiers.rubric.phrases import found_in
from adjudge.verifiers.text.token_f1 import TokenF1Verifier, token_f1

_SQUAD = TokenF1Verifier()


def holds(text: str, phrases: Sequence[str]) -> bool:
    """Return whether a text holds one of the phrases; a phrase without a word is held by none."""
    return any(in_a_row(phrase, text) or found_in(phrase, text) for phrase in phrases if words(phrase))


def in_a_row(phrase: str, text: str) -> bool:
    """Return whether the normalised words of a phrase stand in a row in a text."""
    wanted = words(phrase)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words(text))} "


@lru_cache(maxsize=32)  # a result is looked through for many phrases
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, normalised as in SQuAD's evaluation."""
    return tuple(_SQUAD.tokens(text))


def identity(document: Document) -> tuple[str, str]:
    """Return what makes a document the same as another: its title and text, case and blanks aside."""
    return " ".join(document.title.casefold().split()), " ".join(document.text.casefold().split())


def evidence_gains(similarities: Sequence[Sequence[float]]) -> list[float]:
    """Return the gain of each turn, in [0, 1].

    Args:
        similarities: a row for each turn, in it a number for each gold document.

    Raises:
        ValueError: a row is empty or of another length than the first, or a number is outside [0, 1].
    """
    best = [0.0] * (len(similarities[0]) if similarities else 0)
    gains = []
    for at, row in enumerate(similarities):
        if not row or len(row) != len(best):
            raise ValueError(f"row {at} has {len(row)} similarities and the first {len(best)}; give one for each gold")
        for value in row:
            if not 0 <= value <= 1:
                raise ValueError(f"row {at} holds the similarity {value!r}; it must be between 0 and 1")
        gains.append(sum(max(0.0, value - before) for value, before in zip(row, best, strict=True)) / len(row))
        best = [max(value, before) for value, before in zip(row, best, strict=True)]
    return gains


def repeats(turns: Sequence[Sequence[Hashable]]) -> list[float]:
    """Return the share of each turn's documents that were there before; 0 for a turn without documents."""
    seen: set[Hashable] = set()
    shares = []
    for documents in turns:
        again = 0
        for document in documents:
            again += document in seen
            seen.add(document)
        shares.append(again / len(documents) if documents else 0.0)
    return shares


def keyword_score(queries: Sequence[str], groups: Sequence[Sequence[str]], ignored: Collection[str] = ()) -> float:
    """Return the key-word score, in [0, 1].

    Args:
        queries: what was asked.
        groups: for each sub-question, the ways to ask it.
        ignored: normalised words that count on neither side; a sub-question of which nothing is left is left out, and
            without any the score is 0.
    """
    wanted = [[bag for way in group if (bag := _bag(way, ignored))] for group in groups]
    wanted = [bags for bags in wanted if bags]
    best = [0.0] * len(wanted)
    for query in dict.fromkeys(queries):
        asked = _bag(query, ignored)
        fits = [max(token_f1(asked, bag) for bag in bags) for bags in wanted]
        if fits and (most := max(fits)) > 0:
            place = fits.index(most)
            best[place] = max(best[place], most)
    return sum(best) / len(best) if best else 0.0


def _bag(text: str, ignored: Collection[str]) -> Counter[str]:
    return Counter(word for word in words(text) if word not in ignored)


_TERM = re.compile(r"\b\w\w+\b")


def similarities(document: str, golds: Sequence[str]) -> list[float]:
    """Return the cosine of a document with each gold text; 0 where either has no word of two characters."""
    counts = [_terms(text) for text in (document, *golds)]
    texts_with = Counter(term for count in counts for term in count)
    rarity = {term: 1 + math.log((1 + len(counts)) / (1 + texts)) for term, texts in texts_with.items()}
    first, *others = [{term: number * rarity[term] for term, number in count.items()} for count in counts]
    return [_cosine(first, other) for other in others]


@lru_cache(maxsize=32)  # gold texts are compared with every document
def _terms(text: str) -> Mapping[str, int]:
    return Counter(_TERM.findall(" ".join(words(text))))


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    product = math.fsum(weight * left.get(term, 0.0) for term, weight in right.items())
    return min(1.0, product / (_length(left) * _length(right))) if product else 0.0


def _length(weights: Mapping[str, float]) -> float:
    return math.sqrt(math.fsum(weight * weight for weight in weights.values()))


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


def matched(similar: Sequence[Sequence[float]], threshold: float) -> list[tuple[int, int]]:
    """Return pairs of rows and columns, each in one pair at most, as many as there can be.

    Rows come in their order, and each takes its most similar columns first, so that the result is always the same one.

    Args:
        similar: for each row, its similarity with each column.
        threshold: the least similarity of a pair.
    """
    allowed = [_by_likeness(row, threshold) for row in similar]
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for row in range(len(similar)):
        _place(row, allowed, row_of, column_of)
    return sorted(column_of.items())


def _by_likeness(row: Sequence[float], threshold: float) -> list[int]:
    """The columns that a row may have, the most similar ones first."""
    return sorted((at for at, value in enumerate(row) if value >= threshold), key=lambda at: (-row[at], at))


def _place(first: int, allowed: Sequence[Sequence[int]], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Find a column for a row, and others for the rows that give way to it (Berge's augmenting path, breadth first)."""
    came: dict[int, int] = {}
    rows = [first]
    for row in rows:
        for column in allowed[row]:
            if column in came:
                continue
            came[column] = row
            if column in row_of:
                rows.append(row_of[column])
                continue
            end: int | None = column
            while end is not None:
                owner = came[end]
                row_of[end] = owner
                column_of[owner], end = end, column_of.get(owner)
            return


def finding_f1(pairs: int, findings: int, references: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of so many pairs; 0 for no findings."""
    if not pairs:
        return 0.0, 0.0, 0.0
    return pairs / findings, pairs / references, 2 * pairs / (findings + references)
