r"""Read the one number a short text states, exactly.

The value is a `Fraction`; nothing passes through a float, so "nan", "inf" and rounding cannot appear.  Sizes are
bounded before any arithmetic: 2,000 characters, 1,000 digits, exponents up to 4,000.

Several numbers are one answer only when they are equal and joined by "=", "or", "that is" or a bracket
("1/2 = 0.5", "0.5 (1/2)"); arithmetic may stand beside "=" if it comes to the same ("6 * 7 = 42").  "5 = 3" and
"3 * 3" are not the number 3.

Not covered: arithmetic alone ("2+3"), number words ("five"), unit conversion ("5 km" is not "5000 m"), repeating
decimals.  The math verifier reads expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from adjudge.verifiers.text.answer_context import undecorated
from adjudge.verifiers.text.number_arithmetic import sum_of
from adjudge.verifiers.text.number_context import in_context, require_harmless
from adjudge.verifiers.text.number_notation import plain_notation
from adjudge.verifiers.text.quantity import NumberError, Quantity

MAX_CHARACTERS = 2_000
MAX_DIGITS = 1_000
MAX_EXPONENT = 4_000

_SIMPLE = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")  # most answers; the same result, nine times as fast
_UNSIGNED = r"(?:\d+(?:\.\d+)?|\.\d+)"
_TOKEN = re.compile(
    rf"(?P<sign>[+-])?(?:"
    rf"(?P<whole>\d+)\ (?P<top>\d+)/(?P<bottom>\d+)"
    rf"|(?P<over>{_UNSIGNED})\ ?/\ ?(?P<under>{_UNSIGNED})"
    rf"|10\^(?P<power>[+-]?\d+)"
    rf"|(?P<decimal>(?:[1-9]\d?(?:,\d\d)+,\d{{3}}(?!\d)|[1-9]\d{{0,2}}(?:(?P<mark>[,_'])\d{{3}})(?:(?P=mark)\d{{3}})*(?!\d)|\d+)(?:\.\d*)?|\.\d+)"
    rf"(?:[eE](?P<e>[+-]?\d+)|\ ?(?:\*|[xX](?=\ ?10\^))\ ?10\^(?P<ten>[+-]?\d+))?"
    rf")"
)
_PERCENT = re.compile(r" ?(?:%|percent\b|per cent\b)", re.IGNORECASE)
_FRACTION_OF = re.compile(
    r"\b(?:half|twice|double|triple|third|quarter|minus|negative|square|cube|root|reciprocal|inverse|opposite)"
    r"(?: of| the| that| this| it| my| [a-z])\b|\b[a-z]{1,2}[²³]",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"(?: ?%)?[ ,;]*(?:\(|or|i\.e\.|that is|which is|equivalently|即|也就是)[ ,;:]*\(?[ ,;:]*", re.IGNORECASE
)


def read_quantity(text: str, *, decimal: str = ".") -> Quantity:
    """Return the one number a text states.

    Args:
        text: the answer, at most 2,000 characters.
        decimal: the decimal mark, "." or ","; the other one separates thousands.

    Raises:
        NumberError: there is no number, more than one value, or something that may change the value.
    """
    if len(text) > MAX_CHARACTERS:
        raise NumberError("too_complex", f"{len(text)} characters; one number may take {MAX_CHARACTERS}")
    if _SIMPLE.fullmatch(text):
        return Quantity(Fraction(text))
    sides = re.split(r" ?[=≈] ?", plain_notation(undecorated(text), decimal))
    if not any(map(_has_digit, sides)):
        raise NumberError("no_answer", "there is no number")
    if not _has_digit(sides[-1]):
        raise NumberError("unparsable_answer", "an equation that does not end in a number")
    quantities, sums = [], []
    for side in sides:
        if not _has_digit(side):
            require_harmless(side)
            if _FRACTION_OF.search(side):
                raise NumberError("unparsable_answer", "an equation that is still to be solved")
            continue
        try:
            quantities.append(_read_side(side))
        except NumberError as error:
            if error.reason == "too_complex" or len(sides) == 1:
                raise
            sums.append(sum_of(side))
    if not quantities or any(value != quantities[-1].value for value in [*sums, *(one.value for one in quantities)]):
        raise NumberError("several_answers", "an equation between different numbers")
    return quantities[-1]


def _has_digit(text: str) -> bool:
    return re.search(r"\d", text) is not None


def _read_side(side: str) -> Quantity:
    tokens = list(_tokens(side))
    if not tokens:
        raise NumberError("unparsable_answer", "digits that are not a plain number")
    amounts = [_amount(token) for token in tokens]
    shares = [
        amount / 100 if _PERCENT.match(side, token.end()) else amount
        for token, amount in zip(tokens, amounts, strict=True)
    ]
    both = len(set(amounts)) > 1 and len(set(shares)) == 1  # "1/4, or 25%"
    if len(set(amounts)) > 1 and not both:
        raise NumberError("several_answers", "several different numbers")
    for earlier, later in pairwise(tokens):
        if not _BETWEEN.fullmatch(side, earlier.end(), later.start()):
            raise NumberError("unparsable_answer", "the same number twice, joined by what may be arithmetic")
    after = side[tokens[-1].end() :]
    if both:
        return in_context(shares[0], side[: tokens[0].start()], _PERCENT.sub("", after, count=1))
    return in_context(amounts[0], side[: tokens[0].start()], after)


def _tokens(side: str) -> Iterator[re.Match[str]]:
    at = 0
    while found := _TOKEN.search(side, at):
        previous = side[found.start() - 1 : found.start()]
        if found["sign"] and (previous.isalnum() or previous in tuple(")]}%!.")):
            at = found.start() + 1
            continue
        if previous and (previous in "._^\\{}" or previous.isdecimal()):
            raise NumberError("unparsable_answer", "digits joined to something else")
        yield found
        at = found.end()


def _amount(token: re.Match[str]) -> Fraction:
    digits = sum(map(str.isdecimal, token[0]))
    exponent_text = token["power"] or token["e"] or token["ten"] or "0"
    if digits > MAX_DIGITS or abs(exponent := int(exponent_text)) > MAX_EXPONENT:
        raise NumberError("too_complex", f"beyond {MAX_DIGITS} digits or the exponent {MAX_EXPONENT}")
    if token["whole"]:
        part = _ratio(token["top"], token["bottom"])
        if part >= 1:
            raise NumberError("unparsable_answer", "a mixed number whose fraction is not below 1")
        value = int(token["whole"]) + part
    elif token["over"]:
        value = _ratio(token["over"], token["under"])
    else:
        mantissa = re.sub(r"[,_']", "", token["decimal"] or "1").rstrip(".")
        value = Fraction(mantissa) * Fraction(10) ** exponent
    return -value if token["sign"] == "-" else value


def _ratio(top: str, bottom: str) -> Fraction:
    below = Fraction(bottom)
    if not below:
        raise NumberError("unparsable_answer", "division by zero")
    return Fraction(top) / below
