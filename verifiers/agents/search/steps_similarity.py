"""The similarity of documents to gold texts that StepSearch's code takes: a TF-IDF cosine.

For each document by itself, scikit-learn's `TfidfVectorizer` with its own options learns from the document and the gold
texts together, n texts in all, each normalised as in SQuAD's evaluation.  Of words of two characters or more

    weight = count * (1 + ln((1 + n) / (1 + texts with the word)))

and the similarity is the cosine of two texts' weights, in [0, 1].  That is written out here, for importing the package
takes seconds in each worker process, longer than all else.

Not covered: other similarities.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from adjudge.verifiers.agents.search.evidence_text import words

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
