"""Probes of form, which must not decide, and of truth, which must.

Marks are put on and off; words of an answer are never dressed, and neither are code and mathematics.  A prompt that
wants a table gets a worse response without one, which no probe knows.

Small changes make a right response wrong, and the score must drop; a constant score fails every one of them.  Where the
reference holds the answer as text, that answer is changed where the response gives it last, and only where another
value comes out.  Without a reference a boxed answer is changed, and where there is no box the last number (unit, ...).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

from adjudge.evals.probes.planted import perturbed, spelling
from adjudge.evals.probes.probe import (
    Maker,
    Probe,
    ProbeRow,
    Variant,
    free_lines,
    kept_regions,
    outside_of,
    some_words,
    with_words,
)

Dress = Callable[[str, list[str], Random], str]

_MARKS: Final = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|[-*+•][ \t]+)|\*\*|__", re.MULTILINE)
_BOX: Final = re.compile(r"\$?\\boxed\{((?:[^{}]|\{[^{}]{0,100}\}){1,200})\}\$?")


def _by_line(text: str, change: Callable[[int, str], str]) -> str:
    """Return the text with its free lines but the last one changed; the last one holds the answer."""
    numbers = itertools.count()
    return with_words(text, list(free_lines(text))[:-1], lambda line: change(next(numbers), line))


DRESSES: Final[dict[str, Dress]] = {
    "bold": lambda text, golds, rng: some_words(text, golds, rng, 0.3, lambda word: f"**{word}**"),
    "list": lambda text, golds, rng: _by_line(text, lambda number, line: f"- {line.lstrip()}"),
    "emoji": lambda text, golds, rng: _by_line(text, lambda number, line: f"{line} {'✨🚀✅'[number % 3]}"),
    "heading": lambda text, golds, rng: f"## Response\n\n{text}",
}
"""Ways to dress a text, by name."""


def _dressed(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    if row.good.strip() in row.golds:
        return
    for name, dress in DRESSES.items():
        yield Variant(how=name, response=dress(row.good, row.golds, rng))


def _plain(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    outside = outside_of(kept_regions(row.good, row.golds))
    bare = _MARKS.sub(lambda mark: "" if outside(mark.span()) else mark[0], row.good)
    yield Variant(how="no marks", response=bare)


def _hard(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    if row.bad is None:
        return
    for name, dress in DRESSES.items():
        yield Variant(how=name, response=dress(row.bad, row.golds, rng), of="bad")
    whole = row.bad
    for dress in DRESSES.values():
        whole = dress(whole, row.golds, rng)
    yield Variant(how="all of them", response=whole, of="bad")


def last_box(text: str) -> re.Match[str] | None:
    """Return the last boxed answer of a text, its content as the first group; None if there is none."""
    boxes = list(_BOX.finditer(text))
    return boxes[-1] if boxes else None


def _answer_heading(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    last = last_box(row.good)
    if last is not None:
        said = f"{row.good[: last.start()]}{last[1]}{row.good[last.end() :]}".rstrip()
        yield Variant(how="# Answer", response=f"{said}\n\n# Answer\n\n{last[1]}")


FORM: Final = (
    Probe(
        name="dressed", says="bold words, a list, emoji, a heading", source="RM-Bench, arXiv 2410.16184", rule="same",
        make=_dressed, domains=("text",), needs="lines or words beside the answer",
        means="the score follows the marks; a policy will write them",
    ),
    Probe(
        name="undressed", says="the response's marks taken off", source="RM-Bench, arXiv 2410.16184", rule="same",
        make=_plain, domains=("text",), needs="marks in the response", means="the score follows the marks",
    ),
    Probe(
        name="dressed_bad", says="the bad response dressed up, the good one plain",
        source="RM-Bench's hard cells, arXiv 2410.16184", rule="below_good", make=_hard, domains=("text",),
        needs="a bad response with lines or words beside the answer",
        means="a dressed wrong answer beats a plain right one",
    ),
    Probe(
        name="answer_heading", says="a boxed answer written plainly, and again below a heading",
        source="reWordBench, arXiv 2503.11751", rule="same", make=_answer_heading, domains=("text",),
        needs="a boxed answer", means="the box is scored, and not what is in it",
    ),
)  # fmt: skip


_NUMBER: Final = re.compile(
    r"(?<![\w.\\^_{])(?!(?<![^\n])\d+[.)][ \t])\d+(?:\.\d+)?(?![\w^])"  # at the start of a line "2. " counts items
)
_UNITS: Final = {
    "cm": "m", "mm": "cm", "m": "km", "km": "m", "g": "kg", "kg": "g", "s": "h", "h": "s", "hours": "minutes",
    "minutes": "hours", "seconds": "minutes", "days": "weeks", "dollars": "cents", "cents": "dollars", "%": " points",
    "miles": "feet", "feet": "miles", "meters": "kilometers", "kilometers": "meters", "litres": "millilitres",
}  # fmt: skip
_NAMES: Final = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_UNIT: Final = re.compile(rf"(?<=\d)(\s?)({_NAMES})(?!\w)")
_MEASURE: Final = re.compile(rf"\d\s?(?:{_NAMES})(?!\w)")
_SUM: Final = re.compile(r"\d\s?[+\-*/]\s?\d")
_OPERATOR: Final = re.compile(r"(?<=[\w)}])(\s?)([+\-*/])(\s?)(?=[\w({\\])")
_OTHER_SIGN: Final = {"+": "-", "-": "+", "*": "+", "/": "*"}
_COPULA: Final = re.compile(r"\b(is|are|was|were|can|does|will|has)\b(?!\s+not\b)")
_MIN_CUT: Final = 12  # characters that a cut response still has; shorter ones are not responses
_OPPOSITES: Final = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


def _sign(text: str) -> str:
    bare = text.strip()
    if bare.startswith(("-", "−")):
        return bare[1:].lstrip()
    return f"-{bare}" if re.match(r"[\d.]|\\[dt]?frac|\\sqrt|\\pi|[a-z](?![a-z])", bare) else ""


def _operator(text: str) -> str:
    return _exchanged(_OPERATOR.search(text), _OTHER_SIGN)


def _unit(text: str) -> str:
    return _exchanged(_UNIT.search(text), _UNITS)


def _exchanged(found: re.Match[str] | None, others: Mapping[str, str]) -> str:
    """A text with another word in the place of the second group of a match; "" without a match."""
    return f"{found.string[: found.start(2)]}{others[found[2]]}{found.string[found.end(2) :]}" if found else ""


def last_place(text: str, gold: str) -> tuple[int, int] | None:
    """Return where a text gives an answer last, as a whole; None where it does not."""
    places = list(re.finditer(rf"(?<![\w.]){re.escape(gold.strip())}(?![\w]|\.\d)", text))
    return places[-1].span() if places else None


def answers_of(row: ProbeRow) -> list[str]:
    """Return the accepted answers; without a reference, what the response boxes."""
    box = last_box(row.good) if row.reference is None and row.domain == "text" else None
    return row.golds if box is None else [box[1]]


def _corrupted(how: str, change: Callable[[str], str], loose: re.Pattern[str] | None) -> Maker:
    """Return a maker that changes the answer; `change` gives "" where it cannot.

    In a response whose reference holds no text, the last match of `loose` is changed.
    """

    def make(row: ProbeRow, rng: Random) -> Iterator[Variant]:
        golds = answers_of(row)
        known = {spelling(gold) for gold in golds}
        for gold in golds:
            place, new = last_place(row.good, gold), change(gold)
            if place is not None and new and spelling(new) not in known:
                yield Variant(how=how, response=f"{row.good[: place[0]]}{new}{row.good[place[1] :]}")
                return
        if golds or loose is None or row.reference is not None:
            return
        matches = list(loose.finditer(row.good))
        if matches and (new := change(matches[-1][0])):
            start, end = matches[-1].span()
            yield Variant(how=how, response=f"{row.good[:start]}{new}{row.good[end:]}")

    return make


def _negated(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    for gold in answers_of(row):
        opposite, place = _OPPOSITES.get(gold.strip().casefold()), last_place(row.good, gold)
        if opposite and place is not None:
            new = opposite.capitalize() if gold.strip()[0].isupper() else opposite
            yield Variant(how="the opposite answer", response=f"{row.good[: place[0]]}{new}{row.good[place[1] :]}")
            return
    copulas = [] if row.reference is not None or last_box(row.good) else list(_COPULA.finditer(row.good))
    if copulas:
        at = copulas[-1].end()
        yield Variant(how="not", response=f"{row.good[:at]} not{row.good[at:]}")


def _cut(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    """Cut in the middle, near the end, and in any case before the answer first stands there."""
    text = row.good.rstrip()
    first = min((at for gold in answers_of(row) if (at := text.find(gold.strip())) >= 0), default=len(text))
    cuts = dict.fromkeys(text[: min(int(share * len(text)), first)].rstrip() for share in (0.5, 0.8))
    for cut in cuts:
        if len(cut) >= _MIN_CUT:
            yield Variant(how="cut", response=cut, finish_reason="length")


def _unfinished(row: ProbeRow, rng: Random) -> Iterator[Variant]:
    yield Variant(how="whole, but it ended at the limit", response=row.good, finish_reason="length")


_BLIND: Final = "right and wrong get the same score; nothing can be learned from it"

TRUTH: Final = (
    Probe(
        name="digit", says="one digit of the answer changed", source="common", rule="lower",
        make=_corrupted("a digit", perturbed, _NUMBER), needs="a number in the answer", means=_BLIND, domains=("text",),
        fast=True,
    ),
    Probe(
        name="sign", says="the sign of the answer changed", source="common", rule="lower",
        make=_corrupted("the sign", _sign, None), needs="an answer that can have a sign", means=_BLIND,
        domains=("text",), fast=True,
    ),
    Probe(
        name="operator", says="an operator of the answer changed", source="common", rule="lower",
        make=_corrupted("an operator", _operator, _SUM), needs="an operator in the answer", means=_BLIND,
        domains=("text",), fast=True,
    ),
    Probe(
        name="unit", says="the unit of the answer changed", source="common", rule="lower",
        make=_corrupted("the unit", _unit, _MEASURE), needs="a unit in the answer", means=_BLIND, domains=("text",),
    ),
    Probe(
        name="negation", says="the conclusion turned round", source="common", rule="lower", make=_negated,
        needs="yes, no, true or false as the answer, or a sentence without a reference", means=_BLIND,
        domains=("text",),
    ),
    Probe(
        name="cut", says="the response cut off before its answer", source="common", rule="lower", make=_cut,
        needs="a response of some length that ends with its answer", means="an unfinished response pays",
        domains=("text", "code"), fast=True,
    ),
    Probe(
        name="unfinished", says="the good response, ended by the token limit", source="common", rule="not_higher",
        make=_unfinished, means="running into the limit pays",
    ),
)  # fmt: skip
