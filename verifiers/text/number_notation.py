r"""Rewrite the many notations of a number into one ASCII notation, without reading it.

One minus sign and one fraction sign, ASCII digits, "10^n" for powers of ten, "a/b" for `\frac` and vulgar fractions,
"," between thousands, no LaTeX spacing, no mathematics dollars.  What is not known stays as it is, so that the
reader can refuse it.

Not covered: sizes.  The caller bounds the length of the text first.
"""

from __future__ import annotations

import re
import unicodedata

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
_EMPHASIS = re.compile(r"\*\*([^*\n]+)\*\*|`([^`\n]+)`")
_EXPONENT = re.compile(r"\^\s?(?:\{\s?([+-]?\d+)\s?\}|\(\s?([+-]?\d+)\s?\))")
_UNIT_POWER = re.compile(r"(\d ?[A-Za-z]{1,4})\^([23])(?!\d)")
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
    text = _PLAIN_SPACE.sub(lambda found: found[0].replace(" ", ","), _THOUSANDS_SPACE.sub(",", text))
    if not text.isascii():
        text = _ascii(text)
    text = _MATH_DOLLARS.sub(r" \1 ", text.replace("$$", "$"))
    if "\\" in text:
        text = _without_latex(text)
    text = _EMPHASIS.sub(lambda found: f" {found[1] or found[2]} ", text)
    text = _EXPONENT.sub(lambda found: f"^{found[1] or found[2]}", text)
    text = _UNIT_POWER.sub(lambda found: found[1] + "²³"[int(found[2]) - 2], " ".join(text.replace("~", " ").split()))
    return _SIGN_OF_FRACTION.sub(r"\1", text)


def _ascii(text: str) -> str:
    for char in _VULGAR.keys() & set(text):
        text = text.replace(char, f" {_VULGAR[char]} ")
    text = _SUPERSCRIPT_RUN.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text).translate(_SIGNS)
    return "".join(map(_ascii_digit, text))


def _ascii_digit(char: str) -> str:
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)


def _without_latex(text: str) -> str:
    text = _SPACING.sub(" ", text).replace("\\%", "%").replace("\\$", "$").replace("\\approx", "≈")
    text = _TIMES.sub("*", text)
    for _ in range(3):
        text = _TEXT_COMMAND.sub(r" \1 ", text)
    return _SHORT_FRACTION.sub(r" \1/\2 ", _FRACTION.sub(r" \1/\2 ", text))
