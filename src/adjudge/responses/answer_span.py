r"""Where in a response the answer stands.

`find_spans` looks for the answer by an explicit rule (`Where`), never by guessing from the reference.  Of several
marked answers the last one counts, so writing down more of them never helps; boxes or tags that stand side by side,
with nothing but "or", "and" or a comma between them, are one offer of several answers.

Every rule reads the text once.  A box that is not closed within `MAX_BOX` characters is not an answer, and neither is
anything before it: nobody knows what the last answer was going to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from adjudge.responses.hearsay import supposed, unasserted

Where: TypeAlias = Literal["auto", "response", "last_line", "marker", "boxed", "tag"]
WHERE: tuple[Where, ...] = ("auto", "response", "last_line", "marker", "boxed", "tag")

MAX_BOX = 20_000
MAX_TRIES = 64
MAX_MARKERS = 8
MAX_RUN = 16
_BESIDE, _BEHIND = 200, 2_000  # characters kept before and behind an answer
MAX_EVIDENCE = 200

# Every alternative begins with a literal character, which lets `re` skip to the next candidate instead of trying
# all of them at every position: five times as fast on prose.  So the word boundary is looked for one character late.
COMMON_MARKERS = (
    r"####"
    + "".join(
        rf"|{first}(?<!\w{first}){rest}[*_\"'”’]{{0,3}}\s{{0,2}}"
        r"(?:(?:is|was|are|would\ be|should\ be|must\ be|IS)\b\s{0,2}[:：]?|[:：=]|(?<=Answer )[–—](?=\s))"
        r"(?:[*_]{1,3}(?=\s))?"
        for first, rest in (("a", "nswer"), ("A", "nswer"), ("A", "NSWER"))
    )
    + "".join(rf"|{first}(?<!\w{first})inal\ [Aa]nswer[*_]{{0,3}}[ \t]{{0,3}}(?=\r?\n)" for first in "fF")
    + r"|【(?:正确|參考|参考|最终)?答案】\s{0,2}[:：]?"
    r"|答案[*_”』」]{0,3}\s{0,2}"
    r"(?:(?:应该是|应该为|应为|應為|是|为|為|选|選)\s{0,2}[:：]?|[:：=]|(?=[A-Za-z0-9(（\\$]))"
    r"|\"(?:final[_ ])?[aA]nswer\"\s{0,3}:"
)
ANSWER_MARKERS = re.compile(COMMON_MARKERS + r"|A:(?<![^\n]A:)(?=[ \t])")

# Looked for where one of the words is there at all, which keeps most texts fast.
_OTHER_WORDS = (
    *"antwort lösung respuesta réponse risposta resposta antwoord odpowiedź svaret cevap ответ jawaban".split(),
    *("đáp án", "答え", "解答", "正解", "回答", "정답", "답"),
)
OTHER_MARKERS = re.compile(
    rf"(?<!\w)(?:{'|'.join(word for word in _OTHER_WORDS if ord(word[0]) < 0x1000)})"
    r"(?:\ \w{4,12})?[*_\"'”’]{0,3}\s{0,2}"
    r"(?:(?:ist|lautet|es|est|è|é|is|är|er|jest|является|là|adalah)\b\s{0,2}[:：]?|[:：=]|[—–](?=\s))(?:[*_]{1,3}(?=\s))?"
    r"(?:\s?(?:la|el|a(?=\s(?:letra|opção|alternativa)\b)|die|der|das|option|opción|opção|alternativa|lettre|letra|Buchstabe|буква|вариант)\b){0,2}"
    r"|(?:答え|解答|(?<!不)正解|回答)[*_”』」]{0,3}\s{0,2}(?:は|[:：=])|(?:(?<![오대])답)[*_]{0,3}\s{0,2}(?:은|는|[:：=])",
    re.IGNORECASE,
)

_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_JSON_VALUE = re.compile(r"\s{0,9}(?:\"(?P<text>(?:[^\"\\\n]|\\.){0,2000})\"|(?P<bare>-?[\w.]{1,40}))\s{0,9}[,}]")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")
_STOPS = " \t.,;:!?。，；：！？"
_EMPHASIS = '*_`"'
_BRACKETS = {")": "(", "]": "[", "）": "（", "”": "“", "」": "「", "』": "『", "】": "【"}
_MAX_LAYERS = 3
_BLANK = re.compile(r"(?:[\s*_`#>$:：]|\\[\[(])*")
_LINE = re.compile(r"[^\r\n]*")
_JOINER = re.compile(
    r"[\s,;/|&$.*_()、，；]{0,12}(?:and|or|und|oder|et|ou|和|或者|或|与)?(?:\ maybe|\ perhaps)?[\s,;$*_(]{0,8}"
)


@dataclass(frozen=True, slots=True)
class Span:
    r"""An answer as it stands in a response.

    Attributes:
        where: the rule that found it: "tag", "boxed", "marker", "last_line" or "response".
        texts: the answer; more than one text when several stand side by side.
        before: the end of what stands before the answer, its marker included: "-\boxed{2}" is no 2.
        after: the beginning of what stands behind the answer.
    """

    where: str
    texts: tuple[str, ...]
    before: str = field(default="", compare=False)
    after: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Element:
    start: int
    end: int
    content: str


def find_spans(text: str, where: Where, markers: re.Pattern[str] = ANSWER_MARKERS) -> list[Span]:
    r"""Return the places where the answer may stand, best first; none when the rule finds none.

    The first span is the answer.  The others are for a reader to whom the first says nothing at all: a box around
    "0.75" where an option is asked for, or "The answer is C.  This answer is well known."

    Args:
        text: the graded text.
        where: "response" takes the whole text, "last_line" its last line that is not blank, "tag" the content of
            the last `<answer>` element, "boxed" the last `\boxed{}` or `\fbox{}`, "marker" what follows the last
            "answer is", "answer:", "####", "A:" or "答案是" on its line (or on the next line when the rest is blank).
            "auto" narrows the text down: inside the last tag if there is one, then the last box, the last marker,
            everything.
        markers: what counts as a marker.
    """
    match where:
        case "response":
            spans = [Span("response", (text.strip(),))]
        case "last_line":
            spans = [Span("last_line", (text.rstrip().rpartition("\n")[2].strip(),))]
        case "tag" | "boxed":
            spans = [_run(text, where)]
        case "marker":
            spans = _marked(text, markers)
        case "auto":
            spans = _narrowed(text, markers)
    return [span for span in spans if any(span.texts)]


def shorten(text: str, limit: int = MAX_EVIDENCE) -> str:
    """Return `text`, or its beginning and end with "..." between them when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    tail = (limit - 3) // 3
    return f"{text[: limit - 3 - tail]}...{text[-tail:]}"


def _narrowed(text: str, markers: re.Pattern[str]) -> list[Span]:
    tagged = _run(text, "tag")
    if len(tagged.texts) > 1:
        return [tagged]
    inner = tagged.texts[0] if tagged.texts else text
    boxed = _run(inner, "boxed")
    if not any(boxed.texts) and _BOX.search(inner):
        return []  # an empty or unclosed box: nobody knows what the answer was going to be
    spans = [boxed, *_marked(inner, markers)]
    if not tagged.texts:
        return [*spans, Span("response", (inner.strip(),))]
    around = [
        replace(span, before=tagged.before + span.before, after=f"{span.after}\n{tagged.after}") for span in spans
    ]
    return [*around, tagged]


def _run(text: str, where: Literal["tag", "boxed"]) -> Span:
    """Return the contents of the last element and of those side by side with it, in reading order."""
    last = _last_tag if where == "tag" else _last_box
    contents: list[str] = []
    before, following, end = len(text), -1, len(text)
    while len(contents) < MAX_RUN:
        element = last(text, before)
        if element is None or (contents and not _JOINER.fullmatch(text, element.end, following)):
            break
        end = end if contents else element.end
        contents.append(element.content.strip())
        before = following = element.start
    return Span(where, tuple(reversed(contents)), text[max(0, before - _BESIDE) : before], text[end : end + _BEHIND])


def _last_tag(text: str, before: int) -> _Element | None:
    start = text.rfind("<answer>", 0, before)
    if start < 0:
        return None
    inside = start + len("<answer>")
    close = text.find("</answer>", inside, before)
    if close >= 0:
        return _Element(start, close + len("</answer>"), text[inside:close])
    # A stop string often swallows the closing tag, so a last open element reaches to the end of the text.
    return _Element(start, before, text[inside:]) if before == len(text) else None


def _last_box(text: str, before: int) -> _Element | None:
    end = before
    for _ in range(MAX_TRIES):
        end = max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))
        if end < 0:
            return None
        opening = _BOX.match(text, end)
        if opening:
            close = _closing_brace(text, opening.end())
            return _Element(end, close + 1, text[opening.end() : close]) if 0 <= close < before else None
    return None


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for brace in _BRACE.finditer(text, start, min(len(text), start + MAX_BOX)):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return brace.start()
    return -1


def _marked(text: str, markers: re.Pattern[str]) -> list[Span]:
    marks = list(reversed(find_markers(text, markers)[-MAX_MARKERS:]))
    if len(marks) > 1:  # what would be the answer to something else comes after all answers
        marks.sort(key=lambda marker: is_supposed(text, marker))
    return [_behind(text, marker) for marker in marks]


def is_supposed(text: str, marker: re.Match[str]) -> bool:
    """Return whether the sentence up to a marker is about another case, or does not assert what follows."""
    sentence = _SENTENCE_END.split(text[max(0, marker.start() - _BESIDE) : marker.end()])[-1]
    return supposed(sentence) or unasserted(sentence)


def in_other_words(text: str) -> bool:
    """Return whether a text may hold one of `OTHER_MARKERS`: most do not, and this is quickly seen."""
    lower = text.lower()
    return any(word in lower for word in _OTHER_WORDS)


def find_markers(text: str, markers: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the markers of an answer in a text, in their order, those of other languages than English among them."""
    marks = list(markers.finditer(text))
    if in_other_words(text):
        marks = sorted([*marks, *OTHER_MARKERS.finditer(text)], key=lambda marker: marker.end())
    return marks


def _behind(text: str, marker: re.Match[str]) -> Span:
    """Return what follows a marker on its line, or the next line when nothing but decoration does."""
    start = marker.end()
    before = text[max(0, marker.start() - _BESIDE) : start]
    if marker[0].endswith('":') and (value := _JSON_VALUE.match(text, start)):
        said = value["text"] or value["bare"] or ""
        return Span("marker", (said,), before, text[value.end() : value.end() + _BEHIND])
    blank = _BLANK.match(text, start)
    at = blank.end() if blank else start
    if "\n" not in text[start:at]:
        at = start
    line = _LINE.match(text, at)
    end = line.end() if line else at
    said = _without_partners(text[at:end].strip(), text[text.rfind("\n", 0, marker.start()) + 1 : at])
    return Span("marker", (said,), before, text[end : end + _BEHIND])


def _without_partners(said: str, lead: str) -> str:
    """Return an answer without the marks at its end that were opened in front of it: "**Answer: 5**"."""
    for _ in range(_MAX_LAYERS):
        body = said.rstrip(_STOPS)
        sign = body[-1:]
        if opening := _BRACKETS.get(sign):
            width = int(lead.count(opening) > lead.count(sign) and body.count(sign) > body.count(opening))
        elif sign and sign in _EMPHASIS:
            width = len(body) - len(body.rstrip(sign))
            inside = body[:-width].count(sign * width)
            width *= lead.count(sign * width) % 2 and not inside % 2
        else:
            break
        if not width:
            break
        said = body[:-width] + said[len(body) :]
    return said
