"""What a response states behind its answer: other values for what was asked, or that the answer is wrong.

A value is stated for what was asked by a general name ("the total is", "so we get"), by the name that the question has
for it ("the sum of the roots is"), or by that of the answer's own sentence.  Values of a check, of a case that is not
the one asked for ("if the books were identical, the answer would be 4") and of an explanation state nothing.

Not covered: contradictions that have to be understood.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from adjudge.responses.hearsay import supposed, unasserted
from adjudge.verifiers.math.clauses import REFUTED, RETRACTED, WRONG
from adjudge.verifiers.math.sentences import FORMULA, clean, sentence_end
from adjudge.verifiers.math.vocabulary import NUMBER_WORD

MOST: Final = 4000  # characters behind it that are read
MAX_STATEMENTS: Final = 12  # each costs up to 3 ms


class Statement(NamedTuple):
    """Readings of one value that is stated behind the answer, and whether it is said to be the answer or the asked.

    What is not may be a value on the way, where the text ends in the answer again.  "" stands for a value that is not
    told, and no reading for that in which the text ends.
    """

    readings: tuple[str, ...]
    firm: bool


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
_NO_TERM = (
    r"(?!\.?\d)(?!\s*(?:(?:[a-z]+\s+){1,4}(?:times|plus|minus|multiplied|divided)\b|times\b|plus\b|minus\b|over\b|of\b|by\b|more\b|less\b|[-−+/×·^=]"
    r"|\*(?!\*)\s*[\d(\\$]|\*\*\d|\\(?:times|cdot)))"
)
_END = r"(?=[\s*_]*(?:[.;:!?)\]]|,(?!\d)|\Z|\n))"
_ASSERTS = (
    r"(?:'s\b|\bis\b|\bare\b|=|[:：]|\b(?:should|must|will|would|has\s+to|ought\s+to)\s+be\b|\bbecomes\b|\bequals\b)"
)
_NEAR = r"[^.!?\n\d$\\]"

_STATED: Final = re.compile(
    rf"(?:\b(?:answers?|results?|total|solutions?|"
    rf"(?:final|right|true|correct|actual|real)\s+\w+|in\s+total)\b{_NEAR}{{0,40}}?{_ASSERTS}\s*{_FILL}{_VALUE}{_NO_TERM}"
    r"|(?:答案|答え|\b(?:Antwort|Lösung|Ergebnis|respuesta|réponse|risposta|resposta|ответ))\s*(?:ist\b|es\b|est\b|[èé]\s|[是为は:：=])"
    rf"{_VALUE.replace('value', 'abroad')}{_NO_TERM}"
    rf"|(?<=\s){_VALUE.replace('value', 'summed')}(?:\s+[a-z]+){{0,3}}\s+(?:in\s+(?:total|all)|altogether)\b"
    rf"|####{_VALUE.replace('value', 'hashes')}(?:\s+[a-z]+)?{_END}"
    rf"|(?<=\s){_VALUE.replace('value', 'chosen')}\s+is\s+(?:thus\s+)?(?:the|our|my)\s+(?:[a-z]+\s+)?answer\b"
    rf"|(?:\A|\n|[.!?]\s)[\s$)\]}}.]*\*\*{_VALUE.replace('value', 'bold')}(?:\s+[a-z]+)?\*\*{_END}"
    rf"|\b(?:it|this|that|which)\s*(?:{_ASSERTS})\s*{_FILL}{_VALUE.replace('value', 'pronoun')}{_END}"
    rf"|\b(?:should|must|ought\s+to)\s+(?:\w+\s+){{1,2}}?{_FILL}{_VALUE.replace('value', 'ought')}{_END}"
    rf"|\b(?:giving|leaving|yielding|\b(?:yields?|gives?|makes?|for)\s+a\s+total\s+of|i\.\s?e\.,?|(?:but|in\s+total"
    rf"|so|however){_NEAR}{{0,15}}"
    rf"\b(?:we|I)\s+(?:have|get|got|obtain|find|choose|pick)|\bgo(?:ing)?\s+with"
    rf"|\b(?:actually|wait|no)\b[\s,:.]*(?:we|I)\s+(?:get|got|obtain)"
    rf"|\bsays)\s*{_FILL}{_VALUE.replace('value', 'result')}{_NO_TERM}"
    rf"|(?:\b(?:so|thus|therefore|hence|alternatively|instead|rather)\b|\bv(?:ersu)?s\b\.?|→|⇒|[=-]>|"
    rf"\b(?:final(?:ly)?|conclusion|correct(?:ed|ion)|revised|actual(?:ly)?|true|new|fixed|updated?)\s*[:：])[\s,:]*{_FILL}"
    rf"{_VALUE.replace('value', 'so')}(?=(?:\s+[a-z]+)?[\s*_]*(?:[.,;:!?)\]]|\Z|\n))"
    rf"|(?<=[\s,]){_VALUE.replace('value', 'rest')}\s+(?:remains?|(?:is|are)\s+left)\b"
    rf"|\A[\s$)\]}},.;(—–-]*\bor\b[\s,]*{_FILL}(?=\S*\d|\\|\$){_VALUE.replace('value', 'other')}"
    r"|(?:\A[\s$)\]}.]*(?:\\q?quad|[;,—–]|(?=\(|or\b))|\n|(?<=\w[.!?])(?=\s))(?:[\s(—–]|-(?=\s))*(?:(?:or|maybe|perhaps|possibly"
    rf"|probably|rather|else|is\s+it|even)\b[\s,]*)*"
    rf"{_VALUE.replace('value', 'bare')}{_END})",
    re.IGNORECASE,
)
_APART: Final = re.compile(r"\b(?:without|excluding|ignoring)\b", re.IGNORECASE)
_CHECKS: Final = re.compile(
    r"[\s*_(]*(?:(?:and|so|but)\s+)?(?:check|verif|for\s+(?:example|instance)|e\.g|note|recall|alternatively"
    r"|similarly)",
    re.IGNORECASE,
)
_FIRM: Final = re.compile(r"\b(?:answers?|final\w*|correct\w*|actual\w*|revised|updated?)\b", re.IGNORECASE)
_LIST_NUMBER: Final = re.compile(r"(?<=\n)[ \t*_>#]*(?:\d{1,2}[.)]|\(\d{1,2}\))[*_]*(?=[ \t]+\S)")
_STARTS: Final = re.compile(r"(?:[.!?](?=\s)|\n)[\s*_]*")
_HINT: Final = re.compile(rf"\d|\\[dt]?frac|\\sqrt|\b(?:{NUMBER_WORD})\b", re.IGNORECASE)
_NOTHING_LATER: Final = re.compile(r"[\W_]*(?:[a-z]+[\W_]*)?\Z")  # a unit at most
_JOINED: Final = re.compile(r"\\text\s*\{\s*(or|and)\s*\}")
_NAMED: Final = re.compile(r"\s*[A-Za-z]\s*=[^=]*\Z")
_NEXT_WORD: Final = re.compile(r"\s*(\\?%|[A-Za-z]+)")

_TAKES_BACK: Final = re.compile(
    r"(?:\A|[.!?;:,\n)\]$}—–-])[\s*_]*(?:(?:oh|oops|hm+|ah|uh|but|ok|okay|well|and|so|then|please)\b\W*)*"
    r"(?:no\b|nope\b|wait\b|hold\s+on\b|actually\b|correct(?:ion|ed)\b|revis(?:ed|ion)\b|sorry\b|apolog\w+|oops\b"
    r"|(?:scratch|strike|forget|ignore|disregard)\s+(?:that|this|(?:the|my)\s+(?:box|answer|above|previous))\b|(?:up)?on\s+(?:second\s+thoughts?|review|reflection|checking)\b|or\s+rather\b"
    r"|i\s+(?:made|mis\w+|meant|mean|was\s+wrong|take\s+(?:that|it)\s+back|forgot|disagree|object|doubt|reject"
    r"|(?:do\s+not|don't|cannot|can't)\s+(?:agree|accept|believe))\b"
    r"|(?:my|a)\s+(?:mistake|bad|error)\b|let\s+me\s+(?:correct|fix|redo|revise|reconsider)\b|update\b|edit\b|不对|等等"
    r"|更正|其实)",
    re.IGNORECASE,
)
_DISSENT: Final = re.compile(
    r"i\s+(?:disagree|object|doubt|reject|take|do|can)|scratch|strike|forget|ignore|disregard", re.IGNORECASE
)
_CHECKING: Final = re.compile(
    r"\W*(?:let\s+me|let's|i'll|i\s+will)\s+(?:just\s+)?(?:double[-\s]?|sanity[-\s]?|re-?)?(?:check|verify|confirm)",
    re.I,
)
_ERRED: Final = re.compile(
    r"\bmade\s+an?\s+(?:\w+\s+)?(?:error|mistake|slip)|\bmis(?!s)\w+|\boops\b"
    r"|\bre-?(?:comput|calculat|count|do|consider|think|read|work)",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"[\s,.:;!*_—–-]*(?:(?:no|wait|sorry|actually|rather|make\s+that|make\s+it|i\s+mean|i\s+meant|not\s+that"
    r"|but)\b[\s,.:;!*_—–-]*)*"
    r"(?:[^\n]{0,160}?\b(?:it|that|this|which|answers?|result|value|solution|total|应该|答案)\s*"
    r"(?:'s|is|are|was|equals|=|:|是|为|(?:should|must|would|will|ought\s+to)\s+(?:be|have\s+been))\s*"
    r"(?:(?:actually|really|in\s+fact|just|instead|rather|indeed|equal\s+to)\s+)*)?"
    r"[\s:*_]*(?:\$|\\\(|\\\[)?\s*([-−]?(?:\d[\d,./]*|\\[A-Za-z]+\S*"
    r"|(?!(?-i:[IAa]\s+[a-z]))[A-Za-z](?![A-Za-z'’])\S*))",
    re.IGNORECASE,
)
_WITHDRAWN: Final = re.compile(
    rf"[^\n]{{0,80}}?(?:\b(?:this|that|it|which|answer)\s+)?{REFUTED}|[^\n]{{0,80}}?(?:this|that|it)'s\s+{WRONG}"
    r"|[^\n]{0,80}?\bnot\s+(?:the\s+)?(?:right|correct)",
    re.IGNORECASE,
)
_OWN_ERROR: Final = re.compile(
    r"(?:\A|[.!?;\n)\]$}—–-])[\s*_]*(?:(?:oh|oops|hm+|ah|uh|um|er|ugh|wait|well|but|ok|okay|no)\b[\W_]*)+"
    rf"(?:this|that|it|(?:the|my)\s+answer)(?:\s+{REFUTED}|'s\s+{WRONG}"
    r"|\s+(?:doesn't|does\s+not|didn't)\s+(?:look|seem|sound|make)\s+(?:right|correct|sense)\b)",
    re.IGNORECASE,
)
_OPERATION = (
    r"(?:divid|multipli|add|subtract|doubl|halv|squar|increas|decreas|reduc|adjust|correct|negat|revers|remov)ed"
)
_CHANGED: Final = re.compile(
    rf"(?<!might )(?<!may )\b(?:must|should|needs?\s+to|ha(?:s|ve)\s+to)\s+(?:(?:then|still|now|also|next)\s+)*"
    rf"be\s+{_OPERATION}\b"
    r"|\b(?:must|needs?\s+to|have\s+to|should)\s+(?:(?:then|still|now|also|next)\s+)*"
    r"(?:divide|multiply|add|subtract|double(?![-\s]*check)|halve|square|remove|adjust)\b"
    r"|\bto\s+which\b[^.!?\n]{0,20}\b(?:add|subtract)|\A[\s,$)\]}]*half\s+of\s+(?:which|these|those|them)\b"
    r"|\A[^.!?\n;]{0,20}\b(?:and|then)\s+(?:then\s+)?(?:divide|multiply|add|subtract|double|halve|square|negate"
    rf"|reverse)\b",
    re.IGNORECASE,
)


def later_statements(after: str, value: str, question: str = "", before: str = "") -> tuple[Statement, ...] | None:
    """Return the values that are stated behind an answer, or None where the answer is taken back or changed.

    Args:
        after: the text behind the answer.
        value: the answer.
        question: what was asked.
        before: the text before the answer.
    """
    if _NOTHING_LATER.match(after):
        return ()
    first, *lines = after[:MOST].replace("’", "'").split("\n")
    after = _JOINED.sub(r" \1 ", "\n".join([first.rstrip(), *(line for line in lines if line.strip(" \t\r*_"))]))
    after = _LIST_NUMBER.sub("", after)
    denied = re.search(rf"\banswer\s+is\s+not\W+{re.escape(value)}(?![.,]?\w)", after)
    if denied or RETRACTED.match(after) or _OWN_ERROR.search(after):
        return None
    statements = [Statement(("",), firm=False)] if _CHANGED.search(after) else []
    for opening in islice(_TAKES_BACK.finditer(after), MAX_STATEMENTS):
        rest = after[opening.end() : opening.end() + 400]
        if _DISSENT.search(opening[0]) or _WITHDRAWN.match(rest):
            return None
        if _ERRED.search(opening[0] + rest[:40]):
            statements.append(Statement((), firm=False))
        other = None if _CHECKING.match(rest) else _OTHER.match(rest)
        if other and (said := other[1].strip("$.,;*")) != value:
            sentence = clean(rest[other.start(1) : sentence_end(rest, other.end(1))])
            statements.append(Statement((said, sentence), firm=True))
    if _HINT.search(after):
        own = _OWN_NAME.search(before[-_REACH:].replace("’", "'")) if before else None
        named = [_named(name) for name in (asked(question), own[1] if own else "") if name]
        for pattern in (_STATED, *named):
            statements += [one for one in map(_statement, islice(pattern.finditer(after), MAX_STATEMENTS)) if one]
    return tuple(one for one in statements if value not in one.readings)


def _statement(match: re.Match[str]) -> Statement | None:
    """Return what a statement says its value is, alone, with the next word, and with the rest of its sentence."""
    kind = match.lastgroup or "value"
    text, start = match.string, match.start(kind)
    begins = max((one.end() for one in _STARTS.finditer(text, max(0, start - 400), start)), default=0)
    before = text[begins:start]
    if (
        supposed(before)
        or unasserted(before)
        or (kind in ("result", "bare", "pronoun", "named") and _CHECKS.match(before))
    ):
        return None
    if (kind in ("named", "summed") and _ELSEWHERE.search(before)) or _APART.search(match[0]):
        return None
    if match[0][:2].lower() == "i." and _STARTS.search(text, 0, match.start()):
        return None  # of what another sentence tells
    if kind == "bare" and text[: match.start()].rstrip("\n *_").endswith((":", ",")):
        return None  # a part of the sentence above it
    formula = FORMULA.match(text, start)
    value = formula[formula.lastgroup or 0] if formula else match[kind].rstrip(".$\\")
    if kind == "bare" and "=" in value and not _NAMED.match(value):
        return None  # a computation
    stop = formula.end() if formula else match.end(kind)
    following = _NEXT_WORD.match(text, stop)
    measured = (f"{value}\\text{{ {following[1]}}}" if following[1].isalpha() else f"{value}\\%",) if following else ()
    firm = kind in ("named", "other", "hashes") or _FIRM.search(match[0]) is not None
    return Statement((value, *measured, clean(text[start : sentence_end(text, stop)])), firm)


# -- names of what was asked ------------------------------------------------------------------------------------

_REACH: Final = 200  # characters before an answer that may name it
_MOST_WORDS: Final = 12  # of a name
_ASKS: Final = re.compile(
    r"\b(?:(?:what(?:'s|\s+(?:is|are|was|were|will\s+be|would\s+be))|find|determine|compute|calculate|evaluate|give|state)\s+(?:the|its|their)"
    r"|how\s+(?P<many>many)|how\s+(?P<much>much)|how\s+(?P<as>far|old|tall|fast|heavy))\s+(?P<name>[^?!;\n]{1,200})",
    re.IGNORECASE,
)
_NOUNS: Final = {"far": "distance", "old": "age", "tall": "height", "fast": "speed", "heavy": "weight"}
_NAME_WORD: Final = re.compile(r"\s*(\$[^$\n]{1,60}\$|\\\([^\n]{1,60}?\\\)|[A-Za-z][\w'()+-]*)")
_NAME_ENDS: Final = frozenset(
    "given if when where such so and or is are do does did will can would has have had".split()
)
_TAIL: Final = frozenset("of in that for to from between on with at by which who needed required".split())
_GENERAL: Final = frozenset("answer result solution following total value number".split())
"""Heads that name nothing alone: "the value of $f(3)$" is not "the value of $f(2)$"."""
_VAGUE: Final = r"(?:possible|total|exact|final|correct|actual|true|right|new|required|desired|overall|numerical|same)"
_OWN_NAME: Final = re.compile(
    r"\b(?:the|its|their|our)\s+((?:[A-Za-z]+\s+){0,4}[A-Za-z]+)\s*(?:\bis\b|\bare\b|\bequals\b|=|:)[\s$*\\(\[:=]*\Z",
    re.I,
)
_ELSEWHERE: Final = re.compile(
    r"\b(?:for|if|when|whenever|with|without|where|in|at|case|each|every|first|second|ignoring|not)\b", re.IGNORECASE
)


@lru_cache(maxsize=256)  # a prompt has many answers
def asked(question: str) -> str:
    """Return the name that a question has for what it asks: "sum of the roots"; "" where it has none."""
    every = list(_ASKS.finditer(question.replace("’", "'")))
    if not every:
        return ""
    asks = every[-1]  # the text before leads to it
    if asks["as"]:
        return _NOUNS[asks["as"].lower()]
    words: list[str] = []
    at = asks.start("name")
    while (word := _NAME_WORD.match(asks.string, at)) and len(words) < _MOST_WORDS and word[1] not in _NAME_ENDS:
        words.append(word[1])
        at = word.end()
    lead = "number of " if asks["many"] else "amount of " if asks["much"] else ""
    return lead + " ".join(words) if words else ""


@lru_cache(maxsize=256)
def _named(name: str) -> re.Pattern[str]:
    """Return the pattern of a statement about what has a name, in full or without what follows its noun."""
    words = name.split(" ")
    head = next((at for at, word in enumerate(words) if word in _TAIL), len(words))
    if not head:
        return _NEVER
    *leading, noun = words[:head]
    subject = "".join(rf"(?:{re.escape(word)}\s+)" for word in leading) + re.escape(noun)
    tail = ""
    for word in reversed(words[head:]):
        one = r"(?:the|these|those|its|his|her|their|all)" if word == "the" else re.escape(word)
        tail = rf"(?:\s+{one}{tail})" + ("" if noun in _GENERAL and not leading else "?")
    return re.compile(
        rf"\b(?:the|its|their|our|this|my)\s+(?:{_VAGUE}\s+)*{subject}{tail}\s*(?:travell?ed\s+|covered\s+)?"
        r"(?:\b(?:is|are|was|becomes|equals|comes?\s+(?:out\s+)?to|(?:should|must|has\s+to|have\s+to)\s+be)\b|=|[:：])"
        rf"\s*{_FILL}{_VALUE.replace('value', 'named')}{_NO_TERM}",
        re.IGNORECASE,
    )


_NEVER: Final = re.compile(r"(?!)")
