"""StepSearch's key-word score: how well the queries ask what each sub-question should be asked.

A query counts for the one sub-question that it fits best, by token F1 with the ways to ask it; a sub-question keeps the
best of its queries; the score is the mean over sub-questions.  Released code lets a later and worse query take the
place of a better one; here it does not.

Not covered: queries that mean the same in other words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from adjudge.verifiers.agents.search.evidence_text import words
from adjudge.verifiers.text.token_f1 import token_f1


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
