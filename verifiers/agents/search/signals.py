"""Signals of search agents' rewards, and the references that they compare with.

Signals are small functions of texts, documents and turns, which formulas are made of.
Words are those of SQuAD's evaluation: small letters, without ASCII punctuation and articles.

New evidence, and documents that came before (StepSearch, arXiv 2505.15107):

    gain_t   = mean over gold documents g of max(0, s_tg - max_{u<t} s_ug)
    repeat_t = share of turn t's documents that came before, in an earlier turn or earlier in the same one

s_tg is the best similarity in [0, 1] of a document of turn t to gold document g.  With s in {0, 1} the gain is the
share of gold documents that a turn finds first; a sum of gains never passes 1, however many turns there are.

Not covered: meaning.  "Prices rose" and "prices fell" share half of their words; where that matters, scorers take
another scorer for the similarity.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, TypeAlias

from adjudge.protocol import Message, turn_texts
from adjudge.responses.phrases import found_in
from adjudge.responses.trajectories.reading import read_json
from adjudge.responses.trajectories.trajectory import Document
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.verifiers.agents.matching import max_pairs
from adjudge.verifiers.text.answer_verifier import alternatives
from adjudge.verifiers.text.token_f1 import TokenF1Verifier, token_f1

Rule: TypeAlias = Literal["token_f1", "cosine"]

_SQUAD = TokenF1Verifier()
_ANY = TokenF1Verifier(language="any")
_TERM = re.compile(r"\b\w\w+\b")


@lru_cache(maxsize=32)  # a result is looked through for many phrases
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(_SQUAD.tokens(text))


def words_of(text: str) -> Counter[str]:
    """Return the counted words of a text in any language: every character of a script without blanks is one."""
    return Counter(_ANY.tokens(text))


def holds(text: str, phrases: Sequence[str]) -> bool:
    """Return whether a text holds one of the phrases as whole words; a phrase without a word is held by none.

    A phrase stands there in any case, accents and invisible characters aside (`adjudge.responses.phrases`), or
    its words stand in a row, so that "The U.S." is held by "in the US".
    """
    return any(in_a_row(phrase, text) or found_in(phrase, text) for phrase in phrases if words(phrase))


def in_a_row(phrase: str, text: str) -> bool:
    """Return whether the words of a phrase stand in a row in a text."""
    wanted = words(phrase)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words(text))} "


def identity(document: Document) -> tuple[str, str]:
    """Return what makes a document the same as another: its title and text, case and blanks aside."""
    return " ".join(document.title.casefold().split()), " ".join(document.text.casefold().split())


def evidence_gains(similarities: Sequence[Sequence[float]]) -> list[float]:
    """Return the gain of each turn, in [0, 1], from its similarity, in [0, 1], with each gold document."""
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


def average_precisions(turns: Sequence[Sequence[Collection[int]]], golds: int) -> list[float]:
    """Return each turn's average precision, in [0, 1], by what no earlier document has; a sum never passes 1.

        AP = sum over ranks k whose document brings something new of (gold texts that the first k brought) / k / golds

    Args:
        turns: for each turn its documents, best first, and for each document the numbers of the gold texts in it.
        golds: how many gold texts there are, at least 1.
    """
    seen: set[int] = set()
    values = []
    for documents in turns:
        total, found = 0.0, 0
        for rank, holding in enumerate(documents, start=1):
            new = set(holding) - seen
            seen |= new
            found += len(new)
            total += len(new) * min(1.0, found / rank)
        values.append(total / golds)
    return values


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
    """Return how well queries ask each sub-question, for which there is a group of ways to ask it, in [0, 1].

    A query counts for the one sub-question that it fits best, by token F1 with the ways to ask it; a sub-question keeps
    the best of its queries (StepSearch's code lets a later and worse one take its place); the score is their mean.
    Words that are `ignored` count on neither side; a sub-question of which nothing is left is left out.
    """

    def bag(text: str) -> Counter[str]:
        return Counter(word for word in words(text) if word not in ignored)

    wanted = [bags for group in groups if (bags := [made for way in group if (made := bag(way))])]
    best = [0.0] * len(wanted)
    for query in dict.fromkeys(queries):
        asked = bag(query)
        fits = [max(token_f1(asked, way) for way in bags) for bags in wanted]
        if fits and (most := max(fits)) > 0:
            place = fits.index(most)
            best[place] = max(best[place], most)
    return sum(best) / len(best) if best else 0.0


def best_similarities(turns: Sequence[Sequence[Document]], golds: Sequence[str]) -> list[list[float]]:
    """Return for each turn the best similarity of its documents to each gold text; a document is compared once."""
    known: dict[tuple[str, str], list[float]] = {}
    rows = []
    for documents in turns:
        best = [0.0] * len(golds)
        for document in documents:
            key = identity(document)
            if key not in known:
                known[key] = similarities(document.text, golds)
            best = [max(pair) for pair in zip(best, known[key], strict=True)]
        rows.append(best)
    return rows


def similarities(document: str, golds: Sequence[str]) -> list[float]:
    """Return the TF-IDF cosine of a document with each gold text, as StepSearch's code has it, in [0, 1].

    For each document by itself, scikit-learn's `TfidfVectorizer` with its own options learns from the document and the
    gold texts together, n texts in all.  Of words of two characters or more

        weight = count * (1 + ln((1 + n) / (1 + texts with the word)))

    That is written out here, for importing the package takes seconds in each worker process, longer than all else.
    """
    first, *others = _weighed([_terms(text) for text in (document, *golds)])
    return [_cosine(first, other) for other in others]


def pair_similarities(texts: Sequence[str]) -> list[float]:
    """Return the TF-IDF cosine of any two texts, in the order of `itertools.combinations`; see `similarities`."""
    return [_cosine(*two) for two in combinations(_weighed([Counter(_TERM.findall(one.lower())) for one in texts]), 2)]


def _weighed(counts: Sequence[Mapping[str, int]]) -> list[dict[str, float]]:
    texts_with = Counter(term for count in counts for term in count)
    rarity = {term: 1 + math.log((1 + len(counts)) / (1 + texts)) for term, texts in texts_with.items()}
    return [{term: number * rarity[term] for term, number in count.items()} for count in counts]


@lru_cache(maxsize=32)  # gold texts are compared with every document
def _terms(text: str) -> Mapping[str, int]:
    return Counter(_TERM.findall(" ".join(words(text))))


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    product = math.fsum(weight * left.get(term, 0.0) for term, weight in right.items())
    lengths = [math.sqrt(math.fsum(weight * weight for weight in one.values())) for one in (left, right)]
    return min(1.0, product / (lengths[0] * lengths[1])) if product else 0.0


def likeness(one: Counter[str], other: Counter[str], rule: Rule) -> float:
    """Return how alike two bags of words are, in [0, 1]; 0 where either is empty.

    With "token_f1" what one says beyond the other lowers it; with "cosine" saying the same words twice changes nothing.
    """
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
    """Return pairs of rows and columns that are similar enough, each in one pair at most, as many as there can be.

    Rows come in their order, and each takes its most similar columns first, so that the result is always the same one.
    (O2-Searcher's code keeps for each column the most similar row alone, which can lose pairs.)
    """
    allowed = [
        sorted((at for at, value in enumerate(row) if value >= threshold), key=lambda at: (-row[at], at))
        for row in similar
    ]
    return sorted((row, column) for column, row in max_pairs(allowed).items())


def finding_f1(pairs: int, findings: int, references: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of so many pairs; 0 for no findings."""
    if not pairs:
        return 0.0, 0.0, 0.0
    return pairs / findings, pairs / references, 2 * pairs / (findings + references)


_MAX_SHOWN = 4_000  # characters; an answer, not an essay
_MAX_FINDINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReference:
    """The accepted answers, the texts of gold documents, and for each sub-question the ways to ask it."""

    answers: tuple[str, ...]
    documents: tuple[str, ...] = ()
    keywords: tuple[tuple[str, ...], ...] = ()

    def answer_f1(self, answer: str) -> float:
        """Return the best token F1 of an answer over the accepted ones."""
        given = Counter(words(answer))
        return max(token_f1(given, Counter(words(accepted))) for accepted in self.answers)

    def is_answer(self, answer: str) -> bool:
        """Return whether an answer equals an accepted one once both are normalised."""
        return any(words(answer) == words(accepted) for accepted in self.answers)


def read_answers(reference: Any) -> SearchReference:
    """Return the accepted answers of a text, a list of texts, or a mapping with `answer`; each must hold a word."""
    if isinstance(reference, str) and isinstance(read_json(reference)[0], dict):
        raise ReferenceFormError(
            f"the reference is {shown(reference)}, a JSON text; give the object (score: --reference-json)"
        )
    given = reference.get("answer") if isinstance(reference, Mapping) else reference
    return SearchReference(answers=_texts(alternatives(given, "the answer, or a list of accepted ones"), "answer"))


def read_reference(reference: Any, *, lists: str, keywords: bool = False) -> SearchReference:
    """Return the reference `{"answer": .., LISTS: [..]}` of a scorer that needs gold texts, with `keywords` if read.

    An entry of the list may be a mapping with a `text`, or a `paragraph_text` as MuSiQue has it.
    """
    give = f'{{"answer": .., "{lists}": [..]}}, not as text (score: --reference-json)'
    reference = fields_of(reference, ("answer", lists), ("keywords",) if keywords else (), give=give)
    groups = [] if reference.get("keywords") is None else _list(reference["keywords"], "keywords", least=0)
    return SearchReference(
        answers=read_answers(reference).answers,
        documents=_texts([_text_of(entry) for entry in _list(reference[lists], lists)], lists),
        keywords=tuple(
            _texts([group] if isinstance(group, str) else _list(group, f"keywords[{at}]"), "keywords")
            for at, group in enumerate(groups)
        ),
    )


def answers_shown(reference: Any) -> list[str]:
    """Return the accepted answers, texts or numbers, as texts that a model is shown; none may be empty or very long."""
    several = reference if isinstance(reference, list | tuple) else [reference]
    texts = [
        str(one).strip()
        for one in several
        if isinstance(one, str) or (isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one))
    ]
    if not texts or len(texts) < len(several) or not all(texts):
        raise BadReferenceError(f"the reference is {shown(reference)}; give the right answer, or a list of them")
    if sum(map(len, texts)) > _MAX_SHOWN:
        raise BadReferenceError(f"the reference has more than {_MAX_SHOWN} characters; give the answer alone")
    return texts


def read_findings(reference: Any) -> list[str]:
    """Return the reference findings, each once: where one stood twice, a copy of it would be found twice."""
    entries = reference.get("findings") if isinstance(reference, Mapping) else reference
    if isinstance(entries, str) or not isinstance(entries, Sequence) or not entries:
        raise BadReferenceError(
            f'the reference is {shown(reference)}; give {{"findings": ["..", ".."]}} or a list of texts, one at least'
        )
    for entry in entries:
        if not isinstance(entry, str) or not words_of(entry):
            raise BadReferenceError(f"the reference holds {shown(entry)}; a finding must be a text with words")
    if len(entries) > _MAX_FINDINGS:
        raise BadReferenceError(f"the reference has {len(entries)} findings; at most {_MAX_FINDINGS} are")
    once: dict[str, str] = {}
    for entry in entries:
        once.setdefault(folded(entry), entry)
    return list(once.values())


def folded(text: str) -> str:
    """Return a text without differences of case and blanks."""
    return " ".join(text.casefold().split())


def prompt_text(prompt: str | Sequence[Message]) -> str:
    """Return all that a prompt tells the agent; `ValueError` if it is neither a text nor a list of chat turns."""
    for turn in () if isinstance(prompt, str) else prompt:
        if not isinstance(turn, Mapping):
            raise ValueError(f"the prompt holds {turn!r}; give a text, or chat turns with role and content")
    return "\n".join(turn_texts(prompt))


def _text_of(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return next((entry[key] for key in ("text", "paragraph_text") if isinstance(entry.get(key), str)), entry)


def _list(given: Any, where: str, least: int = 1) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence) or len(given) < least:
        what = "a list that is not empty" if least else "a list"
        raise ReferenceFormError(f"the reference's {where} is {shown(given)}; give {what}")
    return list(given)


def _texts(given: Sequence[Any], where: str) -> tuple[str, ...]:
    for text in given:
        if not isinstance(text, str):
            raise ReferenceFormError(f"the reference's {where} holds {shown(text)}; give texts")
        if not words(text):
            raise BadReferenceError(f"the reference's {where} holds {shown(text)}, which has no word")
    return tuple(given)
