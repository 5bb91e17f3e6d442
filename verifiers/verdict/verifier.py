r"""Does a judge's verdict agree with the one that is known to be right?

    value = 1 if the verdict equals the reference, else 0 (RM-R1: -1), also where there is none

The judge's whole output is the response.  `style` says how published judges write their verdicts, and what a wrong one
is worth in their training:

| style | verdict | labels | right, wrong | source |
|---|---|---|---|---|
| `j1` | `<answer>A</answer>` | A, B | 1, 0 | J1, arXiv 2505.10320 (pairwise verdict) |
| `rm_r1` | `<answer>[[A]]</answer>` | A, B | 1, -1 | RM-R1, arXiv 2505.02387 |
| `scores` | `<score_A>7</score_A>` and `<score_B>4.5</score_B>`, the higher wins | A, B | 1, 0 | J1 (pairwise scores) |
| `critique` | `\conclusion{T}` | T, F | 1, 0 | Critique-Coder (CRL) |
| `principle` | Yes or No, and nothing else behind the thinking | Yes, No | 1, 0 | RLBFF's GenRM, arXiv 2509.21319 |

Where released code and this differ: RM-R1 looks for exactly one of `[[A]]` and `[[B]]` in the last 80 characters, and
Critique-Coder takes a conclusion for true if it contains the letter T ("Tentative" is true).  J1 and RLBFF released no
code; RLBFF's values here are ours.

A policy learns whatever pays, so a verdict counts only if it stands behind the reasoning, once, in its whole form, at
the very end, and with something said before it.  Two verdicts are none, be they equal: a text that names both options,
repeats the tag in a quote, or hides a second one in full-width or invisible characters commits to nothing.  A judge
that was taught to think again behind its verdict (J1-7B) is read with `several: last`.  A letter that looks like a
label is not the label.  Blanks, line breaks and emphasis around the label are no part of the form.

RM-R1 asks its judge for the kind of task, then a solution or a rubric, then an evaluation; the paper gives no reward
for this form, and `sections` asks for it:

    <type>Reasoning</type> <solution>..</solution> <eval>..</eval> verdict
    <type>Chat</type> <rubric>.. <justify>..</justify></rubric> <eval>..</eval> verdict

Not covered: both orders of a pair, and scores of single responses; those need the other answers
(`adjudge.verifiers.verdict.pair_scorer`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.options import Range
from adjudge.prompts.reading import AROUND, WHOLE, answers, at_tags, frame, mark
from adjudge.protocol import Sample, Score, response_text, split_reasoning
from adjudge.responses.markup import invisible
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import fields_of, shown, wrong_form
from adjudge.scoring.verifier_base import ReferenceVerifier

MAX_CHARACTERS = 200_000
"""A longer text is not read: no judge needs it, and reading it would only cost time."""

_AFTER = " \t\r\n.*`"  # what may follow a verdict
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A verdict as it was written, or None and the reason; how much was said `before` it, the reasoning included."""

    answer: str | None
    reason: str = ""
    thought: int = 0
    before: str = ""


def read_verdict(sample: Sample, forms: Sequence[str], labels: Sequence[str], *, last: bool = False) -> Written:
    """Return the label that a judge's answer ends with in the first form; the others would be a second verdict.

    With `last`, what comes before it is not looked at.
    """
    text, thinking, fault = behind_reasoning(sample)
    if fault:
        return Written(answer=None, reason=fault)
    ending = text.strip().rstrip(_AFTER)
    for label in labels:
        verdict = re.search(rf"{_pattern(forms[0], re.escape(label))}\Z", ending)
        if verdict and (forms[0] != WHOLE or not verdict.start()):
            before = ending[: verdict.start()]
            if not last and _holds_verdict(before, forms, labels):
                return Written(answer=None, reason="several_answers")
            return Written(answer=label, thought=_said(thinking) + _said(before), before=before)
    return Written(answer=None, reason=_missing(text, forms))


def read_numbers(sample: Sample, forms: Sequence[str], low: float, high: float) -> tuple[tuple[float, ...], Written]:
    """Return the numbers that a judge's answer ends with, one in each form and in their order; none if it does not."""
    text, thinking, fault = behind_reasoning(sample)
    if fault:
        return (), Written(answer=None, reason=fault)
    pattern = r"[\s*_`]*".join(_pattern(form, r"([^\s<>*_`]{1,40})") for form in forms)
    ending = re.search(rf"{pattern}\Z", text.rstrip(_AFTER))
    if ending is None:
        return (), Written(answer=None, reason=_missing(text, forms))
    before = text[: ending.start()]
    if any(_openings(before, form) for form in forms):
        return (), Written(answer=None, reason="several_answers")
    numbers = tuple(float(part) for part in ending.groups() if _NUMBER.fullmatch(part) and low <= float(part) <= high)
    if len(numbers) < len(forms):
        return (), Written(answer=None, reason="unparsable_answer")
    return numbers, Written(answer=ending[0], thought=_said(thinking) + _said(before), before=before)


def _pattern(form: str, answer: str) -> str:
    """The pattern of a form, without what may follow a verdict, and with emphasis around the answer."""
    before, _, after = form.partition("{answer}")
    opening, closing = (at_tags(re.escape(part)) for part in (before.strip(), after.strip().rstrip(_AFTER)))
    return f"{opening}{AROUND}{answer}{AROUND}{closing}"


def behind_reasoning(sample: Sample) -> tuple[str, str, str]:
    """Return the text behind the reasoning, the reasoning, and the reason for which nothing is read, or ""."""
    text = response_text(sample)
    if len(text) > MAX_CHARACTERS:
        return "", "", "too_complex"
    thinking, answer, unfinished = split_reasoning(text)
    if unfinished:
        return "", "", "unfinished_reasoning"
    return answer, thinking, "truncated" if sample.finish_reason == "length" else ""


def _missing(text: str, forms: Sequence[str]) -> str:
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
    return max(len(re.findall(mark(form), shown, re.IGNORECASE)) for shown in _as_shown(text))


def _as_shown(text: str) -> list[str]:
    """The text, and the text of a reader who sees neither invisible characters nor widths."""
    return [text] if text.isascii() else [text, unicodedata.normalize("NFKC", invisible(text))]


def _said(text: str) -> int:
    """Letters and digits; those of tags' names do not count."""
    return sum(character.isalnum() for character in re.sub(r"</?[A-Za-z_]{1,20}>", "", text))


_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}(type|rubric|justify|solution|eval)\b[^<>\n]{0,40}>", re.IGNORECASE)
_ORDERS = {
    "Reasoning": "<type> </type> <solution> </solution> <eval> </eval>".split(),
    "Chat": "<type> </type> <rubric> <justify> </justify> </rubric> <eval> </eval>".split(),
}


def in_sections(text: str) -> bool:
    """Return whether a text before its verdict has the sections in one of the two orders, each once and not empty."""
    tags = list(_TAG.finditer(text))
    written = [tag[0] for tag in tags]
    if written not in _ORDERS.values():
        return False
    kind = text[tags[0].end() : tags[1].start()].strip()
    filled = all(
        any(character.isalnum() for character in text[opening.end() : closing.start()])
        for opening, closing in pairwise(tags)
        if not opening[1] and closing[1]
    )
    return filled and _ORDERS.get(kind) == written


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One way to write a verdict.

    `forms` are those of `adjudge.prompts.reading`, the first whole; whatever looks like one of them is a verdict.  With
    `scores` there is a form for each label, and the label with the highest number is the verdict.
    """

    forms: tuple[str, ...]
    labels: tuple[str, ...]
    scores: bool = False
    wrong: float = 0.0


STYLES: Final[Mapping[str, Style]] = {
    "j1": Style(forms=("<answer>{answer}</answer>",), labels=("A", "B")),
    "rm_r1": Style(
        forms=("<answer>[[{answer}]]</answer>", "<answer>{answer}</answer>", "[[{answer}]]"),
        labels=("A", "B"),
        wrong=-1.0,
    ),
    "scores": Style(
        forms=("<score_A>{answer}</score_A>", "<score_B>{answer}</score_B>"), labels=("A", "B"), scores=True
    ),
    "critique": Style(forms=("\\conclusion{{answer}}",), labels=("T", "F")),
    "principle": Style(forms=(WHOLE,), labels=("Yes", "No")),
}


@dataclass(frozen=True, kw_only=True)
class VerdictVerifier(ReferenceVerifier[str, tuple[str, str]]):
    """1 when a judge's verdict is the right one, else 0 (RM-R1: -1).

    The reference is the right verdict: a label ("A"), `{"verdict": "A"}`, or true and false for the first and the
    second label.

    Attributes:
        style: how the verdict is written: "j1", "rm_r1", "scores", "critique" or "principle".
        form: another form, with `{answer}` in the verdict's place; "" for that of the style.
        labels: other labels; none for those of the style.  A tie is a label like the others.
        wrong: value of a wrong verdict, and of none; None for that of the style.
        thought: letters and digits that must stand before the verdict; 0 takes a bare verdict, too.
        sections: whether RM-R1's sections must be there.
        several: of more than one verdict the last counts ("last"), or none does ("refuse"); with "scores", always none.
        low: with "scores", the lowest score.
        high: with "scores", the highest.
    """

    name: ClassVar[str] = "verdict"
    version: ClassVar[str] = "2"

    style: str = "j1"
    form: str = ""
    labels: tuple[str, ...] = ()
    wrong: Annotated[float, Range(lt=1)] | None = None
    thought: Annotated[int, Range(ge=0)] = 1
    sections: bool = False
    several: Literal["refuse", "last"] = "refuse"
    low: float = 0.0
    high: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.style not in STYLES:
            raise ValueError(f"{self.name} option style={self.style!r}; it must be one of {', '.join(STYLES)}")
        style = STYLES[self.style]
        if style.scores and (self.form or self.labels):
            raise ValueError(f"{self.name}: style {self.style!r} fixes its form and labels; leave out form and labels")
        if self.form:
            frame(self.form)
        labels = self.labels or style.labels
        if len({str(label).strip().casefold() for label in labels} - {""}) < max(2, len(labels)):
            raise ValueError(f"{self.name} option labels={labels!r}; give two or more that differ by more than case")
        if not self.low < self.high:
            raise ValueError(f"{self.name}: the scores go from {self.low!r} to {self.high!r}; the low end comes first")

    @cached_property
    def written(self) -> Style:
        """How the verdict is written, with the options applied."""
        style = STYLES[self.style]
        return Style(
            forms=(self.form,) if self.form else style.forms,
            labels=self.labels or style.labels,
            scores=style.scores,
            wrong=style.wrong if self.wrong is None else self.wrong,
        )

    def read_reference(self, reference: Any) -> str:
        """Return the label of the right verdict."""
        return right_label(reference, self.written.labels)

    def find(self, sample: Sample, gold: str) -> tuple[str, str]:
        """Return the verdict of a response, "" for none, and why it has none that counts; equal scores are "tie"."""
        return self.read(sample)

    def judge(self, read: tuple[str, str], gold: str) -> Score:
        """Return the value of a verdict."""
        verdict, reason = read
        if verdict == gold:
            return Score.scored(1.0, verdict=verdict)
        return Score.scored(self.written.wrong, reason or "wrong", verdict=verdict)

    def read(self, sample: Sample) -> tuple[str, str]:
        """Return what `find` does, of a sample without a reference."""
        style = self.written
        if style.scores:
            numbers, written = read_numbers(sample, style.forms, self.low, self.high)
        else:
            numbers, written = (), read_verdict(sample, style.forms, style.labels, last=self.several == "last")
        if written.answer is None:
            return "", written.reason
        if written.thought < self.thought or (self.sections and not in_sections(written.before)):
            return "", "bad_format"
        if not style.scores:
            return written.answer, ""
        best = max(numbers)
        return (style.labels[numbers.index(best)] if numbers.count(best) == 1 else "tie"), ""


def right_label(reference: Any, labels: Sequence[str]) -> str:
    """Return the label that a reference names: as a label, `{"verdict": label}`, or true and false of two labels."""
    given = reference
    if isinstance(reference, Mapping):
        given = fields_of(reference, ("verdict",), give='{"verdict": LABEL}')["verdict"]
    if isinstance(given, bool) and len(labels) == 2:
        return labels[0] if given else labels[1]
    if not isinstance(given, str):
        raise wrong_form(reference, f"the right verdict, one of {', '.join(labels)}")
    if given not in labels:
        raise BadReferenceError(
            f"the reference names the verdict {shown(given)}; it must be one of {', '.join(labels)}"
        )
    return given
