r"""Find the answer that a response commits to.

Markers, strongest first: `<answer>` tags; the last `\boxed{...}` (`boxes`), unless a "final answer" follows it; "final
answer"; `#### ...`; a line "A: ..." or "answer: ..." or "the answer is ..."; a response that is nothing but an
answer; a bold value, the last formula or the last number of the last line.  Of equal markers the last wins.

Policies.  *Several tags*: they must agree.  *Several boxed answers*: boxes joined by nothing but "and", "or" and
commas are one list, so a hedge is read as a hedge; otherwise the last box is the answer (`boxed="last"`), or all
must be the same (`boxed="same"`).  *A box that is part of a formula*: the formula is the answer.  *A value that its
clause denies or bounds* (`clauses`), *or that does not stand alone* (`standing`): there is no answer.
*Unfinished reasoning*: an answer inside a thinking block that is never closed is none.  *Truncated responses*
are the verifier's option.

What a response states behind its answer (`restated`) is told beside it.  A value that is stated again must be the
same, which the verifier tells (`So the answer is 0.5` behind `1/2`).

Searching costs one pass over the text, line by line from the end.

Not covered: an answer spread over several sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from adjudge.responses.answer_span import OTHER_MARKERS, in_other_words, is_supposed
from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.boxes import Box, boxed, earlier_boxes, unescape
from adjudge.verifiers.math.clauses import denied_before, suspicious
from adjudge.verifiers.math.restated import Statement, later_statements
from adjudge.verifiers.math.sentences import (
    ALTERED,
    CONCLUDES,
    DENIES,
    FIRST,
    FORMULA,
    NUMBER,
    clean,
    closing_number,
    explained_number,
    foreign,
    joined,
    last_formulas,
    measured,
    said,
    sentence_end,
    without_hope,
    wordy,
)
from adjudge.verifiers.math.standing import standing
from adjudge.verifiers.math.units import is_unit

_SIDE: Final = 200  # characters of a formula beside its box
_UNIT_REACH: Final = 40  # characters after a box in which its unit ends

_TEXT = r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*"
_BORDER = r"\\[()\[\]\\]|\$+|&|\\(?:begin|end)\{[^{}]*\}|\\q?quad(?![A-Za-z])|\n\s*\n|[.;!?:]\s|,\s(?!\d)"
_WORDS = r"(?<![\\A-Za-z])[A-Za-z]{2,}"
_LEFT_BORDER = re.compile(
    rf"{_BORDER}|(?<![<>!])=|\\(?:approx|equiv|implies|Rightarrow|rightarrow|to|in|sim)(?![A-Za-z])"
    rf"|{_TEXT}\{{[^{{}}]*\}}|{_WORDS}|[^\x00-\u03ff]"
)
_RIGHT_BORDER = re.compile(rf"{_BORDER}|[.;!?:]\Z|{_WORDS}|{_TEXT}\{{(?!\s*(?:or|and)\s*\}})|[^\x00-\u03ff]")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_ONE = re.compile(r"(?<![\d.])1\Z")
_BRACKET = re.compile(r"\\?[{}]|[()\[\]]")
_BINARY = frozenset("^_*/<>=!&~")
_PAIRS = {")": "(", "]": "[", "}": "{", "\\}": "\\{"}
_NOTHING = re.compile(r"[\s.$)\]\\]*\Z")
_PERCENT = re.compile(r"\s*\$?\s*(?:\\?%|percent\b|pct\b)")
_DEGREE = re.compile(r"(?:\s*(?:\{\s*\})?\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})|\s*°)(?!\s*(?:\\[a-z]|[A-Z]))")
_UNIT = re.compile(rf"(?:\s|~|\\[,;: ])*{_TEXT}\{{[\s~]*([A-Za-z]+)\s*\}}(?=[\s.,;]*(?:\$|\\[)\]]|\Z))")
_BASE = re.compile(r"\s*(?:\$|\\\))?\s+(?:in|\()\s*base[-\s]\$?(\d{1,2})\b")
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\\[dt]?frac\{\d+\}\{\d+\})")
_NO_UNITS = frozenset("in min unit units".split())  # an adverb, a function, and what says nothing


def opened(text: str, boxes: Sequence[Box]) -> str | None:
    """Return the formula that boxes joined to one answer are a part of, or None when it cannot be told."""
    first, last = boxes[0], boxes[-1]
    left, right = text[max(0, first.start - _SIDE) : first.start], text[last.stop : last.stop + _SIDE]
    cuts = [border.end() for border in _LEFT_BORDER.finditer(left) if not _is_math(border[0])]
    left = left[cuts[-1] if cuts else 0 :].lstrip()
    right = right[: next((at.start() for at in _RIGHT_BORDER.finditer(right) if not _is_math(at[0])), _SIDE)].rstrip()
    if right[:1].isdigit() or (_ONE.search(left) and boxes[0].text[:1].isdigit()):
        return None  # nobody multiplies by one: the digits run on
    factor = left[-1:].isdigit()
    inner = ", ".join(box.text if _PLAIN.fullmatch(box.text) and not factor else f"({box.text})" for box in boxes)
    formula = f"{left}{inner}{right}".rstrip(" ,;=.")
    return None if formula[:1] in _BINARY or not (left or right) or not _balanced(formula) else formula


def with_unit(text: str, box: Box) -> str:
    """Return what a box holds with the percent sign, degree sign or unit that stands right after the box."""
    after = text[box.stop : box.stop + _UNIT_REACH]
    if _NOTHING.match(after):
        return box.text
    if box.text[-1:].isdigit() and _PERCENT.match(after):
        return f"{box.text}\\%"
    if not _NUMBER.fullmatch(box.text):
        return box.text
    if (base := _BASE.match(after)) and box.text.isdigit():
        return f"{box.text}_{{{base[1]}}}"
    if _DEGREE.match(after):
        return f"{box.text}^\\circ"
    unit = _UNIT.match(after)
    if unit and unit[1] not in _NO_UNITS and is_unit(unit[1], upright=True):
        return f"{box.text}\\text{{ {unit[1]}}}"
    return measured(text, box.text, box.stop)


def _is_math(border: str) -> bool:
    return border.isalpha() and (known.names(border) or border in known.SEPARATORS)


def _balanced(formula: str) -> bool:
    """Whether every bracket of a formula is closed in it."""
    stack: list[str] = []
    for bracket in _BRACKET.finditer(formula):
        if bracket[0] not in _PAIRS:
            stack.append(bracket[0])
        elif not stack or stack.pop() != _PAIRS[bracket[0]]:
            return False
    return not stack


_FINAL: Final = re.compile(
    r"(?:final\s+(?:answer|result)|最终答案|最后答案)(?:\s+(?:is|of)\b|\s*[是为])?\s*[:：]?[\s*]*(?:(?:the\s+)?(?:final\s+)?answer\s+is)?\s*[:：]?",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(
    r"(?:^[ \t>*#]*(?:(?:A|Ans|Answer|Ergebnis|Solución|Svar|Odpowiedz|Odpověď|Vastaus|Válasz|Răspuns|Відповідь|"
    r"Lời\s+giải|Απάντηση|उत्तर|الجواب|الإجابة|תשובה|คำตอบ)[ \t*]*[:：]|Answer[ \t*]*[-–—](?=\s))[ \t*]*"
    r"|\banswers?[ \t*]*(?:[:：=]|\b(?:is|are|would be|will be|must be|should be)\b)[ \t*]*[:：]?"
    r"|\b(?:result|solution|value)[ \t*]*(?:is|are)\b[ \t*]*[:：]?"
    r"|【(?:正确|参考|最终)?答案】[:：]?|答案(?:[是为]|[:：])[:：]?|答[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_ABROAD: Final = re.compile(rf"{_ANSWER.pattern}|(?:{OTHER_MARKERS.pattern})[ \t*]*", _ANSWER.flags)


_JUDGED: Final = re.compile(  # "so the answer is correct" speaks of an answer that was given
    r"[\s*_:]*(?:(?:indeed|also|therefore|thus|clearly|then|now|both)\s+)*(?:correct|right|valid|verified|confirmed|checked"
    r"|consistent|reasonable|plausible|sensible|accurate|sound|as\s+(?:expected|required|desired|claimed|stated))\b"
    r"[^.!\n\d]{0,60}(?:[.!\n]|\Z)",
    re.IGNORECASE,
)
_NOT: Final = re.compile(r"\W*not\b", re.IGNORECASE)
_HEADING: Final = re.compile(r"[\W_]*(?:final\s+)?answer[\W_]*", re.IGNORECASE)
_EXCLAIMED: Final = re.compile(r"(?<=[^\s!])!\Z")
_COPULA: Final = re.compile(r"\s*(?:입니다|이다|です|である|だ|(?:と|に)な(?:る|ります))\Z")


class Marked(NamedTuple):
    """What a marker marks, where that ends in the text, and the line behind the marker as it was written."""

    text: str
    stop: int
    line: str = ""


_NOTHING_MARKED: Final = Marked("", 0)


def after_final(text: str) -> Marked:
    """Return what follows the last "final answer"; its text is "" where there is none."""
    hinted = "inal" in text or "INAL" in text or "最终答案" in text or "最后答案" in text
    return _after(text, _FINAL) if hinted else _NOTHING_MARKED


def after_hashes(text: str) -> Marked:
    """Return the rest of the line after the last `####`, as `after_final`."""
    at = text.rfind("####")
    if at < 0:
        return _NOTHING_MARKED
    end = text.find("\n", at)
    end = end if end >= 0 else len(text)
    line = clean(text[at + 4 : end])
    if _HEADING.fullmatch(line):
        return _NOTHING_MARKED
    value, stop = _said(line, text[at:end])
    return Marked(value, at + stop, line)


def after_answer(text: str) -> Marked:
    """Return what follows the last "the answer is", "answer:" or "A:", as `after_final`."""
    return _after(text, _ANSWER_ABROAD if in_other_words(text) else _ANSWER)


def _after(text: str, pattern: re.Pattern[str]) -> Marked:
    start = _last_match(text, pattern)
    if start < 0:
        return _NOTHING_MARKED
    line = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start]
    if ALTERED.search(line) or (suspicious(line, "is", "") and denied_before(line, marked=True)):
        return _NOTHING_MARKED
    text = text[:start] + without_hope(text[start:])
    rest = text[start:].lstrip(" \t*:：")
    if rest[:1] == "\n" or not rest:
        rest = _BULLET.sub("", rest.lstrip(), count=1)
    start = len(text) - len(rest)
    display = FORMULA.match(rest)
    if display and (display.lastgroup in ("a", "b") or not _same_sentence(rest, display.end())):
        return Marked(clean(display[display.lastgroup or 0]), start + display.end(), rest.partition("\n")[0])
    end = sentence_end(rest)
    sentence = _EXCLAIMED.sub(" !", clean(rest[:end]))
    value, stop = _said(sentence if sentence.isascii() else _COPULA.sub("", sentence), rest[:end])
    return Marked(value, start + stop, rest.partition("\n")[0])


def _said(sentence: str, text: str) -> tuple[str, int]:
    """Return what a sentence says, and where in its text that ends, if it begins with that and then speaks of more."""
    first = FIRST.match(sentence)
    rest = sentence[first.end() :] if first else ""
    if first is None or DENIES.search(rest) or CONCLUDES.search(rest) or not wordy(rest):
        return said(sentence), len(text)
    if first["joined"] or standing(sentence, *first.span("value"), marked=True) != "alone":
        return (sentence if first["joined"] else said(sentence)), len(text)
    value = first["value"]
    return measured(sentence, value, first.end("value")), text.index(value) + len(value)


def _last_match(text: str, pattern: re.Pattern[str]) -> int:
    """Return where the last match ends; or -1.

    One about another case, about an answer that was given, or about what is none counts only where there is no other.
    """
    end, other = len(text), -1
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        for match in reversed(list(pattern.finditer(text, start, end))):
            if not (_JUDGED.match(text, match.end()) or _NOT.match(text, match.end()) or is_supposed(text, match)):
                return match.end()
            other = max(other, match.end())
        end = start - 1
    return other


def _same_sentence(text: str, at: int) -> bool:
    """Whether more than punctuation and units follows a formula before the sentence ends."""
    return bool(text[at : sentence_end(text, at)].strip(" .,;*"))


TAGGED: Final = 60_000  # where `<answer>` tags are looked for
TAIL: Final = 20_000  # where weaker markers than a box are looked for: the end of a response

Marker = Literal["tag", "boxed", "####", "final answer", "answer", "whole", "bold", "formula", "number"]
Policy = Literal["last", "same"]

_BOLD = re.compile(
    r"(?:\b(?:is|are|be|equals|was|gives|gets?)|[=:：])\s*\*\*([^*\n]{0,60}\d[^*\n]{0,60}|true|false|yes|no)\*\*",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"(?:\A|(?<=\n)|(?<=[.!?]\s))\W*(?:(?:so|thus|hence|therefore)\W+)?(?:the\s+|its\s+)?(?:(?:two|three|real|complex|only|"
    r"distinct|possible)\s+)*(?:solutions|roots|zeros|answers)\b(?:\s+(?:of|to)\b[^.\n=\d]{0,40})?\s+are\s*:?\s+"
    r"([^\n:;]{1,100}\band\b[^\n:;]{1,100}?)[.\s]*\Z",
    re.IGNORECASE,
)
_BOLD_VALUE = re.compile(r"(?<=[A-Za-z,] )\*\*([^*\n]{0,60}\d[^*\n]{0,60})\*\*")  # the only one of its line
_BULLET = re.compile(r"\A(?:[-*+>]\s++)++(?!.*\n[-*+>]\s)", re.DOTALL)
_LEAD = re.compile(
    r"(?:#{1,6}\s+|>\s+(?=[-\d$]))+|(?:(?:so|thus|hence|therefore),?\s+)?(?:it|that)(?:'s|\s+is)\s+"
    r"|(?:so|thus|hence|therefore),?\s+(?=\$?[a-z]\s*=)",
    re.IGNORECASE,
)
_STOP = re.compile(r"<\|(?:im_start|im_end|endoftext|eot_id|end_of_text|end)\|>|</s>")


class Extraction(NamedTuple):
    """What was found.

    Attributes:
        text: the answer as written, without its marker.
        marker: how it was found.
        others: answers of the same marker that this one replaced.
        parts: what each of several joined boxes holds, repeats included.
        later: what is stated behind the answer; each statement must have a reading that is the same value.
        closing: the value in which the text behind the answer ends; where it is the same, only firm statements count.
        line: the line behind the marker, or all that was read where nothing marks the answer.
    """

    text: str
    marker: Marker
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    later: tuple[Statement, ...] = ()
    closing: str = ""
    line: str = ""


def extract(text: str, *, boxes: Policy = "last", question: str = "") -> Extraction | None:
    """Return the answer a text commits to, or None when it gives none.

    Args:
        text: the graded part of a response, reasoning removed.
        boxes: what several boxed answers in different places mean.
        question: what was asked; its words name what is stated again behind the answer.
    """
    marked = "<" in text  # one character is found ten times faster than two
    if marked and ("<|" in text or "</s>" in text):
        stop = _STOP.search(text, 1)
        text = text[: stop.start()] if stop else text
    closed, unclosed = boxed(text)
    if closed and text[closed[-1].start - 1] == "\\":
        text = unescape(text)
        closed, unclosed = boxed(text)
    if marked and "</answer>" in text:
        return _tagged(text, boxes, question)
    if unclosed:
        return None
    tail = text[max(closed[-1].stop if closed else 0, len(text) - TAIL) :]
    if (final := after_final(tail)).text and not (closed and _JUDGED.match(final.text)):
        return _judged(Extraction(final.text, "final answer", line=final.line), tail[final.stop :], question)
    if closed:
        return _from_boxes(text, closed, boxes, question)
    if (line := after_hashes(tail)).text:
        return _judged(Extraction(line.text, "####", line=line.line), tail[line.stop :], question)
    if (line := after_answer(tail)).text:
        return _judged(Extraction(line.text, "answer", line=line.line), tail[line.stop :], question)
    return _unmarked(tail)


def _judged(answer: Extraction, after: str, question: str, before: str = "") -> Extraction | None:
    """Return an answer with what is stated behind it, or None where that takes it back."""
    later = later_statements(after, answer.text, question, before)
    if not later:
        return None if later is None else answer
    closing = None if all(one.firm for one in later) else _unmarked(after[-TAIL:])
    if closing is None or wordy(closing.text):
        return answer._replace(later=tuple(one for one in later if one.readings))
    later = tuple(one if one.readings else one._replace(readings=(closing.text,)) for one in later)
    return answer._replace(later=later, closing=closing.text)


def _tagged(text: str, policy: Policy, question: str) -> Extraction | None:
    """Return what the `<answer>` tags hold; tags that differ are several answers."""
    closed = text[-TAGGED:].split("</answer>")[:-1]
    bodies = [part.rpartition("<answer>")[2].strip() for part in closed if "<answer>" in part]
    if not bodies:
        return None
    if len(set(bodies)) > 1:
        return Extraction(bodies[-1], "tag", tuple(bodies[:-1]))
    if standing(text, text.rfind("<answer>"), len(text), marked=True) == "denied":
        return None
    body = clean(bodies[0])
    value, stop = _said(body, body)
    inner = None if stop < len(body) else extract(bodies[0].replace("</answer>", " "), boxes=policy)
    inner = inner or Extraction(value, "tag", line=bodies[0])
    answer = inner._replace(marker="tag", parts=(), line=inner.line or bodies[0])
    return _judged(answer, body[stop:] + text.rpartition("</answer>")[2], question)


def _from_boxes(text: str, boxes: list[Box], policy: Policy, question: str) -> Extraction | None:
    """Return the answer in boxes that are one answer, or the formula that they are a part of."""
    stands = standing(text, boxes[0].start, boxes[-1].stop, marked=True)
    if stands == "denied":
        return None
    if stands == "part":
        answer = opened(text, boxes)
    elif len(boxes) > 1:
        answer = ", ".join(dict.fromkeys(box.text.strip() for box in boxes))
    else:
        answer = with_unit(text, boxes[0]).strip()
    if answer is None:
        return None
    others = earlier_boxes(text[: boxes[0].start]) if policy == "same" else ()
    parts = () if len(boxes) == 1 or stands == "part" else tuple(box.text.strip() for box in boxes)
    found = Extraction(answer, "boxed", others, parts)
    return _judged(found, text[boxes[-1].stop :], question, text[: boxes[0].start])


def _unmarked(text: str) -> Extraction | None:
    """Return a text that is nothing but an answer, or the last number or formula of the last line."""
    text = without_hope(text)
    whole = clean(_LEAD.sub("", clean(text), count=1)) if _LEAD.match(clean(text)) else clean(text)
    if whole and "\n" not in whole and len(whole) <= 200 and not (wordy(whole) or foreign(whole)):
        return Extraction(whole, "whole", line=text)
    line = max(text.rstrip().rfind("\n"), 0)
    several = _SEVERAL.search(text, line)
    if several and not wordy(several[1]) and standing(text, *several.span(1), marked=True) == "alone":
        return Extraction(clean(several[1].replace("**", "")), "formula", line=text)
    bold = next(reversed(list(_BOLD.finditer(text, line))), None)
    if bold is None and len(values := list(_BOLD_VALUE.finditer(text, line))) == 1:
        bold = values[0]
    if bold and (bold[1].isalpha() or not wordy(bold[1])) and standing(text, *bold.span(1), marked=True) == "alone":
        return Extraction(clean(bold[1]), "bold", line=text)
    formulas = last_formulas(text)
    line = text.rstrip().rfind("\n") + 1
    after = max([line, *[formula.end() for formula in FORMULA.finditer(text)][-1:]])
    numbers = list(NUMBER.finditer(text, after))
    if numbers:
        if explained := explained_number(text[after:]):
            return Extraction(explained, "number", line=text)
        number = closing_number(text, numbers)
        return Extraction(measured(text, number[0], number.end()), "number", line=text) if number else None
    if formulas:
        denied = standing(text, formulas[0].start(), formulas[-1].end(), marked=True) == "denied"
        return None if denied else Extraction(joined(formulas), "formula", line=text)
    return Extraction(whole, "whole", line=text) if whole and len(whole) <= 100 and "\n" not in whole else None
