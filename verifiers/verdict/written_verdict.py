"""The verdict that a judge's text holds, read so that nothing but judging pays.

A verdict counts only if it stands behind the reasoning, once, in its whole form, at the very end, and with something
said before it.  Two verdicts are none, be they equal: a text that names both options, repeats the tag in a quote, or
hides a second one in full-width or invisible characters commits to nothing.  A letter that looks like a label is not
the label.

Not covered: whether what was said before the verdict supports it; no program can tell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.prompts.reading import WHOLE, answers, mark
from adjudge.protocol import Sample, response_text, split_reasoning
from adjudge.verifiers.text.markup import invisible

MOST_CHARACTERS = 200_000
"""A longer text is not read: no judge needs it, and reading it would only cost time."""

_AFTER = " \t\r\n.*`"  # what may follow a verdict
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was read.

    Attributes:
        answer: what stands in the verdict's place, as it was written; None for no verdict.
        reason: why there is none, a code of `adjudge.reasons`; else "".
        thought: letters and digits that stand before the verdict, its reasoning included.
        before: the text before the verdict and behind the reasoning.
    """

    answer: str | None
    reason: str = ""
    thought: int = 0
    before: str = ""


def read_verdict(sample: Sample, forms: Sequence[str], labels: Sequence[str]) -> Written:
    """Return the label that a judge's answer ends with.

    Args:
        sample: its response is what the judge wrote.
        forms: the form of a verdict, and further ones that would be a second verdict.
        labels: the verdicts there are.
    """
    text, thinking, fault = _behind_reasoning(sample)
    if fault:
        return Written(answer=None, reason=fault)
    whole = forms[0]
    ending = text.rstrip(_AFTER)
    for label in labels:
        verdict = whole.replace("{answer}", label).rstrip(_AFTER)
        if ending.endswith(verdict) and (whole != WHOLE or ending.strip() == label):
            before = ending[: -len(verdict)]
            if _holds_verdict(before, forms, labels):
                return Written(answer=None, reason="several_answers")
            return Written(answer=label, thought=_said(thinking) + _said(before), before=before)
    return Written(answer=None, reason=_missing(text, forms))


def read_numbers(sample: Sample, forms: Sequence[str], low: float, high: float) -> tuple[tuple[float, ...], Written]:
    """Return the numbers that a judge's answer ends with, one in each form and in their order; none if it does not.

    Args:
        sample: its response is what the judge wrote.
        forms: the forms, in the order in which the numbers must stand.
        low: the lowest number.
        high: the highest.
    """
    text, thinking, fault = _behind_reasoning(sample)
    if fault:
        return (), Written(answer=None, reason=fault)
    pattern = r"\s*".join(re.escape(form).replace(re.escape("{answer}"), r"([^\s<>]{1,40})") for form in forms)
    found = re.search(rf"{pattern}\Z", text.rstrip(_AFTER))
    if found is None:
        return (), Written(answer=None, reason=_missing(text, forms))
    before = text[: found.start()]
    if any(_openings(before, form) for form in forms):
        return (), Written(answer=None, reason="several_answers")
    numbers = tuple(float(part) for part in found.groups() if _NUMBER.fullmatch(part) and low <= float(part) <= high)
    if len(numbers) < len(forms):
        return (), Written(answer=None, reason="unparsable_answer")
    return numbers, Written(answer=found[0], thought=_said(thinking) + _said(before), before=before)


def _behind_reasoning(sample: Sample) -> tuple[str, str, str]:
    """The text behind the reasoning, the reasoning, and the reason for which nothing is read."""
    text = response_text(sample)
    if len(text) > MOST_CHARACTERS:
        return "", "", "too_complex"
    thinking, answer, unfinished = split_reasoning(text)
    if unfinished:
        return "", "", "unfinished_reasoning"
    return answer, thinking, "truncated" if sample.finish_reason == "length" else ""


def _missing(text: str, forms: Sequence[str]) -> str:
    """Why a text that ends with no verdict has none."""
    if forms[0] == WHOLE:
        return "unparsable_answer" if text.strip() else "no_answer"
    count = max(_openings(text, form) for form in forms)
    return "no_answer" if not count else "unparsable_answer" if count == 1 else "several_answers"


def _holds_verdict(text: str, forms: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a text has anything that looks like the whole form, or a label in one of the further forms."""
    if _openings(text, forms[0]):
        return True
    known = {label.casefold() for label in labels}
    return any(
        answer.casefold() in known
        for shown in _as_shown(text)
        for form in forms[1:]
        for answer, _ in answers(shown, form)
    )


def _openings(text: str, form: str) -> int:
    """How often a form is begun."""
    return max(len(re.findall(mark(form), shown, re.IGNORECASE)) for shown in _as_shown(text))


def _as_shown(text: str) -> list[str]:
    """The text, and the text of a reader who sees neither invisible characters nor widths."""
    return [text] if text.isascii() else [text, unicodedata.normalize("NFKC", invisible(text))]


def _said(text: str) -> int:
    """Letters and digits; those of tags' names do not count."""
    return sum(character.isalnum() for character in re.sub(r"</?[A-Za-z_]{1,20}>", "", text))
