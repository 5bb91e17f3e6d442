"""Is the answer the same number as the reference?

Numbers are compared as exact fractions; tolerances are options and 0 by default.  What counts as a number is
described in `adjudge.responses.number_text`.

Not covered: expressions and symbols; use the math verifier for those.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Range
from adjudge.protocol import Sample, Score, turn_texts
from adjudge.responses.answer_context import SENTENCE_END, denies_next, taken_back
from adjudge.responses.answer_span import Span, shorten
from adjudge.responses.number_text import (
    MAX_EXPONENT,
    NumberError,
    Quantity,
    plain_notation,
    read_quantity,
    shared_currency,
)
from adjudge.responses.number_words import in_digits
from adjudge.responses.phrases import ASKS_PERCENTAGE
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.text.answer_verifier import AnswerVerifier, alternatives

_KINDS = "a number, a text that states one, or a list of accepted ones"
_CLAUSE_END = re.compile(r"[.;!?](?=\s|\Z)|[。；！？]|,?\s\(?(?:because|since)\b|,?因为")
_WITHDRAWN = re.compile(
    r"\b(?:wait|actually|sorry|correction|oops|hmm+|scratch that|second thoughts?|i mean(?:t)?|make that|or rather"
    r"|my mistake|no,|let me (?:re\w+|correct|check)|(?:that|this) (?:is|was) (?:wrong|incorrect)"
    r"|(?:should|must) (?:be|have been))(?!\w)|不对|更正",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,30}(?:,\d{3})*(?:\.\d{1,30})?")
_GLUED_BEFORE = re.compile(
    r"(?:\d[.,]?|-|[\d)}](?:[*+/^]|\s[-*+/^]\s)|[/^]\{?|\\(?:times|cdot|div|pm|mp|neg|sqrt|frac)\s?\{?"
    r"|[≠≤≥]\s?|\\(?:ne|neq|lt|gt|[lg]eq?(?:slant)?)\s?|!=\s?|(?<![-=<>])(?:(?<=[\w)}\]])|(?<=[\w)}\]] ))[<>]\s?"
    r"|\b(?:twice|double|triple|minus|negative|(?:half|third|quarter|square|root)(?:\s(?:of|the))*)\s[\s$({<]*)\$?\Z",
    re.IGNORECASE,
)
_GLUED_BEHIND = re.compile(
    r"[$)\]}*\\]{0,4}(?:[.,]?\d|\^|[eE][+-]?\d|\s?(?:[*/×÷+]\s?\d|\\(?:times|cdot|div|pm)\b)|!(?!\s|\Z)|[kKM]\b)"
    r"|\W{0,4}(?:plus|minus|times)\s\W{0,3}(?:\d|one\b|two\b|three\b|the\b|an?\b|that\b)"
    r"|[\s$)}\]*]{0,4}[?？]|\W{0,4}(?:hundred|thousand|million|billion|trillion|dozen|squared|cubed|ish)\b"
)
_TAG = re.compile(r"(?:</?[A-Za-z][^<>]*>\s*)+\Z")
_PERCENT_BEHIND = re.compile(r"\$?\s?\\?%")
_CONCLUSION = re.compile(
    r".*(?:[,;.]\s(?:so|thus|hence|therefore)\b|\b(?:sum|total|product|difference|quotient|average|mean|result|number|amount)\b"
    r".*\s(?:is|are|equals|comes to))[,\s]+(?P<rest>[^,;]*\d.*)",
    re.IGNORECASE,
)
_LAST = 400  # characters of a last sentence
_CONCLUDES = re.compile(
    r"=|\b(?:so|thus|therefore|hence|finally|total|altogether|in all|sum|left|remain\w*|result|needs?|will)\b",
    re.IGNORECASE,
)
_STATED = re.compile(  # "a total of $64 for the 16 glasses"
    r"\b(?:total of|comes to|amounts to|is|are|equals|costs?)\s(?P<rest>\W{0,3}\d[\d.,]*(?:\s[^\W\d]+){0,2}?)"
    r"(?=\s(?:for|in|from|over|after|with|on)\b|(?P<ends>\W*\Z))"
)
_NEGATED = re.compile(r"\b(?:not|never|cannot)\b|n['’]t\b", re.IGNORECASE)
_LAST_CLAUSE = re.compile(r"[,;:]\s|\b(?:so|then|that['’]s|that is)\s", re.IGNORECASE)
_HEDGED = re.compile(r"\s*(?:or|nor|not|but not|either|if)\b", re.IGNORECASE)
_REMAINING = re.compile(
    r"(?:therefore|thus|so|hence|finally|then)\b(?P<rest>.*?)(?:\s[^\W\d]+){0,3}[.!\s]*", re.IGNORECASE | re.DOTALL
)
_BARE = re.compile(r"[^\w\s]{0,4}\d[\d.,/%^-]*(?:[ \t][^\W\d]+){0,2}[^\w\n]*")
_OPENING = re.compile(  # a number that is explained below, and no first entry of a list
    rf"\A(?!\d{{1,2}}[.)]\s)({_BARE.pattern})(?:\n[ \t]*\n|(?<=\*)\n)(?!\s*{_BARE.pattern}(?:\n|\Z))"
)
_PARTS = frozenset({"cent", "penny"})
_OTHER_MEANING = frozenset({"bc", "bce", "below"})
_GOES_ON = re.compile(r"\s*(?:or|and|also|alternatively|maybe|或|和)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class NumericVerifier(AnswerVerifier[tuple[Quantity, ...]]):
    """1 when the answer is a number equal to the reference, else 0.

    The reference is an int, a finite float (read as it prints: 0.1 is one tenth), a Fraction, a Decimal, a text
    such as "1,250.5", "3/4" or "50%", or a list of accepted ones.

    Attributes:
        rel_tol: accepted difference as a share of the reference, 0 <= rel_tol < 1.
        abs_tol: accepted difference, >= 0; the larger of the two counts.
        percent: "value" reads 50% as 1/2; "ignore" drops percent signs on both sides, so 50% equals 50.
        units: "optional" refuses an answer with other words behind its number than the reference has ("5 cm"), and
            takes one with none; "ignore" does not look at them; "forbid" refuses an answer with any.
            Two different currencies are never equal; one currency and none are.
        decimal: the decimal mark in answers and references, "." or ",".
    """

    name: ClassVar[str] = "numeric"
    version: ClassVar[str] = "9"

    rel_tol: Annotated[float, Range(ge=0, lt=1)] = 0.0
    abs_tol: Annotated[float, Range(ge=0)] = 0.0
    percent: Literal["value", "ignore"] = "value"
    units: Literal["optional", "ignore", "forbid"] = "optional"
    decimal: Literal[".", ","] = "."

    def read_reference(self, reference: Any) -> tuple[Quantity, ...]:
        """Return the accepted numbers."""
        return tuple(self._read_gold(value) for value in alternatives(reference, _KINDS))

    def gold_of(self, sample: Sample) -> tuple[Quantity, ...]:
        """Return the accepted numbers; where the prompt asks for a percentage, 40 is 40%."""
        gold, asked = super().gold_of(sample), "\n".join(turn_texts(sample.prompt, "user"))
        if self.percent == "ignore" or "percent" not in asked.lower() or not ASKS_PERCENTAGE.search(asked):
            return gold
        return tuple(replace(accepted, of_percent=not accepted.percent) for accepted in gold)

    def _read_gold(self, value: Any) -> Quantity:
        shown = shorten(repr(value), 60) if not isinstance(value, int) or value.bit_length() < 200 else "a long integer"
        if isinstance(value, str):
            try:
                return read_quantity(value.rpartition("####")[2], decimal=self.decimal)  # GSM8K's solutions
            except NumberError as error:
                raise BadReferenceError(f"the reference {shown} is not one number: {error}") from error
        if isinstance(value, bool) or not isinstance(value, Real | Decimal):
            raise ReferenceFormError(f"the reference is {shown}; give {_KINDS}")
        if isinstance(value, Rational):
            return Quantity(Fraction(int(value.numerator), int(value.denominator)))
        if not math.isfinite(value):
            raise BadReferenceError(f"the reference {shown} is not finite")
        if isinstance(value, Decimal) and abs(value.adjusted()) > MAX_EXPONENT:
            raise BadReferenceError(f"the reference {shown} is beyond the exponent {MAX_EXPONENT}")
        return Quantity(Fraction(str(value)))

    def judge(self, spans: Sequence[Span], gold: tuple[Quantity, ...]) -> Score:
        """Return 1 when the one number offered equals one of the accepted ones."""
        spans = [replace(span, texts=tuple(map(in_digits, span.texts))) for span in spans]
        span = next(filter(_has_digit, spans), spans[0])
        evidence = {"answer": shorten(" | ".join(span.texts)), "where": span.where}
        clauses = [self._clause(span, text) for text in span.texts]
        try:
            offered = [self._read(span, clause) for clause in clauses]
        except NumberError as error:
            return Score.scored(0.0, error.reason, **evidence, error=str(error))
        if any(self._value(other) != self._value(offered[0]) for other in offered):
            return Score.scored(0.0, "several_answers", **evidence)
        if not any(self._equal(offered[-1], accepted) for accepted in gold):
            return Score.scored(0.0, "wrong", **evidence)
        before = _TAG.sub("", span.before)
        if span.where in ("boxed", "tag") and (_GLUED_BEFORE.search(before) or _GLUED_BEHIND.match(span.after)):
            return Score.scored(0.0, "unparsable_answer", **evidence, error="what stands beside it may change it")
        if fault := self._fault(span, span.texts[-1][len(clauses[-1]) :] + span.after, offered[-1]):
            return Score.scored(0.0, fault, **evidence, error="it is denied, or withdrawn behind")
        return Score.scored(1.0, **evidence)

    def _read(self, span: Span, text: str) -> Quantity:
        if span.where in ("boxed", "tag") and _PERCENT_BEHIND.match(span.after):
            text += "%"
        try:
            return read_quantity(text, decimal=self.decimal)
        except NumberError as error:
            if error.reason != "several_answers" or span.where not in ("response", "last_line", "marker"):
                raise
            first, last = self._first(_opening(text)), self._first(_conclusions(text))
            sentence = _last_sentence(text)
            if first and (last := last or self._first([sentence])):
                agree = first.number == last.number
            else:
                agree = first is None or not _CONCLUDES.search(sentence) or first.number in self._numbers(sentence)
            if agree and (said := first or last):
                return said
            raise

    def _first(self, texts: Iterable[str]) -> Quantity | None:
        """Return the number of the first text that states one."""
        for text in texts:
            try:
                return read_quantity(text, decimal=self.decimal)
            except NumberError:
                pass
        return None

    def _clause(self, span: Span, text: str) -> str:
        """Return the first clause with a digit of an answer in running text, unless the next one adds to it."""
        if span.where not in ("marker", "last_line"):
            return text
        for end in _CLAUSE_END.finditer(text[:4_000]):
            clause = text[: end.end() if end[0] in "?？" else end.start()]
            if re.search(r"\d", clause):
                return text if _GOES_ON.match(text, end.end()) else clause
        return text

    def _fault(self, span: Span, behind: str, offered: Quantity) -> str:
        """Return the reason for a zero when what stands around a number denies it, takes it back or gives another."""
        same = (offered.number, offered.value)

        def agrees(said: str, bare: bool) -> bool | None:
            end = None if bare else _CLAUSE_END.search(said)
            try:
                other = read_quantity(said[: end.start()] if end else said, decimal=self.decimal)
            except NumberError:
                return None
            starts = not bare or _BARE.fullmatch(said)
            return other.number in same or other.value in same if starts else None

        around = replace(span, after=behind) if span.where != "response" else replace(span, after="")
        if fault := taken_back(around, self.markers, agrees):
            return fault
        taken = deque(_WITHDRAWN.finditer(span.texts[-1] if span.where == "response" else behind), maxlen=1)
        concluded = filter(None, (_REMAINING.fullmatch(part.strip()) for part in SENTENCE_END.split(behind[:2_000])))
        later = [numbers for part in concluded if len(numbers := self._numbers(part["rest"])) == 1]
        later += [self._numbers(behind[taken[0].end() :])] if taken else []
        return "several_answers" if any(numbers and numbers[-1] not in same for numbers in later) else ""

    def _numbers(self, text: str) -> list[Fraction]:
        return [Fraction(number.replace(",", "")) for number in _NUMBER.findall(plain_notation(text, self.decimal))]

    def _value(self, quantity: Quantity) -> Fraction:
        return quantity.number if self.percent == "ignore" else quantity.value

    def _equal(self, offered: Quantity, accepted: Quantity) -> bool:
        if offered.currency and accepted.currency and not shared_currency(offered.currency, accepted.currency):
            return False
        if offered.direction * accepted.direction < 0:
            return False  # "a loss of 5" for a gain; either is 5 where the other says neither
        if _OTHER_MEANING & set(offered.unit[:2]) - set(accepted.unit):
            return False
        if accepted.currency and _PARTS & set(offered.unit[:1]):
            return self._value(offered) / 100 == self._value(accepted)
        if self.units == "forbid" and offered.unit:
            return False
        if self.units == "optional" and offered.unit and offered.unit[: len(accepted.unit)] != accepted.unit:
            return False
        value, wanted = self._value(offered), self._value(accepted)
        if accepted.of_percent and offered.percent and accepted.number > 1:
            value = offered.number
        if not (self.rel_tol or self.abs_tol):
            return value == wanted
        slack = max(Fraction(str(self.abs_tol)), Fraction(str(self.rel_tol)) * abs(wanted))
        return abs(value - wanted) <= slack


def _opening(text: str) -> list[str]:
    """Return the first line of a text where it is a number that all below only explains."""
    opening = None if _WITHDRAWN.search(text) else _OPENING.match(text)
    return [opening[1]] if opening else []


def _conclusions(text: str) -> Iterator[str]:
    """Yield what the last sentence of a text may state as its result, best first."""
    above, sentence = text.rstrip().rpartition("\n")[0], _last_sentence(text)
    if sentence.endswith(("?", "？")):
        return
    listed = _BARE.fullmatch(above.rstrip().rpartition("\n")[2][-_LAST:])  # "3 apples", "4 pears"
    if _CONCLUDES.search(sentence) or (_BARE.fullmatch(sentence) and not listed):
        yield sentence
    if concluded := _CONCLUSION.fullmatch(sentence):
        yield concluded["rest"]
    reasoned = _CLAUSE_END.split(sentence, maxsplit=1)[0]
    last = _LAST_CLAUSE.split(sentence)[-1]
    if "=" in last and not _HEDGED.match(last):
        yield last
    elif "=" not in reasoned and (_CONCLUDES.search(reasoned) or "=" in sentence):
        yield reasoned
    stated = _STATED.search(sentence) if "=" not in sentence else None
    before = sentence[: stated.start("rest")] if stated else ""
    if (
        stated
        and (stated["ends"] is None or _CONCLUDES.search(before))
        and not _NEGATED.search(before)
        and not denies_next(before)
    ):
        yield stated["rest"]


def _last_sentence(text: str) -> str:
    return SENTENCE_END.split(text.rstrip().rpartition("\n")[2][-_LAST:].strip())[-1].strip()


def _has_digit(span: Span) -> bool:
    return any(re.search(r"[\d½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]", text) for text in span.texts)
