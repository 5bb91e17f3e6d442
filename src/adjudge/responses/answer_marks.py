r"""The ways in which models mark an answer, written as the few that readers of answers know.

A heading without a colon gets one (`**Answer**` above a line), the box of GLM becomes `\boxed{}`, and the answer of a
JSON object becomes a line "Answer: ..."; "not 48 but 72" is 72, and nobody's hope that it is correct is a part of it.

Not covered: an answer that is spread over several paragraphs below its heading.
"""

from __future__ import annotations

import json
import re
from typing import Final

_BOX_TOKENS: Final = re.compile(r"<\|(begin|end)_of_box\|>")
_HEADING: Final = re.compile(
    r"^[ \t>]*(?P<mark>#{1,6}[ \t]*[*_]{0,3}|[*_]{1,3})?(?P<name>(?(mark)(?i:(?:the|my|final|correct|short)[ \t])?)"
    r"(?:Answers?|ANSWERS?|(?(mark)answers?|(?!))|答案|答え|정답|Antwort|Respuesta|Réponse|Risposta|Resposta|Antwoord|Ответ"
    r"|Đáp án))[*_]{0,3}[ \t]*\r?\n"
    # What stands below is all there is, or above another heading, or a paragraph of its own.
    r"(?=\s*(?P<below>[^\n]{1,200})(?:(?P<last>\s*(?:\Z|\n[ \t]*(?:#|\*\*[^*\n]{1,60}\*\*:?[ \t]*(?:\n|\Z))))"
    r"|[ \t\r]*\n[ \t\r]*\n))",
    re.MULTILINE,
)
# Where more follows, it may be the first line of the work.
_WORK: Final = re.compile(
    r"\W*(?:we|to|let|let's|first|since|given|from|by|using|consider|note|step|if|for|in|here|as|when|i|each|after"
    r"|because|suppose|assume|start\w*)\b|.{80}|.*[=≈<>≤≥]|.*[:：,]\Z|[-*•]\s|\d+[.)]\s",
    re.IGNORECASE,
)
_JSON: Final = re.compile(
    r"\{?[ \t\r\n]{0,9}\"(?:final[_ ])?[aA]nswer\"\s{0,3}:\s{0,9}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){1,2000}\"|-?\d[\d.]{0,40})\s{0,9}[,}]"
)
_VALUE: Final = (
    r"(?:\\boxed\{[^{}\n]{1,40}\}|\$[^$\n]{1,40}\$|\\\([^\n]{1,40}?\\\)"
    r"|[*_(\[]{0,3}[-−]?[$€£]?\d[\d.,/%]{0,20}[*_)\]]{0,3}(?<![.,])(?:\s(?!but\b)[a-z]{1,12})?"
    r"|[*_(\[]{0,3}[A-J](?![A-Za-z0-9'’])[*_)\]]{0,3})"
)
_CONTRAST: Final = re.compile(
    rf"(?:\bnot\s|(?P<verb>\b(?:is|was|are|were))n['’]t\s)(?:(?:option|choice|answer)\s)?{_VALUE}"
    r"(?:,?\sbut(?:\s(?:rather|instead|actually|it\sis|it['’]s|is))?|[,;]\s(?:it\sis|it['’]s|rather|instead))\s"
    rf"(?=(?:(?:option|choice|answer)\s)?{_VALUE})|不是(?:选项)?{_VALUE}，?而(?=是(?:选项)?{_VALUE})"
)
_REFUSED: Final = re.compile(
    r"(?P<kept>(?<![\d.,])\d[\d.,]{0,30}(?:\s[a-z]{1,12}(?=[,;(]|\s\())?|(?<=\d)[%$)}\]*]+|[$)}\]*]|(?<![\w'’])[A-J])"
    rf"[,;(\s]{{1,3}}(?:and\s|but\s)?(?:not|rather\sthan|instead\sof)\s(?:(?:option|choice)\s)?{_VALUE}\)?"
    r"(?=[\s.!]*(?:\n|\Z))"
)
_HOPE: Final = re.compile(
    r"\bI hope (?:it|this|that|my answer|the answer)\b[^\n.!]{0,60}(?:[.!]+|(?=\n|\Z))[ \t]*(?=\n|\Z)"
)


def in_known_marks(text: str) -> str:
    """Return a text with its answers marked as readers know it; the text itself for most."""
    if "of_box|>" in text:
        text = _BOX_TOKENS.sub(lambda token: r"\boxed{" if token[1] == "begin" else "}", text)
    if 'nswer"' in text and "<answer>" not in text:  # in an element it is a part of the answer
        text = _JSON.sub(_line, text)
    if "not " in text or "n't " in text or "n’t " in text or "不是" in text:
        text = _CONTRAST.sub(lambda contrast: f"{contrast['verb']} " if contrast["verb"] else "", text)
    if "not " in text or "rather than " in text or "instead of " in text:
        text = _REFUSED.sub(r"\g<kept>", text)
    if "I hope" in text:
        text = _HOPE.sub("", text)
    return _HEADING.sub(_with_colon, text)


def _line(found: re.Match[str]) -> str:
    try:
        value = json.loads(found["value"])
    except ValueError:
        value = "\f"
    if not str(value).isprintable():  # TeX whose backslashes are not doubled: "\frac", "\sqrt"
        value = found["value"].strip('"')
    return f"\nAnswer: {value}\n" if "\n" not in str(value) else found[0]


def _with_colon(heading: re.Match[str]) -> str:
    if heading["last"] is None and _WORK.match(heading["below"].strip()):
        return heading[0]
    return f"{heading['name'].title() if heading['name'].isascii() else heading['name']}:\n"
