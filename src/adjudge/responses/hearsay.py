"""Whether a response answers at all where it names a value: others may say it, or it would hold in another case.

`unasserted`: "Many students think the answer is", "Suppose the answer is", "I doubt it is".  `supposed`: "If it had
rained, the answer would be".  An opinion of its own is an answer: "I would say", "I suppose the answer is".

Not covered: what an earlier sentence ascribes or supposes.
"""

from __future__ import annotations

import re
from typing import Final

OPENING: Final = r"[\s$({\[<>*_`\"'“‘:|=-]|\\[(\[]|\\(?:text|textbf|mathbf|mathrm)\s?\{"
_FILLER = (
    r"(?:the|a|an|to|be|is|was|are|were|it|its|it['’]s|this|that|there|answer|answering|going|option|choice|letter"
    r"|number|value|results?|solutions?|total|guess|pick|equals?|must|should|sure|certain"
    r"|(?:right|correct|true|final)(?= (?:answer|option|choice|result|value|one))|for contradiction|really|actually"
    r"|quite|just|simply|exactly|here|possibly|ever|been"
    r"|think|believe|say|choose|select|go|with|my|our|es|ist|est|é|la|el|die|der|das|le"
    r"|ответ|risposta|resposta|antwoord|svaret|cevap|respuesta|antwort|réponse|lösung)"
)
LINK: Final = rf"(?:(?:{OPENING})*\b{_FILLER}\b)*(?:{OPENING})*\Z"
"""What may stand between words and the value that they are about."""

_CROWD = "many most some others everyone everybody nobody someone somebody".split()
_SAY = "say think believe claim argue insist assume conclude".split()
_SUPPOSE = "suppose supposing assume assuming imagine pretend".split()
_ANSWER = r"\b(?:answers?|results?|values?|solutions?)\b"
_CHOOSE = r"(?:pick|choose|answer(?!:|\s(?:is|was|would|should)\b))"
_VERB = rf"(?:{'|'.join(_SAY)}|(?:claim|guess)(?!:|\s(?:is|was)\b)|expect(?=\b.*{_ANSWER}))"
_ASCRIBED = (
    rf"\b(?:{'|'.join(_CROWD)}|people|students?|readers?|beginners?|they)(?:\s(?!(?:i|we|to)\b)[\w'’-]+){{0,3}}\s{_VERB}s?"
    rf"|\b(?:(?:{'|'.join(_CROWD)})(?:\s(?:people|students|readers))?|(?:people|students|readers)(?=\s(?:would|often)))"
    rf"(?:\s(?:would|might|will|often))*\s{_CHOOSE}"
    r"|(?<!\bi\s)\b(?:might|may|could|(?:one|you)\swould|tempt(?:ed|ing)(?:\sto)?)\s(?:say|think|believe|guess|expect)"
    rf"|\b(?:might|tempt(?:ed|ing)\sto)\s{_CHOOSE}"
    rf"|\bthe\s(?:grader|checker|teacher|(?:text)?book)\s(?:{_VERB}|expect)s"
)
_IN_DOUBT = (
    rf"(?<!\bi\s)(?<!\bwe\s)\b(?:{'|'.join(_SUPPOSE)})\b"
    r"|\bassumption\sthat\b|(?<!\bno\s)(?<!\ba\s)(?<!\bany\s)(?<!without\s)(?<!beyond\s)\b(?:doubt|deny)\b"
)
_UNASSERTED = re.compile(
    rf"(?:{_ASCRIBED})\b(?:(?:\sthat)?(?:\sthe)?\s\w+(?=\sanswer\b))?{LINK}"
    rf"|(?:{_IN_DOUBT}){LINK}"
    rf"|(?:{_IN_DOUBT}|\b(?:if|whether|unless)\b)(?:(?!\b(?:then|so|we|hence|is|are|has)\b)[^.;!?\n,]){{0,20}}{_ANSWER}"
    r"(?:(?!\b(?:then|so|hence)\b)[^.;!?\n,]){0,15}\Z"
    r"|(?:假设|假如|如果|若)[^。，,]{0,8}(?:答案|结果)[^。，,]{0,4}\Z",
    re.IGNORECASE,
)
HINTS: Final = frozenset(f"{verb}{s}" for verb in [*_SAY, "guess", "expect"] for s in ("", "s")).union(
    _CROWD, _SUPPOSE, "people students readers assumption doubt deny might tempted tempting if whether unless".split()
)
"""Without one of these words, or a sign that is not ASCII, no text ends in a value that is not asserted."""

_WORDS = re.compile(r"[a-z]+")
_SUPPOSED = re.compile(
    r"(?:\bif\b.*\b(?:were|was|had|did|went|took|sold|bought|cost|paid|gave|drove|ran|\w+ed|not|\w+n['’]t|forget|ignore|instead)\b"
    r"|\bif\s(?:you|the\s(?:question|problem|task))\b|(?:\A|[,;:(—–-]|\b(?:and|but|however))\W*(?:had|were|without|unless)\b)"
    r".*\b(?:would|could|might)\b[^.,;]{0,25}\Z|\bif\syou\s(?:meant?|wanted|asked)\b",
    re.IGNORECASE | re.DOTALL,
)


def unasserted(before: str) -> bool:
    """Return whether the end of a text says of the value that comes next that others say it, or only assumes it."""
    if before.isascii() and HINTS.isdisjoint(_WORDS.findall(before.lower())):
        return False
    return _UNASSERTED.search(before) is not None


def supposed(before: str) -> bool:
    """Return whether a sentence up to a value tells what the value would be in another case."""
    return _SUPPOSED.search(before) is not None
