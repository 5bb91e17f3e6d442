r"""Which option an answer names.

An answer names an option in three ways: it starts with the label ("C", "(C)", "C. Paris", "option C because ...",
"故选C"), it is exactly the text of one option, or it holds a single label in brackets or after the word "option".
A letter inside prose is no label: "A good start" and "Vitamin C" name nothing.  Several labels in one clause are no
answer, and neither is a label that is denied ("not B", "(B) is wrong").

Not covered: labels of more than one character, and answers that paraphrase an option.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from adjudge.verifiers.text.choice_key import ChoiceKey, plain

MAX_CHARACTERS = 2_000
NOTHING = ("", "no_answer")

_LEAD = (
    r"[\s:：>#-]{0,8}(?i:(?:the|my|final|correct|right|best|most|appropriate|answer|option|choice|letter|is|it|it['’]s"
    r"|that['’]s|that|so|thus|therefore|hence|clearly|probably|likely|definitely|i|we|think|believe|would|say|choose"
    r"|pick|select|go|with|be|must|should)\b[\s:：,]{1,4}){0,8}"
    r"(?:(?:正确|答案|选项|選項|应该|的|是|为|為|应|應|故|选|選|择|擇)[:：\s]{0,2}){0,6}"
)
_STOP = re.compile(r"\s*(?:[.:,;!=–—-](?=\s|\Z)|[。、:.,;!](?=[^\x00-\x7f]|\Z)|\n|\Z|\s?\()")
_REASON = re.compile(
    r"\s+(?:because|since|as|for|due|not|rather|instead|would be|is (?:the )?(?:correct|right|best|true|answer))\b"
    r"|\s*(?:因为|是正确|正确|而不是|而非)",
    re.IGNORECASE,
)
_DELIMITERS = " .:)]、。,"
_CLAUSE_END = re.compile(
    r"[.;!?](?=\s|\Z)|[\n。；！？]|\b(?:because|since|as|not|rather|instead|while|whereas|unlike)\b|因为|而不是|而非|不是",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[\s)\].,:]*(?:(?:is|was|can|does|do|would|could|should|seems|looks|must)\b(?:\s+\w+){0,3}?\s+"
    r"(?:not|never|wrong|incorrect|false|out|eliminated|excluded|impossible)\b"
    r"|(?:isn|wasn|can|doesn|wouldn|couldn|shouldn)['’]?t\b|cannot\b)|\s*(?:不|错|錯|是错|是錯|并非|並非)",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|never|neither|nor|except|cannot|wrong|incorrect|eliminated?|excluded?|excluding|rule|unless|\w+n['’]t)\b"
    r"|不|非|除|错|錯",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"[.;!?]\s|[\n。；！？]")
_CONCLUSION = re.compile(
    r"(?i:so|thus|hence|therefore|(?:this|that|which) leaves|leaving)[,:]?\s"
    r"(?i:(?:it|the answer)(?: is|['’]s)\s|only\s|we have\s)?"
    r"(?i:option\s)?[(\[]?([A-Za-z0-9])[)\]]?"
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
    """Return the label an answer names and "", or "" and the reason there is none.

    Args:
        text: the answer; what follows its first 2,000 characters is not read.
        key: the labels and, when known, the options.
        ignore_case: whether "c" counts where the label stands alone, in brackets or before a stop.
    """
    text, by_text = _read(text, key)
    if by_text:
        return by_text, ""
    start = _patterns(key.labels).start.match(text)
    if start and _is_label(start, text[start.end() :], key, ignore_case):
        return _committed(start, text[start.end() :], key)
    return _mentioned(text, key, ignore_case)


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
    found = _patterns(key.labels).closing.search(line)
    if not found or _DENIED_BEFORE.search(line) or {label for _, label in _mentions(line, key)} != {found["label"]}:
        return ""
    return found["label"]


def concluded_label(text: str, key: ChoiceKey) -> str:
    """Return the label that the last sentence of a text concludes on ("So C."), or whose option it states, or ""."""
    sentence = _SENTENCE_START.split(plain(text[-MAX_CHARACTERS:]).rstrip(" .!"))[-1]
    if found := _CONCLUSION.fullmatch(sentence):
        return found[1] if found[1] in key.labels else ""
    whole = f" {' '.join(re.findall(_WORDS, plain(text[-MAX_CHARACTERS:]).casefold()))} "
    stated = [
        (label, words)
        for label, option in zip(key.labels, key.texts, strict=False)
        if (words := " ".join(re.findall(_WORDS, option))) and f" {words} " in whole
    ]
    if len(stated) != 1 or not any(whole.endswith(f" {verb} {stated[0][1]} ") for verb in ("is", "are", "was", "were")):
        return ""
    return "" if _DENIED_BEFORE.search(sentence) or "?" in sentence else stated[0][0]


def in_list(line: str, neighbour: str, key: ChoiceKey) -> bool:
    """Tell whether a line and the one beside it are entries of a list of the options ("A. Paris", "B. London")."""
    labels = {_leading_label(text, key) for text in (line, neighbour)}
    return "" not in labels and len(labels) == 2 and len(plain(line).strip(_DELIMITERS + "([{")) > 1


def _leading_label(line: str, key: ChoiceKey) -> str:
    line, _ = _read(line, key)
    alone = _patterns(key.labels).alone.match(line)
    return alone["label"] if alone and _is_label(alone, line[alone.end() :], key, ignore_case=False) else ""


def _read(text: str, key: ChoiceKey) -> tuple[str, str]:
    """Return the text without markup, and the label of the option whose text it is."""
    text = plain(text[:MAX_CHARACTERS])
    return text, key.by_text(text) if len(text) > 1 else ""


def _is_label(found: re.Match[str], rest: str, key: ChoiceKey, ignore_case: bool) -> bool:
    """Tell whether the letter found is used as a label, judging by its case, its brackets and what follows."""
    bracketed = bool(found["open"] or found["close"])
    if found["label"] not in key.labels and not (ignore_case and (bracketed or re.match(r"\s*(?:[.:]|\Z)", rest))):
        return False
    if _STOP.match(rest) or _REASON.match(rest) or (bracketed and rest[:1].isspace()):
        return True
    return _named(rest, key) == _upper(found["label"], key)


def _committed(start: re.Match[str], rest: str, key: ChoiceKey) -> tuple[str, str]:
    """Return the label an answer starts with, unless what follows denies it or adds another."""
    label = _upper(start["label"], key)
    named = _named(rest, key)
    if named == label:
        return label, ""
    if _DENIED_BEFORE.search(start[0]) or _DENIED_AFTER.match(rest):
        return "", "unparsable_answer"
    end = _CLAUSE_END.search(rest)
    clause, after = (rest[: end.start()], rest[end.end() :]) if end else (rest, "")
    others = {other for _, other in _mentions(clause, key)} - {label}
    if not rest.strip(" .)") and label != start["label"]:
        named = key.by_text(start["label"])  # "c" may be the text of an option too
    named = named or _named(clause, key)
    another = end is not None and not end[0].isalpha() and _patterns(key.labels).goes_on.match(after)
    if others or named not in ("", label) or another:
        return "", "several_answers"
    return label, ""


def _mentioned(text: str, key: ChoiceKey, ignore_case: bool) -> tuple[str, str]:
    """Return the one label that stands in brackets or after the word "option"."""
    found = _mentions(text, key)
    if len({label for _, label in found}) > 1:
        return "", "several_answers"
    strong = [match for match, _ in found if match["strong"] and (ignore_case or match["named"] in key.labels)]
    for match in strong or [match for match, _ in found]:
        before = text[: match.start()]
        sentence = [at.end() for at in _SENTENCE_START.finditer(before)]
        if _DENIED_BEFORE.search(before, sentence[-1] if sentence else 0) or _DENIED_AFTER.match(text, match.end()):
            return "", "unparsable_answer"
    return (_upper(strong[0]["named"], key), "") if strong else NOTHING


def _mentions(text: str, key: ChoiceKey) -> list[tuple[re.Match[str], str]]:
    found = []
    for match in _patterns(key.labels).mention.finditer(text):
        # "A" and "I" before a lower-case word are English words, not labels.
        if match["bare"] in ("A", "I") and re.match(r"\s+[a-z]", text[match.end() : match.end() + 4]):
            continue
        found.append((match, _upper(match["named"] or match["bare"], key)))
    return found


def _upper(letter: str, key: ChoiceKey) -> str:
    return letter if letter in key.labels else letter.upper()


def _named(rest: str, key: ChoiceKey) -> str:
    """Return the label of the option whose text follows a label and its delimiter, or ""."""
    text = rest.lstrip(_DELIMITERS)
    return key.by_text(text) or key.by_text(text.lstrip(_DELIMITERS + "-–—")) if text else ""
