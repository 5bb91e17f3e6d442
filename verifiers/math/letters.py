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
from adjudge.verifiers.math.sentences import clean, sentence_end
from adjudge.verifiers.text.choice_key import LABELS, ChoiceKey
from adjudge.verifiers.text.choice_letter import offered_label, opening_label

_GOLD: Final = re.compile(r"(?i:(?:option|choice)\s)?[(\[]?([A-J])[)\]]?\.?")
_ANY_LABEL: Final = ChoiceKey(LABELS, "")
_FORMULA: Final = re.compile(r"[=<>+/^]|\A\W*[-−]")
_ENTRY: Final = re.compile(r"(?<![A-Za-z\\])([A-J])\s*[).:]")
_SEPARATOR: Final = re.compile(r"[\s,;、，；&]*(?:\band\b|和)[\s,;、，；&]*|[\s,;、，；&]+")
_LABELS: Final = re.compile(r"[A-J]+|[①-⑳]+")
_INITIAL: Final = re.compile(r"\W*([A-J])\.\s+(?=\S)")
_NAME: Final = re.compile(r"[a-z].*|[A-Z]\S*(?:\s[A-Z]\S*){0,2}")
_OTHERS: Final = re.compile(r"(?<![A-Za-z])[B-J](?![A-Za-z'’])|^\W*Q\W", re.M)
_LINE_A: Final = r"^[ \t>*#]*A[ \t*]*[:：][ \t*]*"


def in_gold_letters(extraction: Extraction, golds: Sequence[Reading], text: str) -> Extraction:
    """Return what was found with the labels of options that it names written as the gold has them.

    The text is that of the response: whether "A: red" begins with a label or with the mark of an answer, only a gold
    A tells.  A letter that begins another name than the gold's is no label: "E. histolytica" for "E. coli".
    """
    line = extraction.line
    for gold in golds:
        if one := _GOLD.fullmatch(gold.text):
            marked = extraction.marker == "answer" and re.search(_LINE_A + re.escape(line), text, re.M)
            opening = f"A: {line}" if marked and not _OTHERS.search(text) else line.strip()
            alone = "\n" not in opening and len(set(_ENTRY.findall(opening))) < 2
            if alone and opening_label(opening, _ANY_LABEL, ignore_case=False) == one[1]:
                return extraction._replace(text=gold.text)
        elif (own := gold.option) and own[1] and (initial := _INITIAL.match(line)) and extraction.text == initial[1]:
            name = clean(line[initial.end() : sentence_end(line, initial.end())])
            if _NAME.fullmatch(name) and not line[initial.end() :].casefold().startswith(own[1].casefold()):
                extraction = extraction._replace(text=f"{initial[1]}. {name}")
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
