"""The 25 kinds of IFEval (Zhou et al., 2311.07911), which meet what the published checkers meet.

Where those are looser than their words, so is this, because published numbers are comparable only then: a title may
hold "<", "exactly 3 bullet points" counts lines with a dash.  Different here: keywords are texts, not regular
expressions; and a text of no language (digits alone) is in no language, where the published checker lets it pass.

The language of a text is told as the labels were made, by `langdetect`, which draws at random: unseeded, a text near a
border gets another language each time (of a list of names, 30 calls say "en" 18 times and "de" 12 times).  Seeded for
every text anew, a text has one language whatever came before it.  Each call is seven trials; where these differ, most
of five calls decide, as most labels were made.

Not covered: texts in several languages (only the first 10,000 characters are looked at), and IFEval's kinds that its
registry leaves out (rephrasing, key sentences, multi-turn).
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections import Counter
from functools import cache
from typing import Any, Final, Literal

from adjudge.extras import install_hint
from adjudge.verifiers.instructions.kind import Kinds, Observation
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
from adjudge.verifiers.instructions.text_units import PLUS, SPACED_SIGN, bracketed, starred

_REMEDY = f"the language of a text is told by langdetect, which is not installed; {install_hint('tasks')}"


LANGUAGES: Final = frozenset(
    "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr ne nl no pa pl pt ro "
    "ru sk sl so sq sv sw ta te th tl tr uk ur vi zh zh-cn zh-tw".split()
)
"""Codes of the languages that are told apart; "zh" is both ways to write Chinese."""

_DRAWS: Final = 5
_SURE: Final = 0.95  # all seven trials agree
_MOST: Final = 20_000  # characters that are handed on; of those, `langdetect` reads 10,000


class NoDetectorError(RuntimeError):
    """The package that tells languages apart is missing."""


def language_of(text: Text) -> str:
    """Return the ISO 639-1 code of a text's language, "zh-cn" or "zh-tw" for Chinese, "" where there are no letters.

    Raises:
        NoDetectorError: `langdetect` is not installed.
    """
    factory, error = _factory()
    votes: Counter[str] = Counter()
    for seed in range(_DRAWS):
        detector = factory.create()
        detector.seed = seed
        detector.append(text.raw[:_MOST])
        try:
            best = detector.get_probabilities()
        except error:
            return ""
        votes[best[0].lang if best else ""] += 1
        if seed == 0 and best and best[0].prob > _SURE:
            break
    return votes.most_common(1)[0][0]


@cache
def _factory() -> tuple[Any, type[Exception]]:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
        from langdetect.lang_detect_exception import LangDetectException
    except ImportError as error:
        raise NoDetectorError(_REMEDY) from error
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory, LangDetectException


Relation = Literal["less than", "at least"]

IFEVAL: Final = Kinds()
"""Kinds by the names IFEval gives them."""

_ANSWERS: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_STRONG = re.compile(r"\*\*[^\n*]*\*\*")
_EMPHASIS = re.compile(rf"(?<!\*)(?<!{SPACED_SIGN})(\*{{1,3}})(?=[^\s*])([^\n*]+)(?<=[^\s*])\1(?!\*|{SPACED_SIGN})")
_PLACEHOLDER = re.compile(r"\[([^\[\]\n]+)\]")
_TIGHT_END = re.compile(r"(?<=[a-z]{2}[.!?])(?=[A-Z][a-z])|(?<=[A-Za-z][。！？｡．])")  # no blank behind the mark
_OTHER_BULLET = re.compile(rf"[ \t]*(?:{PLUS}|[•‣▪◦●∙] ?\w)")
_FENCES: Final = ("```json", "```Json", "```JSON", "```")


def holds(count: int, relation: Relation, number: int) -> bool:
    """Return whether a count is less than a number, or at least it."""
    return count < number if relation == "less than" else count >= number


@IFEVAL.kind("keywords:existence")
def existence(text: Text, keywords: tuple[str, ...]) -> Observation:
    """All keywords occur, inside longer words too; case aside."""
    missing = [word for word in keywords if not _times(word, text)]
    return Observation(not missing, {"missing": missing}, vacuous=not besides(text.read, keywords))


@IFEVAL.kind("keywords:frequency")
def frequency(text: Text, keyword: str, frequency: int, relation: Relation) -> Observation:
    """A keyword occurs so often, inside longer words too; case aside."""
    times = _times(keyword.strip(), text)
    if relation == "less than":
        times = max(times, text.times(keyword))
        return Observation(times < frequency, {"times": times})
    filler = times_apart(keyword, text.read) < frequency or not besides(text.read, [keyword])
    return Observation(times >= frequency, {"times": times}, vacuous=filler)


@IFEVAL.kind("keywords:forbidden_words")
def forbidden_words(text: Text, forbidden_words: tuple[str, ...]) -> Observation:
    """None of the words occurs as a word of its own, not even in disguise; case aside."""
    there = [word for word in dict.fromkeys(forbidden_words) if text.times(word)]
    return Observation(not there, {"found": there})


def _check_letter_frequency(letter: str, let_frequency: int, let_relation: Relation) -> None:
    if len(letter.strip()) != 1:
        raise ValueError(f"'letter' is {letter!r}; it must be one character")


@IFEVAL.kind("keywords:letter_frequency", check=_check_letter_frequency)
def letter_frequency(text: Text, letter: str, let_frequency: int, let_relation: Relation) -> Observation:
    """A character occurs so often; case aside."""
    letter = letter.strip().lower()
    times = text.lower.count(letter)
    asked = let_relation == "at least" and letter.isalpha()
    filler = asked and (letters_apart(letter, text.words) < let_frequency or not besides(text.read, [letter]))
    return Observation(holds(times, let_relation, let_frequency), {"times": times}, vacuous=filler)


def _check_response_language(language: str) -> None:
    if language not in LANGUAGES:
        raise ValueError(f"'language' is {language!r}; it must be one of {', '.join(sorted(LANGUAGES))}")


@IFEVAL.kind("language:response_language", "language", check=_check_response_language)
def response_language(text: Text, language: str) -> Observation:
    """The response is in a language, by its ISO 639-1 code."""
    seen = language_of(text)
    return Observation(bool(seen) and language in (seen, seen.partition("-")[0]), {"language": seen})


@IFEVAL.kind("length_constraints:number_sentences", "length")
def number_sentences(text: Text, num_sentences: int, relation: Relation) -> Observation:
    """So many sentences."""
    count = len(text.sentences)
    if relation == "less than":
        count += len(_TIGHT_END.findall(text.read))
    filler = relation == "at least" and different(text.sentences, least=2) < num_sentences
    return Observation(holds(count, relation, num_sentences), {"sentences": count}, vacuous=filler)


@IFEVAL.kind("length_constraints:number_paragraphs", "length")
def number_paragraphs(text: Text, num_paragraphs: int, rule: Literal["***", "* * *"] = "***") -> Observation:
    """Exactly so many paragraphs, with a rule between them; one without words is a fault inside, none at an end."""
    parts = [html.unescape(part).strip() for part in re.split(rf"\s?{re.escape(rule)}\s?", text.raw)]
    full = sum(map(bool, parts))
    met = all(any(map(str.isalnum, part)) for part in parts[1:-1]) and full == num_paragraphs
    return Observation(met, {"paragraphs": full}, vacuous=different(parts) < full)


@IFEVAL.kind("length_constraints:number_words", "length")
def number_words(text: Text, num_words: int, relation: Relation) -> Observation:
    r"""So many words (`\w+`)."""
    count = len(text.words)
    if relation == "less than":
        count += sum(word.strip("_").count("_") for word in text.words if word.count("_") > 3)
    filler = relation == "at least" and worth(text.words) < num_words
    return Observation(holds(count, relation, num_words), {"words": count}, vacuous=filler)


def _check_nth_paragraph_first_word(num_paragraphs: int, nth_paragraph: int, first_word: str) -> None:
    if not 1 <= nth_paragraph <= num_paragraphs:
        raise ValueError(f"'nth_paragraph' is {nth_paragraph}; it must be 1 to {num_paragraphs} ('num_paragraphs')")


@IFEVAL.kind("length_constraints:nth_paragraph_first_word", "length", check=_check_nth_paragraph_first_word)
def nth_paragraph_first_word(text: Text, num_paragraphs: int, nth_paragraph: int, first_word: str) -> Observation:
    """Exactly so many paragraphs with a blank line between them, one of which begins with a word."""
    parts = text.raw.split("\n\n")
    count = sum(bool(part.strip()) for part in parts)
    # As published: places count empty parts too, so a triple newline moves the paragraph looked at.
    chunks = parts[nth_paragraph - 1].split(maxsplit=1) if nth_paragraph <= count else []
    word = re.split(r"[.,?!'\"]", chunks[0].lstrip("'").lstrip('"').lower(), maxsplit=1)[0] if chunks else ""
    met = count == num_paragraphs and word == first_word.lower()
    return Observation(met, {"paragraphs": count, "first_word": word}, vacuous=different(parts) < count)


@IFEVAL.kind("detectable_content:number_placeholders")
def number_placeholders(text: Text, num_placeholders: int) -> Observation:
    """At least so many placeholders in square brackets."""
    count = sum(map(bracketed, text.lines))
    real = apart([mark for mark in _PLACEHOLDER.finditer(text.read) if holds_something(mark[0])], text.read)
    return Observation(count >= num_placeholders, {"placeholders": count}, vacuous=real < num_placeholders)


@IFEVAL.kind("detectable_content:postscript")
def postscript(text: Text, postscript_marker: str) -> Observation:
    """A postscript's marker occurs; case aside, and white space inside the two usual ones."""
    marker = postscript_marker.strip()
    usual = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    marks = re.finditer(usual.get(marker, re.escape(marker.lower())), text.lower)
    mark = next((mark for mark in marks if not is_mentioned(mark)), None)
    if mark is None:
        return Observation(False, {"marker": ""})
    around = (text.lower[: mark.start()], text.lower[mark.end() :])
    return Observation(True, {"marker": mark[0]}, vacuous=not all(holds_something(one, least=2) for one in around))


@IFEVAL.kind("detectable_format:number_bullet_lists", "format")
def number_bullet_lists(text: Text, num_bullets: int) -> Observation:
    """Exactly so many bullet points: lines that begin with one star, or with a dash."""
    count = starred(text.lines) + sum(line.lstrip().startswith("-") for line in text.lines)
    items = [line.lstrip()[1:] for line in text.read.split("\n") if line.lstrip()[:1] in ("*", "-")]
    others = sum(bool(_OTHER_BULLET.match(line)) for line in text.lines)
    met = count == num_bullets and not others
    return Observation(met, {"bullets": count + others}, vacuous=different(items) < num_bullets)


@IFEVAL.kind("detectable_format:constrained_response", "format")
def constrained_response(text: Text) -> Observation:
    """One of three answers occurs: "My answer is yes.", "no." or "maybe."."""
    answers = [answer for answer in _ANSWERS if answer in text.read]
    return Observation(bool(answers), {"found": answers}, vacuous=len(answers) > 1)


@IFEVAL.kind("detectable_format:number_highlighted_sections", "format")
def number_highlighted_sections(text: Text, num_highlights: int) -> Observation:
    """At least so many texts between stars; "**this**" counts as strong text alone."""
    count = sum(bool(plain.strip("*").strip()) for plain in _HIGHLIGHT.findall(text.raw))
    count += sum(bool(strong[2:-2].strip()) for strong in _STRONG.findall(text.raw))
    real = apart([mark for mark in _EMPHASIS.finditer(text.raw) if holds_something(mark[2])], text.raw)
    return Observation(count >= num_highlights, {"highlights": count}, vacuous=real < num_highlights)


@IFEVAL.kind("detectable_format:multiple_sections", "format")
def multiple_sections(text: Text, section_spliter: str, num_sections: int) -> Observation:
    """At least so many sections, each marked with a word and a number."""
    marks = re.finditer(rf"{re.escape(section_spliter.strip())}\s?\d+", text.raw)
    spans = [*(mark.span() for mark in marks if not is_mentioned(mark)), (len(text.raw), len(text.raw))]
    parts = [text.raw[end:start] for (_, end), (start, _) in itertools.pairwise(spans)]
    filler = different(parts) < num_sections
    return Observation(len(parts) >= num_sections, {"sections": len(parts)}, vacuous=filler)


@IFEVAL.kind("detectable_format:json_format", "format")
def json_format(text: Text) -> Observation:
    """The response is JSON, in a code fence or not."""
    inside = text.raw.strip()
    for fence in _FENCES:
        inside = inside.removeprefix(fence)
    try:
        values = json.loads(inside.removesuffix("```").strip())
    except (ValueError, RecursionError) as error:
        return Observation(False, {"error": str(error)})
    return Observation(True, vacuous=not has_values(values))


@IFEVAL.kind("detectable_format:title", "format")
def title(text: Text) -> Observation:
    """A title in double angle brackets."""
    for line in text.lines:
        start, end = line.find("<<"), line.rfind(">>")
        title = line[start : end + 2].lstrip("<").rstrip(">").strip() if 0 <= start < end - 2 else ""
        if title:
            inside = re.match(r"\w", line[start - 1 : start] + line[end + 2 : end + 3], re.ASCII)
            return Observation(True, {"title": title}, vacuous=bool(inside) or not holds_something(title))
    return Observation(False, {"title": ""})


@IFEVAL.kind("combination:two_responses", "format")
def two_responses(text: Text) -> Observation:
    """Two different responses with six stars between them; an empty part inside is a fault, at an end it is none."""
    parts = [part.strip() for part in text.raw.split("******")]
    full = list(filter(None, parts))
    met = all(parts[1:-1]) and len(full) == 2 and full[0] != full[1]
    return Observation(met, {"responses": len(full)}, vacuous=different(full) < len(full))


@IFEVAL.kind("combination:repeat_prompt")
def repeat_prompt(text: Text, prompt_to_repeat: str) -> Observation:
    """The response begins with the request, word for word; case aside."""
    prompt, response = prompt_to_repeat.strip().lower(), text.raw.strip().lower()
    return Observation(response.startswith(prompt), vacuous=not holds_something(response.replace(prompt, " ")))


@IFEVAL.kind("startend:end_checker")
def end_checker(text: Text, end_phrase: str) -> Observation:
    """The response ends with a phrase; case and a quotation mark aside."""
    end, phrase = text.lower.strip().strip('"'), end_phrase.strip().lower()
    vacuous = not holds_something(end.replace(phrase, " "))
    return Observation(end.endswith(phrase), {"end": end[-len(phrase) - 20 :]}, vacuous=vacuous)


@IFEVAL.kind("change_case:capital_word_frequency", "language")
def capital_word_frequency(text: Text, capital_frequency: int, capital_relation: Relation) -> Observation:
    """So many words in capital letters."""
    capital = [token for token in text.tokens if token.isupper()]
    marks = [mark for mark in re.finditer(r"\w+", text.read) if mark[0].isupper()]
    filler = capital_relation == "at least" and apart(marks, text.read) < capital_frequency
    met = holds(len(capital), capital_relation, capital_frequency)
    return Observation(met, {"capital_words": len(capital)}, vacuous=filler)


@IFEVAL.kind("change_case:english_capital", "language")
def english_capital(text: Text) -> Observation:
    """English, in capital letters only."""
    return _english(text, "capital", text.read.isupper())


@IFEVAL.kind("change_case:english_lowercase", "language")
def english_lowercase(text: Text) -> Observation:
    """English, in small letters only."""
    return _english(text, "small", text.read.islower())


@IFEVAL.kind("punctuation:no_comma")
def no_comma(text: Text) -> Observation:
    """No comma."""
    count = max(text.raw.count(","), text.read.count(","))
    return Observation(not count, {"commas": count}, vacuous=bool(commas(text.read)))


@IFEVAL.kind("startend:quotation", "format")
def quotation(text: Text) -> Observation:
    """The whole response stands in double quotation marks."""
    inside = text.raw.strip()
    return Observation(len(inside) > 1 and inside[0] == '"' == inside[-1], vacuous=not is_quoted_as_one(inside))


def _times(word: str, text: Text) -> int:
    return len(re.findall(re.escape(word), text.read, re.IGNORECASE))


def _english(text: Text, case: str, is_so: bool) -> Observation:
    if not is_so:  # before the language is told, which takes long
        return Observation(False, {case: False})
    language = language_of(text)
    return Observation(language == "en", {case: True, "language": language})
