"""Whether a word or phrase stands in a text: whole words, in any case, accents and invisible characters made plain.

"Ann" is not in "annoyed"; in scripts without spaces a phrase is found anywhere.  "He is not Ann" holds the phrase and
does not affirm it; the test for denials is a short list of words right before the phrase, in English and Chinese.

Not covered: inflected forms, synonyms, and denials that come later or further off.
"""

from __future__ import annotations

import functools
import re
import unicodedata

_DENIAL = re.compile(
    r"(?:\b(?:not(?!\W+(?:only|just))|never|nor|neither|no(?!\W+doubt)|without)\b|n['’]t\b|不是|不叫|并非|没有)"
    r"\W{0,3}(?:\w+\W+){0,2}$"
)
ASKS_PERCENTAGE = re.compile(
    r"\b(?:what|which|how\s+(?:much|many)|find|determine|calculate)\b[^.?!]{0,300}\bpercent(?:age)?\b", re.IGNORECASE
)
"""Found in a question that asks for a percentage."""
_CLAUSE = re.compile(r"[.!?;,。！？；，\n]")
_REACH = 48  # characters before a phrase in which a denial is looked for
_UNSEEN = ("Mn", "Cf", "Cc", "Cs")
_ASCII_UNSEEN = dict.fromkeys(code for code in (*range(32), 127) if chr(code) not in "\n\t")


def found_in(key: str, text: str) -> bool:
    """Return whether a key stands in a text as a whole word or phrase."""
    return _pattern(key).search(plain(text)) is not None


def affirmed_in(key: str, text: str) -> bool:
    """Return whether a key stands in a text somewhere without a denial shortly before it in the same sentence."""
    made = plain(text)
    for phrase in _pattern(key).finditer(made):
        before = _CLAUSE.split(made[max(0, phrase.start() - _REACH) : phrase.start()])[-1]
        if not _DENIAL.search(before):
            return True
    return False


@functools.lru_cache(maxsize=8)  # a text is looked through for many phrases
def plain(text: str) -> str:
    """Return a text in small letters without accents, invisible characters and runs of spaces."""
    if text.isascii():
        return re.sub(r"[^\S\n]+", " ", text.translate(_ASCII_UNSEEN).lower()).strip()
    # Character by character: sorting a long run of accents takes the square of its length, and none of them stays.
    parts = "".join(unicodedata.normalize("NFKD", char) for char in text)
    kept = "".join(
        char
        for char in parts
        if char in "\n\t" or not (unicodedata.combining(char) or unicodedata.category(char) in _UNSEEN)
    )
    return re.sub(r"[^\S\n]+", " ", unicodedata.normalize("NFC", kept).casefold()).strip()


@functools.lru_cache(maxsize=4096)  # every response to a question is looked through for the same phrases
def _pattern(key: str) -> re.Pattern[str]:
    key = plain(key)
    spaced = r"\s+".join(map(re.escape, key.split()))
    before = r"(?<!\w)" if key[:1].isascii() and key[:1].isalnum() else ""
    after = r"(?!\w)" if key[-1:].isascii() and key[-1:].isalnum() else ""
    return re.compile(before + spaced + after)
