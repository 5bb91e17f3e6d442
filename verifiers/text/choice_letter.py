r"""Which option an answer names.

An answer names an option in three ways: it starts with the label ("C", "(C)", "C. Paris", "option C because ...",
"故选C"), it is exactly the text of one option, or it holds a single label in brackets or after the word "option".
A letter inside prose is not a label: "A good start" and "Vitamin C" name nothing.  Several labels in one clause are no
answer, and neither is a label that is denied ("not B", "(B) is wrong").

Not covered: labels of more than one character, and answers that paraphrase an option.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from adjudge.responses.hearsay import unasserted
from adjudge.responses.number_text import NumberError, read_quantity
from adjudge.verifiers.text.choice_key import ChoiceKey, comparable, plain, without_article

MAX_CHARACTERS = 2_000
NOTHING = ("", "no_answer")

SURELY = "indeed|clearly|obviously|certainly|definitely|actually|simply|probably|likely"
_LEAD = (
    r"[\s:：>#-]{0,8}(?i:(?:the|my|final|correct|right|best|most|appropriate|answer|option|choice|letter|is|it|it['’]s"
    rf"|that['’]s|that|so|thus|therefore|hence|{SURELY}|i|we|think|believe|would|say|choose"
    r"|pick|select|go|going|with|be|must|should|i['’]m)\b[\s:：,]{1,4}){0,8}"
    r"(?:(?:正确|答案|选项|選項|应该|的|是|为|為|应|應|故|选|選|择|擇)[:：\s]{0,2}){0,6}"
)
_STOP = re.compile(
    r"\s*(?:[.:,;!=|](?=\s|\Z)|[–—-]\s|-{1,2}>\s|[。、:.,;!](?=[^\x00-\x7f]|\Z)|\n|\Z|\s?\()"
    r"|\s*(?:です|である|だ(?!\w)|입니다|이다|예요|이에요)|(?:选项|選項)(?=\W|\Z)"
)
_IS_THE = (
    r"is (?:clearly |therefore |thus |indeed |also |probably |most likely |likely )?(?:(?:the|my|an?) )?"
    r"(?:only |single |one |most |best |final )*"
)
_REASON = re.compile(
    r"\s+it is\W*\Z|\s+(?:because|since|as|for|due|(?:(?:and|but) )?not|rather|instead|would be|must be|has to be|best"
    r"|correctly|fits|matches|works|satisfies|holds|agrees|follows|explains|describes|applies|stands out"
    r"|(?:seems|looks|appears)(?: to be)?(?: the)? (?:correct|right|best)(?!.*\b(?:but|wrong|not)\b)"
    r"|makes (?:the most )?sense"
    rf"|{_IS_THE}(?:correct|right|best|true|answer|option|choice|one|statement|solution"
    r"|appropriate|accurate|likely|consistent|valid|supported|plausible|suitable|reasonable))\b"
    r"|\s*(?:选项|選項)?(?:因为|是正确|正确|而不是|而非)",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(?:\.|(?<=[^\W\d])!)(?=\s|\Z)|\s*[,;:–—-]\s*(?:because|since|as|due to|given|for|it|this|that|these|those"
    r"|they|there|he|she|we|i|the|which|or equivalently|(?:and )?not)\b|\s*[(\[][A-Za-z0-9][)\]]"
    r"|\s+(?:because|since|due to)\b",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"[\s.:]*\([^()]*(?:\)|\Z)")
_DELIMITERS = " .:)]、。,"
_AMOUNT = re.compile(r"[^\w\s]{0,3}\d[\d.,]*(?:\s?[^\W\d]+)?\W*")  # nothing but a number and its unit
_DASHED = re.compile(r"\A[\s.:]*(?:[-–—]\s+)?")
# A dash right before a number is its sign.
_DELIMITED = re.compile(r"\A(?:[ :)\]、。,=→⇒>(]|\.(?!\d)|[-–—]{1,2}>|[-–—]\s|[–—](?=[^\W\d])|-(?=[^\W\d_]{2}))+")
_SIGN = re.compile(r"[^\w\s.,;:(){}\[\]\"'“”‘’$\\?]")
_CLAUSE_END = re.compile(
    r"[.;!?](?=\s|\Z)|[\n。；！？]|\b(?:because|since|as|not|rather|instead|while|whereas|although|though|despite|unlike)\b|因为|而不是|而非|不是",
    re.IGNORECASE,
)
_SAID_WHY = re.compile(r"\b(?:because|since|as|not|rather|instead|unlike)\b|[\n。；！？]", re.IGNORECASE)
_DENIED_AFTER = re.compile(
    r"[\s)\].,:]*(?:(?<=,\s)(?:which|that)\s)?(?:(?:is|was|can|does|do|would|could|should|seems|looks|must)\b"
    r"(?:\s+(?!because|since|as|and|while|so|correct|right|best|true)\w+){0,6}?\s+"
    r"(?:not|never|wrong|incorrect|false|out|eliminated|excluded|impossible)\b"
    r"|(?:contradicts|violates|fails|conflicts|misses|ignores|overstates|understates|confuses|lacks|omits)\b"
    r"|(?:isn|wasn|can|doesn|wouldn|couldn|shouldn)['’]?t\b|cannot\b)|\s*(?:选项|選項)?(?:不|错|錯|是错|是錯|并非|並非)",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|never|neither|nor|except|cannot|wrong|incorrect|eliminat(?:ed?|ing)|exclud(?:ed?|ing)|rule|ruling|unless"
    r"|(?:every|any|no)thing but|all but|any but|other than|apart from|besides|opposite"
    r"|doubt|unlikely|hardly|reject(?:ed|ing)?|discard(?:ed|ing)?|avoid|suppose|\w+n['’]t)\b"
    r"|(?<!\w)[!¬≠]\Z|不|非|除|错|錯",
    re.IGNORECASE,
)
_DISOWNED = re.compile(
    r"\b(?:least|worst|second|closest|trap|distractor|error|mistake|popular|tempting|contraindicated)\b", re.IGNORECASE
)
_FIT = r"(?:(?:the|an?) )?(?:(?!only\b)\w+ )?(?:correct|right|best|answer|appropriate|suitable|indicated|option|choice)"
_REFUSED = re.compile(  # behind a label or the text of its option, of which "is not cheap" says nothing wrong
    r"[\s)\].,:–—-]*(?:(?:which|that|this|it) )?(?:(?:is|was|are|were|looks|seems|(?:can|must|would|should) be)"
    r"(?: (?:also|clearly|therefore|thus|simply|just))* (?:wrong|incorrect|false|invalid|contraindicated|inappropriate"
    r"|unsuitable|avoided|out|ruled out|eliminated|excluded|rejected|(?:an?|the) (?:\w+ )?(?:distractor|trap|decoy)"
    rf"|not {_FIT})|(?:isn|wasn|aren|weren)['’]t {_FIT})"
    r"(?=\W*\Z|[.,;!)]|\s(?:here|(?:in|for) this|because|since|so|but)\b)",
    re.IGNORECASE,
)
_TURN = re.compile(r"\b(?:but|however|yet|so)\b[\s,:]*(?P<said>.*)", re.DOTALL)
_REJECTED = re.compile(
    r"[\s:.,;(–—-]*(?:no|not|nope|false|incorrect|wrong|rejected|eliminated|excluded|impossible|ruled out|out|untrue)"
    r"(?=\W*\Z|[.;,)]\s)|[\s:.,(–—-]*[✗✘❌❎]|[\s(]*\?",
    re.IGNORECASE,
)
_TRUTH = re.compile(r"\W*\s(?<![:–—-]\s)(?:no|false|impossible)\b", re.IGNORECASE)  # of an option: "(B) False, False"
_JUDGED = re.compile(r"\b(?:is|are|was|were)\b.{0,40}\b(?:wrong|incorrect|false|not)\b|\b(?:isn|aren|wasn)['’]t\b")
_SENTENCE_START = re.compile(r"[.;!?]\s|[\n。；！？]")
_BEHIND_LABEL = re.compile(r"(?<!\W[A-Z])[.;!?]\s|[\n。；！？]")  # not between "B." and its text
_OPENED = re.compile(r"[.:]\s|\s?(?:[–—-]|-{1,2}>)\s|\s+is\b")
_REFUTED = re.compile(
    r"\b(?:is|are|was|were|looks?|seems?)\b.{0,20}\b(?:wrong|incorrect|false|not (?:the )?(?:correct|right|answer))\b"
    r"|\b(?:isn|wasn|can|doesn)['’]t\b|\b(?:wrong|incorrect)\W*\Z|[✗✘❌❎]",
    re.IGNORECASE,
)
# What may stand between an option's text and its label: "5200 feet, i.e., (C)", "Rome, which is option C".
_APPOSED = re.compile(
    r"[\s,;:(\[–—=→⇒>-]*(?:\b(?:that|which|this|it|is|or|so|namely|making|correspond(?:s|ing) to|labell?ed"
    r"|marked|matches|given (?:in|by|as)|the|answer|option|choice|letter)\b[\s,;:(\[.–—=→⇒>-]*)*\Z",
    re.IGNORECASE,
)
_IS = re.compile(r"\b(?:is|are|was|were|it['’]s) (?:(?:the|an) )?\Z")
_WHY = re.compile(r",?\s(?:because|since|due to)\s(?:(?!\b(?:but|however)\b)[^;])*\Z", re.IGNORECASE)
_FOUND_RIGHT = (
    rf"\s(?:remains|is left|fits|works|it is|{_IS_THE}(?:correct|right|best|better|answer|one|appropriate)"
    r"(?:\s(?:answer|option|choice|one))?)"
)
_CONCLUSION = re.compile(
    r"(?P<before>(?:.*[,;]\s)?)(?:and\s)?(?P<led>(?i:by elimination|only|so|thus|hence|therefore|then"
    r"|(?:this|that|which)(?: only)? leaves(?: us)?(?: with)?(?: only)?|leaving(?: us)?(?: with)?(?: only)?"
    r"|(?:we (?:are|were)|we['’]re|I['’]m|I am|one is)(?: only)? left with"
    r"|(?:so |thus |hence |therefore )?"
    r"(?:it is|it['’]s|it must be|it has to be|it can only be|the answer is|that makes it))[,:]?\s"
    r"(?i:(?:it|the answer)(?: is|['’]s| must be)\s|only\s|we have\s|I (?:choose|pick|say)\s)?)?"
    r"(?i:(?:option|choice)\s)?[(\[]?(?P<label>[A-Za-z0-9])[)\]]?"
    rf"(?:(?:\s?[:.(–—-]\s?(?P<named>[^()]{{1,99}}?)\)?)?{_FOUND_RIGHT}|(?(led)|(?!)))"
    r"|(?P<chain>.*(?:→|⇒|⟶|⟹|->|=>|\w[:：]))\s?(?:option\s)?[(\[]?(?P<last>[A-Za-z0-9])[)\]]?",
)
_RIGHT = re.compile(rf"\w\W?{_FOUND_RIGHT}\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|when|unless|had)\b", re.IGNORECASE)
_ENGLISH = re.compile(  # words and no labels
    r"(?:A\s+(?!(?:is|was|are|has|does|seems|looks|fits|would|could|might|may|must)\b)|I\s+)(?:[a-z]|[A-Z]{2})"
)
_WORDS = re.compile(r"(?:(?<![\w)])-(?=\d))?[^\W_]+(?:[.,'’-][^\W_]+)*")
_GOES_ON = (
    r"\W{0,6}(?:(?i:or|and|also|maybe|perhaps|possibly|alternatively|option|either"
    r"|no|wait|actually|sorry|rather)\b|或者|或|和)\W{0,4}"
)


@dataclass(frozen=True, slots=True)
class _Patterns:
    start: re.Pattern[str]
    alone: re.Pattern[str]
    closing: re.Pattern[str]
    mention: re.Pattern[str]
    goes_on: re.Pattern[str]
    second: re.Pattern[str]
    of_others: re.Pattern[str]


@lru_cache(maxsize=64)
def _patterns(labels: str) -> _Patterns:
    upper, both = re.escape(labels), re.escape(labels + labels.lower())
    label = rf"(?P<open>[(\[{{<\"'“‘【]\s?)?(?P<label>[{both}])(?P<close>\s?[)\]}}>\"'”’】])?(?![A-Za-z0-9])"
    mention = (
        rf"(?P<strong>(?<!\w)[(\[]\s?|(?i:\b(?:option|choice|letter))\s{{1,3}}|选项|選項)(?P<named>[{both}])(?![A-Za-z0-9'’])"
        rf"|(?<![A-Za-z0-9])(?<!\d\s)(?P<bare>[{upper}])(?![A-Za-z0-9'’])"  # "2 A" is a current
    )
    one = rf"[(\[]?[{upper}][)\]]?"
    several = rf"{one}(?:,\s{one}){{0,3}},?\s(?:and|or|nor)\s{one}(?!\w)"
    return _Patterns(
        start=re.compile(_LEAD + label),
        alone=re.compile(rf"[#>\s]*(?P<word>(?i:option|choice)\s)?{label}"),
        closing=re.compile(
            rf"(?:[:：]|\b(?:is|be|was|receive|given|recommend|prescribe|start))[\s\W]{{1,6}}(?P<label>[{upper}])"
            r"(?P<rest>\W{0,6}\Z|\W*\s.*)"
        ),
        mention=re.compile(mention),
        goes_on=re.compile(rf"{_GOES_ON}(?:{_GOES_ON})?[{both}](?![A-Za-z0-9])|\W{{0,6}}[{upper}]\W*\Z"),
        of_others=re.compile(  # "(D) Both A and B", "(D) A and C only"
            rf"\A[\s.:)]{{1,3}}(?:(?i:both|neither|either)\s{several}|{several}\s(?i:only)\b)"
        ),
        second=re.compile(
            rf"\b(?i:or|maybe|perhaps)\s(?:(?i:option)\s[{upper}]\b|\([{upper}]\)|[{upper}](?:[):]|\.(?=\s\w)))"
        ),
    )


def offered_label(text: str, key: ChoiceKey, *, ignore_case: bool = True) -> tuple[str, str]:
    """Return the label that the first 2,000 characters of an answer name and "", or "" and the reason there is none.

    With `ignore_case` "c" counts where the label stands alone, in brackets or before a stop.
    """
    text, by_text = _read(text, key)
    if by_text:
        return by_text, ""
    for read in (_leading, _mentioned):
        if (found := read(text, key, ignore_case)) != NOTHING:
            return found
    return (label, "") if not _mentions(text, key) and (label := key.by_number(text)) else NOTHING


def leading_label(text: str, key: ChoiceKey, *, ignore_case: bool = True) -> tuple[str, str]:
    """Return the label a text starts with and "", or "" and the reason there is none."""
    return _leading(plain(text[:MAX_CHARACTERS]), key, ignore_case)


def _leading(text: str, key: ChoiceKey, ignore_case: bool) -> tuple[str, str]:
    start = _patterns(key.labels).start.match(text)
    if start and _is_label(start, text[start.end() :], key, ignore_case):
        return _committed(start, text[start.end() :], key)
    return _leading_text(text, key)


def _leading_text(text: str, key: ChoiceKey) -> tuple[str, str]:
    """Return the label of the option whose text comes first, with a stop or a reason behind it: "Yes, it is."."""
    text = " ".join(text.split())
    text = text if text.casefold().startswith(key.texts) else without_article(text)
    said = [
        (option, label)
        for label, option in zip(key.labels, key.texts, strict=False)
        if len(option) > 1 and text[: len(option)].casefold() == option and _SAID.match(text, len(option))
    ]
    if not said:
        return NOTHING
    option, label = max(said, key=lambda one: len(one[0]))
    rest = text[len(option) :]
    sentence = re.split(r"\bnot\b", _SENTENCE_START.split(rest.lstrip(" .!"))[0])[0]  # "Rome, not London"
    words = f" {' '.join(re.findall(_WORDS, sentence.casefold()))} "
    others = (" ".join(re.findall(_WORDS, other)) for other in key.texts if other != option)
    labels = _labels(_CLAUSE_END.split(rest, maxsplit=1)[0], key) - {label}
    if labels or any(f" {other} " in words for other in others if other) or _DENIED_AFTER.match(rest):
        return "", "several_answers"
    return label, ""


def _is_of_another(before: str, label: str, key: ChoiceKey) -> bool:
    """Tell whether a label stands right behind the text of another option: "5100 feet, which is (C)"."""
    apposed = _APPOSED.search(before)
    words = f" {' '.join(re.findall(_WORDS, before[: apposed.start() if apposed else None].casefold()))}"
    named = [
        (option, other)
        for other, text in zip(key.labels, key.texts, strict=False)
        if (option := " ".join(re.findall(_WORDS, text))) and words.endswith(f" {option}")
    ]
    return bool(named) and max(named, key=lambda one: len(one[0]))[1] != label


def sole_label(line: str, key: ChoiceKey, *, ignore_case: bool = True) -> str:
    """Return the label of a line that says nothing else ("C", "(C).", "**C. Paris**", "Paris"), or ""."""
    line, by_text = _read(line, key)
    if by_text:
        return by_text
    alone = _patterns(key.labels).alone.match(line)
    if not alone or not _is_label(alone, line[alone.end() :], key, ignore_case):
        return ""
    rest = line[alone.end() :]
    more = rest
    if bracketed := _BRACKETED.match(rest):
        more = rest[bracketed.end() :] if not key.texts or _named(bracketed[0], key) else more
    elif _named(rest, key):
        more = ""
    return "" if more.strip(_DELIMITERS + "!") else _committed(alone, rest, key)[0]


def opening_label(line: str, key: ChoiceKey, *, ignore_case: bool = True) -> str:
    """Return the label of a line that says nothing else or begins with it, or "": "(C) Rome", "Option C: Rome".

    The text behind it need not be known: an answer that is explained on the lines below begins so.
    """
    if label := sole_label(line, key, ignore_case=ignore_case):
        return label
    line = plain(line[:MAX_CHARACTERS])
    opening = _patterns(key.labels).alone.match(line)
    if not opening or (opening["label"].isdigit() and not opening["open"]) or _REFUTED.search(line):
        return ""  # "1. First, ..." begins a list
    rest = line[opening.end() :]
    said = opening["close"] or opening["word"] or _OPENED.match(rest) or _named(rest, key)
    return _committed(opening, rest, key)[0] if said and _is_label(opening, rest, key, ignore_case) else ""


def closing_label(line: str, key: ChoiceKey, *, ignore_case: bool = True) -> str:
    """Return the label of a line that says nothing else, concludes on it or ends in "is C" or ": C", or ""."""
    if label := sole_label(line, key, ignore_case=ignore_case):
        return label
    line, _ = _read(line[-MAX_CHARACTERS:], key)
    if concluding := concluding_label(line, key):
        return concluding
    return _closing(line, key)


def _closing(line: str, key: ChoiceKey) -> str:
    """Return the label that a line ends in, with its option's text or without ("The next step is C. Biopsy"), or ""."""
    closing = _patterns(key.labels).closing.search(line)
    rest = closing["rest"] if closing else ""
    if not closing or not (re.fullmatch(r"[^\w?？]*", rest) or _named(rest, key) == closing["label"]):
        return ""
    before = line[: closing.start("label")]
    denied = any(sign.search(before) for sign in (_DENIED_BEFORE, _DISOWNED, _CONDITION)) or unasserted(before)
    return "" if denied or _labels(line[: closing.end("label")], key) != {closing["label"]} else closing["label"]


def concluded_label(text: str, key: ChoiceKey) -> str:
    """Return the label that the last sentence of a text concludes on ("So C."), or whose option it states, or ""."""
    whole = plain(text[-MAX_CHARACTERS:]).rstrip(" .")
    if (concluding := concluding_label(whole, key)) is not None:
        return concluding
    if label := _closing(_WHY.sub("", _BEHIND_LABEL.split(whole)[-1]), key):
        return label
    words = f" {' '.join(re.findall(_WORDS, whole.casefold()))} "
    stated = {
        label: option
        for label, option in zip(key.labels, key.texts, strict=False)
        if (parts := " ".join(re.findall(_WORDS, option))) and f" {parts} " in words
    }
    sentence = _WHY.sub("", _SENTENCE_START.split(whole)[-1])
    if len(stated) != 1 or _DENIED_BEFORE.search(sentence) or "?" in sentence:
        return ""
    ((label, option),) = stated.items()
    tail = comparable(sentence)
    if re.fullmatch(rf"(?:(?:so|thus|hence|therefore),? )?(?:the )?{re.escape(option)}{_FOUND_RIGHT}", tail):
        return label
    tail = tail if tail.endswith(option) or not option[-1:].isalpha() else tail.rstrip("!")
    before = tail.removesuffix(option)
    return label if before != tail and _IS.search(before) else ""


def concluding_label(text: str, key: ChoiceKey) -> str | None:
    """Return the label that the last sentence concludes on ("So C.", "C is right."), "" for a bad one, or None."""
    whole = " ".join(text.split()).rstrip(" .!")
    ends = (split.split(f" {whole}")[-1].strip() for split in (_SENTENCE_START, _BEHIND_LABEL))
    conclusion = next(filter(None, map(_CONCLUSION.fullmatch, ends)), None)
    if conclusion is None:
        return None
    before, named, chain = (conclusion[group] or "" for group in ("before", "named", "chain"))
    label = conclusion["label"] or conclusion["last"]
    another = _labels(chain + named, key) - {label} or (named and key.by_text(named) not in ("", label))
    if named and key.by_text(named) != label and _TURN.search(named):
        return ""
    if another or (chain and _is_of_another(whole[: -len(label)], label, key)):
        return ""
    if _DENIED_BEFORE.search(chain) or _DISOWNED.search(chain) or _CONDITION.search(before) or _RIGHT.search(before):
        return ""
    return label if label in key.labels else _short_option(label, key)


def in_list(line: str, neighbour: str, key: ChoiceKey) -> bool:
    """Tell whether a line and the one beside it are entries of a list of the options ("A. Paris", "B. London").

    One that says of its option that it is wrong, or alone that it is right, is none: so begins an explanation.
    """
    if _JUDGED.search(neighbour) or (_RIGHT.search(line) and not _RIGHT.search(neighbour)):
        return False
    (one, word), (other, its_word) = (_entry(text, key) for text in (line, neighbour))
    return bool(one and other) and one != other and word == its_word and len(plain(line).strip(_DELIMITERS + "([{")) > 1


def _entry(line: str, key: ChoiceKey) -> tuple[str, bool]:
    """Return the label that an entry of a list begins with, or "", and whether the word "option" stands before it."""
    line, _ = _read(line, key)
    alone = _patterns(key.labels).alone.match(line)
    if not alone or not _is_label(alone, line[alone.end() :], key, ignore_case=False):
        return "", False
    return alone["label"], alone["word"] is not None


def _read(text: str, key: ChoiceKey) -> tuple[str, str]:
    """Return the text without markup, and the label of the option whose text it is."""
    text = plain(text[:MAX_CHARACTERS])
    return text, key.by_text(text) if len(text) > 1 else _short_option(text, key)


def _short_option(text: str, key: ChoiceKey) -> str:
    """Return the label of the option that is one character ("4", "N"), which is not a label itself, or ""."""
    return "" if text.upper() in key.labels.upper() else key.by_text(text)


def _is_label(match: re.Match[str], rest: str, key: ChoiceKey, ignore_case: bool) -> bool:
    """Tell whether the letter found is used as a label, judging by its case, its brackets and what follows."""
    if not match["open"] and (match["close"] or "").strip() in ("'", "’"):
        return False  # "C'" is another name
    bracketed = bool(match["open"] or match["close"])
    if match["label"] not in key.labels and not (ignore_case and (bracketed or re.match(r"\s*(?:[.:]|\Z)", rest))):
        return False
    if _STOP.match(rest) or _REASON.match(rest) or (bracketed and rest[:1].isspace()):
        return True
    return _named(rest, key) == _upper(match["label"], key)


def _committed(start: re.Match[str], rest: str, key: ChoiceKey) -> tuple[str, str]:
    """Return the label an answer starts with, unless what follows denies it or adds another."""
    label = _upper(start["label"], key)
    named = _named(rest, key)
    if named == label:
        return label, ""
    rest = _patterns(key.labels).of_others.sub("", rest)
    if fault := _refused(rest, label, key):
        return "", fault
    rejected = _REJECTED.match(rest) and not (_TRUTH.match(rest) and _labels(rest, key) <= {label})
    if _DENIED_BEFORE.search(start[0]) or _DENIED_AFTER.match(rest) or rejected:
        return "", "unparsable_answer"
    end = _CLAUSE_END.search(rest)
    clause, after = (rest[: end.start()], rest[end.end() :]) if end else (rest, "")
    others = _labels(clause, key) - {label}
    if not rest.strip(" .)") and label != start["label"]:
        named = key.by_text(start["label"])  # "c" may be the text of an option too
    named = named or _named(clause, key)
    if not named and _is_changed(rest, label, key):
        return "", "several_answers"
    patterns = _patterns(key.labels)
    another = end is not None and not end[0].isalpha() and patterns.goes_on.match(after)
    another = another or patterns.second.search(_SAID_WHY.split(rest, maxsplit=1)[0])  # "C. Rome, or D. Madrid"
    if others or named not in ("", label) or another:
        return "", "several_answers"
    return label, ""


def _refused(rest: str, label: str, key: ChoiceKey) -> str:
    """Return the reason for a zero when what stands behind a label and its option's text denies it, or ""."""
    said, own = " ".join(_DELIMITED.sub("", rest).split()), key.text_of(label)
    behind = said[len(own) :]
    if not own or said[: len(own)].casefold() != own or re.match(r"\w|[.,]\d", behind):
        return "unparsable_answer" if not key.asks_wrong and _REFUSED.match(rest) else ""
    if not key.asks_wrong and (_REFUSED.match(behind) or _REJECTED.match(behind)):
        return "unparsable_answer"
    turn = _TURN.search(_SENTENCE_START.split(behind.lstrip(_DELIMITERS))[0])
    better = behind and turn and (concluded_label(turn["said"], key) or leading_label(turn["said"], key)[0])
    return "several_answers" if better and better != label else ""


def _mentioned(text: str, key: ChoiceKey, ignore_case: bool) -> tuple[str, str]:
    """Return the one label that stands in brackets or after the word "option"."""
    mentions = _mentions(text, key)
    if len({label for _, label in mentions}) > 1:
        return "", "several_answers"
    strong = [
        match
        for match, _ in mentions
        if match["strong"]
        and (ignore_case or match["named"] in key.labels)
        and (match["strong"][0] in "([选選" or _ends_or_says_why(text[match.end() :]))
    ]
    for match in strong or [match for match, _ in mentions]:
        before = text[: match.start()]
        sentence = [at.end() for at in _SENTENCE_START.finditer(before)]
        rest = text[match.end() :]
        denied = _DENIED_AFTER.match(rest) or _REJECTED.match(rest)
        if _DENIED_BEFORE.search(before, sentence[-1] if sentence else 0) or denied:
            return "", "unparsable_answer"
        if match in strong and _is_of_another(before, _upper(match["named"], key), key):
            return "", "several_answers"
    return (_upper(strong[0]["named"], key), "") if strong else NOTHING


def _ends_or_says_why(rest: str) -> bool:
    rest = re.sub(r"\A[)\]\"'”’]+", "", rest)
    return bool(_STOP.match(rest) or _REASON.match(rest))


def _mentions(text: str, key: ChoiceKey) -> list[tuple[re.Match[str], str]]:
    mentions = []
    for match in _patterns(key.labels).mention.finditer(text):
        if match["bare"] in ("A", "I") and _ENGLISH.match(text, match.start()):
            continue
        mentions.append((match, _upper(match["named"] or match["bare"], key)))
    return mentions


def _labels(text: str, key: ChoiceKey) -> set[str]:
    return {label for _, label in _mentions(text, key)}


def _upper(letter: str, key: ChoiceKey) -> str:
    return letter if letter in key.labels else letter.upper()


def _named(rest: str, key: ChoiceKey) -> str:
    """Return the label of the option whose text follows a label and its delimiter, or ""."""
    text = _DELIMITED.sub("", rest)
    bracketed = text.partition(")")[0] if rest.lstrip(" .:")[:1] == "(" else ""
    whole = _DASHED.sub("", rest)
    inside = whole.rstrip(" .")[1:-1] if whole[:1] == "(" else ""
    for said in (rest.lstrip(_DELIMITERS), whole, inside, text, text.rstrip(" )"), bracketed):
        if said and (label := key.by_text(said)):
            return label
    return key.by_number(text) if _AMOUNT.fullmatch(text) else ""


def _is_changed(rest: str, label: str, key: ChoiceKey) -> bool:
    """Tell whether a label is followed by another number, or by its option with another sign ("-15" for "15")."""
    own = dict(zip(key.labels, key.texts, strict=False)).get(label, "")
    said = comparable(_CLAUSE_END.split(_DELIMITED.sub("", rest))[0])
    if not own or said in ("", own):
        return False
    try:
        numbers = [read_quantity(text).value for text in (said, own)]
    except NumberError:
        numbers = []
    if numbers and not re.search(r"[^\W\d]{2}", said) and abs(numbers[0] - numbers[1]) > abs(numbers[1]) / 100:
        return True
    if re.findall(r"\w+", said) != re.findall(r"\w+", own):
        return False
    return sorted(_SIGN.findall(said)) != sorted(_SIGN.findall(own))
