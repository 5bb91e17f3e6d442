"""A response as a reader sees it: what a check on letters can be fooled with, taken out.

Characters without a shape part words and hide forbidden ones, letters of another alphabet look like the right ones,
and markup hides text that counts (`rendering`).  What scripts need stays: joiners in words that are not Latin and
between emoji, accents, and words in other alphabets.

Not covered: letters that only look like others beyond those here (`text` knows more).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from adjudge.responses.rendering import without_hidden

_HIDDEN: Final = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""What Unicode calls ignorable by default, and control characters that are not white space."""

_BLANK: Final = r"\u2800\u3164\uffa0"  # letters and signs that look like a blank
_JOINER: Final = r"\u200b-\u200d"
_SELECTOR: Final = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STYLE: Final = r"\uff01-\uff5e\u24b6-\u24e9\U0001d400-\U0001d7ff"
_MARK: Final = r"\u0300-\u036f\u20d0-\u20e2"
_GREEK_OR_CYRILLIC: Final = r"\u0370-\u04ff"
_SMALL_CAPITALS: Final = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True))
_RESTYLED: Final = {
    **{ord(one): plain for one, plain in _SMALL_CAPITALS.items()},
    **{start + at: chr(ord("A") + at) for start in (0x1F130, 0x1F150) for at in range(26)},  # in squares and discs
}

_NEVER_SEEN = re.compile(f"[{_HIDDEN}]")
_BLANKS = re.compile(f"[{_BLANK}]")
_JOINERS = re.compile(f"[{_JOINER}]+")
# Latin, Greek and Cyrillic, and ASCII, kana, ideographs and Hangul: nothing is joined there.
_PLAIN = re.compile(r"[\x00-\u052f\u1e00-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_SELECTORS = re.compile(rf"(?<=[^\W\d_])[{_SELECTOR}]+")
_STYLED = re.compile(f"[{_STYLE}]")
_STRUCK = re.compile(f"(?<=[A-Za-z])[{_MARK}]+")
_OTHER = re.compile(f"[{_GREEK_OR_CYRILLIC}]")

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_ODD = re.compile(r"[^\t-\r\x1c-~]+")  # what is neither ASCII that is seen nor white space of ASCII
_SUSPECT = re.compile(
    f"[{_HIDDEN}{_BLANK}{_JOINER}{_SELECTOR}{_STYLE}{_MARK}{_GREEK_OR_CYRILLIC}{''.join(map(chr, _RESTYLED))}]"
)
"""Every character that something below looks for: most texts have none, and of those only what is odd is looked at."""

_WORD = re.compile(r"\w+")
_LATIN = re.compile(r"[A-Za-z]")
_LOOK_ALIKE: Final = str.maketrans(
    "АВЕКМНОРСТХаеорсухіјѕԛԝІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABEKMHOPCTXaeopcyxijsqwIJSABEZHIKMNOPTYXo",
)


def visible(text: str) -> str:
    """Return what a reader sees of a text; the text itself where nothing is hidden.  Linear in its length."""
    return in_plain_letters(without_hidden(text))


def in_plain_letters(text: str) -> str:
    """Return a text without characters that have no shape, and with letters that look like Latin ones as these."""
    suspect = _CONTROL.search(text) if text.isascii() else _SUSPECT.search("".join(_ODD.findall(text)))
    if not suspect:
        return text
    text = _BLANKS.sub(" ", _NEVER_SEEN.sub("", text))
    text = _JOINERS.sub(_joined, _SELECTORS.sub("", text))
    text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text).translate(_RESTYLED)
    text = _STRUCK.sub(_accent, text)
    return _one_alphabet(text) if _OTHER.search(text) else text


def _joined(match: re.Match[str]) -> str:
    """Return joiners where both neighbours may need them; at an end of the text nothing is joined."""
    text, start, end = match.string, match.start(), match.end()
    needed = start > 0 and end < len(text) and not _PLAIN.match(text, start - 1) and not _PLAIN.match(text, end)
    return match[0] if needed else ""


def _accent(match: re.Match[str]) -> str:
    """Return marks that make a letter of their own with the one before; those that only strike it out go."""
    letter = match.string[match.start() - 1]
    return match[0] if len(unicodedata.normalize("NFC", letter + match[0][:1])) == 1 else ""


def _one_alphabet(text: str) -> str:
    """Return a text with look-alikes turned into Latin letters: in words that have some, or in a text that is Latin."""
    mostly_latin = len(_OTHER.findall(text)) * 10 < len(_LATIN.findall(text))

    def turned(match: re.Match[str]) -> str:
        word = match[0]
        if word.isascii() or not _OTHER.search(word):
            return word
        latin = word.translate(_LOOK_ALIKE)
        return latin if _LATIN.search(word) or (mostly_latin and latin.isascii()) else word

    return _WORD.sub(turned, text)
