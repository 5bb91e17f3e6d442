"""What the reference of a multiple-choice question says: the labels, the options if known, and the right one.

Not covered: questions with more than one right option.  A list as the answer is refused, because it could mean any
of them or all of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.text.answer_context import undecorated
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.text.markup import invisible, unwrap

LABELS = "ABCDEFGHIJ"

_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|boxed|fbox)\s{0,3}\{([^{}]*)\}")
_NOISE = re.compile(r"\\[()\[\],;:! ]|[$*`_~]|</?(?:b|i|u|em|strong|code|p|span|div)>")


@dataclass(frozen=True, slots=True)
class ChoiceKey:
    """A question's options and its answer.

    Attributes:
        labels: the labels in use, one character each; all of them when the options are not known.
        answer: the right label.
        texts: the options as `comparable` writes them, in the order of the labels; empty when not known.
    """

    labels: str
    answer: str
    texts: tuple[str, ...] = ()

    def by_text(self, text: str) -> str:
        """Return the label of the one option with this text, or "" when there is none or more than one."""
        wanted = comparable(text) if self.texts else ""
        found = [label for label, option in zip(self.labels, self.texts, strict=False) if option == wanted]
        return found[0] if len(found) == 1 else ""


def read_choice_key(reference: Any, labels: str = LABELS) -> ChoiceKey:
    """Return what a reference says.

    Args:
        reference: a label ("B" or "(B)"), or `{"choices": [text, ...], "answer": ...}` where the answer is a label,
            the text of exactly one option, or the 0-based position of the option as an int.  A text that is both
            the label of one option and the text of another is refused.
        labels: the labels of the options in their order.

    Raises:
        BadReferenceError: the reference has another shape, or its answer names no option or two.
    """
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    if isinstance(reference, str):
        return ChoiceKey(labels, _label(reference, labels) or _unknown(reference, labels))
    if not isinstance(reference, Mapping) or not {"choices", "answer"} <= reference.keys():
        raise BadReferenceError(
            f"the reference is {shorten(repr(reference), 60)}; give the label of the right option, "
            'or {"choices": [...], "answer": ...} with a label, an option\'s text or its 0-based position',
            mistake=True,
        )
    choices, answer = reference["choices"], reference["answer"]
    if (
        isinstance(choices, str | Mapping)
        or not isinstance(choices, Sequence)
        or not all(isinstance(text, str) for text in choices)
        or not 2 <= len(choices) <= len(labels)
    ):
        raise BadReferenceError(f'"choices" must be a list of 2 to {len(labels)} texts', mistake=True)
    key = ChoiceKey(labels[: len(choices)], "", tuple(map(comparable, choices)))
    return ChoiceKey(key.labels, _answer(answer, key, choices), key.texts)


def plain(text: str) -> str:
    """Return a text in NFKC without markup: LaTeX text commands, dollars, asterisks, underscores, backticks."""
    if not text.isascii():
        text = undecorated(unicodedata.normalize("NFKC", text))
    if not text.isprintable():
        text = invisible(text)
    for _ in range(3):
        text = _COMMAND.sub(r"\1", text)
    return unwrap(_NOISE.sub(" ", text).strip())


def comparable(text: str) -> str:
    """Return the form in which option texts are compared: plain, no stop at the end, one case, single spaces."""
    text = plain(text)
    return " ".join((text.rstrip(" .;,。；，") or text).casefold().split())


def _answer(answer: Any, key: ChoiceKey, choices: Sequence[str]) -> str:
    if isinstance(answer, int) and not isinstance(answer, bool):
        if 0 <= answer < len(key.labels):
            return key.labels[answer]
        raise BadReferenceError(f"the answer is position {answer} of {len(key.labels)} choices", mistake=False)
    if not isinstance(answer, str):
        raise BadReferenceError(
            f'"answer" is {shorten(repr(answer), 60)}; give a label, an option\'s text or its 0-based position',
            mistake=True,
        )
    label = _label(answer, key.labels)
    same = [other for other, text in zip(key.labels, choices, strict=True) if text.strip() == answer.strip()]
    if label and same not in ([], [label]):
        raise BadReferenceError(
            f"the answer {answer!r} is a label and also the text of option {same[0]}; give its 0-based position",
            mistake=False,
        )
    return label or key.by_text(answer) or _unknown(answer, key.labels)


def _label(text: str, labels: str) -> str:
    text = unicodedata.normalize("NFKC", text).strip().strip("()[]. ")
    if len(text) != 1:
        return ""
    return text if text in labels else text.upper() if text.upper() in labels else ""


def _unknown(answer: str, labels: str) -> str:
    raise BadReferenceError(
        f"the answer {shorten(answer, 60)!r} is none of the labels {labels} and not the text of exactly one option",
        mistake=False,
    )
