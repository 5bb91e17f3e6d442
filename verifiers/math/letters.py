"""Answers that are labels of options: one (`Option C`, `(C) Mitochondrion`), or several (`A, C, D` for `ACD`).

Not covered: labels that are small letters or numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from adjudge.responses.markup import unwrap, without_tex
from adjudge.verifiers.math.extraction import Extraction
from adjudge.verifiers.math.reading import Reading
from adjudge.verifiers.text.choice_key import LABELS, ChoiceKey
from adjudge.verifiers.text.choice_letter import offered_label

_GOLD: Final = re.compile(r"(?i:(?:option|choice)\s)?[(\[]?([A-J])[)\]]?\.?")
_ANY_LABEL: Final = ChoiceKey(LABELS, "")
_FORMULA: Final = re.compile(r"[=<>+/^]|\A\W*[-−]")
_ENTRY: Final = re.compile(r"(?<![A-Za-z\\])([A-J])\s*[).:]")
_SEPARATOR: Final = re.compile(r"[\s,;、，；&]*(?:\band\b|和)[\s,;、，；&]*|[\s,;、，；&]+")
_LABELS: Final = re.compile(r"[A-J]+|[①-⑳]+")


def in_gold_letters(extraction: Extraction, golds: Sequence[Reading]) -> Extraction:
    """Return what was found with the labels of options that it names written as the gold has them."""
    for gold in golds:
        if (text := named_as(extraction.text, gold.text)) != extraction.text:
            later = tuple(
                stated._replace(readings=tuple(named_as(said, gold.text) for said in stated.readings))
                for stated in extraction.later
            )
            return extraction._replace(text=text, later=later)
    return extraction


def named_as(text: str, gold: str) -> str:
    """Return the gold where both name the same labels of options, else the text as it is."""
    if len(gold) > 60 or text == gold:
        return text
    if one := _GOLD.fullmatch(gold.strip()):
        if _FORMULA.search(text[:200]) or len(set(_ENTRY.findall(text[:200]))) > 1:
            return text
        return gold if offered_label(text, _ANY_LABEL, ignore_case=False)[0] == one[1] else text
    wanted = _several(gold)
    return gold if wanted and _several(text) == wanted else text


def _several(text: str) -> frozenset[str]:
    """Return the labels of a text that is nothing but several, each once, and in order where nothing parts them."""
    parts = [part for part in _SEPARATOR.split(unwrap(without_tex(text[:200])).rstrip(".")) if part]
    labels = "".join(parts)
    if len(labels) < 2 or not _LABELS.fullmatch(labels) or len(set(labels)) < len(labels):
        return frozenset()
    apart = len(parts) == len(labels)
    return frozenset(labels) if apart or list(labels) == sorted(labels) else frozenset()
