"""Find what follows a marker: "final answer", "the answer is", "answer:", "A:", `####`.

Of equal markers the last one counts.  Searching goes line by line from the end, since that is where answers stand.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from adjudge.verifiers.math_answer.sentences import ALTERED, FORMULA, clean, said, sentence_end, without_hope

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
    r"|答案(?:[是为]|[:：])[:：]?|答[:：]|答え(?:は|[:：]))",
    re.IGNORECASE | re.MULTILINE,
)


_COPULA: Final = re.compile(r"\s*(?:입니다|이다|です|である|だ|(?:と|に)な(?:る|ります))\Z")


class Marked(NamedTuple):
    """What a marker marks, and where that ends in the text."""

    text: str
    stop: int


_NOTHING: Final = Marked("", 0)


def after_final(text: str) -> Marked:
    """Return what follows the last "final answer"; its text is "" where there is none."""
    hinted = "inal" in text or "INAL" in text or "最终答案" in text or "最后答案" in text
    return _after(text, _FINAL) if hinted else _NOTHING


def after_hashes(text: str) -> Marked:
    """Return the rest of the line after the last `####`, as `after_final`."""
    at = text.rfind("####")
    if at < 0:
        return _NOTHING
    end = text.find("\n", at)
    end = end if end >= 0 else len(text)
    return Marked(clean(text[at + 4 : end]), end)


def after_answer(text: str) -> Marked:
    """Return what follows the last "the answer is", "answer:" or "A:", as `after_final`."""
    return _after(text, _ANSWER)


def _after(text: str, pattern: re.Pattern[str]) -> Marked:
    start = _last_match(text, pattern)
    if start < 0:
        return _NOTHING
    if ALTERED.search(text, max(text.rfind("\n", 0, start), start - 200, 0), start):
        return _NOTHING
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
    """Return where the last match ends, or -1."""
    end = len(text)
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        last = -1
        for match in pattern.finditer(text, start, end):
            last = match.end()
        if last >= 0:
            return last
        end = start - 1
    return -1


def _same_sentence(text: str, at: int) -> bool:
    """Whether more than punctuation and units follows a formula before the sentence ends."""
    return bool(text[at : sentence_end(text, at)].strip(" .,;*"))
