"""Words, sentences, paragraphs and lines of a response, as constraints count them.

A paragraph is text between blank lines, a sentence ends in a mark before white space, before a word that begins with a
capital letter, or at the end of its line, and each holds a word.  So there are at least as many words as sentences, and
as sentences as paragraphs.  The period of an abbreviation ("e.g. this"), of an initial or of a number that begins a
line ends none.

Not covered: abbreviations beyond the list here, and words of languages that write without spaces: each ideograph
counts as one, and so does each run of katakana or of other letters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from adjudge.responses.markup import UNSPACED
from adjudge.verifiers.instructions.sentences import STARTERS

_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_HANGUL = "\uac00-\ud7a3"
_UNSPACED = f"{UNSPACED}\u3005-\u3007\uff66-\uff9f"
SPACED_SIGN: Final = rf"[^\W{_UNSPACED}{_HANGUL}]"
"""A letter, a digit or an underscore that makes one word with another beside it."""

_LETTER = rf"[^\W_{_UNSPACED}{_HANGUL}]"
_ITSELF = rf"(?![{_IDEOGRAPH}{_KATAKANA}])"  # each ideograph is a word, and so is a run of katakana
_WORD = re.compile(
    rf"{_LETTER}+(?:['’-]{_LETTER}+)*[{_HANGUL}]*|[{_IDEOGRAPH}]|[{_KATAKANA}]+"
    rf"|(?:{_ITSELF}[{_UNSPACED}])+|[{_HANGUL}]+(?:['’-][{_HANGUL}]+)*"
)
_ENDING = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[a-z]{2}[.!?])(?=[A-Z][a-z])|(?<=[。！？])|\n")
_LAST_WORD = re.compile(r"(?:^|[\s(\"'“‘\[])([^\W_][\w.]{0,15})\.\Z")
_NAME = re.compile(r"(?:[A-Z]\.\s?){0,4}[A-Z][^\W\d_]")  # behind an initial
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_BEFORE_NAMES: Final = frozenset(  # and before numbers: the next word may begin with a capital letter
    "mr mrs ms messrs dr prof rev hon gov sen rep gen col maj lt sgt capt st mt fig figs eq vol no nos ch sec pp p vs "
    "cf e.g i.e viz al approx ca est dept tel ext".split()
)
_AT_ANY_END: Final = frozenset("a.m p.m etc inc ltd co corp jr sr ph.d u.s u.k d.c b.c a.d min max ft hr hrs".split())
_HEADING = re.compile(r"^(#{1,6}) +(\S.*)", re.MULTILINE)
_RULE: Final = r"(?!\*[ \t]*\*[ \t]*\*[ \t*]*$|-[ \t]*-[ \t]*-[ \t-]*$)"
PLUS: Final = r"\+ +(?=.*(?:[^\W\d_]{2}|[^\x00-\x7f]))"
"""A plus sign that marks an item: in front of figures it adds, or begins a telephone number."""

_BULLET = re.compile(rf"^[ \t]*{_RULE}(?:[*–-] +|{PLUS}|[•‣▪◦●∙] *)(\S.*)", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]*\d{1,3}[.)] +(\S.*)", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_PIPE = re.compile(r"(?<!\\)\|")
_LAST: Final = '*_~`"“” \t\r\n'  # what may stand around a text that is emphasised or quoted
_AROUND: Final = r"[\s\"“”*_~`#>]*"
_APART = re.compile(r"[.!?…][\"”'’)*_~]*\s+[.!?]+\Z")
_PLAIN: Final = str.maketrans("‘’ʼ＇‐‑‒", "'" * 4 + "---")
_SHORT_BEFORE: Final = r"(?<=(?<![^\W_]|['-])[cdjlmnstCDJLMNST]')"  # French and Italian
_SHORT_BEHIND: Final = "(?i:s|d|m|ll|re|ve)"
_GLUE = re.compile(r"(?<=[^\W\d_])(?:-|['’](?=[^\W\d_]+['’-]))(?=[^\W\d_])|(?<=[a-z])(?=[A-Z][a-z])")
_SYLLABLES = re.compile(f"[{_HANGUL}]+\\Z")
_PARTICLE: Final = "들?(?:[은는이가을를의에로와과도만]|에서|에게|으로|까지|부터|보다|처럼|입니다|이다)"
_SOUTH_EAST = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_BREAK: Final = "\u200b?"
_GAP: Final = r"[*_~]{0,3}\s+[*_~]{0,3}"

SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "en": re.compile(r"[A-Za-z]"),
        "zh": re.compile(rf"[{_IDEOGRAPH}]"),
        "ru": re.compile(r"[\u0400-\u04ff]"),
        "ar": re.compile(r"[\u0600-\u06ff]"),
        "ko": re.compile(r"[\uac00-\ud7a3]"),
    }
)
"""Languages that are told apart, by the letters they are written in."""


def words(text: str) -> list[str]:
    """Return the words."""
    return _WORD.findall(text)


def may_share_a_word(phrase: str) -> bool:
    """Return whether two phrases of such letters may occur in one of the `words`."""
    return bool(re.search(f"{_ITSELF}[{_UNSPACED}{_HANGUL}]", phrase))


def sentences(text: str) -> list[str]:
    """Return the sentences; a line break ends one too."""
    pieces, start = [], 0
    for ending in _ENDING.finditer(text):
        if "\n" in ending[0] or not _is_abbreviated(text[start : ending.start()], text[ending.end() :][:40]):
            pieces.append(text[start : ending.start()])
            start = ending.end()
    return [piece for piece in (*pieces, text[start:]) if _WORD.search(piece)]


def _is_abbreviated(before: str, after: str) -> bool:
    """Return whether a text ends in the period of an abbreviation, of an initial or of a number that begins a line."""
    last = _LAST_WORD.search(before, max(0, len(before) - 20))
    if not last:
        return False
    word, following = last[1], _FIRST_WORD.match(after)
    named = after[:1].isdigit() or (following is not None and following[0].lower() not in STARTERS)
    if word.isdigit():
        return not before[: last.start(1)].strip() and len(word) < 4
    if len(word) == 1:
        return word.isupper() and named and bool(_NAME.match(after))
    if word.lower() in _BEFORE_NAMES:
        return named or word.lower() in ("e.g", "i.e")
    return word.lower() in _AT_ANY_END and after[:1].islower()


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs."""
    return [piece for piece in re.split(r"\n[ \t]*\n", text) if _WORD.search(piece)]


COUNTS: Final[Mapping[str, Callable[[str], int]]] = MappingProxyType(
    {
        "characters": len,
        "words": lambda text: len(words(text)),
        "sentences": lambda text: len(sentences(text)),
        "paragraphs": lambda text: len(paragraphs(text)),
    }
)
"""What a length may be counted in."""


def glued(text: str) -> int:
    """Return how many words are glued to the one before, beyond the compounds of ordinary prose."""
    return max(0, len(_GLUE.findall(text)) - max(3, len(words(text)) // 4))


def occurrences(phrase: str, text: str, *, banned: bool = False) -> int:
    """Return how often a phrase stands in a text, as words of its own; case aside.

    "Cat's" has a "cat" and "cat-flap" none, because that is one word; where it is banned, it has one, too.
    Apostrophes and hyphens may be of any kind.
    """
    pattern = words_of_their_own(phrase.casefold(), joint="'" if banned else "['-]")
    return len(re.findall(pattern, in_plain_signs(text.casefold())))


def words_of_their_own(phrase: str, joint: str = "['-]") -> str:
    """Return a pattern that finds a phrase as words of its own in a text `in_plain_signs`, with emphasis or without.

    What is short for another word ("it's", "l'eau") leaves the word beside it one of its own, and no number is a part
    of a longer one ("5" of "5.5" or "1,100").
    """
    before, after = bounds(phrase, joint=joint)
    before, after = f"(?:{before}|{_SHORT_BEFORE})", f"(?:{after}|(?='{_SHORT_BEHIND}(?!{joint}?{_LETTER})))"
    if phrase[:1].isdigit():
        before += r"(?<!\d[.])" + r"(?<!\d,)" * bool(re.match(r"\d{3}(?!\d)", phrase))
    if phrase[-1:].isdigit():
        after += r"(?!\.\d|,\d{3}(?!\d))"
    return f"{before}{_GAP.join(map(spelled, in_plain_signs(phrase).split()))}{after}"


def bounds(phrase: str, *, joint: str = "", underscore: bool = False) -> tuple[str, str]:
    """Return patterns that hold before and behind a phrase where it is no part of a longer word.

    Scripts without blanks have no such bounds, but katakana is a part of katakana alone, and a particle of Korean
    follows its word.

    Args:
        phrase: what is looked for.
        joint: signs that make one word of what stands on their two sides.
        underscore: whether the underscore is a letter.
    """
    first, last = _joining(phrase[:1], underscore), _joining(phrase[-1:], underscore)
    before = f"(?<!{first})" + (f"(?<!{first}{joint})" if joint else "") if first else ""
    if syllables := _SYLLABLES.search(phrase):
        return before, "" if len(syllables[0]) > 1 else rf"(?={_PARTICLE}?(?!{last}))"
    return before, f"(?!{joint}{'?' * bool(joint)}{last})" if last else ""


def spelled(word: str) -> str:
    """Return a pattern of a word; where scripts have no blanks, one without a shape may stand for them."""
    return _BREAK.join(map(re.escape, word)) if _SOUTH_EAST.search(word) else re.escape(word)


def _joining(letter: str, underscore: bool) -> str:
    """Return the class of characters that make one word with a letter beside them, "" where there are none."""
    for script in (f"[{_KATAKANA}]", f"[{_HANGUL}]"):
        if re.match(script, letter):
            return script
    if not re.match(r"\w" if underscore else r"[^\W_]", letter) or re.match(f"[{_UNSPACED}]", letter):
        return ""
    return SPACED_SIGN if underscore else _LETTER


def in_plain_signs(text: str) -> str:
    """Return a text with apostrophes and hyphens of ASCII."""
    return text if text.isascii() else text.translate(_PLAIN)


def begins(text: str, phrase: str) -> bool:
    """Return whether a text begins with a phrase as words of its own, quotation marks and emphasis aside."""
    return bool(re.match(_AROUND + words_of_their_own(phrase), in_plain_signs(text)))


def ends(text: str, phrase: str) -> bool:
    """Return whether a text ends with a phrase as words of its own, quotation marks and emphasis aside."""
    end = in_plain_signs(text).rstrip(_LAST)[-4 * len(phrase) - 40 :]
    return bool(re.search(rf"{words_of_their_own(phrase.rstrip(_LAST))}\Z", end))


def last_sign(text: str) -> str:
    """Return the last character, quotation marks and emphasis aside; "" for a mark that stands behind no word."""
    end = text.rstrip(_LAST)
    alone = not any(map(str.isalnum, end.rpartition("\n")[2])) or _APART.search(end[-20:])
    return "" if alone else end[-1:]


def headings(text: str, level: int) -> list[str]:
    """Return the Markdown headings of a level."""
    return [heading[2] for heading in _HEADING.finditer(text) if len(heading[1]) == level]


def bullets(text: str) -> list[str]:
    """Return the items of lists, each with the line it begins on; numbered ones where no other sign marks any."""
    return _BULLET.findall(text) or _NUMBERED.findall(text)


def _tables(text: str) -> list[list[str]]:
    """Return the lines of each Markdown table, without the rule below its head."""
    tables: list[list[str]] = []
    lines = text.splitlines()
    for at, line in enumerate(lines[1:], 1):
        head = lines[at - 1]
        if "|" in line and "|" in head and _TABLE_RULE.match(line) and len(_cells(line)) == len(_cells(head)):
            rows = itertools.takewhile(lambda row: "|" in row, itertools.islice(lines, at + 1, None))
            tables.append([head, *rows])
    return tables


def _cells(line: str) -> list[str]:
    return _PIPE.split(line.strip().removeprefix("|").removesuffix("|"))


def table_rows(text: str) -> list[int]:
    """Return for each Markdown table its rows below the head."""
    return [len(lines) - 1 for lines in _tables(text)]


def table_columns(text: str) -> list[int]:
    """Return for each Markdown table its columns."""
    return [len(_cells(head)) for head, *_ in _tables(text)]


def tables_hold_something(text: str) -> bool:
    """Return whether half of the cells of all tables, or more, have a letter or a digit."""
    cells = [cell for lines in _tables(text) for line in lines for cell in _cells(line)]
    return 2 * sum(any(map(str.isalnum, cell)) for cell in cells) >= len(cells)


def bracketed(line: str) -> int:
    """Return how many times "[" is followed by "]" in a line."""
    count, start = 0, line.find("[")
    while start >= 0 and (end := line.find("]", start)) >= 0:
        count += 1
        start = line.find("[", end)
    return count


def starred(lines: Sequence[str]) -> int:
    """Return how many lines begin with one star; a line that is a star alone takes the next line as its text."""
    count, taken = 0, False
    for at, line in enumerate(lines):
        inside = line.lstrip()
        alone = inside == "*"
        starred = (
            not taken and inside.startswith("*") and not inside.startswith("**") and (not alone or at + 1 < len(lines))
        )
        count += starred
        taken = starred and alone
    return count


def script_share(text: str, language: str) -> float:
    """Return which share of the letters belongs to a language; 0 where there are none."""
    letters = sum(letter.isalpha() for letter in text)
    return len(SCRIPTS[language].findall(text)) / letters if letters else 0.0
