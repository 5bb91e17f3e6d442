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

What a response states behind its answer (`sentences`) is told beside it.  A value that is stated again must be the
same, which the verifier tells (`So the answer is 0.5` behind `1/2`).  Values of a check, of a case that is not the one
asked for ("if the books were identical, the answer would be 4") and of an explanation state nothing.

Searching costs one pass over the text, line by line from the end.

Not covered: an answer spread over several sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from adjudge.responses.answer_span import is_supposed
from adjudge.responses.hearsay import supposed, unasserted
from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.boxes import Box, boxed, earlier_boxes, unescape
from adjudge.verifiers.math.clauses import REFUTED, RETRACTED, WRONG, denied_before, suspicious
from adjudge.verifiers.math.sentences import (
    ALTERED,
    FORMULA,
    NUMBER,
    clean,
    explained_number,
    foreign,
    joined,
    last_formulas,
    lone_number,
    measured,
    said,
    sentence_end,
    without_hope,
    wordy,
)
from adjudge.verifiers.math.standing import standing
from adjudge.verifiers.math.units import is_unit
from adjudge.verifiers.math.vocabulary import NUMBER_WORD

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
    if right[:1].isdigit():
        return None
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
    r"(?:^[ \t>*#]*(?:(?:A|Ans|Answer|Antwort|Lösung|Ergebnis|Respuesta|Solución|Réponse|Risposta|Resposta|Antwoord|"
    r"Svar|Odpowied[źz]|Odpověď|Cevap|Jawaban|Vastaus|Válasz|Răspuns|Ответ|Відповідь|Lời\s+giải|Đáp\s+án|"
    r"Απάντηση)[ \t*]*[:：]|(?:정답|답|उत्तर|الجواب|الإجابة|תשובה|คำตอบ)[ \t*]*[:：은는])[ \t*]*"
    r"|\banswers?[ \t*]*(?:[:：]|\b(?:is|are|=|would be|will be|must be|should be)\b)[ \t*]*[:：]?"
    r"|\b(?:result|solution|value)[ \t*]*(?:is|are)\b[ \t*]*[:：]?"
    r"|【(?:正确|参考|最终)?答案】[:：]?|答案(?:[是为]|[:：])[:：]?|答[:：]|答え(?:は|[:：]))",
    re.IGNORECASE | re.MULTILINE,
)


_COPULA: Final = re.compile(r"\s*(?:입니다|이다|です|である|だ|(?:と|に)な(?:る|ります))\Z")


class Marked(NamedTuple):
    """What a marker marks, and where that ends in the text."""

    text: str
    stop: int


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
    return Marked(clean(text[at + 4 : end]), end)


def after_answer(text: str) -> Marked:
    """Return what follows the last "the answer is", "answer:" or "A:", as `after_final`."""
    return _after(text, _ANSWER)


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
        rest = rest.lstrip()
    start = len(text) - len(rest)
    display = FORMULA.match(rest)
    if display and (display.lastgroup in ("a", "b") or not _same_sentence(rest, display.end())):
        return Marked(clean(display[display.lastgroup or 0]), start + display.end())
    end = sentence_end(rest)
    sentence = clean(rest[:end])
    return Marked(said(sentence if sentence.isascii() else _COPULA.sub("", sentence)), start + end)


def _last_match(text: str, pattern: re.Pattern[str]) -> int:
    """Return where the last match ends, one in a sentence about another case only where there is no other; or -1."""
    end, other = len(text), -1
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        for match in reversed(list(pattern.finditer(text, start, end))):
            if not is_supposed(text, match):
                return match.end()
            other = max(other, match.end())
        end = start - 1
    return other


def _same_sentence(text: str, at: int) -> bool:
    """Whether more than punctuation and units follows a formula before the sentence ends."""
    return bool(text[at : sentence_end(text, at)].strip(" .,;*"))


MOST: Final = 4000  # characters behind it that are read
MAX_STATEMENTS: Final = 12  # each costs up to 3 ms

Statement: TypeAlias = tuple[str, ...]
"""Readings of one value that is stated behind the answer."""

_FILL = (
    r"(?:\b(?:now|then|thus|therefore|hence|actually|really|just|simply|exactly|only|in\s+fact|instead|rather|indeed|"
    r"equal\s+to|equals|is|be|a\s+total\s+of|probably|maybe|perhaps|possibly)\b[\s,]*)*"
)
_VALUE = (
    r"[\s*_:(]*(?P<value>\$\$?[^$\n]{1,200}\$\$?|\\\([^\n]{1,200}?\\\)|\\\[.{1,200}?\\\]"
    r"|\\(?:boxed|[dt]?frac|sqrt)\s*\{[^\s.,;]{1,200}|[-−]?\\?[$€£]?\.?\d+\s\d+/\d+"
    rf"|[-−]?\\?[$€£]?\.?\d(?:[^\s,;:!?)*]|,(?=\d))*"
    rf"|(?:{NUMBER_WORD})\b(?!\s+(?:of|for|by)\b))"
)
_NO_TERM = r"(?!\s*(?:times\b|plus\b|minus\b|over\b|of\b|by\b|more\b|less\b|[-−+*/×·^=]|\\(?:times|cdot)))"
_END = r"(?=[\s*_]*(?:[.,;:!?)\]]|\Z|\n))"
_ASSERTS = (
    r"(?:'s\b|\bis\b|\bare\b|=|[:：]|\b(?:should|must|will|would|has\s+to|ought\s+to)\s+be\b|\bbecomes\b|\bequals\b)"
)
_NEAR = r"[^.!?\n\d$\\]"

_STATED: Final = re.compile(
    rf"(?:\b(?:answers?|results?|total|solutions?|"
    rf"(?:final|right|true|correct|actual|real)\s+\w+|in\s+total)\b{_NEAR}{{0,40}}?{_ASSERTS}\s*{_FILL}{_VALUE}{_NO_TERM}"
    rf"|\b(?:it|this|that|which)\s*(?:{_ASSERTS})\s*{_FILL}{_VALUE.replace('value', 'pronoun')}{_END}"
    rf"|\b(?:should|must|ought\s+to)\s+(?:\w+\s+){{1,2}}?{_FILL}{_VALUE.replace('value', 'ought')}{_END}"
    rf"|\b(?:giving|leaving|yielding|\b(?:yields?|gives?|makes?|for)\s+a\s+total\s+of|i\.\s?e\.,?|(?:but|in\s+total"
    rf"|so|however){_NEAR}{{0,15}}"
    rf"\b(?:we|I)\s+(?:have|get|got|obtain|find|choose|pick)|\bgo(?:ing)?\s+with"
    rf"|\bsays)\s*{_FILL}{_VALUE.replace('value', 'result')}{_NO_TERM}"
    rf"|(?:\b(?:so|thus|therefore|hence|alternatively|instead|rather)\b|\bv(?:ersu)?s\b\.?|→|⇒|[=-]>|"
    rf"\b(?:final(?:ly)?|correct(?:ed|ion)|revised|actual(?:ly)?|true|new|fixed|updated?)\s*[:：])[\s,:]*{_FILL}"
    rf"{_VALUE.replace('value', 'so')}(?=(?:\s+[a-z]+)?[\s*_]*(?:[.,;:!?)\]]|\Z|\n))"
    rf"|(?<=[\s,]){_VALUE.replace('value', 'rest')}\s+(?:remains?|(?:is|are)\s+left)\b"
    rf"|\A[\s$)\]}},.;(—–-]*\bor\b[\s,]*{_FILL}(?=\S*\d|\\|\$){_VALUE.replace('value', 'other')}"
    r"|(?:\A[\s$)\]}.]*(?:\\q?quad|[;,—–]|(?=\(|or\b))|\n|(?<=\w[.!?])(?=\s))(?:[\s(—–]|-(?=\s))*(?:(?:or|maybe|perhaps|possibly"
    rf"|probably|rather|else|is\s+it|even)\b[\s,]*)*"
    rf"{_VALUE.replace('value', 'bare')}{_END})",
    re.IGNORECASE,
)
_CHECKS: Final = re.compile(
    r"[\s*_(]*(?:(?:and|so|but)\s+)?(?:check|verif|for\s+(?:example|instance)|e\.g|note|recall|alternatively"
    r"|similarly)",
    re.IGNORECASE,
)
_STARTS: Final = re.compile(r"(?:[.!?](?=\s)|\n)[\s*_]*")
_HINT: Final = re.compile(rf"\d|\\[dt]?frac|\\sqrt|\b(?:{NUMBER_WORD})\b", re.IGNORECASE)
_NOTHING_LATER: Final = re.compile(r"[\W_]*(?:[a-z]+[\W_]*)?\Z")  # a unit at most
_JOINED: Final = re.compile(r"\\text\s*\{\s*(or|and)\s*\}")
_NAMED: Final = re.compile(r"\s*[A-Za-z]\s*=[^=]*\Z")
_NEXT_WORD: Final = re.compile(r"\s*(\\?%|[A-Za-z]+)")

_TAKES_BACK: Final = re.compile(
    r"(?:\A|[.!?;:,\n)\]$}—–-])[\s*_]*(?:(?:oh|oops|hm+|ah|uh|but|ok|okay|well|and|so|then)\b\W*)*"
    r"(?:no\b|nope\b|wait\b|hold\s+on\b|actually\b|correct(?:ion|ed)\b|revis(?:ed|ion)\b|sorry\b|apolog\w+|oops\b"
    r"|(?:scratch|strike|forget)\s+that\b|(?:up)?on\s+(?:second\s+thoughts?|review|reflection|checking)\b|or\s+rather\b"
    r"|i\s+(?:made|mis\w+|meant|mean|was\s+wrong|take\s+(?:that|it)\s+back|forgot|disagree|object|doubt|reject"
    r"|(?:do\s+not|don't|cannot|can't)\s+(?:agree|accept|believe))\b"
    r"|(?:my|a)\s+(?:mistake|bad|error)\b|let\s+me\s+(?:correct|fix|redo|revise|reconsider)\b|update\b|edit\b|不对|等等"
    r"|更正|其实)",
    re.IGNORECASE,
)
_DISSENT: Final = re.compile(
    r"i\s+(?:disagree|object|doubt|reject|take|do|can)|(?:scratch|strike|forget)", re.IGNORECASE
)
_CHECKING: Final = re.compile(
    r"\W*(?:let\s+me|let's|i'll|i\s+will)\s+(?:just\s+)?(?:double[-\s]?|sanity[-\s]?|re-?)?(?:check|verify|confirm)",
    re.I,
)
_OTHER: Final = re.compile(
    r"[\s,.:;!*_—–-]*(?:(?:no|wait|sorry|actually|rather|make\s+that|make\s+it|i\s+mean|i\s+meant|not\s+that"
    r"|but)\b[\s,.:;!*_—–-]*)*"
    r"(?:[^\n]{0,160}?\b(?:it|that|this|which|answers?|result|value|solution|total|应该|答案)\s*"
    r"(?:'s|is|are|was|equals|=|:|是|为|(?:should|must|would|will|ought\s+to)\s+(?:be|have\s+been))\s*"
    r"(?:(?:actually|really|in\s+fact|just|instead|rather|indeed|equal\s+to)\s+)*)?"
    r"[\s:*_]*(?:\$|\\\(|\\\[)?\s*([-−]?(?:\d[\d,./]*|\\[A-Za-z]+\S*|[A-Za-z](?![A-Za-z'’])\S*))",
    re.IGNORECASE,
)
_WITHDRAWN: Final = re.compile(
    rf"[^\n]{{0,80}}?(?:\b(?:this|that|it|which|answer)\s+)?{REFUTED}|[^\n]{{0,80}}?(?:this|that|it)'s\s+{WRONG}"
    r"|[^\n]{0,80}?\bnot\s+(?:the\s+)?(?:right|correct)",
    re.IGNORECASE,
)
_OPERATION = (
    r"(?:divid|multipli|add|subtract|doubl|halv|squar|increas|decreas|reduc|adjust|correct|negat|revers|remov)ed"
)
_CHANGED: Final = re.compile(
    rf"(?<!might )(?<!may )\b(?:must|should|needs?\s+to|ha(?:s|ve)\s+to)\s+(?:(?:then|still|now|also|next)\s+)*"
    rf"be\s+{_OPERATION}\b"
    r"|\b(?:must|needs?\s+to|have\s+to|should)\s+(?:(?:then|still|now|also|next)\s+)*"
    r"(?:divide|multiply|add|subtract|double|halve|square|remove|adjust)\b"
    r"|\bto\s+which\b[^.!?\n]{0,20}\b(?:add|subtract)|\A[\s,$)\]}]*half\s+of\s+(?:which|these|those|them)\b"
    r"|\A[^.!?\n;]{0,20}\b(?:and|then)\s+(?:then\s+)?(?:divide|multiply|add|subtract|double|halve|square|negate"
    rf"|reverse)\b",
    re.IGNORECASE,
)


def later_statements(after: str, value: str) -> tuple[Statement, ...] | None:
    """Return the values that are stated behind an answer, or None where the answer is taken back or changed."""
    if _NOTHING_LATER.match(after):
        return ()
    after = _JOINED.sub(r" \1 ", after[:MOST].replace("’", "'"))
    if _CHANGED.search(after) or RETRACTED.match(after):
        return None
    statements: list[Statement] = []
    for opening in islice(_TAKES_BACK.finditer(after), MAX_STATEMENTS):
        rest = after[opening.end() : opening.end() + 400]
        if _DISSENT.search(opening[0]) or _WITHDRAWN.match(rest):
            return None
        other = None if _CHECKING.match(rest) else _OTHER.match(rest)
        if other and (said := other[1].strip("$.,;*")) != value:
            statements.append((said, clean(rest[other.start(1) : sentence_end(rest, other.end(1))])))
    if _HINT.search(after):
        statements += [one for one in map(_statement, islice(_STATED.finditer(after), MAX_STATEMENTS)) if one]
    return tuple(one for one in statements if value not in one)


def _statement(match: re.Match[str]) -> Statement:
    """Return what a statement says its value is, alone, with the next word, and with the rest of its sentence."""
    kind = match.lastgroup or "value"
    text, start = match.string, match.start(kind)
    begins = max((one.end() for one in _STARTS.finditer(text, max(0, start - 400), start)), default=0)
    before = text[begins:start]
    if supposed(before) or unasserted(before) or (kind in ("result", "bare", "pronoun") and _CHECKS.match(before)):
        return ()
    formula = FORMULA.match(text, start)
    value = formula[formula.lastgroup or 0] if formula else match[kind].rstrip(".$\\")
    if kind == "bare" and "=" in value and not _NAMED.match(value):
        return ()  # a computation
    stop = formula.end() if formula else match.end(kind)
    following = _NEXT_WORD.match(text, stop)
    measured = (f"{value}\\text{{ {following[1]}}}" if following[1].isalpha() else f"{value}\\%",) if following else ()
    return (value, *measured, clean(text[start : sentence_end(text, stop)]))


TAGGED: Final = 60_000  # where `<answer>` tags are looked for
TAIL: Final = 20_000  # where weaker markers than a box are looked for: the end of a response

Marker = Literal["tag", "boxed", "####", "final answer", "answer", "whole", "bold", "formula", "number"]
Policy = Literal["last", "same"]

_BOLD = re.compile(
    r"(?:\b(?:is|are|be|equals|was|gives|gets?)|[=:：])\s*\*\*([^*\n]{0,60}\d[^*\n]{0,60}|true|false|yes|no)\*\*",
    re.IGNORECASE,
)
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
    """

    text: str
    marker: Marker
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    later: tuple[Statement, ...] = ()


def extract(text: str, *, boxes: Policy = "last") -> Extraction | None:
    """Return the answer a text commits to, or None when it gives none.

    Args:
        text: the graded part of a response, reasoning removed.
        boxes: what several boxed answers in different places mean.
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
        return _tagged(text, boxes)
    if unclosed:
        return None
    tail = text[max(closed[-1].stop if closed else 0, len(text) - TAIL) :]
    if (final := after_final(tail)).text:
        return _judged(Extraction(final.text, "final answer"), tail[final.stop :])
    if closed:
        return _from_boxes(text, closed, boxes)
    if (line := after_hashes(tail)).text:
        return _judged(Extraction(line.text, "####"), tail[line.stop :])
    if (line := after_answer(tail)).text:
        return _judged(Extraction(line.text, "answer"), tail[line.stop :])
    return _unmarked(tail)


def _judged(answer: Extraction, after: str) -> Extraction | None:
    """Return an answer with what is stated behind it, or None where that takes it back."""
    later = later_statements(after, answer.text)
    return None if later is None else answer._replace(later=later) if later else answer


def _tagged(text: str, policy: Policy) -> Extraction | None:
    """Return what the `<answer>` tags hold; tags that differ are several answers."""
    closed = text[-TAGGED:].split("</answer>")[:-1]
    bodies = [part.rpartition("<answer>")[2].strip() for part in closed if "<answer>" in part]
    if not bodies:
        return None
    if len(set(bodies)) > 1:
        return Extraction(bodies[-1], "tag", tuple(bodies[:-1]))
    if standing(text, text.rfind("<answer>"), len(text), marked=True) == "denied":
        return None
    inner = extract(bodies[0].replace("</answer>", " "), boxes=policy)
    answer = (
        Extraction(inner.text, "tag", inner.others, later=inner.later)
        if inner
        else Extraction(said(clean(bodies[0])), "tag")
    )
    return _judged(answer, text.rpartition("</answer>")[2])


def _from_boxes(text: str, boxes: list[Box], policy: Policy) -> Extraction | None:
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
    return _judged(Extraction(answer, "boxed", others, parts), text[boxes[-1].stop :])


def _unmarked(text: str) -> Extraction | None:
    """Return a text that is nothing but an answer, or the last number or formula of the last line."""
    text = without_hope(text)
    whole = _LEAD.sub("", clean(text), count=1) if _LEAD.match(clean(text)) else clean(text)
    if whole and "\n" not in whole and len(whole) <= 200 and not (wordy(whole) or foreign(whole)):
        return Extraction(whole, "whole")
    bold = next(reversed(list(_BOLD.finditer(text, max(text.rstrip().rfind("\n"), 0)))), None)
    if bold and (bold[1].isalpha() or not wordy(bold[1])) and standing(text, *bold.span(1), marked=True) == "alone":
        return Extraction(clean(bold[1]), "bold")
    formulas = last_formulas(text)
    line = text.rstrip().rfind("\n") + 1
    after = max(formulas[-1].end() if formulas else 0, line)
    numbers = list(NUMBER.finditer(text, after))
    if numbers:
        if explained := explained_number(text[after:]):
            return Extraction(explained, "number")
        if not lone_number(text, numbers[-1]):
            return None
        return Extraction(measured(text, numbers[-1][0], numbers[-1].end()), "number")
    if formulas:
        denied = standing(text, formulas[0].start(), formulas[-1].end(), marked=True) == "denied"
        return None if denied else Extraction(joined(formulas), "formula")
    return Extraction(whole, "whole") if whole and len(whole) <= 100 and "\n" not in whole else None
