"""MulDimIF's constraints (Ye et al., 2505.07591), which are English sentences, as typed ones.

A row has triples: a class, a kind, and a sentence.  A sentence is turned into a constraint only where all of it is
understood: who must do it (the response, not a part of it), what, how much, and at most a purpose behind ("to keep it
short").  Everything else is named as unconverted, with the reason for most.

Not covered: sentences in other languages, and what only a model can judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_NUMBERS: Final = {
    word: str(number)
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b")
_LONGEST: Final = 1_000

_POLITE: Final = r"(?:additionally, |please |also, |lastly, |finally, )?"
_CALL: Final = (
    r"(?:(?:make sure|ensure|ensuring)(?: that)? |make sure to |"
    r"it is (?:required|important|essential|necessary|crucial) (?:that|to) )?"
)
_WHO: Final = (
    r"(?:(?:the |your |this |an? )?(?:entire |whole |final |complete )?"
    r"(?:response|answer|output|text|content|reply|it) (?:itself )?)?"
)
_MUST: Final = r"(?:(?:must|should|shall|needs to|has to|is required to|is to|is|will) )?"
_LEAD: Final = _POLITE + _CALL + _WHO + _MUST
_IN_IT: Final = (
    r"(?: (?:in|within|into|throughout) (?:the|your) (?:entire |whole )?(?:response|answer|output|text|content))?"
)
_PURPOSE: Final = (
    r"(?:,? (?:to (?:ensure|maintain|keep|provide|enhance|emphasi[sz]e|highlight|meet|focus|make|adhere|improve|cover|"
    r"convey|allow|offer|support|facilitate|organi[sz]e|clearly|fully|specifically|effectively|thoroughly|summari[sz]e)"
    r"|ensuring|maintaining|providing|for (?:clarity|brevity|conciseness|readability|emphasis|consistency)) [^.;]*"
    r"|,? for (?:clarity|brevity|conciseness|readability|emphasis|consistency))?"
)

_AT_MOST: Final = "at most|no more than|not more than|a maximum of|maximum of|up to|not exceed|not exceeding"
_BOUNDS: Final[tuple[tuple[str, str], ...]] = (
    (r"between (\d+)(?: and |-| to |–)(\d+)", "both"),
    (r"(?:from |(?:in|within) a range of )?(\d+)(?: to |-|–)(\d+)", "both"),
    (r"(?:at least|no fewer than|no less than|not less than|a minimum of|minimum|minimum of) (\d+)", "min"),
    (rf"(?:{_AT_MOST})(?: a total of)? (\d+)", "max"),
    (r"(?:limited to )?(?:a )?(?:maximum|max) (?:length )?of (\d+)", "max"),
    (r"(?:fewer than|less than|under) (\d+)", "below"),
    (r"(?:more than|over) (\d+)", "above"),
    (r"exactly (\d+)", "exact"),
)
_DO: Final = (
    r"(?:(?:be|contain|contains|include|includes|have|has|consist of|consists of|comprise|use|be limited to|be kept to|"
    r"be composed of|be made up of|does|be (?:concise|brief|detailed|comprehensive)(?: and (?:concise|clear))?,? "
    r"(?:with|containing|consisting of))(?: a total of)? )?"
)
_LONG: Final = r"(?: (?:long|in length|in total|total))?"

_QUOTED: Final = r"(?:'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|‘[^‘’\n]{1,80}’|“[^“”\n]{1,80}”)"
_QUOTES: Final = rf"{_QUOTED}(?:(?:,? and |, ){_QUOTED}){{0,9}}"
_TERMS: Final = r"(?:the )?(?:following )?(?:exact )?(?:keyword|term|word|phrase)s?:? "
_MARKS: Final = {
    "period": ".",
    "full stop": ".",
    "question mark": "?",
    "exclamation mark": "!",
    "exclamation point": "!",
}
_MARK: Final = rf"an? ({'|'.join(_MARKS)})"
_HAVE: Final = r"(?:include|includes|contain|contains|feature|features|have|has|incorporate|incorporates|use|uses)"


@dataclass(frozen=True, slots=True)
class Unconverted:
    """A constraint that was not understood.

    Why: "about a part", "a condition", or "not understood".
    """

    group: str
    kind: str
    text: str
    why: str


def muldimif_constraints(row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Unconverted]]:
    """Return what a row of MulDimIF asks for: constraints as plain data, and what was not understood.

    Raises:
        ValueError: the row has no list of triples of texts.
    """
    triples = row.get("constraints")
    if not isinstance(triples, list) or not all(map(_is_triple, triples)):
        raise ValueError(f'a MulDimIF row has "constraints" {triples!r}; it must be a list of [class, kind, sentence]')
    constraints, left = [], []
    for group, kind, text in triples:
        one = converted(group, kind, text)
        if one is None:
            left.append(Unconverted(group, kind, text, _why(text)))
        else:
            constraints.append(one)
    return constraints, left


def converted(group: str, kind: str, text: str) -> dict[str, Any] | None:
    """Return the constraint that a triple stands for, as plain data; None where it is not surely understood."""
    if len(text) > _LONGEST:
        return None
    plain = re.sub(r"\s+", " ", text).strip().rstrip(".。").strip()
    lower = _NUMBER_WORD.sub(lambda word: _NUMBERS[word[0]], plain.lower())
    about = f"{group} {kind}".lower()
    for words, read in _READERS:
        if any(word in about for word in words):
            return read(plain, lower)
    return None


def _is_triple(data: Any) -> bool:
    return isinstance(data, list | tuple) and len(data) == 3 and all(isinstance(one, str) for one in data)


def _why(text: str) -> str:
    lower = text.lower()
    if re.search(r"\b(?:if|any|when|unless)\b", lower):
        return "a condition"
    return (
        "about a part"
        if re.search(r"\b(?:each|every|per|title|first|last|section|name)\b", lower)
        else "not understood"
    )


def _made(kind: str, **args: Any) -> dict[str, Any]:
    return {"kind": kind, "args": args}


def _range(text: str, unit: str, lead: str, tail: str) -> dict[str, int] | None:
    """Return the range that a sentence asks for, None where it is no such sentence."""
    for bound, form in _BOUNDS:
        negated = r"(?:does )?" if _AT_MOST in bound else ""
        match = re.fullmatch(rf"{lead}{negated}{bound} {unit}{tail}", text)
        if match:
            numbers = [int(one) for one in match.groups() if one is not None]
            if max(numbers) > 100_000:
                return None
            return _ends(form, numbers)
    return None


def _ends(form: str, numbers: list[int]) -> dict[str, int] | None:
    if form in ("both", "exact"):
        return {"min": min(numbers), "max": max(numbers)}
    if form == "below":
        return {"max": numbers[0] - 1} if numbers[0] else None
    return {"min": numbers[0] + 1} if form == "above" else {form: numbers[0]}


def _length(plain: str, lower: str) -> dict[str, Any] | None:
    for unit in ("word", "sentence", "paragraph", "character"):
        limits = _range(lower, f"{unit}s?", f"{_LEAD}{_DO}", f"{_LONG}{_IN_IT}{_PURPOSE}")
        if limits:
            return _made(f"{unit}s", **limits)
    return None


def _keywords(plain: str, lower: str) -> dict[str, Any] | None:
    asked = rf"{_LEAD}(?:{_HAVE}|mention|mentions) {_TERMS}({_QUOTES}){_IN_IT}{_PURPOSE}"
    done = "(?:included|incorporated|used|mentioned)"
    passive = rf"{_POLITE}{_CALL}{_TERMS}({_QUOTES}) {_MUST}(?:be )?{done}{_IN_IT}{_PURPOSE}"
    match = re.fullmatch(asked, plain, re.IGNORECASE) or re.fullmatch(passive, plain, re.IGNORECASE)
    if not match:
        return None
    phrases = [one[1:-1].strip().rstrip(",.") for one in re.findall(_QUOTED, match[1])]
    fit = all(phrase[:1].isalnum() and phrase[-1:].isalnum() for phrase in phrases)
    return _made("keywords", phrases=phrases) if fit else None


def _punctuation(plain: str, lower: str) -> dict[str, Any] | None:
    ends = rf"{_LEAD}(?:ends?|concludes?|finish|finishes) (?:with|in) {_MARK}(?: as the ending punctuation)?{_PURPOSE}"
    of_it = "(?: of the (?:response|answer))?"
    named = rf"{_POLITE}{_CALL}(?:the )?ending punctuation{of_it} (?:must|should) be {_MARK}{_PURPOSE}"
    match = re.fullmatch(ends, lower) or re.fullmatch(named, lower)
    return _made("final_mark", mark=_MARKS[match[1]]) if match else None


def _english(plain: str, lower: str) -> dict[str, Any] | None:
    word = rf"(?:each|every) word{_IN_IT}"
    capital = (
        rf"{_LEAD}(?:use|uses|be in|be written in) capitali[sz]ed letters for {word}",
        rf"{_LEAD}capitali[sz]es? (?:the first letter of )?{word}",
        rf"{_POLITE}{_CALL}(?:with )?{word} (?:must be |should be |is )?capitali[sz]ed",
        rf"{_POLITE}{_CALL}{word} (?:must |should )?(?:begins?|starts?) with a capital letter",
    )
    if any(re.fullmatch(f"{form}{_IN_IT}{_PURPOSE}", lower) for form in capital):
        return _made("capitalized")
    case = r"(?:all |entirely )?(?:in )?(?:all )?"
    for kind, names in (("upper_case", "(?:uppercase|capital)"), ("lower_case", "lowercase")):
        how = "(?:be )?(?:written |provided |presented )?(?:entirely )?(?:use |in )"
        asked = rf"{_LEAD}{how}{case}{names}(?: letters)?{_PURPOSE}"
        if re.fullmatch(asked, lower):
            return _made(kind)
    return None


def _chinese(plain: str, lower: str) -> dict[str, Any] | None:
    match = re.fullmatch(rf"{_LEAD}(?:be )?(?:written |provided |given )?in chinese{_PURPOSE}", lower)
    return _made("language", language="zh") if match else None


def _markdown(plain: str, lower: str) -> dict[str, Any] | None:
    tail = rf"(?: formatted)?(?: (?:in|using) markdown(?: format)?)?{_IN_IT}{_PURPOSE}"
    heading = r"(?:level (\d) (?:markdown )?heading|heading (?:of )?level (\d)|markdown level (\d) heading)"
    match = re.fullmatch(rf"{_LEAD}{_HAVE} (?:a|1|at least 1) {heading}{tail}", lower)
    if match:
        level = int(next(filter(None, match.groups())))
        return _made("headings", level=level, min=1) if 1 <= level <= 6 else None
    levels = _range(lower, "(?:heading levels|levels of headings?)", rf"{_LEAD}{_HAVE} ", tail)
    return _made("heading_levels", **levels) if levels else None


def _table(plain: str, lower: str) -> dict[str, Any] | None:
    shown = r"(?:be presented|presented|presents? [\w ]{0,20}) ?in"
    asked = rf"{_LEAD}(?:{_HAVE}|{shown}) a table(?: format)?(?: with| of| limited to| that has)? "
    for unit, kind in (("(?:data )?rows?", "table"), ("columns?", "table_columns")):
        if limits := _range(lower, unit, asked, _PURPOSE):
            return _made(kind, **limits)
    there = "(?:used|included)(?: in the (?:answer|response))?"
    which = rf"(?:if (?:a|any) table (?:is )?{there},? (?:it|the table) |any tables? (?:{there} )?|the table )"
    must = r"(?:must|should) (?:have |contain |be limited to )?"
    limits = _range(lower, "(?:data )?rows?", f"{_POLITE}{which}{must}", _PURPOSE)
    return _made("table_limit", **limits) if limits else None


def _json(plain: str, lower: str) -> dict[str, Any] | None:
    tail = rf"(?: of nesting| levels)?{_PURPOSE}"
    limits = _range(lower, "levels?", rf"{_LEAD}{_HAVE} a json object with ", tail)
    match = re.fullmatch(r"(?:the )?object nesting levels (?:must|should) not exceed (\d+)(?: levels)?", lower)
    if match:
        limits = {"max": int(match[1])}
    return _made("json_depth", **limits) if limits else None


def _xml(plain: str, lower: str) -> dict[str, Any] | None:
    limits = _range(lower, "attributes?", r"each xml element (?:must|should) (?:have |contain )?", "")
    return _made("xml_attributes", **limits) if limits else None


_READERS: Final[tuple[tuple[tuple[str, ...], Callable[[str, str], dict[str, Any] | None]], ...]] = (
    (("length",), _length),
    (("keywords",), _keywords),
    (("punctuation",), _punctuation),
    (("english",), _english),
    (("chinese",), _chinese),
    (("table",), _table),
    (("markdown",), _markdown),
    (("json",), _json),
    (("xml",), _xml),
)
"""Words of a class or kind, and what reads its sentences."""
