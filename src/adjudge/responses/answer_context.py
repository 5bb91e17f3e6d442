r"""What stands around an answer: does it deny the answer, take it back, or give another one?

`is_denied` reads the clause in front ("It is not \boxed{C}", "The wrong answer is ...") and the one behind ("\boxed{C}
is wrong", "<answer>C</answer> was the distractor").  `restatements` returns what is stated anew behind an answer
("Correction: D", "no wait, D", "The answer is D", a last line that is bare); the verifier reads each with its own
reader, and pays only an answer with which all of them agree.

An explanation of the other options is neither: "A and B are wrong because ...", "D is tempting", "students who forget
the sign choose D", "if it were negative, the answer would be D".

Not covered: contradictions that have to be understood.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import TypeAlias

from adjudge.responses.answer_span import Span, find_markers
from adjudge.responses.hearsay import LINK, OPENING, unasserted

Agrees: TypeAlias = Callable[[str, bool], "bool | None"]

_READ = 2_000  # characters behind an answer
_DENIER = (
    r"not|never|neither|nor|cannot|\w{1,9}n['’]t|(?:is|was|do|does|ca)nt|except|rather than|instead of"
    r"|other than|apart from|far from"
    r"|(?:anything|everything|all|any|nothing) but|(?:wrong|incorrect|false|worst|bogus|mistaken|least likely)"
    r"(?= (?:answer|choice|option|pick|guess|result|solution|value)\b)"
    r"|(?:common|typical|careless|frequent|usual|classic|easy) (?:mistake|error|trap)|distractor|trap"
    r"|unlikely|hardly|scarcely|opposite of|nicht|keine?|pas|nunca|jamais|не|нет|não|niet|ikke|inte"
    r"|falsche|incorrect[ao]|incorrecte|fausse|sbagliat[ao]|errad[ao]"
    r"|неправильн\w+|неверн\w+|yanlış|foute|no(?= (?:es|é|la|el)\b)"
)
_DENIED_BEFORE = re.compile(
    rf"(?:\b(?:{_DENIER})\b{LINK}"
    r"|\b(?:rul(?:e|es|ing) out|exclud(?:e|es|ing)|cross(?:ing)? out|eliminat(?:e|es|ing)|reject(?:s|ing)?"
    r"|discard(?:s|ing)?|avoid(?:ing)?|forget|ignore)\b(?: the)?(?: (?:option|choice|answer|letter))?"
    rf"|不是|不选|不為|不为|并非|並非|排除|错误答案是|錯誤答案是)(?:{OPENING})*\Z",
    re.IGNORECASE,
)
_HARMLESS_DENIER = re.compile(r"\bnot (?:only|(?:hard|difficult) to)\b", re.IGNORECASE)
_CLAUSE_START = re.compile(
    r"[.;!?](?=\s)|[\n,。；！？，]|\b(?:so|thus|hence|therefore|because|since|(?<!thing )(?<!all )(?<!any )but)\b",
    re.IGNORECASE,
)

_COPULA = r"(?:is|was|are|were|looks?|seems?|appears?|proves?|turn(?:s|ed) out|would be|can|could|must|ought)"
_VERDICT = (
    r"(?:wrong|incorrect|false|invalid|impossible|mistaken|bogus|excluded|eliminated|rejected|ruled out|unlikely|out"
    r"|no (?:answer|solution)|not|never|(?:an?|the|my|one) (?:\w+ ){0,2}"
    r"(?:distractor|trap|mistake|error|decoy)(?! to\b)"
    r"|(?:the|an?) (?:\w+ )?(?:wrong|incorrect|false) (?:answer|choice|option|result|value|one)"
    r"|what (?:a|an|most|many|some)"
    r"|(?:the|an?) (?:answer|choice|option|number|value|result) (?:that )?(?:most|many|some|people|students|everyone))"
)
_NO_VERDICT = (
    r"(?:not (?!the (?:right|correct)\b|(?:right|correct|it|so|true|valid|possible|the answer|my)\b)|false (?!\W|\Z))"
)
_DENIED_BEHIND = re.compile(
    rf"[\s$)}}\]*_`\"'”’.,:?([–—-]*(?:(?:which|that|this|it|and|but)\s)?(?:"
    rf"(?:{_COPULA})(?:\s(?:be|to be|also|clearly|just|simply|only|actually|probably|obviously|definitely|therefore))*"
    rf"\s(?!{_NO_VERDICT}){_VERDICT}\b"
    r"|(?:isn|wasn|can)['’]?t (?:be )?(?:the |it\b|right|correct|true|valid|so\b)|cannot be\b(?! \w+ (?:than|by))"
    r"|(?:fails|contradicts|is contradicted|contradiction)\b"
    r"|(?:no|nope|wrong|incorrect|false|rejected|not|✗|✘|❌|❎)\s*(?:[.!)\]]|\Z)|[✗✘❌❎])"
    r"|\s*(?:不对|不對|是错|是錯|错误|錯誤|不是答案|不正确|不正確)",
    re.IGNORECASE,
)

SENTENCE_END = re.compile(r"(?<!i\.e\.)(?<!e\.g\.)(?<!cf\.)(?<!vs\.)(?<=[.!?。！？;；])(?=\s|[^\x00-\x7f])|\n+")
_CLAUSE_END = re.compile(r"[,:;—–→⇒，：；]|[-=]>|\s-\s|\.\.\.|…")
_LEAD_WORD = (
    r"(?:correction|corrected|just|kidding|joking|jk|no|nope|not|wait|actually|sorry|oops|hmm+|hm|ah|oh|edit"
    r"|update|updated|revised|final"
    r"|finally|fix|so|thus|hence|therefore|then|it['’]s|it|is|but|(?-i:I)(?= \w)|i['’]d|i['’]ll|we|mean|meant|make"
    r"|that['’]s|that|this|rather|instead|should|must|have|been|be|choose|pick|select|go|going|with|say|or|and"
    r"|maybe|perhaps|also|possibly|either|even"
    r"|better|on|second|thought|thoughts|reflection|my|mistake|answer|option|choice|the|(?-i:a)|one|scratch"
    r"|strike|change|to|think|believe|would|value|result|conclusion"
    r"|changed|switch|switching|again|now|really|right|correct|true|actual|real|alternatively|otherwise|well|ok|okay"
    r"|nein|doch|non|sino|нет|不|不对|更正|而是|应为|应该是|或|或者)"
)
_LED = re.compile(
    rf"(?:[\s/|&*_$(\[\"'“]|\\[(\[])*(?P<lead>(?:{_LEAD_WORD}\b[\s*_$(\[\"'“!.]*)*)(?P<said>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LED_IN = re.compile(rf"[\s$)}}\]*]*(?:\Z|[^\w\s$)}}\]*]|\n|{_LEAD_WORD}\b)", re.IGNORECASE)
_LEADS = re.compile(rf"\W*{_LEAD_WORD}\b", re.IGNORECASE)
_ALL_LEAD = re.compile(rf"(?:\W*{_LEAD_WORD}\b)*\W*", re.IGNORECASE)
_TURNS = re.compile(
    r"\b(?:so|thus|hence|therefore|make|mean|meant|actually|correction|rather|instead)\b", re.IGNORECASE
)
_CONCESSION = re.compile(
    r"\b(?:if|unless|when|(?<!\bi\s)would|might|may|could|had|people|students?|readers?|anyone|others?|who|forg[eo]t\w*|mistake\w*|misread\w*|wrong\w*|incorrect\w*|not|never|\w+n['’]t"
    r"|confus\w+|distractor|trap|closest|nearest|second|next|similar|another|alternative|worst|least|popular|common"
    r"|opposite|easy|false|remaining|check\w*|verif\w+|why|how)\b|(?:\b(?:as|to|like|than|of|for|from|in|by)\s*\Z)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|unless|only when|would|had)\b", re.IGNORECASE)
_CHOSEN = re.compile(
    r"[^\w]*(?:(?:but|and|actually|in fact|no|wait|rather|option|choice|answer"
    r"|instead)\b[\s,:]*)*(?P<said>[^\s,;:]{1,40})"
    r"\s(?:is|was|must be|has to be)\s(?:(?:actually|really|in fact|the|my|clearly|indeed)\s)*"
    r"(?:answer|(?:correct|right|true|real|actual|best|final)(?:\s(?:one|answer|option|choice|result|value))?)\W*",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"\s(?:it is|then|instead|after all|now)\W*\Z", re.IGNORECASE)
_NOT = re.compile(r"\bnot\W*\Z", re.IGNORECASE)
_ENDING = " \t\r\n*_`$>)]\"'”’!"
_ITEM = re.compile(r"[\s*(#>-]*\w{1,2}\)?\.")  # "1." or "B." in front of an entry of a list
_QUESTION = re.compile(r"\?\s*\Z")

_KEPT = frozenset("✗✘❌❎☒🚫👎°⟶⇒→↔⇔")


def is_denied(before: str, behind: str) -> bool:
    """Return whether the clause before an answer or the one behind it denies it."""
    return denies_next(before) or _DENIED_BEHIND.match(behind[:200]) is not None


def denies_next(before: str) -> bool:
    """Return whether the last clause of a text denies what comes next."""
    clause = _HARMLESS_DENIER.sub(" ", before[-200:])
    start = max((mark.end() for mark in _CLAUSE_START.finditer(clause)), default=0)
    return _DENIED_BEFORE.search(clause, start) is not None or unasserted(clause[start:])


def restatements(behind: str, markers: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield what the text behind an answer states as the answer, and whether it must be an answer and nothing else.

    That is what follows a marker in its sentence, which may go on after the answer, or a clause with nothing but words
    of correction or conclusion in front of it, which may not.  Several with no such word are a list, and state nothing.
    Much of it will be no answer at all; the reader tells.
    """
    sentences = SENTENCE_END.split(behind[:_READ])
    unled = []
    for number, sentence in enumerate(sentences):
        goes_on = "".join(sentences[number + 1 : number + 2])[:1].isspace()
        if not sentence.strip() or _QUESTION.search(sentence) or (goes_on and _ITEM.fullmatch(sentence)):
            continue
        marked = find_markers(sentence, markers)
        if marked:
            said = sentence[marked[-1].end() :].strip(_ENDING) or next(filter(str.strip, sentences[number + 1 :]), "")
            lead = sentence[: marked[-1].end()]
            if not (_CONCESSION.search(lead) or unasserted(lead) or _CONDITION.search(said)):
                yield said.strip(), False
        elif chosen := _CHOSEN.fullmatch(sentence):
            yield chosen["said"], True
        elif (said := _led(sentence)) and (number or _LED_IN.match(sentence)):
            if _LEADS.match(sentence) or not number:
                yield said, True
            else:
                unled.append(said)
    if len(unled) == 1:
        yield unled[0], True


def _led(sentence: str) -> str:
    """Return the last clause of a sentence when nothing but words of correction or conclusion stands before it."""
    *before, last = _CLAUSE_END.split(_TRAILING.sub("", sentence))
    clause = _LED.fullmatch(last)
    if clause is None or _NOT.search(clause["lead"]):
        return ""
    led = _TURNS.search(clause["lead"]) or all(map(_ALL_LEAD.fullmatch, before))
    return clause["said"].strip(_ENDING).removesuffix("\\") if led else ""


def taken_back(span: Span, markers: re.Pattern[str], agrees: Agrees) -> str:
    """Return the reason why a box or an element is not an answer for what stands around it, or "".

    `agrees` tells whether a text states the same answer, None for a text that states none; its second argument is
    whether the text must be an answer and nothing else.
    """
    if is_denied(span.before, span.after):
        return "unparsable_answer"
    return "several_answers" if is_replaced(span.after, markers, agrees) else ""


def is_replaced(behind: str, markers: re.Pattern[str], agrees: Agrees) -> bool:
    """Return whether the text behind an answer states another one; see `taken_back`."""
    return any(agrees(said, bare) is False for said, bare in restatements(behind, markers))


def undecorated(text: str) -> str:
    """Return a text without pictures, a check mark among them; crosses stay."""
    if text.isascii():
        return text
    dropped = {
        ord(char): None
        for char in set(text)
        if (unicodedata.category(char) == "So" and char not in _KEPT and unicodedata.normalize("NFKC", char) == char)
        or "\ufe00" <= char <= "\ufe0f"  # says how the sign before it is drawn
    }
    return text.translate(dropped) if dropped else text
