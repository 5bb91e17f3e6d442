"""What the trajectories of search agents are compared with: the answer, gold documents, key words.

Not covered: where they come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.bad_reference import BadReferenceError
from adjudge.responses.trajectories.reading import read_json
from adjudge.verifiers.agents.search.signals import words
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.text.answer_verifier import alternatives
from adjudge.verifiers.text.token_f1 import token_f1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReference:
    """A reference that has been read.

    Attributes:
        answers: the accepted answers.
        documents: the texts of the gold documents.
        keywords: for each sub-question, the ways to ask it.
    """

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


def read_answers(reference: Any) -> tuple[str, ...]:
    """Return the accepted answers of a text, a list of texts, or a mapping with `answer`.

    Raises:
        BadReferenceError: there is none, or one is no text or holds no word.
    """
    if isinstance(reference, str) and isinstance(read_json(reference)[0], dict):
        raise _mistake(f"the reference is {_shown(reference)}, a JSON text; give the object (score: --reference-json)")
    given = reference.get("answer") if isinstance(reference, Mapping) else reference
    return _texts(alternatives(given, "the answer, or a list of accepted ones"), "answer")


def read_reference(reference: Any, *, lists: str, keywords: bool = False) -> SearchReference:
    """Return the reference of a scorer that needs gold texts.

    Args:
        reference: `{"answer": .., LISTS: [..]}`, with `keywords` if those are read.
        lists: the name of the list of gold texts; an entry may be a mapping with a `text`, or a `paragraph_text` as
            MuSiQue has it.
        keywords: whether there may be key words.

    Raises:
        BadReferenceError: a field is missing, unknown or malformed, or a text holds no word.
    """
    known = ("answer", lists, *(("keywords",) if keywords else ()))
    if not isinstance(reference, Mapping):
        what = f'{{"answer": .., "{lists}": [..]}}'
        raise _mistake(f"the reference is {_shown(reference)}; give {what}, not as text (score: --reference-json)")
    for key in reference:
        if key not in known:
            raise _mistake(f"the reference has the unknown field {key!r}; its fields are {', '.join(known)}")
    for key in ("answer", lists):
        if key not in reference:
            raise _mistake(f"the reference has no field {key!r}; its fields are {', '.join(known)}")
    groups = [] if reference.get("keywords") is None else _list(reference["keywords"], "keywords", least=0)
    return SearchReference(
        answers=read_answers(reference),
        documents=_texts([_text_of(entry) for entry in _list(reference[lists], lists)], lists),
        keywords=tuple(
            _texts([group] if isinstance(group, str) else _list(group, f"keywords[{at}]"), "keywords")
            for at, group in enumerate(groups)
        ),
    )


def _text_of(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return next((entry[key] for key in ("text", "paragraph_text") if isinstance(entry.get(key), str)), entry)


def _list(given: Any, where: str, least: int = 1) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence) or len(given) < least:
        what = "a list that is not empty" if least else "a list"
        raise _mistake(f"the reference's {where} is {_shown(given)}; give {what}")
    return list(given)


def _texts(given: Sequence[Any], where: str) -> tuple[str, ...]:
    for text in given:
        if not isinstance(text, str):
            raise _mistake(f"the reference's {where} holds {_shown(text)}; give texts")
        if not words(text):
            raise BadReferenceError(f"the reference's {where} holds {_shown(text)}, which has no word", mistake=False)
    return tuple(given)


def _shown(value: Any) -> str:
    return shorten(repr(value), 80)


def _mistake(message: str) -> BadReferenceError:
    return BadReferenceError(message, mistake=True)
