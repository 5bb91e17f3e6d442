"""The 25 kinds of IFEval (Zhou et al., 2311.07911), which meet what the published checkers meet.

Where those are looser than their words, so is this, because published numbers are comparable only then: a title may
hold "<", "exactly 3 bullet points" counts lines with a dash.  Different here: keywords are texts, not regular
expressions; and a text of no language (digits alone) is in no language, where the published checker lets it pass.

Not covered: IFEval's kinds that its registry leaves out (rephrasing, key sentences, multi-turn).
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from adjudge.verifiers.instructions.check import Check, Finding
from adjudge.verifiers.instructions.language_detection import LANGUAGES, language_of
from adjudge.verifiers.instructions.substance import (
    apart,
    besides,
    commas,
    different,
    has_values,
    holds_something,
    is_mentioned,
    is_quoted_as_one,
    letters_apart,
    times_apart,
    worth,
)
from adjudge.verifiers.instructions.text import Text
from adjudge.verifiers.instructions.text_units import bracketed, starred

Relation = Literal["less than", "at least"]

_ANSWERS: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_STRONG = re.compile(r"\*\*[^\n*]*\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^\n*]+)(?<=[^\s*])\1(?![\w*])")
_PLACEHOLDER = re.compile(r"\[([^\[\]\n]+)\]")
_RULE = re.compile(r"\s?\*\*\*\s?")
_TIGHT_END = re.compile(r"(?<=[a-z]{2}[.!?])(?=[A-Z][a-z])|(?<=[A-Za-z][。！？｡．])")  # no blank behind the mark
_OTHER_BULLET = re.compile(r"[ \t]*[+•‣▪◦●∙] ?\w")
_FENCES: Final = ("```json", "```Json", "```JSON", "```")


def holds(count: int, relation: Relation, number: int) -> bool:
    """Return whether a count is less than a number, or at least it."""
    return count < number if relation == "less than" else count >= number


@dataclass(frozen=True, kw_only=True)
class Existence(Check):
    """All keywords occur, inside longer words too; case aside."""

    keywords: tuple[str, ...]

    def look(self, text: Text) -> Finding:
        """Look for each keyword."""
        missing = [word for word in self.keywords if not _times(word, text)]
        return Finding(not missing, {"missing": missing}, vacuous=not besides(text.read, self.keywords))


@dataclass(frozen=True, kw_only=True)
class Frequency(Check):
    """A keyword occurs so often, inside longer words too; case aside."""

    keyword: str
    frequency: int
    relation: Relation

    def look(self, text: Text) -> Finding:
        """Count the keyword."""
        times = _times(self.keyword.strip(), text)
        if self.relation == "less than":
            times = max(times, text.times(self.keyword))
        return Finding(holds(times, self.relation, self.frequency), {"times": times}, vacuous=self._is_filler(text))

    def _is_filler(self, text: Text) -> bool:
        if self.relation == "less than":
            return False
        return times_apart(self.keyword, text.read) < self.frequency or not besides(text.read, [self.keyword])


@dataclass(frozen=True, kw_only=True)
class ForbiddenWords(Check):
    """None of the words occurs as a word of its own, not even in disguise; case aside."""

    forbidden_words: tuple[str, ...]

    def look(self, text: Text) -> Finding:
        """Look for each word."""
        found = [word for word in dict.fromkeys(self.forbidden_words) if text.times(word)]
        return Finding(not found, {"found": found})


@dataclass(frozen=True, kw_only=True)
class LetterFrequency(Check):
    """A character occurs so often; case aside."""

    letter: str
    let_frequency: int
    let_relation: Relation

    def __post_init__(self) -> None:
        """Reject more than one letter."""
        if len(self.letter.strip()) != 1:
            raise ValueError(f"'letter' is {self.letter!r}; it must be one character")

    def look(self, text: Text) -> Finding:
        """Count the letter."""
        letter = self.letter.strip().lower()
        times = text.lower.count(letter)
        asked = self.let_relation == "at least" and letter.isalpha()
        filler = asked and letters_apart(letter, text.words) < self.let_frequency
        return Finding(holds(times, self.let_relation, self.let_frequency), {"times": times}, vacuous=filler)


@dataclass(frozen=True, kw_only=True)
class ResponseLanguage(Check):
    """The response is in a language, by its ISO 639-1 code."""

    group = "language"
    language: str

    def __post_init__(self) -> None:
        """Reject a language that is never told."""
        if self.language not in LANGUAGES:
            raise ValueError(f"'language' is {self.language!r}; it must be one of {', '.join(sorted(LANGUAGES))}")

    def look(self, text: Text) -> Finding:
        """Tell the language."""
        found = language_of(text)
        return Finding(bool(found) and self.language in (found, found.partition("-")[0]), {"language": found})


@dataclass(frozen=True, kw_only=True)
class NumberSentences(Check):
    """So many sentences."""

    group = "length"
    num_sentences: int
    relation: Relation

    def look(self, text: Text) -> Finding:
        """Count the sentences."""
        count = len(text.sentences)
        if self.relation == "less than":
            count += len(_TIGHT_END.findall(text.read))
        filler = self.relation == "at least" and different(text.sentences) < self.num_sentences
        return Finding(holds(count, self.relation, self.num_sentences), {"sentences": count}, vacuous=filler)


@dataclass(frozen=True, kw_only=True)
class NumberParagraphs(Check):
    """Exactly so many paragraphs, with "***" between them."""

    group = "length"
    num_paragraphs: int

    def look(self, text: Text) -> Finding:
        """Count the parts; one without words inside is a fault, an empty one at an end does not count."""
        parts = [html.unescape(part).strip() for part in _RULE.split(text.raw)]
        full = sum(map(bool, parts))
        met = all(any(map(str.isalnum, part)) for part in parts[1:-1]) and full == self.num_paragraphs
        return Finding(met, {"paragraphs": full}, vacuous=different(parts) < full)


@dataclass(frozen=True, kw_only=True)
class NumberWords(Check):
    r"""So many words (`\w+`)."""

    group = "length"
    num_words: int
    relation: Relation

    def look(self, text: Text) -> Finding:
        """Count the words."""
        count = len(text.words)
        if self.relation == "less than":
            count += sum(word.strip("_").count("_") for word in text.words if word.count("_") > 3)
        filler = self.relation == "at least" and worth(text.words) < self.num_words
        return Finding(holds(count, self.relation, self.num_words), {"words": count}, vacuous=filler)


@dataclass(frozen=True, kw_only=True)
class NthParagraphFirstWord(Check):
    """Exactly so many paragraphs with a blank line between them, one of which begins with a word."""

    group = "length"
    num_paragraphs: int
    nth_paragraph: int
    first_word: str

    def __post_init__(self) -> None:
        """Reject a paragraph that there is not."""
        if not 1 <= self.nth_paragraph <= self.num_paragraphs:
            raise ValueError(
                f"'nth_paragraph' is {self.nth_paragraph}; it must be 1 to {self.num_paragraphs} ('num_paragraphs')"
            )

    def look(self, text: Text) -> Finding:
        """Count the paragraphs, and read the first word of the one asked for."""
        parts = text.raw.split("\n\n")
        count = sum(bool(part.strip()) for part in parts)
        # As published: places count empty parts too, so a triple newline moves the paragraph looked at.
        chunks = parts[self.nth_paragraph - 1].split(maxsplit=1) if self.nth_paragraph <= count else []
        word = re.split(r"[.,?!'\"]", chunks[0].lstrip("'").lstrip('"').lower(), maxsplit=1)[0] if chunks else ""
        met = count == self.num_paragraphs and word == self.first_word.lower()
        return Finding(met, {"paragraphs": count, "first_word": word}, vacuous=different(parts) < count)


@dataclass(frozen=True, kw_only=True)
class NumberPlaceholders(Check):
    """At least so many placeholders in square brackets."""

    num_placeholders: int

    def look(self, text: Text) -> Finding:
        """Count the brackets that close on their line."""
        count = sum(map(bracketed, text.lines))
        real = apart([found for found in _PLACEHOLDER.finditer(text.read) if holds_something(found[0])], text.read)
        return Finding(count >= self.num_placeholders, {"placeholders": count}, vacuous=real < self.num_placeholders)


@dataclass(frozen=True, kw_only=True)
class Postscript(Check):
    """A postscript's marker occurs; case aside."""

    postscript_marker: str

    def look(self, text: Text) -> Finding:
        """Look for the marker; the two usual ones may have white space inside."""
        marker = self.postscript_marker.strip()
        usual = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
        marks = re.finditer(usual.get(marker, re.escape(marker.lower())), text.lower)
        found = next((mark for mark in marks if not is_mentioned(mark)), None)
        around = (text.lower[: found.start()], text.lower[found.end() :]) if found else ()
        return Finding(
            bool(found), {"marker": found[0] if found else ""}, vacuous=not all(map(holds_something, around))
        )


@dataclass(frozen=True, kw_only=True)
class NumberBulletLists(Check):
    """Exactly so many bullet points."""

    group = "format"
    num_bullets: int

    def look(self, text: Text) -> Finding:
        """Count the lines that begin with one star, or with a dash."""
        count = starred(text.lines) + sum(line.lstrip().startswith("-") for line in text.lines)
        items = [line.lstrip()[1:] for line in text.read.split("\n") if line.lstrip()[:1] in ("*", "-")]
        others = sum(bool(_OTHER_BULLET.match(line)) for line in text.lines)
        met = count == self.num_bullets and not others
        return Finding(met, {"bullets": count + others}, vacuous=different(items) < self.num_bullets)


@dataclass(frozen=True, kw_only=True)
class ConstrainedResponse(Check):
    """One of three answers occurs: "My answer is yes.", "no." or "maybe."."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look for each."""
        found = [answer for answer in _ANSWERS if answer in text.read]
        return Finding(bool(found), {"found": found}, vacuous=len(found) > 1)


@dataclass(frozen=True, kw_only=True)
class NumberHighlightedSections(Check):
    """At least so many texts between stars; "**this**" counts as strong text alone."""

    group = "format"
    num_highlights: int

    def look(self, text: Text) -> Finding:
        """Count those that are not empty."""
        plain = sum(bool(found.strip("*").strip()) for found in _HIGHLIGHT.findall(text.raw))
        strong = sum(bool(found[2:-2].strip()) for found in _STRONG.findall(text.raw))
        real = apart([found for found in _EMPHASIS.finditer(text.raw) if holds_something(found[2])], text.raw)
        return Finding(
            plain + strong >= self.num_highlights, {"highlights": plain + strong}, vacuous=real < self.num_highlights
        )


@dataclass(frozen=True, kw_only=True)
class MultipleSections(Check):
    """At least so many sections, each marked with a word and a number."""

    group = "format"
    section_spliter: str
    num_sections: int

    def look(self, text: Text) -> Finding:
        """Count the marks."""
        marks = re.finditer(rf"{re.escape(self.section_spliter.strip())}\s?\d+", text.raw)
        spans = [*(mark.span() for mark in marks if not is_mentioned(mark)), (len(text.raw), len(text.raw))]
        parts = [text.raw[end:start] for (_, end), (start, _) in itertools.pairwise(spans)]
        return Finding(
            len(parts) >= self.num_sections, {"sections": len(parts)}, vacuous=different(parts) < self.num_sections
        )


@dataclass(frozen=True, kw_only=True)
class JsonFormat(Check):
    """The response is JSON, in a code fence or not."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Parse it."""
        inside = text.raw.strip()
        for fence in _FENCES:
            inside = inside.removeprefix(fence)
        try:
            values = json.loads(inside.removesuffix("```").strip())
        except (ValueError, RecursionError) as error:
            return Finding(False, {"error": str(error)})
        return Finding(True, vacuous=not has_values(values))


@dataclass(frozen=True, kw_only=True)
class Title(Check):
    """A title in double angle brackets."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look on each line from its first "<<" to its last ">>"."""
        for line in text.lines:
            start, end = line.find("<<"), line.rfind(">>")
            title = line[start : end + 2].lstrip("<").rstrip(">").strip() if 0 <= start < end - 2 else ""
            if title:
                inside = re.match(r"\w", line[start - 1 : start] + line[end + 2 : end + 3], re.ASCII)
                return Finding(True, {"title": title}, vacuous=bool(inside) or not holds_something(title))
        return Finding(False, {"title": ""})


@dataclass(frozen=True, kw_only=True)
class TwoResponses(Check):
    """Two different responses with six stars between them."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Part it; an empty part inside is a fault, at an end it does not count."""
        parts = [part.strip() for part in text.raw.split("******")]
        full = list(filter(None, parts))
        met = all(parts[1:-1]) and len(full) == 2 and full[0] != full[1]
        return Finding(met, {"responses": len(full)}, vacuous=different(full) < len(full))


@dataclass(frozen=True, kw_only=True)
class RepeatPrompt(Check):
    """The response begins with the request, word for word; case aside."""

    prompt_to_repeat: str

    def look(self, text: Text) -> Finding:
        """Compare the beginning."""
        prompt, response = self.prompt_to_repeat.strip().lower(), text.raw.strip().lower()
        return Finding(response.startswith(prompt), vacuous=not holds_something(response[len(prompt) :]))


@dataclass(frozen=True, kw_only=True)
class EndChecker(Check):
    """The response ends with a phrase; case and a quotation mark aside."""

    end_phrase: str

    def look(self, text: Text) -> Finding:
        """Compare the end."""
        end, phrase = text.lower.strip().strip('"'), self.end_phrase.strip().lower()
        vacuous = not holds_something(end.removesuffix(phrase))
        return Finding(end.endswith(phrase), {"end": end[-len(phrase) - 20 :]}, vacuous=vacuous)


@dataclass(frozen=True, kw_only=True)
class CapitalWordFrequency(Check):
    """So many words in capital letters."""

    group = "language"
    capital_frequency: int
    capital_relation: Relation

    def look(self, text: Text) -> Finding:
        """Count the tokens in capital letters."""
        capital = [token for token in text.tokens if token.isupper()]
        marks = [found for found in re.finditer(r"\w+", text.read) if found[0].isupper()]
        filler = self.capital_relation == "at least" and apart(marks, text.read) < self.capital_frequency
        met = holds(len(capital), self.capital_relation, self.capital_frequency)
        return Finding(met, {"capital_words": len(capital)}, vacuous=filler)


@dataclass(frozen=True, kw_only=True)
class EnglishCapital(Check):
    """English, in capital letters only."""

    group = "language"

    def look(self, text: Text) -> Finding:
        """Look at the letters first, which is quick."""
        if not text.raw.isupper():
            return Finding(False, {"capital": False})
        return _english(text, "capital")


@dataclass(frozen=True, kw_only=True)
class EnglishLowercase(Check):
    """English, in small letters only."""

    group = "language"

    def look(self, text: Text) -> Finding:
        """Look at the letters first, which is quick."""
        if not text.raw.islower():
            return Finding(False, {"small": False})
        return _english(text, "small")


@dataclass(frozen=True, kw_only=True)
class NoComma(Check):
    """No comma."""

    def look(self, text: Text) -> Finding:
        """Count the commas."""
        found = max(text.raw.count(","), text.read.count(","))
        return Finding(not found, {"commas": found}, vacuous=bool(commas(text.read)))


@dataclass(frozen=True, kw_only=True)
class Quotation(Check):
    """The whole response stands in double quotation marks."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look at both ends."""
        inside = text.raw.strip()
        return Finding(len(inside) > 1 and inside[0] == '"' == inside[-1], vacuous=not is_quoted_as_one(inside))


IFEVAL: Final[Mapping[str, type[Check]]] = {
    "keywords:existence": Existence,
    "keywords:frequency": Frequency,
    "keywords:forbidden_words": ForbiddenWords,
    "keywords:letter_frequency": LetterFrequency,
    "language:response_language": ResponseLanguage,
    "length_constraints:number_sentences": NumberSentences,
    "length_constraints:number_paragraphs": NumberParagraphs,
    "length_constraints:number_words": NumberWords,
    "length_constraints:nth_paragraph_first_word": NthParagraphFirstWord,
    "detectable_content:number_placeholders": NumberPlaceholders,
    "detectable_content:postscript": Postscript,
    "detectable_format:number_bullet_lists": NumberBulletLists,
    "detectable_format:constrained_response": ConstrainedResponse,
    "detectable_format:number_highlighted_sections": NumberHighlightedSections,
    "detectable_format:multiple_sections": MultipleSections,
    "detectable_format:json_format": JsonFormat,
    "detectable_format:title": Title,
    "combination:two_responses": TwoResponses,
    "combination:repeat_prompt": RepeatPrompt,
    "startend:end_checker": EndChecker,
    "startend:quotation": Quotation,
    "change_case:capital_word_frequency": CapitalWordFrequency,
    "change_case:english_capital": EnglishCapital,
    "change_case:english_lowercase": EnglishLowercase,
    "punctuation:no_comma": NoComma,
}
"""Kinds by the names IFEval gives them."""


def _times(word: str, text: Text) -> int:
    return len(re.findall(re.escape(word), text.read, re.IGNORECASE))


def _english(text: Text, case: str) -> Finding:
    found = language_of(text)
    return Finding(found == "en", {case: True, "language": found})
