"""A response with the units that constraints count, each found once however many constraints ask for it.

Not covered: units of single families of kinds (`text_units` counts as our own kinds do).
"""

from __future__ import annotations

import re
import string
from functools import cached_property
from typing import Final

from adjudge.instructions import sentences as sentence_rules
from adjudge.instructions.disguise import Packed
from adjudge.instructions.rendering import as_read
from adjudge.instructions.text_units import in_plain_signs
from adjudge.instructions.tokens import tokens
from adjudge.instructions.visible import in_plain_letters

_WORD = re.compile(r"\w+")
_CODE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})(?![ \t]*(?:markdown|md)\b)[^\n]*\n(?:.*?^[ \t]*\1[`~]*|.*)", re.MULTILINE | re.DOTALL
)
_NO_MARKS: Final = dict.fromkeys(map(ord, string.punctuation))


class Text:
    """A response and its units.

    Attributes:
        raw: the response as it is written.
        shown: whether its words are those that a reader sees; else every character counts.
    """

    def __init__(self, raw: str, *, shown: bool = True) -> None:
        """Hold a response; its units are found when they are asked for."""
        self.raw = raw
        self.shown = shown

    @cached_property
    def read(self) -> str:
        """What is read of it: without tags, targets of links and the like."""
        return in_plain_letters(as_read(self.raw)) if self.shown else self.raw

    @cached_property
    def outside_code(self) -> str:
        """What is read of it outside fences of code, in which no mark of Markdown counts."""
        return Text(_CODE.sub("", self.raw), shown=self.shown).read if _CODE.search(self.raw) else self.read

    @cached_property
    def lower(self) -> str:
        """What is read in small letters."""
        return self.read.lower()

    @cached_property
    def words(self) -> list[str]:
        r"""Its runs of letters, digits and underscores: how IFEval counts words (`\w+`)."""
        return _WORD.findall(self.read)

    @cached_property
    def chunks(self) -> list[str]:
        """What stands between white space."""
        return self.read.split()

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, as newlines part them."""
        return self.raw.split("\n")

    @cached_property
    def bare(self) -> str:
        """What is read without ASCII punctuation."""
        return without_marks(self.read)

    @cached_property
    def bare_words(self) -> list[str]:
        """Words in small letters, without ASCII punctuation, as white space parts them."""
        return self.bare.lower().split()

    @cached_property
    def sentences(self) -> list[str]:
        """Its sentences, as Punkt parts them."""
        return sentence_rules.sentences(self.read)

    @cached_property
    def tokens(self) -> list[str]:
        """Words and marks, as the Treebank tokenizer parts them."""
        return [token for sentence in self.sentences for token in tokens(sentence)]

    def times(self, word: str) -> int:
        """Return how often a word occurs by itself, case aside; in disguise too, where a reader sees through it."""
        plain = re.compile(whole_word(in_plain_signs(word)), re.IGNORECASE)
        found = max(len(plain.findall(in_plain_signs(text))) for text in {self.raw, self.read})
        return max(found, self.disguised(word))

    def disguised(self, word: str) -> int:
        """Return how often a word occurs by itself, as it is or in disguise, where a reader sees it."""
        return self._packed.times(word) if self.shown else 0

    @cached_property
    def _packed(self) -> Packed:
        return Packed(self.read)


def whole_word(word: str) -> str:
    r"""Return a pattern that finds a word by itself: with `\b` at an end that is a letter, a digit or an underscore.

    At another end, as in "C++" or ".NET", `\b` would ask for a letter beside it, so that the word were never found.
    """
    word = word.strip()
    before, after = (r"\b" if end and _WORD.match(end) else "" for end in (word[:1], word[-1:]))
    return f"{before}{re.escape(word)}{after}"


def without_marks(text: str) -> str:
    """Return a text without ASCII punctuation."""
    return text.translate(_NO_MARKS)
