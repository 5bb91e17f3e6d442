r"""What stands beside a number: sign word, currency, percent, scale word, unit; and whether it may change the value.

A number is believed only when everything beside it is harmless: plain words, brackets and sentence punctuation.
Operators, commands, negations ("not 5"), inequalities ("at least 5"), fractions in words ("half of 5") are refused.

Not covered: the digits themselves, see `number_text`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from adjudge.verifiers.text.quantity import NumberError, Quantity

_CURRENCIES = {
    "$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd",
    "€": "eur", "eur": "eur", "euro": "eur",
    "£": "gbp", "gbp": "gbp",
    "¥": "cny/jpy", "cny": "cny/jpy", "rmb": "cny/jpy", "yuan": "cny/jpy", "元": "cny/jpy",
    "jpy": "cny/jpy", "yen": "cny/jpy", "円": "cny/jpy",
    "₹": "inr", "inr": "inr", "rupee": "inr",
    "₩": "krw", "krw": "krw",
    "₽": "rub", "rub": "rub", "ruble": "rub",
}  # fmt: skip
_SCALES = {
    "tens": 10, "hundreds?": 10**2, "thousands?": 10**3, "millions?": 10**6, "billions?": 10**9, "trillions?": 10**12,
    "dozens?": 12, "lakhs?": 10**5, "crores?": 10**7, r"grand(?=\W*\Z)": 10**3, "mille|tausend|tsd|tys": 10**3,
    "hundert": 10**2, "mio|mln|млн": 10**6, "mrd|млрд": 10**9, "тыс": 10**3,
    "million(?:en|i|es)|milione|milioni|millones|millón|milhão|milhões": 10**6,
    "milliarden?|milliards?|miliardi?": 10**9,
    "тысяч[аи]?": 10**3, "миллион(?:ов|а)?": 10**6, "миллиард(?:ов|а)?": 10**9,
    "[百백]": 10**2, "[千천]": 10**3, "[万萬만]": 10**4, "[亿億억]": 10**8, "[兆조]": 10**12,
}  # fmt: skip
_SYMBOLS = {
    "kilometer": "km", "kilometre": "km", "meter": "m", "metre": "m", "centimeter": "cm", "centimetre": "cm",
    "millimeter": "mm", "millimetre": "mm", "kilogram": "kg", "gram": "g", "milligram": "mg", "liter": "l",
    "litre": "l", "milliliter": "ml", "millilitre": "ml", "second": "s", "sec": "s", "minute": "min",
    "hour": "h", "hr": "h", "hrs": "h", "mins": "min", "mile": "mi", "foot": "ft", "feet": "ft",
    "inch": "in", "inche": "in", "pound": "lb", "lbs": "lb", "cents": "cent", "¢": "cent", "ct": "cent", "cts": "cent",
    "pence": "penny",
}  # fmt: skip
_SCALE = "|".join(rf"(?:{word})\b" if word[0] != "[" else word for word in _SCALES)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that deny the number or offer another one, wherever they stand.
_DENIALS = _set(
    """not isn isnt never cannot except neither nor or either between wrong incorrect unless
    doubt mistake suppose supposing hardly barely scarcely unlikely rejected nicht kein keine keinen pas нет не não"""
)
# Words that change the number when they stand among the two words before it ("at least 5", "half of 5").
_CHANGES_BEFORE = _set(
    """no least most more less fewer greater larger smaller than under over above below beyond exceeding up square
    cube root sqrt cbrt half third quarter double triple twice plus times factorial power log ln lg exp sin cos tan
    minus negative per by nearly almost somewhere starts begins ends moins menos más mehr weniger doppelte doppelten
    close inverse opposite reciprocal if fast casi почти presque quase doble hälfte mitad moitié больше меньше более
    менее"""
)
# Words that change it when they stand among the three words behind it ("5 squared", "5 thirds", "5 to the power").
_CHANGES_AFTER = _set(
    """squared cubed square cube half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths
    seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths plus minus
    multiplied divided modulo mod factorial power pi infinity score gross bn mn mil basis bps percentage pp th st nd
    rd too off point backwards backward reversed ppm ppb mille no nope hundred thousand million billion
    trillion dozen
    percent pct log ln sin cos tan sqrt ish odd something"""
)
_FORBIDDEN_CJK = re.compile(
    "不|非|负|負|半|分之|倍|折|至|或|到|以上|以下|以内|超过|少于|大于|小于|多于|ではない|じゃない|아니|아닙"
)

_SYMBOL = r"(?:US)?[$€£¥₹₩₽]"
_BEFORE = re.compile(
    rf"(?P<minus>(?<![\w)\]])-(?={_SYMBOL})|\b(?:minus|negative)\ )?"
    rf"(?:(?P<currency>{_SYMBOL}|\b(?:usd|eur|gbp|cny|rmb|jpy|inr|krw|rub)\b)\ ?)?(?P<inner>\b(?:minus|negative)\ )?\Z",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"[ -]?(?:(?P<scale>{_SCALE})"
    r"|(?P<percent>%|(?:percent|per cent|pct)\b)"
    rf"|(?P<currency>{_SYMBOL}|[元円]|(?:usd|eur|gbp|cny|rmb|jpy|inr|krw|rub|yuan|yen|(?:dollar|euro|rupee|ruble)s?)\b))",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"[\w\s.,;:?\"'“”‘()\[\]/°。，；：、¢-]*")
_LOOSE_SIGN = re.compile(r"(?<![^\W\d_])[/-]|[/-](?![^\W\d_])|\.\.|_|\w\(")
_WORD = re.compile(r"[^\W\d_]+")
# A single letter may be a variable or a scale ("5x", "5k"), unless it is a unit.
_LETTER_BEFORE = re.compile(r"[A-Za-z]\Z|(?<![^\W_])[B-HJ-Zb-hj-z] \Z")
_LETTER_AFTER = re.compile(r" ?(?![mgshlLVJWNKCFA](?:\b|[²³]))[A-Za-zα-λν-ωΑ-Ψ](?![^\W\d_])")
_HYPHEN = re.compile(r"\A[-/](?=[A-Za-z]{2})")
_UNIT = re.compile(r"[ -]?(°?[^\W\d_][^.,;:?()\[\]。，；：、]*)")


def in_context(number: Fraction, before: str, after: str) -> Quantity:
    """Return the number with what its surroundings say.

    Args:
        number: the value of the digits.
        before: what stands before them, in plain notation.
        after: what stands behind them.

    Raises:
        NumberError: something there may change the value in a way that is not understood.
    """
    currency, percent = "", False
    if head := _BEFORE.search(before):
        before = before[: head.start()]
        currency = _CURRENCIES.get((head["currency"] or "").lower(), "")
        number = -number if bool(head["minus"]) != bool(head["inner"]) else number
    while tail := _AFTER.match(after):
        if tail["scale"] and not percent:
            number *= _scale(tail["scale"])
        elif tail["percent"] and not percent:
            percent = True
        elif tail["currency"]:
            named = _currency(tail["currency"])
            if currency not in ("", named):
                raise NumberError("several_answers", "two different currencies")
            currency = named
        else:
            break
        after = after[tail.end() :]
    after = _HYPHEN.sub(" ", after)
    words_before, words_after = require_harmless(before), require_harmless(after)
    if not _CHANGES_BEFORE.isdisjoint(words_before[-2:]) or not _CHANGES_AFTER.isdisjoint(words_after[:3]):
        raise NumberError("unparsable_answer", "a word beside the number may change it")
    if _LETTER_BEFORE.search(before) or _LETTER_AFTER.match(after):
        raise NumberError("unparsable_answer", "a single letter beside the number may be a variable")
    found = _UNIT.match(after)
    return Quantity(number, percent, currency, _words(found[1]) if found else ())


def require_harmless(text: str) -> list[str]:
    """Return the words of the text beside a number, in lower case.

    Raises:
        NumberError: it holds operators, loose signs or a denial.
    """
    words = _WORD.findall(text.lower())
    if not _HARMLESS.fullmatch(text) or _LOOSE_SIGN.search(text) or _FORBIDDEN_CJK.search(text):
        raise NumberError("unparsable_answer", "signs beside the number may change it")
    if not _DENIALS.isdisjoint(words):
        raise NumberError("unparsable_answer", "a word beside the number denies it or offers another")
    return words


def _currency(name: str) -> str:
    name = name.lower()
    return _CURRENCIES.get(name) or _CURRENCIES[name.rstrip("s")]


def _words(unit: str) -> tuple[str, ...]:
    return tuple("/".join(map(_singular, word.split("/"))) for word in re.sub(r" per ", "/", unit.lower()).split())


def _singular(word: str) -> str:
    word = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return _SYMBOLS.get(word, word)


def _scale(word: str) -> int:
    """Return what a scale word multiplies by."""
    return next(value for pattern, value in _SCALES.items() if re.fullmatch(pattern, word, re.IGNORECASE))
