"""What a sentence says: the value after its verb, its last formula, or its only number."""

from __future__ import annotations

import re
from typing import Final

from adjudge.verifiers.math_answer import vocabulary as known
from adjudge.verifiers.math_answer.standing import standing

MAX_SENTENCE: Final = 1000  # characters of a sentence that is searched for its value

FORMULA: Final = re.compile(
    r"\$\$(?P<a>[^$]{1,4000})\$\$|\\\[(?P<b>.{1,4000}?)\\\]|(?<!\\)\$(?P<c>(?:\\.|[^$\n\\]){1,4000})\$|\\\((?P<d>[^\n]{1,4000}?)\\\)",
    re.DOTALL,
)
NUMBER: Final = re.compile(
    r"(?<![A-Za-z\d_.])[-−]?\$?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+,\d{1,2}(?![\d,])|\d+)(?:\.\d+)?(?:/\d+)?%?"
)

_END = re.compile(r"(?<=[^\s.])(?<!\bi\.e)(?<!\be\.g)\.(?=\s|$)|\n|。")
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")
_VERB = re.compile(
    r"(?:\b(?:is|are|equals|was|were|be|as|by|to)\b|[:：=])(?!.*\b(?:is|are|equals|was|were)\b)", re.DOTALL
)
_MATH_WORDS = frozenset(known.FUNCTIONS) | known.GREEK | known.PERCENT | known.SEPARATORS | set(known.CONSTANTS)


_EXPLAINS = (
    r"(?:i\.\s*e\.|e\.\s*g\.|(?:since|because|as|that\s+is|namely|by|from|using|where|which|obtained|attained|achieved|occurring|with"
    r"|for\s+(?:some|any|all|every|each)|note|recall|see|here|in\s+other\s+words)\b)"
)
_TEXT_OPEN = r"(?:\\(?:text|mathrm|textrm|mbox)\s*\{\s*)?"
_REMARK = re.compile(
    r"(?P<value>.*?[^\s,(~])(?:\s|~|\\[,;: ]|\\q?quad(?![A-Za-z]))*"
    rf"(?:{_TEXT_OPEN}\(\s*(?:(?P<same>=[^()]*(?:\([^()]*\)[^()]*)*)|{_EXPLAINS}.*)\)\s*\}}?"
    rf"|,\s*{_TEXT_OPEN}{_EXPLAINS}.*|\\text\s*\{{[\s,(]*{_EXPLAINS}.*)[\s.]*",
    re.DOTALL | re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|never|wrong|incorrect|false|or|otherwise|else|unless|but|except|maybe|perhaps|possibly|probably|about|roughly|"
    r"approximately|estimate|guess|at\s+(?:least|most)|more|less|instead|actually)\b|\?",
    re.IGNORECASE,
)


def without_remark(text: str) -> str:
    """Return a value without the remark that explains it: `42 (since 6*7=42)`, `42, as 50-8=42`.

    A remark that may deny or change the value stays; one that only computes it, `42 (=6*7)`, becomes an equation, so
    that it has to be true.
    """
    match = (
        _REMARK.fullmatch(text)
        if len(text) <= MAX_SENTENCE and ("(" in text or "," in text or "\\text" in text)
        else None
    )
    if match is None or not match["value"] or wordy(match["value"]) or _DENIES.search(text, match.end("value")):
        return text
    return f"{match['value']} {match['same'] or ''}".strip()


def wordy(text: str) -> bool:
    """Whether a text holds words outside its formulas that are no mathematics."""
    return any(word not in _MATH_WORDS for word in _WORD.findall(FORMULA.sub("", text)))


def sentence_end(text: str, at: int = 0) -> int:
    """Return where the sentence ends that holds a place."""
    end = _END.search(text, at)
    return end.start() if end else len(text)


def without_hope(text: str) -> str:
    """Return the text without a closing "I hope it is correct"."""
    at = text.find("I hope")
    return text[:at].rstrip().removesuffix(".") if at >= 0 else text


def clean(text: str) -> str:
    """Return the text without emphasis, quotation marks and the full stop."""
    text = text.strip(" \t\r\n*_`").removeprefix('\\"').removesuffix('\\"').strip('"')
    return text[:-1].rstrip() if text.endswith((".", "。")) and not text.endswith("..") else text


def said(text: str) -> str:
    """Return what a sentence says: what follows its last verb, its last formula, or its only number.

    A value that does not stand alone ("is not 42") is not what it says; the sentence is then returned whole.
    """
    text = without_remark(text)
    if len(text) > MAX_SENTENCE or not _WORD.search(text) or not wordy(text):
        return text
    for verb in _VERB.finditer(text):
        rest = text[verb.end() :].strip(" *:")
        if rest and not wordy(rest):
            start = text.index(rest, verb.end())
            return clean(rest) if standing(text, start, start + len(rest), marked=False) == "alone" else text
    formulas = list(FORMULA.finditer(text))
    if formulas:
        last = formulas[-1]
        alone = standing(text, *last.span(), marked=False) == "alone"
        return clean(last[last.lastgroup or 0]) if alone else text
    numbers = list(NUMBER.finditer(text))
    if len({number[0] for number in numbers}) == 1 and standing(text, *numbers[-1].span(), marked=False) == "alone":
        return numbers[-1][0]
    return text
