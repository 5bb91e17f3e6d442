"""Questions with options, in the layouts of published data sets (ARC, AQuA, MedQA, MMLU)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

OPTIONS: Final = ("choices", "options")
"""Names of a question's options in published data sets."""

ANSWER_KEYS: Final = ("answer", "answerKey", "answer_idx", "correct", "label")
"""Names of what says which option is right: of MMLU, ARC, MedQA, AQuA and others; the first that is there counts."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ENUMERATED: Final = re.compile(r"\s*\(?([A-Z])[).:]\s*(?=\S)")


def as_question(reference: Any) -> Any:
    """Return a question's options and key as `{"choices": [text, ..], "answer": ..}`; anything else as it is.

    Options may stand under `OPTIONS`, the key under `ANSWER_KEYS`.  They may be texts (which lose their own labels
    where all have one: "A)1 hour"), texts by label (MedQA), or lists of texts and labels (ARC).  Where these labels are
    not A, B, .., they stay: `{"choices": {"text": [..], "label": [..]}, ..}`.
    """
    name, key = (next((name for name in names if _has(reference, name)), "") for names in (OPTIONS, ANSWER_KEYS))
    labels, texts = _options(reference[name]) if name and key else ([], [])
    if not texts:
        return reference
    answer, given = reference[key], reference[name]
    if isinstance(given, list | tuple) and texts != [*given] and answer in given:  # with its label, as the options are
        answer = given.index(answer)
    choices = texts if labels == [*_LETTERS[: len(labels)]] else {"text": texts, "label": labels}
    rest = {field: value for field, value in reference.items() if field not in (name, key)}
    return {**rest, "choices": choices, "answer": answer}


def points_to_option(reference: Any, *, alone: bool = False) -> bool:
    """Return whether a question's key is the label of one of its options, or the position of one.

    With `alone`, it must not be the text of another option, too.
    """
    question = as_question(reference)
    labels, texts = _options(question.get("choices")) if question is not reference else ([], [])
    answer = question.get("answer") if labels else None
    place = answer if isinstance(answer, int) and not isinstance(answer, bool) else -1
    if isinstance(answer, str) and (label := answer.strip(" ().").upper()) in labels:
        place = labels.index(label)
    return 0 <= place < len(labels) and not (alone and str(answer).strip() in (*texts[:place], *texts[place + 1 :]))


def _has(reference: Any, name: str) -> bool:
    return isinstance(reference, Mapping) and reference.get(name) is not None


def _options(options: Any) -> tuple[list[str], list[str]]:
    """Return the labels and the texts of a question's options; nothing where they have another form."""
    labels: list[Any]
    if isinstance(options, Mapping):
        columns = {*options} == {"label", "text"}
        labels, texts = map(_items, (options["label"], options["text"]) if columns else (options, options.values()))
    else:
        texts = _items(options)
        labels = [*_LETTERS[: len(texts)]]
        own = [_ENUMERATED.match(text) if isinstance(text, str) else None for text in texts]
        if len(own) > 1 and [match and match[1] for match in own] == labels:
            texts = [text[match.end() :] for text, match in zip(texts, own, strict=True) if match]
    fine = len(labels) == len(texts) > 1 and all(isinstance(each, str) for each in (*labels, *texts))
    return (labels, texts) if fine and all(len(label) == 1 for label in labels) else ([], [])


def _items(value: Any) -> list[Any]:
    return [] if value is None or isinstance(value, str | int | float) else list(value)
