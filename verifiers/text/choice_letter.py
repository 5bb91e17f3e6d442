r"""Which option an answer names.

An answer names an option in three ways: it starts with the label ("C", "(C)", "C. Paris", "option C because ...",
"故选C"), it is exactly the text of one option, or it holds a single label in brackets or after the word "option".
A letter inside prose is not a label: "A good start" and "Vitamin C" name nothing.  Several labels in one clause are no
answer, and neither is a label that is denied ("not B", "(B) is wrong").

Not covered: labels of more than one character, and answers that paraphrase an option.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adjudge.responses.answer_context import undecorated
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import invisible, unwrap, without_tex
from adjudge.responses.number_text import NumberError, read_quantity
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown, wrong_form

LABELS = "ABCDEFGHIJ"

_NOISE = re.compile(r"\\[()\[\]]|[$*`_~]|</?(?:b|i|u|em|strong|code|p|span|div)>")


@dataclass(frozen=True, slots=True)
class ChoiceKey:
    """A question's labels, one character each, its answer, and the options as `comparable` writes them, if known."""

    labels: str
    answer: str
    texts: tuple[str, ...] = ()

    def by_text(self, text: str) -> str:
        """Return the label of the one option with this text, or "" when there is none or more than one."""
        wanted = comparable(text) if self.texts else ""
        fitting = [label for label, option in zip(self.labels, self.texts, strict=False) if option == wanted]
        return fitting[0] if len(fitting) == 1 else ""


def read_choice_key(reference: Any, labels: str = LABELS) -> ChoiceKey:
    """Return what a reference says: a label ("B" or "(B)"), or `{"choices": [text, ...], "answer": ...}`.

    The answer is a label, the text of exactly one option, or the 0-based position of the option as an int.  A text that
    is both the label of one option and the text of another is refused.
    """
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    if isinstance(reference, str):
        return ChoiceKey(labels, _label(reference, labels) or _unknown(reference, labels))
    if not isinstance(reference, Mapping) or not {"choices", "answer"} <= reference.keys():
        raise wrong_form(
            reference,
            'the label of the right option, or {"choices": [...], "answer": ...} with a label, an option\'s text or '
            "its 0-based position",
        )
    choices, answer = reference["choices"], reference["answer"]
    if (
        isinstance(choices, str | Mapping)
        or not isinstance(choices, Sequence)
        or not all(isinstance(text, str) for text in choices)
        or not 2 <= len(choices) <= len(labels)
    ):
        raise ReferenceFormError(f'"choices" must be a list of 2 to {len(labels)} texts')
    key = ChoiceKey(labels[: len(choices)], "", tuple(map(comparable, choices)))
    return ChoiceKey(key.labels, _answer(answer, key, choices), key.texts)


def plain(text: str) -> str:
    """Return a text in NFKC without markup: LaTeX text commands, dollars, asterisks, underscores, backticks."""
    if not text.isascii():
        text = undecorated(unicodedata.normalize("NFKC", text))
    if not text.isprintable():
        text = invisible(text)
    return unwrap(_NOISE.sub(" ", without_tex(text)).strip())


def comparable(text: str) -> str:
    """Return the form in which option texts are compared: plain, no stop at the end, one case, single spaces."""
    text = plain(text)
    return " ".join((text.rstrip(" .;,。；，") or text).casefold().split())


def _answer(answer: Any, key: ChoiceKey, choices: Sequence[str]) -> str:
    if isinstance(answer, int) and not isinstance(answer, bool):
        if 0 <= answer < len(key.labels):
            return key.labels[answer]
        raise BadReferenceError(f"the answer is position {answer} of {len(key.labels)} choices")
    if not isinstance(answer, str):
        raise ReferenceFormError(
            f'"answer" is {shown(answer)}; give a label, an option\'s text or its 0-based position'
        )
    label = _label(answer, key.labels)
    same = [other for other, text in zip(key.labels, choices, strict=True) if text.strip() == answer.strip()]
    if label and same not in ([], [label]):
        raise BadReferenceError(
            f"the answer {answer!r} is a label and also the text of option {same[0]}; give its 0-based position"
        )
    return label or key.by_text(answer) or _unknown(answer, key.labels)


def _label(text: str, labels: str) -> str:
    text = unicodedata.normalize("NFKC", text).strip().strip("()[]. ")
    if len(text) != 1:
        return ""
    return text if text in labels else text.upper() if text.upper() in labels else ""


def _unknown(answer: str, labels: str) -> str:
    raise BadReferenceError(
        f"the answer {shorten(answer, 60)!r} is none of the labels {labels} and not the text of exactly one option"
    )


MAX_CHARACTERS = 2_000
NOTHING = ("", "no_answer")

SURELY = "indeed|clearly|obviously|certainly|definitely|actually|simply|probably|likely"
_LEAD = (
    r"[\s:：>#-]{0,8}(?i:(?:the|my|final|correct|right|best|most|appropriate|answer|option|choice|letter|is|it|it['’]s"
    rf"|that['’]s|that|so|thus|therefore|hence|{SURELY}|i|we|think|believe|would|say|choose"
    r"|pick|select|go|with|be|must|should)\b[\s:：,]{1,4}){0,8}"
    r"(?:(?:正确|答案|选项|選項|应该|的|是|为|為|应|應|故|选|選|择|擇)[:：\s]{0,2}){0,6}"
)
_STOP = re.compile(
    r"\s*(?:[.:,;!=|](?=\s|\Z)|[–—-]\s|-{1,2}>\s|[。、:.,;!](?=[^\x00-\x7f]|\Z)|\n|\Z|\s?\()"
    r"|\s*(?:です|である|だ(?!\w)|입니다|이다|예요|이에요)"
)
_REASON = re.compile(
    r"\s+it is\W*\Z|\s+(?:because|since|as|for|due|(?:(?:and|but) )?not|rather|instead|would be|must be|has to be|best"
    r"|correctly|fits|matches|works|satisfies|holds|agrees|follows|explains|describes|applies|stands out"
    r"|(?:seems|looks|appears)(?: to be)?(?: the)? (?:correct|right|best)(?!.*\b(?:but|wrong|not)\b)"
    r"|makes (?:the most )?sense"
    r"|is (?:clearly |therefore |thus |indeed |also |probably |most likely |likely )?(?:(?:the|my|an?) )?"
    r"(?:only |single |one |most |best |final )*(?:correct|right|best|true|answer|option|choice|one|statement|solution"
    r"|appropriate|accurate|likely|consistent|valid|supported|plausible|suitable|reasonable))\b"
    r"|\s*(?:因为|是正确|正确|而不是|而非)",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(?:\.|(?<=[^\W\d])!)(?=\s|\Z)|\s*[,;:–—-]\s*(?:because|since|as|due to|given|for|it|this|that|these|those"
    r"|they|there|he|she|we|i|the)\b"
    r"|\s+(?:because|since|due to)\b",
    re.IGNORECASE,
)
_DELIMITERS = " .:)]、。,"
_DASHED = re.compile(r"\A[\s.:]*(?:[-–—]\s+)?")
# A dash right before a number is its sign.
_DELIMITED = re.compile(r"\A(?:[ :)\]、。,=→⇒>(]|\.(?!\d)|[-–—]{1,2}>|[-–—]\s|[–—](?=[^\W\d])|-(?=[^\W\d_]{2}))+")
_SIGN = re.compile(r"[^\w\s.,;:(){}\[\]\"'“”‘’$\\?]")
_CLAUSE_END = re.compile(
    r"[.;!?](?=\s|\Z)|[\n。；！？]|\b(?:because|since|as|not|rather|instead|while|whereas|although|though|despite|unlike)\b|因为|而不是|而非|不是",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[\s)\].,:]*(?:(?<=,\s)(?:which|that)\s)?(?:(?:is|was|can|does|do|would|could|should|seems|looks|must)\b"
    r"(?:\s+(?!because|since|as|and|while|so|correct|right|best|true)\w+){0,6}?\s+"
    r"(?:not|never|wrong|incorrect|false|out|eliminated|excluded|impossible)\b"
    r"|(?:contradicts|violates|fails|conflicts|misses|ignores|overstates|understates|confuses|lacks|omits)\b"
    r"|(?:isn|wasn|can|doesn|wouldn|couldn|shouldn)['’]?t\b|cannot\b)|\s*(?:不|错|錯|是错|是錯|并非|並非)",
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
    r"\b(?:least|worst|second|closest|trap|distractor|error|mistake|popular|tempting)\b", re.IGNORECASE
)
_REJECTED = re.compile(
    r"[\s:.,;(–—-]*(?:no|not|nope|false|incorrect|wrong|rejected|eliminated|excluded|impossible|ruled out|out|untrue)"
    r"(?=\W*\Z|[.;,)]\s)|[\s:.,(–—-]*[✗✘❌❎]|[\s(]*\?",
    re.IGNORECASE,
)
_JUDGED = re.compile(r"\b(?:is|are|was|were)\b.{0,40}\b(?:wrong|incorrect|false|not)\b|\b(?:isn|aren|wasn)['’]t\b")
_SENTENCE_START = re.compile(r"[.;!?]\s|[\n。；！？]")
_VERBS = ("is", "are", "was", "were", "it's", "it’s")
_CONCLUSION = re.compile(
    r"(?:.*[,;]\s)?(?:and\s)?(?i:by elimination|only|so|thus|hence|therefore|then"
    r"|(?:this|that|which)(?: only)? leaves(?: us)?(?: with)?(?: only)?|leaving(?: us)?(?: with)?(?: only)?"
    r"|(?:we (?:are|were)|we['’]re|I['’]m|I am|one is)(?: only)? left with"
    r"|(?:so |thus |hence |therefore )?"
    r"(?:it is|it['’]s|it must be|it has to be|it can only be|the answer is|that makes it))[,:]?\s"
    r"(?i:(?:it|the answer)(?: is|['’]s| must be)\s|only\s|we have\s|I (?:choose|pick|say)\s)?"
    r"(?i:option\s)?[(\[]?(?P<label>[A-Za-z0-9])[)\]]?(?:\s(?i:remains|is left|is correct|fits|works))?"
    r"|(?P<chain>.*(?:→|⇒|⟶|⟹|->|=>|\w[:：]))\s?(?:option\s)?[(\[]?(?P<last>[A-Za-z0-9])[)\]]?",
)
_WORDS = re.compile(r"[^\W_]+(?:[.,'’-][^\W_]+)*")
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


@lru_cache(maxsize=64)
def _patterns(labels: str) -> _Patterns:
    upper, both = re.escape(labels), re.escape(labels + labels.lower())
    label = rf"(?P<open>[(\[{{<\"'“‘【]\s?)?(?P<label>[{both}])(?P<close>\s?[)\]}}>\"'”’】])?(?![A-Za-z0-9])"
    mention = (
        rf"(?P<strong>(?<!\w)[(\[]\s?|(?i:\b(?:option|choice|letter))\s{{1,3}}|选项|選項)(?P<named>[{both}])(?![A-Za-z0-9'’])"
        rf"|(?<![A-Za-z0-9])(?P<bare>[{upper}])(?![A-Za-z0-9'’])"
    )
    return _Patterns(
        start=re.compile(_LEAD + label),
        alone=re.compile(label),
        closing=re.compile(rf"(?:[:：]|\b(?:is|be|was))[\s\W]{{1,6}}(?P<label>[{upper}])\W{{0,6}}\Z"),
        mention=re.compile(mention),
        goes_on=re.compile(rf"{_GOES_ON}(?:{_GOES_ON})?[{both}](?![A-Za-z0-9])|\W{{0,6}}[{upper}]\W*\Z"),
    )


def offered_label(text: str, key: ChoiceKey, *, ignore_case: bool = True) -> tuple[str, str]:
    """Return the label that the first 2,000 characters of an answer name and "", or "" and the reason there is none.

    With `ignore_case` "c" counts where the label stands alone, in brackets or before a stop.
    """
    text, by_text = _read(text, key)
    if by_text:
        return by_text, ""
    leading = _leading(text, key, ignore_case)
    return _mentioned(text, key, ignore_case) if leading == NOTHING else leading


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
    said = [
        (option, label)
        for label, option in zip(key.labels, key.texts, strict=False)
        if len(option) > 1 and text[: len(option)].casefold() == option and _SAID.match(text, len(option))
    ]
    if not said:
        return NOTHING
    option, label = max(said, key=lambda one: len(one[0]))
    rest = text[len(option) :]
    sentence = f" {' '.join(re.findall(_WORDS, _SENTENCE_START.split(rest.lstrip(' .!'))[0].casefold()))} "
    others = (" ".join(re.findall(_WORDS, other)) for other in key.texts if other != option)
    if any(f" {other} " in sentence for other in others if other) or _DENIED_AFTER.match(rest):
        return "", "several_answers"
    return label, ""


def sole_label(line: str, key: ChoiceKey, *, ignore_case: bool = True) -> str:
    """Return the label of a line that says nothing else ("C", "(C).", "**C. Paris**", "Paris"), or ""."""
    line, by_text = _read(line, key)
    if by_text:
        return by_text
    alone = _patterns(key.labels).alone.match(line)
    if not alone or not _is_label(alone, line[alone.end() :], key, ignore_case):
        return ""
    rest = line[alone.end() :]
    return _committed(alone, rest, key)[0] if not rest.strip(_DELIMITERS) or _named(rest, key) else ""


def closing_label(line: str, key: ChoiceKey, *, ignore_case: bool = True) -> str:
    """Return the label of a line that says nothing else or ends in "is C" or ": C" and names no other, or ""."""
    if label := sole_label(line, key, ignore_case=ignore_case):
        return label
    line, _ = _read(line[-MAX_CHARACTERS:], key)
    closing = _patterns(key.labels).closing.search(line)
    if not closing or _DENIED_BEFORE.search(line) or {label for _, label in _mentions(line, key)} != {closing["label"]}:
        return ""
    return closing["label"]


def concluded_label(text: str, key: ChoiceKey) -> str:
    """Return the label that the last sentence of a text concludes on ("So C."), or whose option it states, or ""."""
    whole = plain(text[-MAX_CHARACTERS:]).rstrip(" .")
    sentence = _SENTENCE_START.split(whole)[-1]
    if conclusion := _CONCLUSION.fullmatch(sentence.rstrip(" !")):
        label = conclusion["label"] or conclusion["last"]
        chain = conclusion["chain"] or ""
        others = {other for _, other in _mentions(chain, key)} - {label}
        alone = not (others or _DENIED_BEFORE.search(chain) or _DISOWNED.search(chain))
        return (label if label in key.labels else _short_option(label, key)) if alone else ""
    words = f" {' '.join(re.findall(_WORDS, whole.casefold()))} "
    stated = {
        label: option
        for label, option in zip(key.labels, key.texts, strict=False)
        if (parts := " ".join(re.findall(_WORDS, option))) and f" {parts} " in words
    }
    if len(stated) != 1 or _DENIED_BEFORE.search(sentence) or "?" in sentence:
        return ""
    ((label, option),) = stated.items()
    tail = comparable(sentence)
    tail = tail if tail.endswith(option) or not option[-1:].isalpha() else tail.rstrip("!")
    return label if any(tail.endswith(f"{verb} {option}") for verb in _VERBS) else ""


def in_list(line: str, neighbour: str, key: ChoiceKey) -> bool:
    """Tell whether a line and the one beside it are entries of a list of the options ("A. Paris", "B. London").

    One that says of its option that it is wrong is none: so begins an explanation.
    """
    if _JUDGED.search(neighbour):
        return False
    labels = {_leading_label(text, key) for text in (line, neighbour)}
    return "" not in labels and len(labels) == 2 and len(plain(line).strip(_DELIMITERS + "([{")) > 1


def _leading_label(line: str, key: ChoiceKey) -> str:
    line, _ = _read(line, key)
    alone = _patterns(key.labels).alone.match(line)
    return alone["label"] if alone and _is_label(alone, line[alone.end() :], key, ignore_case=False) else ""


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
    if _DENIED_BEFORE.search(start[0]) or _DENIED_AFTER.match(rest) or _REJECTED.match(rest):
        return "", "unparsable_answer"
    end = _CLAUSE_END.search(rest)
    clause, after = (rest[: end.start()], rest[end.end() :]) if end else (rest, "")
    others = {other for _, other in _mentions(clause, key)} - {label}
    if not rest.strip(" .)") and label != start["label"]:
        named = key.by_text(start["label"])  # "c" may be the text of an option too
    named = named or _named(clause, key)
    if not named and _is_changed(rest, label, key):
        return "", "several_answers"
    another = end is not None and not end[0].isalpha() and _patterns(key.labels).goes_on.match(after)
    if others or named not in ("", label) or another:
        return "", "several_answers"
    return label, ""


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
    return (_upper(strong[0]["named"], key), "") if strong else NOTHING


def _ends_or_says_why(rest: str) -> bool:
    rest = re.sub(r"\A[)\]\"'”’]+", "", rest)
    return bool(_STOP.match(rest) or _REASON.match(rest))


def _mentions(text: str, key: ChoiceKey) -> list[tuple[re.Match[str], str]]:
    mentions = []
    for match in _patterns(key.labels).mention.finditer(text):
        # "A" and "I" before a lower-case word are English words, not labels.
        if match["bare"] in ("A", "I") and re.match(r"\s+[a-z]", text[match.end() : match.end() + 4]):
            continue
        mentions.append((match, _upper(match["named"] or match["bare"], key)))
    return mentions


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
    return ""


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
    return sorted(_SIGN.findall(said.replace("−", "-"))) != sorted(_SIGN.findall(own.replace("−", "-")))
