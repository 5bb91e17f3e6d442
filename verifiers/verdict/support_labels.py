"""Search-Gen-V's reward: a verifier of nuggets labels each one as supported, partly supported or not.

    R = 0.35 macro-F1 + 0.35 [all labels right] + 0.2 reasoning + 0.1 notation

The macro-F1 is over the three labels, and a label that neither side uses counts 1.  Reasoning is 1 for exactly one
`<reasoning>` element with text in it and labels behind it, 0.5 when it or the labels are empty, else 0.  Notation is 1
when the labels are written as the prompt asked, in one of ten notations.  R is 0 when the labels are not as many as the
nuggets, when the F1 is 0, or when reasoning is opened twice.

Where the released code (linyue-ma/Search-Gen-V, search_gen_v.py @ df929de) and this differ: it evaluates the labels as
Python, skips words that are not labels, and takes any text with a comma for CSV; here a list is one notation from end
to end, or it is nothing.  A fence around it and a line `labels:` before it cost the notation alone; the code reads such
lists only where each label has a line of its own.  It means to give a tenth for two openings, but returns 0 before.
Beyond the paper, a text that was cut off gets 0: its labels are not all there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from adjudge.protocol import Sample, Score, response_text
from adjudge.responses.markup import unfenced
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown, wrong_form
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.wire import json_in

Label: TypeAlias = Literal["support", "partial_support", "not_support"]
LABELS: tuple[Label, ...] = get_args(Label)

F1_WEIGHT, RIGHT_WEIGHT, REASONING_WEIGHT, NOTATION_WEIGHT = 7, 7, 4, 2  # of 20, whose sums are exact
_OPEN, _CLOSE = "<reasoning>", "</reasoning>"


def label_reward(output: str, gold: Sequence[Label], notation: Notation | None = None) -> float:
    """Return the reward of a verifier's output, in [0, 1]; without the prompt's notation at most 0.9 can be had."""
    output = output.strip()
    if output.count(_OPEN) > 1:
        return 0.0
    written = output.rpartition(_CLOSE)[2] if _OPEN in output and _CLOSE in output else output
    labels = read_labels(written)
    if labels is None or len(labels) != len(gold) or not (f1 := macro_f1(labels, gold)):
        return 0.0
    in_notation = notation is not None and read_labels(written, notation) is not None
    whole = F1_WEIGHT * f1 + RIGHT_WEIGHT * (labels == tuple(gold))
    return (whole + REASONING_WEIGHT * reasoning_credit(output) + NOTATION_WEIGHT * in_notation) / 20


def macro_f1(labels: Sequence[Label], gold: Sequence[Label]) -> float:
    """Return the mean F1 of the three labels, in [0, 1]; one that neither side uses counts 1."""
    if len(labels) != len(gold):
        raise ValueError(f"{len(labels)} labels for {len(gold)} right ones")
    scores = []
    for name in LABELS:
        both = sum(ours == name == right for ours, right in zip(labels, gold, strict=True))
        either = sum(ours == name for ours in labels) + sum(right == name for right in gold)
        scores.append(2 * both / either if either else 1.0)
    return math.fsum(scores) / len(scores)


def reasoning_credit(output: str) -> float:
    """Return 1, 0.5 or 0 for the form of the reasoning; see the module."""
    if output.count(_OPEN) != 1 or output.count(_CLOSE) != 1 or output.index(_OPEN) > output.index(_CLOSE):
        return 0.0
    inside = output[output.index(_OPEN) + len(_OPEN) : output.index(_CLOSE)]
    return 1.0 if inside.strip() and output.rpartition(_CLOSE)[2].strip() else 0.5


Notation: TypeAlias = Literal[
    "json", "python_list", "csv", "comma_separated", "tsv", "pipe_separated", "yaml", "markdown", "numbered", "xml"
]
NOTATIONS: tuple[Notation, ...] = get_args(Notation)

_MAX_CHARACTERS = 20_000  # 500 labels with room; JSON nested deeper than that would only cost time
_QUOTED = re.compile(r"'([a-z_]*)'|\"([a-z_]*)\"")
_NUMBERED = re.compile(r"(\d{1,4})\.[ \t]+([a-z_]+)")
_HEADER = re.compile(r"\Alabels:[ \t]*\n\s*")
_XML = re.compile(r"<labels>\s*((?:<label>\s*[a-z_]+\s*</label>\s*)+)</labels>")
_XML_LABEL = re.compile(r"<label>\s*([a-z_]+)\s*</label>")


def read_labels(text: str, notation: Notation | None = None) -> tuple[Label, ...] | None:
    """Return the labels that a text lists in a notation, or in any; None if it is not a list of labels.

    One label alone is a list in every notation of separators.  A fence and a line `labels:` are no part of a notation.
    """
    text = text.strip()
    if notation is None:
        text = _HEADER.sub("", unfenced(text))
    if not text or len(text) > _MAX_CHARACTERS:
        return None
    for name in NOTATIONS if notation is None else (notation,):
        words = _READERS[name](text)
        labels: tuple[Label, ...] = tuple(label for word in words or () for label in LABELS if word == label)
        if words and labels:
            return labels if len(labels) == len(words) else None
    return None


def _json(text: str) -> list[str] | None:
    data = json_in(text) if text[0] in "[{" else None
    if isinstance(data, dict):
        data = data["labels"] if set(data) == {"labels"} else None
    return data if isinstance(data, list) and all(isinstance(word, str) for word in data) else None


def _python_list(text: str) -> list[str] | None:
    if text[0] != "[" or text[-1] != "]":
        return None
    inner = text[1:-1].strip().removesuffix(",")
    words = []
    for part in inner.split(","):
        quoted = _QUOTED.fullmatch(part.strip())
        if quoted is None:
            return None
        words.append(quoted[1] or quoted[2] or "")
    return words


def _separated(separator: str) -> Callable[[str], list[str] | None]:
    def read(text: str) -> list[str] | None:
        return None if "\n" in text else [word.strip() for word in text.split(separator)]

    return read


def _bullets(bullet: str) -> Callable[[str], list[str] | None]:
    def read(text: str) -> list[str] | None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [line[2:].strip("* \t") for line in lines] if all(line.startswith(bullet) for line in lines) else None

    return read


def _numbered(text: str) -> list[str] | None:
    lines = [_NUMBERED.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    items = [line for line in lines if line is not None]
    in_order = [int(item[1]) for item in items] == list(range(1, len(lines) + 1))
    return [item[2] for item in items] if in_order else None


def _xml(text: str) -> list[str] | None:
    listed = _XML.fullmatch(text)
    return _XML_LABEL.findall(listed[1]) if listed else None


_READERS: dict[Notation, Callable[[str], list[str] | None]] = {
    "json": _json,
    "python_list": _python_list,
    "csv": _separated(","),
    "comma_separated": _separated(","),
    "tsv": _separated("\t"),
    "pipe_separated": _separated("|"),
    "yaml": _bullets("- "),
    "markdown": _bullets("* "),
    "numbered": _numbered,
    "xml": _xml,
}


Labels: TypeAlias = tuple[tuple[Label, ...], Notation | None]


@dataclass(frozen=True, kw_only=True)
class LabelListVerifier(ReferenceVerifier[Labels, str]):
    """How well a list of support labels agrees with the right one, in [0, 1] (Search-Gen-V).

    The reference is the list of right labels, or `{"labels": [..], "notation": "json"}` with the notation that the
    prompt asked for; without one at most 0.9 can be had.
    """

    name: ClassVar[str] = "verdict_labels"
    version: ClassVar[str] = "2"

    def read_reference(self, reference: Any) -> Labels:
        """Return the right labels, and their notation."""
        given, notation = reference, None
        if isinstance(reference, Mapping):
            given, notation = reference.get("labels"), reference.get("notation")
            if set(reference) - {"labels", "notation"} or notation not in (None, *NOTATIONS):
                raise ReferenceFormError(
                    f"the reference is {shown(reference)}; it holds labels, and a notation that is one of "
                    f"{', '.join(NOTATIONS)}"
                )
        if not isinstance(given, list | tuple) or not given:
            raise wrong_form(reference, "the right labels, one for each nugget")
        labels: tuple[Label, ...] = tuple(name for label in given for name in LABELS if label == name)
        if len(labels) < len(given):
            raise BadReferenceError(f"the labels {shown(given)} are not all among {', '.join(LABELS)}")
        return labels, notation

    def find(self, sample: Sample, gold: Labels) -> str | Score:
        """Return the response, if it is all there."""
        return Score.scored(0.0, "truncated") if sample.finish_reason == "length" else response_text(sample)

    def judge(self, text: str, gold: Labels) -> Score:
        """Return the reward."""
        value = label_reward(text, *gold)
        return Score.scored(value, "" if value > 0 else "wrong")
