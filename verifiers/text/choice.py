r"""Does the answer name the right option of a multiple-choice question?

Where the answer is looked for: the last `<answer>`, the last box, else what follows the last marker ("answer is",
"option is", "I choose", "故选", ...).  A place that names no option is passed over for the next.  A response without
any of these counts when it is one line (which may conclude with "So C" or "is Rome"), or when its first line is
nothing but an option or its last line ends in one or concludes on it; if both, they must agree.

Not covered: questions with several right options, and answers that paraphrase an option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from adjudge.protocol import Sample, Score
from adjudge.responses.answer_context import SENTENCE_END, denies_next, is_replaced, taken_back
from adjudge.responses.answer_span import COMMON_MARKERS, Span, shorten
from adjudge.verifiers.text.answer_verifier import AnswerVerifier
from adjudge.verifiers.text.choice_key import LABELS, ChoiceKey, in_prompt, read_choice_key
from adjudge.verifiers.text.choice_letter import (
    NOTHING,
    SURELY,
    closing_label,
    concluded_label,
    concluding_label,
    in_list,
    leading_label,
    offered_label,
    opening_label,
    sole_label,
)

_EDGE = 4_000  # characters looked at on either end of an answer of many lines
_LABEL_FOLLOWS = (
    rf"(?=[\s\"'“*(（\[]{{0,6}}(?:(?:{SURELY})\s)?[*(（\[]{{0,3}}(?:(?:option|choice|letter)\s[*(（\[]{{0,3}})?"
    r"[A-Za-z0-9](?![A-Za-z0-9]))"
)
_IS = r"(?:is|was|would\ be|should\ be|must\ be|will\ be|appears\ to\ be|seems\ to\ be)\b[:：]?"
_WORDS = "answer Answer option Option choice Choice guess Guess".split()
_NAMED = "my My best Best final Final correct Correct".split()
_CHOOSING = ("choose", "pick", "select", r"go\ with")
_CHOICE_MARKERS = re.compile(
    COMMON_MARKERS
    + "".join(rf"|{word[0]}(?<!\w.){word[1:]}(?:\s[\w-]{{1,20}}){{0,5}}?\s{_IS}{_LABEL_FOLLOWS}" for word in _WORDS)
    + "".join(
        rf"|{word[0]}(?<!\w.){word[1:]}\ (?:option|choice|guess|pick|selection)[*_]{{0,2}}[:：]" for word in _NAMED
    )
    + "".join(
        rf"|{word[0]}(?<!\w.)(?<!not\ .)(?<!never\ .)(?<!n['’]t\ .)(?<!cannot\ .){word[1:]}\b{_LABEL_FOLLOWS}"
        for word in _CHOOSING
    )
    + rf"|A(?<!\w.)ns[.:]{_LABEL_FOLLOWS}"
    + "".join(rf"|{first}(?<!\w.)nswer\s?[-–—]\s{_LABEL_FOLLOWS}" for first in "aA")
    + rf"|选(?<![不非]选)(?:项(?:是|为)|择)?\s?[:：]?{_LABEL_FOLLOWS}"
    + rf"|選(?<![不非]選)(?:項(?:是|為)|擇)?\s?[:：]?{_LABEL_FOLLOWS}"
)


@dataclass(frozen=True, kw_only=True)
class ChoiceVerifier(AnswerVerifier[ChoiceKey]):
    r"""1 when the answer names the right option and no other, else 0.

    The reference is a label ("B"), or `{"choices": [text, ...], "answer": ...}` where the answer is a label, the text
    of exactly one option, or the 0-based position of an option as an int; rows of ARC, AQuA and MedQA are read, too.
    With the choices given, or listed in the prompt, an answer may also be the option's text, and a label with another
    option's text behind it is not an answer.

    Attributes:
        labels: the labels of the options in their order, one character each.
        ignore_case: whether "c" counts where the label stands alone, in brackets or before a stop.
    """

    name: ClassVar[str] = "choice"
    version: ClassVar[str] = "10"
    markers: ClassVar[re.Pattern[str]] = _CHOICE_MARKERS

    labels: str = LABELS
    ignore_case: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.labels) < 2 or not self.labels.isalnum() or len(set(self.labels.upper())) < len(self.labels):
            raise ValueError(f"choice option labels={self.labels!r}; give two different letters or digits or more")

    def read_reference(self, reference: Any) -> ChoiceKey:
        """Return the labels, options and answer; see `adjudge.verifiers.text.choice_key.read_choice_key`."""
        return read_choice_key(reference, self.labels)

    def gold_of(self, sample: Sample) -> ChoiceKey:
        """Return the key, with what the sample's prompt says of the options."""
        return in_prompt(super().gold_of(sample), sample.prompt)

    def judge(self, spans: Sequence[Span], gold: ChoiceKey) -> Score:
        """Return 1 when the one option named is the right one."""
        for span in spans:
            verdicts = self._verdicts(span, gold)
            if any(verdict != NOTHING for verdict in verdicts):
                break
        else:
            span = spans[0]
        evidence = {"answer": shorten(" | ".join(span.texts)), "where": span.where}
        labels = {label for label, _ in verdicts if label}
        reasons = [reason for _, reason in verdicts if reason]
        if len(labels) > 1 or (labels and reasons):
            return Score.scored(0.0, "several_answers", **evidence)
        if not labels:
            return Score.scored(0.0, reasons[0], **evidence)
        label = labels.pop()
        evidence["label"] = label
        if fault := self._fault(span, label, gold):
            return Score.scored(0.0, fault, **evidence)
        return Score.scored(1.0, **evidence) if label == gold.answer else Score.scored(0.0, "wrong", **evidence)

    def _fault(self, span: Span, label: str, gold: ChoiceKey) -> str:
        """Return the reason for a zero when what stands around the answer denies it or names another option, or ""."""

        def agrees(said: str, bare: bool) -> bool | None:
            return self._agrees(said, bare, label, gold)

        if span.where in ("boxed", "tag"):
            # The option's own text behind its label may look like another's: "I and III only".
            others = (line for line in span.after.splitlines() if gold.by_text(line.strip(" .")) != label)
            return taken_back(replace(span, after="\n".join(others)), self.markers, agrees)
        if span.where == "marker" or leading_label(span.texts[0].partition("\n")[0], gold)[0] == label:
            alone = sole_label(span.texts[0], gold)  # "B. non linearly" says nothing behind its label
            first = SENTENCE_END.search(span.texts[0])
            behind = (span.texts[0][first.start() :] if first and not alone else "") + span.after
            return "several_answers" if is_replaced(behind, self.markers, agrees) else ""
        return ""

    def _agrees(self, said: str, bare: bool, label: str, gold: ChoiceKey) -> bool | None:
        named = sole_label(said, gold, ignore_case=self.ignore_case) or concluding_label(said, gold)
        if not named and not bare:
            named, reason = leading_label(said, gold, ignore_case=self.ignore_case)
            if reason == "several_answers":
                return False
        return named == label if named else None

    def _verdicts(self, span: Span, gold: ChoiceKey) -> list[tuple[str, str]]:
        text = span.texts[0]
        if span.where not in ("response", "tag") or "\n" not in text:
            if span.where == "marker" and denies_next(span.before):
                return [("", "unparsable_answer")]
            concluded = concluded_label(text, gold) if span.where == "response" and len(text) <= _EDGE else ""
            if concluded:
                return [(concluded, "")]
            return [offered_label(text, gold, ignore_case=self.ignore_case) for text in span.texts]
        if label := sole_label(text, gold, ignore_case=self.ignore_case):
            return [(label, "")]
        lines = [line for line in f"{text[:_EDGE]}\n{text[-_EDGE:]}".splitlines() if line.strip()]
        labels = []
        if not in_list(lines[0], lines[1], gold):
            labels.append(opening_label(lines[0], gold, ignore_case=self.ignore_case))
        if not in_list(lines[-1], lines[-2], gold):
            labels.append(closing_label(lines[-1], gold, ignore_case=self.ignore_case))
        return [(label, "") for label in labels if label] or [NOTHING]
