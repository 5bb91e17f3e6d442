"""Whether a text holds a gold phrase, and which documents are the same.

A phrase is held where it stands as whole words in any case, accents and invisible characters aside
(`adjudge.verifiers.rubric.phrases`), or where its words stand in a row once both are normalised as in SQuAD's
evaluation: small letters, without ASCII punctuation and articles.  So "The U.S." is held by "in the US".

Not covered: paraphrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from adjudge.responses.trajectories.trajectory import Document
from adjudge.verifiers.rubric.phrases import found_in
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

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
