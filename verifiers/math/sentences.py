"""What a sentence says: the value after its verb, its last formula, or its only number."""

from __future__ import annotations

import re
from typing import Final

from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.standing import standing
from adjudge.verifiers.math.units import DEGREES, FACTORS, is_counter
from adjudge.verifiers.math.vocabulary import NUMBER_WORD

MAX_SENTENCE: Final = 1000  # characters of a sentence that is searched for its value

FORMULA: Final = re.compile(
    r"\$\$(?P<a>[^$]{1,4000})\$\$|\\\[(?P<b>.{1,4000}?)\\\]|(?<!\\)\$(?P<c>(?:\\.|[^$\n\\]){1,4000})\$(?!\d)|\\\((?P<d>[^\n]{1,4000}?)\\\)",
    re.DOTALL,
)
NUMBER: Final = re.compile(
    r"(?<![A-Za-z\d_.√:])[-−]?\$?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+,\d{1,2}(?![\d,])|\d+)(?:\.\d+)?"
    r"(?:[eE]-?\d+|/\d+|(?::\d+)+|√\d+|√\(\d+\))?(?: ?[¼-¾⅐-⅞])?[⁻⁰¹²³⁴-⁹]*π?%?|√\d+|π|[¼-¾⅐-⅞])(?![\d√])"
)

_BEGIN = re.compile(r"(?<=[^\s\d.])[.!?](?=\s)|(?<=\d)[.!?](?=\s+[A-Z])|\n|。")
_END = re.compile(r"(?<=[^\s.])(?<!\bi\.e)(?<!\be\.g)(?<!\b[MD][rs])(?<!\bMrs)\.(?=\s|$)|\n|。")
_PICTURE = r"[\u2700-\u27bf\u2b50\U0001f300-\U0001faff\ufe0f]"
_PICTURES = re.compile(rf"(?<!\s)(?<!{_PICTURE})\s*(?:{_PICTURE}(?<![✗✘❌❎🚫👎])\s*)+\Z")
_SHOUTED = re.compile(r"(?:(?<=\w[*_]{2})|(?<=[^\W\d_]{3}))!+\Z")
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}|[^\W\d_\x00-\u03ff\u2070-\u209f]{3,}")
_DECORATION = " \t\r\n*_`✓✔✅☑🎉■□∎\ufe0f"
_VERB = re.compile(
    r"(?:\b(?:is|are|equals|was|were|be|as|by|to)\b|[:：=])(?!.*\b(?:is|are|equals|was|were)\b)", re.DOTALL
)
_MATH_WORDS = frozenset(known.FUNCTIONS) | known.GREEK | known.PERCENT | known.SEPARATORS | set(known.CONSTANTS)


_OFFER = re.compile(
    r"(?:(?<=[.!*$)])|\n)\s+(?:please\s+)?(?:let\s+me\s+know|feel\s+free|is\s+there\s+anything\s+else)\b[^\n\d$\\]*\Z",
    re.I,
)
_EXPLAINS = (
    r"(?:i\.\s*e\.|e\.\s*g\.|(?:since|because|as|that\s+is|namely|by|from|using|where|which|obtained|attained|achieved|occurring|with"
    r"|for\s+(?:some|any|all|every|each)|note|recall|see|here|in\s+other\s+words)\b)"
)
_TEXT_OPEN = r"(?:\\(?:text|mathrm|textrm|mbox)\s*\{\s*)?"
_REMARK = re.compile(
    r"(?P<value>.*?[^\s,(~])(?:\s|~|\\[,;: ]|\\q?quad(?![A-Za-z]))*"
    rf"(?:{_TEXT_OPEN}\(\s*(?:(?P<same>(?:=|≈|\\approx(?![A-Za-z]))[^()]*(?:\([^()]*\)[^()]*)*)|{_EXPLAINS}.*)\)\s*\}}?"
    rf"|,\s*{_TEXT_OPEN}{_EXPLAINS}.*|\\text\s*\{{[\s,(]*{_EXPLAINS}.*)[\s.]*",
    re.DOTALL | re.IGNORECASE,
)
DENIES: Final = re.compile(
    r"\b(?:not|no|never|wrong|incorrect|false|or|otherwise|else|unless|but|except|maybe|perhaps|possibly|probably|about|roughly|"
    r"approximately|estimate|guess|at\s+(?:least|most)|more|less|instead|actually)\b|\?",
    re.IGNORECASE,
)


CONCLUDES: Final = re.compile(
    r"\b(?:so|thus|therefore|hence|consequently|accordingly|finally|it\s+follows|overall|altogether|in\s+(?:total|all|conclusion|summary)|then|also|"
    r"daher|somit|folglich|insgesamt|donc|ainsi|par\s+conséquent|por\s+lo\s+tanto|entonces|luego|quindi|dunque|portanto|logo|итак|"
    r"итого|значит|следовательно|поэтому|всего)\b|∴|⇒|→|所以|因此|故|一共|总共|共|したがって|よって|따라서|그러므로",
    re.IGNORECASE,
)
_FILLERS = (
    r"(?:\b(?:about|approximately|roughly|exactly|precisely|only|just|now|also|indeed|thus|simply|clearly|then|therefore|hence|still|"
    r"of\s+course|obviously|given\s+by|equal\s+to|(?:an?\s+)?(?:grand\s+)?total\s+of|a|also|donc|entonces|therefore|"
    rf"{NUMBER_WORD})\b[\s,]*|[\s,(*_$`\[~≈\\]|\\approx\b)*"
)
_ACTS = (
    r"(?:(?!(?:guess|assum|suppos|estimat|reject|exclud|multipli|divid|add|subtract|try|tri|list|number|label|bas|call|round"
    r"|check|test)ed\b)\w+ed|sold|bought|had|spent|made|ate|gave|read|ran|drove|won|lost|took|kept|found|caught|wrote|grew"
    r"|flew|swam|saw|built|(?:must|can|will)\s+[a-z]+)"
)
_DOES = (
    r"(?!(?:guess|assum|suppos|estimat|reject|exclud|multipli|divid|add|subtract|tri|list|number|label|start|end|begin"
    r"|say|count|check)e?s\b)[a-z]{2,}s"
)
_STATES = re.compile(
    rf"(?:\A[\W_]*(?:(?:so|thus|hence|therefore)\b[\W_]*)?(?:\d+[.)])?|(?:\b(?:is|are|was|were|be|been|equals?|becomes?|gives?(?:\s+us)?|contains?|holds?|count|yields?|makes?|get|gets|got|obtain|have|costs?|"
    r"pays?|paid|needs?|leaves?|leaving|yielding|giving|making|total|итого|всего|totals|result|answer|solution|ist|sind|beträgt|ergibt|es|son|est|"
    rf"sont|è|sono|é|são|hay|a|это|составляет|(?<!\bit\s)(?<!number\s)(?<!integer\s)(?<!answer\s)(?<!product\s)has|lautet|\b(?:he|she|it|they|we|i)\s+(?:{_ACTS}|{_DOES})|(?:equals?|comes?|came|adds?|amounts?|sums?|totals?|simplif\w+|reduces|"
    r"evaluates|works|turns)\b(?:\s+(?:up|out))?\s+to(?:\s+be)?)\b|'s\b|равн[аоы]?|(?<![!<>])[=:：]|[-–—|>→⇒]|[是为有得共は]|은|는)\s*)"
    rf"{_FILLERS}\Z",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:lucky|nice\s+if|contradiction|remember|forg[eo]t|mistake|wish|"
    r"suppose|imagine|pretend|guess|na[iï]ve)\b"
    r"|\b(?:half|twice|thrice|double|triple|third|quarter|square|root|log\w*)\b[^=\d]*=\W*\Z"
    r"|\b[A-Za-z]{2,}\s*[-+*/^]\s*\d+\s*=\W*\Z"
    r"|\b(?:moitié|mitad|doble|doppelte|halb\w*|hälfte|metà|doppio|metade|dobro|половин\w*|вдвое|удвоен\w*)\b|\b[a-z]\s+mod(?:ulo)?\b"
    r"|\banswers?\s+(?:contains?|includes?|starts?|ends?|begins?|has|lies|exceeds)\b",
    re.IGNORECASE,
)
_GIVES_UP = re.compile(
    r"\b(?:i\s+(?:(?:cannot|can't|could\s+not)\s+(?:solve|answer)|give\s+up|have\s+no\s+idea))\b", re.IGNORECASE
)
ALTERED: Final = re.compile(
    r"\b(?:twice|half|double|triple|thrice|third|quarter|square|cube|root|opposite|negative|inverse|reciprocal|negation|complement|"
    r"log\w*|digits?|multiple|divisor|factorial)\s+(?:of\s+)?(?:(?:the|this|my|our|its)\s+)?(?:\w+\s+)?answer\b"
    r"|\banswer\s+(?:plus|minus|times|squared|cubed|mod\w*|divided|over|doubled|halved)\b",
    re.IGNORECASE,
)
"""Words that make "the answer is ..." say something else than the answer."""

_LINKS = re.compile(
    r"\b(?:(?<!ed\s)(?<!es\s)by|from|(?<!started\s)(?<!ended\s)(?<!up\s)(?<!left\s)with|within|in|at|than|as|like|near|wie|(?<!equal\s)(?<!equals\s)(?<!comes\s)(?<!up\s)(?<!out\s)(?<!amounts\s)to|von|als|di|"
    r"(?<!total\s)de|que|fast|quasi|casi|presque|почти|около|менее|более|меньше|больше)\W*\Z",
    re.IGNORECASE,
)
_LIST = re.compile(r"\s*(?:,|,?\s*\b(?:and|or)\b)?\s*")
_ROUGH = r"(?:approximately|approx\.?|about|roughly)"
ROUGHLY: Final = re.compile(  # takes what it can: blanks cost little
    r"(.+?)[\s,]*+\(?+\s*+(?:\\text\s*+\{)?+[\s,(]*+(?:(?:\bor|which\s++is)\b)?+\s*+(?<!\\)\b"
    rf"{_ROUGH}[\s}}]*+([^()]+?)\)?",
    re.DOTALL,
)
"""A value and its approximation."""

_NEARLY = re.compile(rf"[\s,(]*(?:(?:or|which\s+is)\s+)?{_ROUGH}\s*")
_NAMED = re.compile(r"\s*[A-Za-z](?:_\{?\w\}?)?\s*=[^=<>]{1,80}")
_EXPLAINED = re.compile(
    r"(?:\s+(?!(?:out|of|with|times|in|per|or|and|to|by|than|is|are|was|as|since|because|for|when|which|not|no)\b)[a-z-]+){0,3}"
    r"(?:\s+(?:in\s+(?:total|all)|altogether))?\s*(?:,\s*|\s)(?:as|since|because|for\s+(?:the\s+|all\s+)?\d+\s+[a-z]|"
    r"\((?:not|since|as|because|\d+\s+(?:per|for|in|each)))\b"
)
_TAIL: Final = 120  # characters from a result to the last number of its sentence
_MOST_NUMBERS: Final = 6  # of a sentence, that are looked at
_ADJUNCT = (
    r"(?:(?!\b(?:base|mod(?:ulo)?|than|is|are|was|were|be|and|or|but|so|then|not|equals?|makes?|gives?|leaves?|gets?)\b)[^=.;:!?\n]"
    r"|(?<=\d)\.(?=\d))*"
)
_BEHIND_RESULT = re.compile(  # from a result to a value that it does not depend on
    rf"{_ADJUNCT}?(?:,?\s(?:and\s)?(?:it\s)?(?:is\s)?(?:attained|achieved|reached)\s)?\b(?:where|in|for|of|on|at|per|by|with|after|before|from|over|within|during|to|each|every|if|when"
    rf"|because|since|as|using)\b{_ADJUNCT}|{_ADJUNCT}?\b(?:when|since|because)\b[^;:=\n]*"
)
_ANOTHER = re.compile(r"(?:\A|,)\s*(?:(?:or|and|to)\s)?\s*[$€£]?\d")  # a candidate beside the result
_DID = re.compile(rf"\b{_ACTS}\s+{_FILLERS}\Z", re.IGNORECASE)  # "Lynn ran 17 miles": the only number of its sentence
_GIVEN = re.compile(
    r"\W*(?:if|given|since|because|although|while|when|assuming|suppose|let)\b(?![^\n]*(?:[,=:]|\bthen\b))",
    re.IGNORECASE,
)
_UNIT_BEHIND = re.compile(r"\s*([^\W\d_\x00-\u03ff]+?)(?:です|である|だ|입니다|이다)?(?![^\W\d_])")
_FOREIGN = re.compile(r"[^\W\d_\x00-\u03ff\u2070-\u214f]")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")

_NAMES = sorted(FACTORS.keys() - {"in", "us", "min", "unit", "units"}, key=len, reverse=True)
_UNIT_NAMES = "|".join(  # without an adverb, a pronoun, a function, and what says nothing
    re.escape(name) if len(name) < 4 else f"(?i:{re.escape(name)})"
    for name in _NAMES
    if len(name) > 1 and name.isascii()
)
_FOREIGN_NAMES = "|".join(name for name in _NAMES if name > "\u03ff")
_BEFORE_NOUN = r"(?:(?<=[克斤吨升元])|(?<=厘米|毫米|分米|千米|公里|方米|小时|分钟))(?![拉旦级])"  # 5千克苹果
_ABROAD = rf"(?:{_FOREIGN_NAMES})(?:(?![^\W\d_])|(?=です|である|だ|입니다|이다)|{_BEFORE_NOUN})"
_ONE_UNIT = (
    rf"(?:(?:(?:square|sq\.?|cubic|cu\.?)\s+)?(?:{_UNIT_NAMES}|min(?=[\s.,;*]*(?:\Z|\n)))(?!\w)"
    rf"(?:\^\{{?-?\d\}}?|[²³])?|{_ABROAD})"
)
_GAP = r"(?:\*{1,3}|_{1,2}|\$\$?|\\[)\]])?(?:\s|~|\\[,;: ])*-?(?:\\(?:text|mathrm|textrm|mbox)\s*\{[\s~]*)?"
_BEHIND = re.compile(
    rf"{_GAP}(?:(?:whole|full|entire|more|extra|additional)\s+)?(?P<unit>{_ONE_UNIT}|(?<=\s)[mgshlL](?![\w'’]))"
    rf"(?:(?i:\s+(?P<scale>C|F)(?:elsius|ahrenheit)?\b)|\s*(?:/|(?:per|an?|each|every)\s)\s*(?P<per>{_ONE_UNIT}|[hs](?!\w)))?"
    r"(?!\s*(?:/|(?:per|an?|each|every)\s|squared\b|cubed\b|centigrade\b|kelvin\b))"
)
_SAID_SIGN = r"\A(?:\*\*)?(?:[Nn]egative|[Mm]inus|[Pp]ositive)\s+(?=[\d.\\$])"
_MEASURES = re.compile(
    rf"{_SAID_SIGN}|(?<=[\d}}]){_GAP}{_ONE_UNIT}(?:\s*(?:/|per\s)\s*(?:{_ONE_UNIT}|[hs](?!\w)))?".replace("(?i:", "(?:")
)
_UNITS_AND_JOINTS = re.compile(rf"{_MEASURES.pattern}|(?<![^\W\d_])(?:{'|'.join(known.SEPARATORS)})(?![^\W\d_])")
FIRST: Final = re.compile(
    rf"(?P<value>{NUMBER.pattern}|\$[^$\n]{{1,200}}\$|\\\([^\n]{{1,200}}?\\\))(?!\s*per\s?cent)(?:\s+[^\W\d_]+){{0,2}}"
    r"(?:[.!]?\*\*(?=\s)|\s*;|:(?=\s)|\s[–—-](?=\s[^\d$\\])|(?:\s*\(|,|\s(?:(?P<joined>and)|where|while|with)\b|(?=\s[A-Z][a-z]+\s))"
    r"(?!\s*(?:which|that|so|or)\b)(?=[^\d$\\]*\b(?:is|are|was|were)\b))"
)
"""A value that ends before a text speaks of another: "180; the first leg is 150", but not "180, which is 15 dozen"."""

_HALF_BOLD = re.compile(r"\A([-\d.,/$]+)\*\*(?=\s)")  # the rest of "**5** inches" behind a marker
_KIND = re.compile(r"\s+[a-z]")
_FEW = re.compile(r"1\Z|[./]")


def _commits(text: str, start: int, stop: int, *, concludes: bool, direct: bool = False, only: bool = False) -> bool:
    """Whether a sentence gives the number in it as its result: "so she needs 24", "it is 24", not "it ends in 24".

    What stands before the number says so: nothing, an equals sign or a verb of result, or, unless it must be said
    directly, a word that draws a conclusion anywhere before it.  Before the only number, most verbs do.
    """
    begin = max((end.end() for end in _BEGIN.finditer(text, max(0, start - MAX_SENTENCE), start)), default=0)
    before = text[begin:start].replace("’", "'")
    if (
        _ORDINAL.match(text, stop)
        or _UNSURE.search(before)
        or ALTERED.search(before)
        or _GIVES_UP.search(text, 0, start)
        or _GIVEN.match(before)
    ):
        return False
    concludes = concludes or bool(CONCLUDES.search(before))
    if (unit := _UNIT_BEHIND.match(text, stop)) and not is_counter(unit[1]):
        return False
    plain = before.rstrip()[-1:]
    return bool(_STATES.search(before) or (only and _DID.search(before))) or (
        concludes and not direct and (plain < "\u2e80" or plain in "、，：") and not _LINKS.search(before)
    )


def last_formulas(text: str) -> list[re.Match[str]]:
    """Return the last formula of a text, with those before it where all are named values in one list.

    Where it only belongs to what comes behind a result ("$5$ when $x=2$"), that is returned.
    """
    formulas = list(FORMULA.finditer(text))
    stated = _result(text, formulas) if len(formulas) > 1 else None
    if stated and stated is not formulas[-1]:
        return [stated]
    run = formulas[-1:]
    for formula in reversed(formulas[:-1]):
        between = text[formula.end() : run[0].start()]
        listed = _LIST.fullmatch(between) and (between.strip() or all(map(_named, (formula, *run))))
        if not (listed or _NEARLY.fullmatch(between)):
            break
        run.insert(0, formula)
    plain = any("=" in formula[0] and not _named(formula) for formula in run)
    whole = all(map(_named, run)) or (not plain and _commits(text, *run[0].span(), concludes=False, direct=True))
    return run if whole else formulas[-1:]


def joined(formulas: list[re.Match[str]]) -> str:
    """Return what formulas hold as one answer, with the unit behind the last."""
    nearly = _NEARLY.fullmatch(formulas[0].string, formulas[0].end(), formulas[-1].start())
    values = (" \\approx " if nearly else ", ").join(clean(one[one.lastgroup or 0]) for one in formulas)
    return measured(formulas[-1].string, values, formulas[-1].end())


def _named(formula: re.Match[str]) -> bool:
    return bool(_NAMED.fullmatch(formula[formula.lastgroup or 0]))


def foreign(text: str) -> bool:
    """Whether a text has a number among words of another script, and not only units and the words between values."""
    return not text.isascii() and bool(_FOREIGN.search(_UNITS_AND_JOINTS.sub(" ", text))) and bool(NUMBER.search(text))


def measured(text: str, value: str, at: int) -> str:
    r"""Return a value with the unit that stands behind it, at a place: `5\text{ inches}`; else the value alone.

    What is counted is not a unit ("5 apples"), nor is what only says of which kind it is ("5 dollar bills").
    """
    start = at - len(value)
    if "," in value and text[max(0, start - 1) : start] in ("(", "[") and text[at : at + 1] in (")", "]"):
        return text[start - 1 : at + 1]  # an interval or a pair, and no decimal
    if not (value[-1:].isnumeric() or value.endswith(("}", "π", "\\pi"))) or (unit := _BEHIND.match(text, at)) is None:
        return value
    name, per = unit["unit"], unit["per"]
    name = name if name in FACTORS else name.lower()
    if unit["scale"] or name in DEGREES:
        return f"{value}^\\circ{' ' + unit['scale'].upper() if unit['scale'] else ''}"
    singular = (len(name) > 2 and f"{name}s" in FACTORS) or name in ("foot", "inch")
    if singular and not per and not _FEW.search(value) and _KIND.match(text, unit.end()):
        return value
    return f"{value}\\text{{ {name}{f' per {per.lower()}' if per else ''}}}"


def explained_number(text: str, *, concludes: bool = False) -> str:
    """Return the number that a sentence states before it goes on to explain it: "24, as 12 and 18 fail"; else ""."""
    stated = [
        number
        for number in NUMBER.finditer(text)
        if _EXPLAINED.match(text, number.end())
        and not DENIES.search(text, number.end())
        and lone_number(text, number, concludes=concludes)
    ]
    return measured(text, stated[0][0], stated[0].end()) if len(stated) == 1 else ""


def lone_number(text: str, number: re.Match[str], *, concludes: bool = False) -> bool:
    """Whether a number is what its sentence says; `concludes` says that the sentence draws a conclusion anyhow."""
    return (
        _commits(text, *number.span(), concludes=concludes) and standing(text, *number.span(), marked=False) == "alone"
    )


def closing_number(text: str, numbers: list[re.Match[str]]) -> re.Match[str] | None:
    """Return the number that the last sentence gives as its result, or None."""
    return _result(text, numbers) or (numbers[-1] if lone_number(text, numbers[-1]) else None)


def _result(text: str, numbers: list[re.Match[str]]) -> re.Match[str] | None:
    """Return the number or formula that the last sentence directly gives as its result, or None.

    That is the last one, unless it only belongs to what comes behind the result: "a total of $64 for the 16 glasses".
    """
    last = numbers[-1]
    reach = max(0, last.start() - MAX_SENTENCE)
    begin = max((end.end() for end in _BEGIN.finditer(text, reach, last.start())), default=reach)
    said = [number for number in numbers if number.start() >= begin]
    for number in reversed(said[-_MOST_NUMBERS:]):
        between = FORMULA.sub("_", text[number.end() : last.start()])
        if number is not last and (len(between) > _TAIL or not _BEHIND_RESULT.fullmatch(between)):
            break
        if _ANOTHER.search(text[number.end() : last.end()]):
            continue
        direct = _commits(text, *number.span(), concludes=False, direct=True, only=len(said) == 1)
        if direct and standing(text, *number.span(), marked=False) == "alone":
            return number
    return None


def without_remark(text: str) -> str:
    """Return a value without the remark that explains it: `42 (since 6*7=42)`, `42, as 50-8=42`.

    A remark that may deny or change the value stays; one that only computes it, `42 (=6*7)`, becomes an equation, so
    that it has to be true.
    """
    match = (
        _REMARK.fullmatch(text)
        if len(text) <= MAX_SENTENCE and ("(" in text or "," in text or "\\text" in text)
        else None
    )
    if match is None or not match["value"] or DENIES.search(text, match.end("value")):
        return text
    if wordy(match["value"]) and match["value"].lower() not in known.PHRASES:
        return text
    return f"{match['value']} {match['same'] or ''}".strip()


def wordy(text: str) -> bool:
    """Whether a text holds words outside its formulas that are neither mathematics nor the unit of a number."""
    words = _WORD.findall(FORMULA.sub("", text))
    return any(word not in _MATH_WORDS for word in words) and any(
        word not in _MATH_WORDS for word in _WORD.findall(FORMULA.sub("", _MEASURES.sub(" ", text)))
    )


def sentence_end(text: str, at: int = 0) -> int:
    """Return where the sentence ends that holds a place."""
    end = _END.search(text, at)
    return end.start() if end else len(text)


def without_hope(text: str) -> str:
    """Return the text without a closing "I hope it is correct" or "Let me know if you need anything else"."""
    offer = _OFFER.search(text, max(0, len(text) - MAX_SENTENCE))
    text = text[: offer.start()] if offer else text
    at = text.find("I hope")
    return text[:at].rstrip().removesuffix(".") if at >= 0 else text


def clean(text: str) -> str:
    """Return the text without pictures, emphasis, quotation marks and the full stop, or a mark behind a word."""
    text = text.rstrip() if text.isascii() else _PICTURES.sub("", text).rstrip()
    text = _SHOUTED.sub("", text) if len(text.split()) < 5 else text  # "Paris!" is an answer, and a sentence is none
    text = text.strip(_DECORATION).removeprefix('\\"').removesuffix('\\"').strip('"')
    return text[:-1].rstrip() if text.endswith((".", "。")) and not text.endswith("..") else text


def said(text: str) -> str:
    """Return what a sentence says: what follows its last verb, its last formula, or its only number.

    A value that does not stand alone ("is not 42") is not what it says; the sentence is then returned whole.
    """
    text = without_remark(text)
    text = _HALF_BOLD.sub(r"\1", text)
    if not text.isascii() and (counted := NUMBER.match(text)):
        unit = _UNIT_BEHIND.match(text, counted.end())
        if unit and unit.end() == len(text) and is_counter(unit[1]):
            return measured(text, counted[0], counted.end())
    if len(text) > MAX_SENTENCE or not _WORD.search(text) or not wordy(text):
        return text
    if (roughly := ROUGHLY.fullmatch(text)) and not any(map(wordy, roughly.groups())):
        return text
    formulas = list(FORMULA.finditer(text))
    for verb in _VERB.finditer(text):
        if len(formulas) > 1 and any(formula.start() < verb.start() < formula.end() for formula in formulas):
            continue
        rest = text[verb.end() :].strip(" *:")
        if rest and not wordy(rest):
            start = text.index(rest, verb.end())
            return clean(rest) if standing(text, start, start + len(rest), marked=False) == "alone" else text
    if formulas := last_formulas(text):
        alone = standing(text, formulas[0].start(), formulas[-1].end(), marked=False) == "alone"
        return joined(formulas) if alone else text
    if number := explained_number(text, concludes=True):
        return number
    numbers = list(NUMBER.finditer(text))
    if len({number[0] for number in numbers}) == 1 and lone_number(text, numbers[-1], concludes=True):
        return measured(text, numbers[-1][0], numbers[-1].end())
    result = _result(text, numbers) if numbers else None
    return measured(text, result[0], result.end()) if result else text
