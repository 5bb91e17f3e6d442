r"""Read the one number a short text states, exactly.

The value is a `Fraction`; nothing passes through a float, so "nan", "inf" and rounding cannot appear.  Sizes are
bounded before any arithmetic: 2,000 characters, 1,000 digits, exponents up to 4,000.

Several numbers are one answer only when they are equal and joined by "=", "or", "that is" or a bracket
("1/2 = 0.5", "0.5 (1/2)"); arithmetic may stand beside "=" if it comes to the same ("6 * 7 = 42").  "5 = 3" and
"3 * 3" are not the number 3.

Rewrite the many notations of a number into one ASCII notation, without reading it.

One minus sign and one fraction sign, ASCII digits, "10^n" for powers of ten, "a/b" for `\frac` and vulgar fractions,
"," between thousands, no LaTeX spacing, no mathematics dollars.  What is not known stays as it is, so that the
reader can refuse it.

What stands beside a number: sign word, currency, percent, scale word, unit; and whether it may change the value.

A number is believed only when everything beside it is harmless: plain words, brackets and sentence punctuation.
Operators, commands, negations ("not 5"), inequalities ("at least 5"), fractions in words ("half of 5") are refused.

Not covered: arithmetic alone ("2+3"), number words ("five": `number_words`), unit conversion ("5 km" is not
"5000 m"), repeating decimals.  The math verifier reads expressions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise

from adjudge.reasons import ReasonedError
from adjudge.responses.answer_context import denies_next, undecorated


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it was written.

    Attributes:
        number: what the digits and scale words say, before any percent sign: 5 for "5%", 2,000,000 for "2 million".
        percent: whether a percent sign or word follows.
        currency: code of the currency named, both for the sign ¥ ("cny/jpy"), or "".
        unit: the words right after the number, in lower case and without a plural s.
        direction: 1 where the words say that it is gained ("a profit of 5"), -1 where it is lost, else 0.
        of_percent: whether a percentage is asked for, of which 5 and 5% are the same.
    """

    number: Fraction
    percent: bool = False
    currency: str = ""
    unit: tuple[str, ...] = ()
    direction: int = 0
    of_percent: bool = False

    @property
    def value(self) -> Fraction:
        """The number meant: 50% is 1/2."""
        return self.number / 100 if self.percent else self.number


class NumberError(ReasonedError):
    """A text that is not one number."""


_VULGAR = {char: unicodedata.normalize("NFKC", char).replace("⁄", "/") for char in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SIGNS: dict[int, int | str | None] = {
    **dict.fromkeys(map(ord, "−–—‐‑‒﹣－"), "-"),
    **dict.fromkeys(map(ord, "＋﹢"), "+"),
    **dict.fromkeys(map(ord, "×✕✖·⋅∙"), "*"),
    **dict.fromkeys(map(ord, "⁄∕／"), "/"),
    **dict.fromkeys(map(ord, "％﹪"), "%"),
    **dict.fromkeys(map(ord, "＄﹩"), "$"),
    **dict.fromkeys(map(ord, "’＇"), "'"),
    ord("¢"): " cents",
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None),
    **str.maketrans("￡￥＝（）．", "£¥=()."),
}
_SWAPPED = {ord(","): ".", ord("."): ","}

_SUPERSCRIPT_RUN = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_THOUSANDS_SPACE = re.compile(r"(?<=\d)(?:[\u00a0\u2009\u202f]|\\[,!;: ])(?=\d{3})")
_PLAIN_SPACE = re.compile(r"(?<!\d )(?<![\w.,/^])[1-9]\d{0,2}(?: \d{3})+(?![\w/^]| \d|,\d)")
_MATH_DOLLARS = re.compile(r"(?<![\\\S])\$((?:[^$\\]|\\.)*)\$(?=$|[\s.,;:?)])", re.DOTALL)
_EMPHASIS = re.compile(r"\*{2,3}([^*\n]+)\*{2,3}|`([^`\n]+)`")
_EXPONENT = re.compile(r"\^\s?(?:\{\s?([+-]?\d+)\s?\}|\(\s?([+-]?\d+)\s?\))")
_UNIT_POWER = re.compile(r"(\d ?[A-Za-z]{1,4}) ?\^([23])(?!\d)")
_SIGN_OF_FRACTION = re.compile(r"([+-]) (?=[\d.]+/)")

_SPACING = re.compile(r"\\(?:left|right|displaystyle|quad|qquad)(?![A-Za-z])|\\[,;:! ()\[\]]")
_TIMES = re.compile(r"\\(?:times|cdot)(?![A-Za-z])")
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mathit|mbox|boxed|fbox)\s?\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dtc]?frac\s?\{\s?([\d.]+)\s?\}\s?\{\s?([\d.]+)\s?\}")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s?(\d)\s?(\d)(?!\d)")


def plain_notation(text: str, decimal: str = ".") -> str:
    """Return the text in one ASCII notation.

    Args:
        text: a short answer.
        decimal: the decimal mark of the text, "." or ","; the result always has ".".
    """
    text = text.replace("{,}", ",")
    if decimal == ",":
        text = text.translate(_SWAPPED)
    text = _PLAIN_SPACE.sub(lambda match: match[0].replace(" ", ","), _THOUSANDS_SPACE.sub(",", text))
    if not text.isascii():
        text = _ascii(text)
    text = _EMPHASIS.sub(lambda match: f" {match[1] or match[2]} ", text)
    text = _MATH_DOLLARS.sub(r" \1 ", text.replace("$$", "$"))
    if "\\" in text:
        text = _without_latex(text)
    text = _EXPONENT.sub(lambda match: f"^{match[1] or match[2]}", text)
    text = _UNIT_POWER.sub(lambda match: match[1] + "²³"[int(match[2]) - 2], " ".join(text.replace("~", " ").split()))
    return _SIGN_OF_FRACTION.sub(r"\1", text)


def raised(text: str) -> str:
    """Return a text with its raised digits behind a "^": "10⁻⁴" is "10^-4"."""
    return _SUPERSCRIPT_RUN.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)


def _ascii(text: str) -> str:
    for char in _VULGAR.keys() & set(text):
        text = text.replace(char, f" {_VULGAR[char]} ")
    text = raised(text).translate(_SIGNS)
    return "".join(char if (digit := unicodedata.decimal(char, None)) is None else str(digit) for char in text)


def _without_latex(text: str) -> str:
    text = _SPACING.sub(" ", text).replace("\\%", "%").replace("\\$", "$").replace("\\approx", "≈")
    text = _TIMES.sub("*", text)
    for _ in range(3):
        text = _TEXT_COMMAND.sub(r" \1 ", text)
    return _SHORT_FRACTION.sub(r" \1/\2 ", _FRACTION.sub(r" \1/\2 ", text))


_MOST = 100  # numbers and signs of one sum
_TERM = re.compile(r"\s*(?:(\d{1,30}(?:,\d{3})*(?:\.\d{1,30})?)|([-+*/÷()]|[xX](?=[ \d(])))")
_OPERATORS = str.maketrans("xX÷", "**/")
_MEASURE = re.compile(r"(?<=\d) ?/?(?: ?[^\W\d_]{2,}){1,3}(?:/[^\W\d_]+)?(?= ?[-+*/÷)]| [xX] |\Z)")
_LEAD = re.compile(r"(?:[A-Za-z,:]+ )*(?=[\d(-])")


def sum_of(text: str) -> Fraction:
    """Return what arithmetic in plain notation, of at most 100 parts, comes to; words may stand before it.

    Currencies and units in it are left out: `$400 + $60`, `20 sheep + 160 sheep`.
    """
    text = _MEASURE.sub(lambda unit: unit[0] if unit[0].strip() in _CHANGES_AFTER else "", re.sub("[$€£¥]", "", text))
    lead = _LEAD.match(text)
    rest = text[lead.end() if lead else 0 :].strip()
    parts, at = [], 0
    for term in islice(_TERM.finditer(rest), _MOST + 1):
        if term.start() != at:
            break
        parts.append(term[1] or term[2].translate(_OPERATORS))
        at = term.end()
    if denies_next(text[: len(text) - len(rest)]):
        raise NumberError("unparsable_answer", "arithmetic that is denied")
    if at != len(rest) or not 2 < len(parts) <= _MOST:
        raise NumberError("several_answers", "several different numbers")
    value, end = _sum(parts, 0)
    if end != len(parts):
        reason = "unparsable_answer" if parts[end] == ")" else "several_answers"
        raise NumberError(reason, "a bracket that nothing opens, or two numbers side by side")
    return value


def _sum(parts: list[str], at: int) -> tuple[Fraction, int]:
    value, at = _product(parts, at)
    while at < len(parts) and parts[at] in "+-":
        other, end = _product(parts, at + 1)
        value, at = (value + other if parts[at] == "+" else value - other), end
    return value, at


def _product(parts: list[str], at: int) -> tuple[Fraction, int]:
    value, at = _factor(parts, at)
    while at < len(parts) and parts[at] in "*/":
        other, end = _factor(parts, at + 1)
        if parts[at] == "/" and not other:
            raise NumberError("unparsable_answer", "division by zero")
        value, at = (value * other if parts[at] == "*" else value / other), end
    return value, at


def _factor(parts: list[str], at: int) -> tuple[Fraction, int]:
    part = parts[at] if at < len(parts) else ""
    if part == "-":
        value, at = _factor(parts, at + 1)
        return -value, at
    if part == "(":
        value, at = _sum(parts, at + 1)
        if parts[at : at + 1] == [")"]:
            return value, at + 1
    elif part[:1].isdigit():
        return Fraction(part.replace(",", "")), at + 1
    raise NumberError("unparsable_answer", "arithmetic that lacks a number")


THOUSAND = "千(?!(?:[克米瓦卡帕焦伏安赫牛升欧歐]|字节|比特))"
"""千 where it means a thousand: before a unit it is the prefix kilo, as in 千米."""

_CURRENCIES = {
    "$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd",
    "€": "eur", "eur": "eur", "euro": "eur",
    "£": "gbp", "gbp": "gbp",
    "¥": "cny/jpy", "cny": "cny", "rmb": "cny", "yuan": "cny", "元": "cny", "jpy": "jpy", "yen": "jpy", "円": "jpy",
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
    "[百백]": 10**2, f"{THOUSAND}|천": 10**3, "[万萬만]": 10**4, "[亿億억]": 10**8, "兆(?![瓦赫帕])|조": 10**12,
}  # fmt: skip
_SYMBOLS = {
    "kilometer": "km", "kilometre": "km", "meter": "m", "metre": "m", "centimeter": "cm", "centimetre": "cm",
    "millimeter": "mm", "millimetre": "mm", "kilogram": "kg", "gram": "g", "milligram": "mg", "liter": "l",
    "litre": "l", "milliliter": "ml", "millilitre": "ml", "second": "s", "sec": "s", "minute": "min",
    "hour": "h", "hr": "h", "hrs": "h", "mins": "min", "mile": "mi", "foot": "ft", "feet": "ft",
    "inch": "in", "inche": "in", "pound": "lb", "lbs": "lb", "cents": "cent", "¢": "cent", "ct": "cent", "cts": "cent",
    "pence": "penny", "ounce": "oz", "yard": "yd", "year": "yr", "week": "wk", "gallon": "gal", "quart": "qt",
    "pint": "pt",
}  # fmt: skip
_SCALE = "|".join(rf"(?:{word})\b" if word[0].isalpha() and word[0] < "\u2e80" else word for word in _SCALES)


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
    менее doubled halved tripled"""
)
# Words that change it when they stand among the three words behind it ("5 squared", "5 thirds", "5 to the power").
_CHANGES_AFTER = _set(
    """squared cubed square cube half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths
    seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths plus minus
    multiplied divided modulo mod factorial power pi infinity score gross bn mn mil basis bps percentage pp th st nd
    rd too off point backwards backward reversed ppm ppb mille no nope hundred thousand million billion
    trillion dozen
    percent pct log ln sin cos tan sqrt ish odd something doubled doubling halved halving tripled negated"""
)
_GAINED = _set(
    """gain gains gained increase increases increased rise rises rose profit profits growth grew surplus raise raised up
    upward upwards above earned"""
)
_LOST = _set(
    """loss losses lost decrease decreases decreased drop drops dropped fall falls fell decline declines declined
    deficit debt reduction reduced down downward downwards below"""
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
_LETTER_BEFORE = re.compile(r"[A-Za-z]\Z|(?<![^\W_])(?<!\w['’])[B-HJ-Zb-hj-z] \Z")
_LETTER_AFTER = re.compile(r" ?(?![mgshlLVJWNKCFA](?:\b|[²³]))[A-Za-zα-λν-ωΑ-Ψ](?![^\W\d_])")
_CITED = re.compile(
    r"\b(?:see|from|by|using|use|recall|per|with|into|according to)\s(?:the\s)?(?:eqn?s?\.?|fig\.|(?:equation|step"
    r"|lemma|theorem|formula|figure|table|identity|inequality|corollary|proposition|definition|appendix|note)s?)\s?\(?\Z",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[^.!?？]{0,40}[?？]")
_HYPHEN = re.compile(r"\A[-/](?=[A-Za-z]{2})")
_UNIT = re.compile(r"[ -]?(°?[^\W\d_][^.,;:?()\[\]。，；：、]*)")


def shared_currency(one: str, other: str) -> str:
    """Return the code that both names of a currency can stand for, or "": the sign ¥ stands for two."""
    return "/".join(code for code in one.split("/") if code in other.split("/"))


def in_context(number: Fraction, before: str, after: str) -> Quantity:
    """Return a number with what stands before and behind it, in plain notation, if that is understood."""
    currency, percent = "", False
    if head := _BEFORE.search(before):
        before = before[: head.start()]
        currency = _CURRENCIES.get((head["currency"] or "").lower(), "")
        number = -number if bool(head["minus"]) != bool(head["inner"]) else number
    while tail := _AFTER.match(after):
        if tail["scale"] and not percent:
            number *= next(value for word, value in _SCALES.items() if re.fullmatch(word, tail["scale"], re.IGNORECASE))
        elif tail["percent"] and not percent:
            percent = True
        elif tail["currency"]:
            name = tail["currency"].lower()
            named = _CURRENCIES.get(name) or _CURRENCIES[name.rstrip("s")]
            currency = shared_currency(currency, named) if currency else named
            if not currency:
                raise NumberError("several_answers", "two different currencies")
        else:
            break
        after = after[tail.end() :]
    after = _HYPHEN.sub(" ", after)
    if denies_next(before) or _CITED.search(before) or _ASKED.match(after):
        raise NumberError("unparsable_answer", "the number is denied, asked about, or that of a part of the text")
    words_before, words_after = require_harmless(before), require_harmless(after)
    if not _CHANGES_BEFORE.isdisjoint(words_before[-2:]) or not _CHANGES_AFTER.isdisjoint(words_after[:3]):
        raise NumberError("unparsable_answer", "a word beside the number may change it")
    if _LETTER_BEFORE.search(before) or _LETTER_AFTER.match(after):
        raise NumberError("unparsable_answer", "a single letter beside the number may be a variable")
    unit = _UNIT.match(after)
    return Quantity(
        number, percent, currency, _words(unit[1]) if unit else (), _direction(words_before[-6:], words_after[:3])
    )


def _direction(before: list[str], after: list[str]) -> int:
    for word in (*reversed(before), *after):
        if word in _GAINED or word in _LOST:
            return 1 if word in _GAINED else -1
    return 0


def require_harmless(text: str) -> list[str]:
    """Return the words of the text beside a number, in lower case, if it holds no operator, loose sign or denial."""
    words = _WORD.findall(text.lower())
    if not _HARMLESS.fullmatch(text) or _LOOSE_SIGN.search(text) or _FORBIDDEN_CJK.search(text):
        raise NumberError("unparsable_answer", "signs beside the number may change it")
    if not _DENIALS.isdisjoint(words):
        raise NumberError("unparsable_answer", "a word beside the number denies it or offers another")
    return words


def _words(unit: str) -> tuple[str, ...]:
    return tuple("/".join(map(_singular, word.split("/"))) for word in re.sub(r" per ", "/", unit.lower()).split())


def _singular(word: str) -> str:
    word = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return _SYMBOLS.get(word, word)


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
_SUM_OF_LETTERS = re.compile(r"\A\W{0,3}[a-z](?: ?\+ ?[a-z])+\Z")  # m+n = 73
_PERCENT = re.compile(r" ?(?:%|percent\b|per cent\b)", re.IGNORECASE)
_ARITHMETIC = r"[-+*/÷x] ?\$?\d"
_WORKED_OUT = re.compile(
    rf"(?P<value>[^()=]*\d[^()=]*) \((?P<sum>[^()=]*\d[^()=]*{_ARITHMETIC}[^()=]*)\)[ .]*"
)  # 42 (6 * 7)
_COMES_TO = re.compile(rf"(\d ?{_ARITHMETIC}[\d,.]*) (?:gives|makes|yields|equals|is) (?=\W?\d)")
_FRACTION_OF = re.compile(
    r"\b(?:half|twice|double|triple|third|quarter|minus|negative|square|cube|root|reciprocal|inverse|opposite)"
    r"(?: of| the| that| this| it| my| [a-z])\b|\b[a-z]{1,2}[²³]",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"(?: ?%)?[ ,;]*(?:\(|or|i\.e\.|that is|which is|equivalently|即|也就是)[ ,;:]*\(?[ ,;:]*", re.IGNORECASE
)


def read_quantity(text: str, *, decimal: str = ".") -> Quantity:
    """Return the one number a text states, with the decimal mark "." or ","; the other one separates thousands.

    Raises:
        NumberError: there is no number, more than one value, or something that may change the value.
    """
    if len(text) > MAX_CHARACTERS:
        raise NumberError("too_complex", f"{len(text)} characters; one number may take {MAX_CHARACTERS}")
    if _SIMPLE.fullmatch(text):
        return Quantity(Fraction(text))
    text = plain_notation(undecorated(text), decimal)
    if worked := _WORKED_OUT.fullmatch(text):
        text = f"{worked['sum']} = {worked['value']}"
    sides = re.split(r" ?[=≈] ?", _COMES_TO.sub(r"\1 = ", text))
    if not any(map(_has_digit, sides)):
        raise NumberError("no_answer", "there is no number")
    if not _has_digit(sides[-1]):
        raise NumberError("unparsable_answer", "an equation that does not end in a number")
    quantities, sums = [], []
    for side in sides:
        if not _has_digit(side):
            require_harmless(_SUM_OF_LETTERS.sub("", side))
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
    while token := _TOKEN.search(side, at):
        previous = side[token.start() - 1 : token.start()]
        if token["sign"] and (previous.isalnum() or previous in tuple(")]}%!.")):
            at = token.start() + 1
            continue
        if previous and (previous in "._^\\{}" or previous.isdecimal()):
            raise NumberError("unparsable_answer", "digits joined to something else")
        yield token
        at = token.end()


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
