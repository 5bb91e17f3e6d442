"""What the trajectories of search agents are compared with: the answer, gold texts, key words; and the prompt.

Not covered: the facts of `fact_gain` (`facts_worth`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.protocol import Message, content_text
from adjudge.responses.trajectories.reading import read_json
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.entries import shown, wrong_form
from adjudge.verifiers.agents.search.signals import words, words_of
from adjudge.verifiers.text.answer_verifier import alternatives
from adjudge.verifiers.text.token_f1 import token_f1

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
    known = ("answer", lists, *(("keywords",) if keywords else ()))
    if not isinstance(reference, Mapping):
        what = f'{{"answer": .., "{lists}": [..]}}'
        raise wrong_form(reference, f"{what}, not as text (score: --reference-json)")
    for key in reference:
        if key not in known:
            raise ReferenceFormError(f"the reference has the unknown field {key!r}; its fields are {', '.join(known)}")
    for key in ("answer", lists):
        if key not in reference:
            raise ReferenceFormError(f"the reference has no field {key!r}; its fields are {', '.join(known)}")
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
    if isinstance(prompt, str):
        return prompt
    for turn in prompt:
        if not isinstance(turn, Mapping):
            raise ValueError(f"the prompt holds {turn!r}; give a text, or chat turns with role and content")
    return "\n".join(content_text(turn.get("content")) for turn in prompt)


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
