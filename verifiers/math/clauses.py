"""What the words of a clause do to the value that stands in it: deny it, bound it, scale it, or only suppose it.

English and Chinese, and the plain negations of a few other languages.  A condition after a value ("5 if he walks")
often repeats the question, so it counts only with its "otherwise".  A later sentence withdraws a value when it takes
back and names another ("No wait, it's 6"), or says that it is wrong.  Not covered: a long way to the other value, and
irony.
"""

from __future__ import annotations

import re
from typing import Final

from adjudge.responses.hearsay import HINTS, LINK, unasserted
from adjudge.responses.number_text import THOUSAND
from adjudge.verifiers.math.units import changes_value, is_unit

_MARKUP = re.compile(
    r"\\(?:text(?:bf|it|rm|sf)?|math(?:rm|bf|it|sf)|[mh]box)\s*\{|\\[()\[\],;:! ]|\\(?:begin|end)\{[^{}]*\}"
    r"|\\(?:q?quad|left|right|displaystyle)(?![A-Za-z])|[*_$`~{}\"“”\s]+"
)
_WORDS = re.compile(r"[a-z]+")

# -- before a value ---------------------------------------------------------------------------------------------

_NOT = (
    r"(?:\b(?:not|never|neither|nor|cannot|nicht|kein|keine|nie|не)\b|n't\b|≠|n'est\s+pas\b|\bno\s+(?:es|son)\b"
    r"|不(?:是|等于|为|可能|会|能)|并非|绝非)"
)
_BOUND = (
    r"(?:\b(?:(?:less|more|greater|fewer|smaller|larger|bigger|lower|higher|other)\s+than|different\s+from|at\s+(?:most|"
    r"least)|exceeds?|exceeding|excluding|unequal\s+to)\b|至少|至多|不超过|大于|小于|超过|少于|多于|低于|高于)"
)
_FRESH = (  # with these words a new statement begins, whatever was denied before
    r"\b(?:so|hence|thus|therefore|then|but|rather|instead|because|since|gets|gives|giving|yields|is|are|was|were|"
    r"equals|makes|means|leaves|leaving|has|had|takes|costs)\b|[,，;；]|而是|所以|因此"
)
_SAME_CLAUSE = rf"(?:(?!{_FRESH})[^.!?\n\d。！？]){{0,30}}\Z"
_BETWEEN = r"\b(?:between\b[^.;!?\n]{1,30}\band|either\b[^.;!?\n]{1,30}\bor)\s*\Z"
_BESIDE = (
    r"(?:\b(?:(?<!add\s)(?<!adds\s)(?<!sum\s)(?<!sums\s)up\s+to|"
    r"minus|negative|plus|times|twice|thrice|doubled?|tripled?|half|halved|over|above|below|under|beyond|within|without|"
    r"except|(?:anything|everything|nothing|all)\s+but|(?:half|third|quarter|root|square|cube|reciprocal|inverse|"
    r"opposite|power|percent|digits?|log|logarithm|sine|cosine|tangent|negation|factorial|one|two|three|\d+)\s+of|(?:divided|multiplied|divisible)\s+by)|负)\s*\Z"
)
_OPINION = (  # what somebody says, or would be wrong to say
    r"(?:(?:(?<!\bi )(?<!\bwe )\b(?:says|said|claims|claimed|thinks|thought|believes|believed|insists"
    r"|argues|assumes|guesses|guessed|told|fools\s+\w+)"
    r"|\b(?:(?:not|never|cannot|refuse\s+to|(?:mistake|error|wrong|naive|incorrect)(?:\s+is)?\s+to)\s+|(?:do|does|did|would|could|ca)n't\s+)"
    r"(?:think|believe|say|accept|agree|claim|answer|give|call\s+it))"
    rf"(?:\s(?:me|us|him|her|them))?(?:\sfor)?,?{LINK}"
    r"|\b(?:wrong|incorrect|false|untrue|rejected|discarded|distractor|decoy)(?:\s+(?!the\b)\w+|\s+that\s+the){0,2}?\s*(?:\bis|\bwas|[:=])"
    r"|\b(?:(?:ruled?|ruling)\s+out|eliminat\w+|discard\w*|reject\w*|exclud\w+)\b(?:[\s,\d$]|\b(?:and|or|also|finally|even|both|then)\b)*"
    r"|\b(?:range|interval|anything|anywhere|somewhere)\b[^.;!?\n]{0,12}\bto"
    r"|\b(?:na[iï]ve|naively|careless|mistakenly|erroneously|wrongly|incorrectly|hardly|barely|scarcely|(?:common|usual|typical|frequent)\s+"
    r"(?:mistake|error|misconception|trap|pitfall))\b(?:(?!\b(?:but|correct|actual|true|right|instead|so|hence|thus|therefore)\b)[^.;!?\n,]){0,40})\s*\Z"
)
_BEFORE = re.compile(rf"{_NOT}{_SAME_CLAUSE}|{_BOUND}{_SAME_CLAUSE}|{_BETWEEN}|{_BESIDE}|{_OPINION}", re.IGNORECASE)
_BEFORE_NUMBER = re.compile(
    r"\b(?:no|(?<!total\s)(?<!amount\s)(?<!profit\s)(?<!cost\s)of|root|squared|or|and|but|than|degree|"
    r"base|step|case|page|chapter|figure|equation|problem|question|exercise|"
    r"item|row|column|part|section|version|line|mod|modulo|power|exponent|index|grade|level|"
    r"(?:less|more|greater|followed|preceded)\s+by|(?:close|near|next|prior|added|proportional|relative|compared|raised)\s+to"
    r"|from\b[^.;!?\n]{1,30}\bto)\s*\Z",
    re.IGNORECASE,
)
_NEEDED = re.compile(
    r"\b(?:needs?|must|requires?|ha(?:s|ve)\s+to)\b(?:(?!\bnot\b)[^.;!?\n,\d]){0,30}\bat\s+least\s*\Z", re.IGNORECASE
)
_LASTING_BEFORE: Final = HINTS.union(
    "said claimed thought believed insisted argued guesses guessed told fools distractor decoy refuse accept agree "
    "mistake error tempting naive naively careless mistakenly erroneously wrongly incorrectly hardly barely scarcely "
    "rule ruled ruling eliminate eliminated eliminating discard discarded discarding reject rejected rejects excluded "
    "excluding exclude range interval anything anywhere somewhere wrong incorrect false untrue".split()
)
"""Words that "is" and "are" do not take back."""
_DISTANT_BEFORE: Final = _LASTING_BEFORE.union(
    "not never neither nor cannot nicht kein keine nie no than different least exceed exceeds exceeding unequal "
    "between either est es son divided multiplied divisible".split()
)
_BESIDE_BEFORE: Final = frozenset(
    "to minus negative plus times twice thrice double doubled triple tripled half halved over above below under beyond "
    "within without except but of".split()
)
"""Without one of these, or a sign that is not ASCII, the words before a value do not deny it."""

# -- after a value ----------------------------------------------------------------------------------------------

WRONG: Final = (
    r"(?:(?:the\s+|a\s+|an\s+|my\s+)?(?:\w+'s\s+)?(?:wrong|incorrect|false|untrue|invalid|impossible|mistaken|erroneous|mistake|error|"
    r"typo|misprint|trap|distractor|decoy|(?:over|under)counts?)\b|off\s+by\b|too\s+(?:small|large|big|low|high|many|few|much)\b|(?:only\s+)?(?:a|an|the)\s+(?:lower|upper)\s+bound|"
    r"not\s+(?:(?:the|a|an|our|my|quite|really|at\s+all|even|actually|entirely|remotely)\s+)*(?:correct|right|final|true|valid|possible|answer|solution|result|it)\b|"
    r"not\s*(?:[.;!?]|\Z))"
)
_ADVERBS = (
    r"(?:(?:(?!hardly|barely|scarcely)\w+ly|also|still|very|quite|rather|almost|just|in\s+fact|of\s+course|however|indeed"
    r"|and|far|at\s+all|most)[,\s]+){0,4}"
)
RETRACTED: Final = re.compile(  # in the language of the answer: "Non, c'est faux."
    r"[\s.,;:!)\]}$*_。，！—–-]*(?:(?:non|no|nein|não|нет|mais|aber|pero|ma|mas|но)\b[\s,.!:—–-]*)?"
    r"(?:(?:c['’]est|ce(?:la|\s+n['’])?\s*est|das\s+ist|es\s+ist|(?:eso|esto|isso|isto)?\s*\b(?:es|é|è|está)|это)\s+"
    r"(?:[^\W\d_]+\s+){0,2}?)?(?:faux|fausse|falsch|fals[oa]|incorrect[oae]|inexacte?|errad[oa]|errat[oa]|sbagliat[oa]|неверно"
    r"|неправильно)\b"
    r"|[\s.,)\]}$*。，！]*(?:(?:这|那|但这|但)?(?:是|不是|个)?(?:答案)?(?:是)?(?:不对(?!称)|不正确|[错錯][了误誤]?(?![^\W\d_]))|(?:[가이은는도]|では|じゃ)?\s*"
    r"(?:아[니닙]|틀[렸린]|ではな|じゃな|ない|ありません|間違))",
    re.IGNORECASE,
)
REFUTED: Final = (
    rf"(?:(?:is|are|was|were|be|seems?|looks|would\s+be|must\s+be|could\s+be)[,\s]+{_ADVERBS}{WRONG}|"
    rf"(?:is|was|would)n't\s+(?:(?:the|a|my)\s+)?"
    r"(?:correct|right|true|valid|possible|answer|solution|it)\b|(?:cannot|can't|can\s+not)\s+be\s+(?:(?:the|a)\s+)?"
    r"(?:correct|right|true|answer|solution|it)\b)"
)
_AFTER = re.compile(
    r"'?\s*(?:\?|\(?(?:wrong|incorrect|false|not\s*\)|not\s*[.;!?]|not\s*\Z)"
    r"|(?:hundred|thousand|[a-z]{0,6}illion|gross|lakh|crore|score|hundredweight|halves|thirds|fourths|fifths|sixths|"
    r"sevenths|eighths|ninths|tenths|hundredths|thousandths|squared|cubed|factorial)s?\b|dozen\b"
    r"|(?:plus|minus|mod|modulo)\b(?!\s+or\b)|(?:times|over|divided\s+by|multiplied\s+by)\s+(?:-?\d|\\|[b-z]\b)"
    r"|(?:[,(]\s*)?(?:(?:but|then|and|once|when)\s+)?(?:(?:spelled|written|read)\s+)?(?:revers|invert|doubl|halv|tripl|negat|transpos|flipp|conjugat|increment|decrement)ed\b"
    r"|(?:(?:spelled|written|read)\s+)?backwards?\b|s\s+(?:double|half|square|root|reciprocal|negative|inverse|conjugate)\b"
    r"|(?:increas|decreas|reduc|divid|multipli|rais|diminish)ed\s+(?:by|to)\b|too\s+(?:many|few|much|small|large|big|low|high)\b"
    r"|short\s+(?:of|by)\b|-?\s?ish\b|(?:fails?|contradicts?|violates?|(?:over|under)counts?|ignores|neglects)\b"
    r"|(?:more|fewer|less)\s+than\s+-?\d"
    r"|would\s+(?:only\s+)?(?:be|have\s+been)\s+(?:the\s+)?(?:answer|right|correct|true|result|total)\b"
    r"|is\s+(?:what|the\s+answer)\s+(?:an?|the|most|many|some|people|students|others)\b(?!\s+(?:problem|question))"
    r"|to\s+the\s+(?:power|\w+\s+power)\b"
    r"|or\s+(?:-?\d|so\b|more\b|less\b|fewer\b|greater\b|above\b|below\b|perhaps|maybe|possibly)"
    r"|to\s+-?\d|and\s+(?:more|a\s+half|a\s+third|a\s+quarter|one\s+half|\d)"
    r"|at\s+(?:most|least)\b|,?\s*but\s+(?:not|no|probably|maybe|perhaps|that)\b"
    r"|,?\s*(?:if|when)\b[^.;!?]*\b(?:otherwise|else)\b|,?\s*(?:unless|else)\b"
    rf"|(?:[.;:!,\s–—]+(?:(?:but|however|actually|no)\b,?\s*)?)?(?:(?:this|that|it|which)\s+)?{REFUTED}"
    rf"|[.;:!,\s–—]+(?:but\s+)?(?:this|that|it)(?:'s)\s+{WRONG}"
    rf"|[万亿]|兆(?![瓦赫帕])|{THOUSAND}|百(?![分])|‰|分之|以[上下]|次方|或|吗|(?:这|那)?(?:是|为)?(?:不对|不正确|不是|错)"
    r"|[。，,](?:这|那|但这|但)(?:是|不是|个)?(?:答案)?(?:是)?(?:不对|不正确|错))",
    re.IGNORECASE,
)
_AFTER_NUMBER = re.compile(
    r"\s*(?:!|\(?(?:is\s+)?(?:not|wrong|incorrect|false|untrue)\b|"
    rf"(?:and|or|plus|minus|to\s+the|if)\b|(?:more|less|fewer)\s+than\s+(?:half|twice|double|an?\s+(?:third|quarter))\b"
    rf"|times\s+(?:the|its|his|her|their|that|this|\$|\\)|[百倍]|{THOUSAND}|[\s|:(-]*(?:no\b|false\b|[✗✘❌])"
    r"|°?\s?\w{0,8}\s*(?:below|too|short|behind)\b(?!\s+the))",
    re.IGNORECASE,
)
_DISTANT_AFTER: Final = frozenset(
    "wrong incorrect false not untrue invalid impossible mistaken erroneous mistake error typo too bound cannot "
    "otherwise else off misprint would what most many overcount undercount overcounts undercounts trap distractor "
    "decoy fail fails contradicts violates ignores neglects faux fausse falsch falso falsa incorrecto incorrecta "
    "incorrecte inexact inexacte errado errada errato errata sbagliato sbagliata".split()
)
_BESIDE_AFTER: Final = re.compile(
    r"\W*(?:\w*(?:illion|hundred|thousand|th|third|halve|score|lakh|crore)s?|dozen|gross|hundredweights?|squared|cubed|"
    r"factorial|plus|minus|mod|modulo|times|over|divided|multiplied|or|and|to|at|more|less|fewer|if|when|"
    r"unless|(?:(?:but|then|once)\s+)?\w+ed|backwards?|s|ish|short)\b",
    re.IGNORECASE,
)
"""Without one of these, or a sign that is not ASCII, the words after a value do not deny it."""
_NEXT_WORD = re.compile(r"\s*([A-Za-z]+)")
_COMPARES: Final = re.compile(r"\s*(?:more|less|fewer)\s+[a-z]")  # "24 more flamingos" is how many more


def suspicious(before: str, last: str, after: str) -> bool:
    """Whether the words around a value may deny it: a quick test that never misses.

    Args:
        before: the text before the value.
        last: its last word.  "Is" and "are" take back whatever was denied before them.
        after: the text after the value, empty where no words follow.
    """
    if not before.isascii() or last in _BESIDE_BEFORE:
        return True
    if after and (not after.isascii() or "n't" in after or _BESIDE_AFTER.match(after)):
        return True
    if after and not _DISTANT_AFTER.isdisjoint(_WORDS.findall(after.lower())):
        return True
    lasting = last in ("is", "are")
    if "n't" in before and not lasting:
        return True
    return not (_LASTING_BEFORE if lasting else _DISTANT_BEFORE).isdisjoint(_WORDS.findall(before.lower()))


def denied_before(before: str, *, marked: bool) -> bool:
    """Whether the words right before a value say that it is not the answer.

    The text ends where the value, or the bracket around it, begins; `marked` says that the value is in a box.
    """
    said = _said(before)
    if marked and _NEEDED.search(said):
        return False  # "you need at least 5" says what the least number is
    return bool(_BEFORE.search(said) or unasserted(said) or (not marked and _BEFORE_NUMBER.search(said)))


def denied_after(after: str, *, marked: bool) -> bool:
    """Whether the words right after a value say that it is not the answer, as `denied_before`."""
    said = _said(after)
    if _AFTER.match(said) or RETRACTED.match(said) or (not marked and _AFTER_NUMBER.match(said)):
        return True
    word = None if marked else _NEXT_WORD.match(said)
    if word is None or _COMPARES.match(said):
        return False
    return changes_value(word[1]) and not is_unit(word[1], upright=True)


def _said(text: str) -> str:
    """Return the words of a text without the markup of formulas and of emphasis."""
    return _MARKUP.sub(" ", text.replace("’", "'"))
