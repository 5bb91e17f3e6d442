"""Which constraints exclude each other, found by reasoning on their arguments.

Every rule here is a proof: what it names cannot be met by any response, as `Constraint.met` judges responses.  What
no rule names may still be impossible; only a response that meets everything (`witness`) shows that it is not.  The
loose check of the scorer `instructions` looks at several forms of a response; one may meet what another does not.

Which constraints of IFEval and IFBench exclude each other.

IFEval's own table of conflicts keeps apart what reads badly together.  Here two constraints conflict only where no
response meets both.

Not covered: what constraints mean for a given prompt ("a poem" of 3 words).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.verifiers.instructions.constraint import Constraint
from adjudge.verifiers.instructions.text_units import in_plain_signs, occurrences, words

_MANY: Final = 1 << 30
_ENGLISH: Final = ("change_case:english_capital", "change_case:english_lowercase")
_LANGUAGE: Final = "language:response_language"
_NO_COMMA: Final = "punctuation:no_comma"
_ASKED_TEXTS: Final[Mapping[str, Callable[[Any], list[str]]]] = {
    "keywords:existence": lambda args: list(args["keywords"]),
    "keywords:frequency": lambda args: [args["keyword"].strip()] * bool(_between(args, "frequency", "relation")[0]),
    "startend:end_checker": lambda args: [args["end_phrase"].strip()],
    "combination:repeat_prompt": lambda args: [args["prompt_to_repeat"].strip()],
}
"""Texts that a response must hold, by kind."""


def _between(args: Any, number: str, relation: str) -> tuple[int, int]:
    return (int(args[number]), _MANY) if args[relation] == "at least" else (0, int(args[number]) - 1)


_AMOUNTS: Final[Mapping[str, Callable[[Any], tuple[str, int, int]]]] = {
    "length_constraints:number_words": lambda args: ("words", *_between(args, "num_words", "relation")),
    "count:word_count_range": lambda args: ("words", int(args["min_words"]), int(args["max_words"])),
    "length_constraints:number_sentences": lambda args: ("sentences", *_between(args, "num_sentences", "relation")),
    "ratio:sentence_words": lambda args: ("sentences", 3, 3),
    "custom:sentence_alphabet": lambda args: ("sentences", 26, 26),
    "sentence:keyword": lambda args: ("sentences", int(args["N"]), _MANY),
    "words:keywords_specific_position": lambda args: ("sentences", int(args["n"]), _MANY),
    "keywords:frequency": lambda args: (
        f"times {args['keyword'].strip().lower()!r}",
        *_between(args, "frequency", "relation"),
    ),
    "keywords:letter_frequency": lambda args: (
        f"times {args['letter'].strip().lower()!r}",
        *_between(args, "let_frequency", "let_relation"),
    ),
    "change_case:capital_word_frequency": lambda args: (
        "words in capital letters",
        *_between(args, "capital_frequency", "capital_relation"),
    ),
    "change_case:english_lowercase": lambda args: ("words in capital letters", 0, 0),
    "length_constraints:number_paragraphs": lambda args: (
        "parts",
        int(args["num_paragraphs"]),
        int(args["num_paragraphs"]),
    ),
    "length_constraints:nth_paragraph_first_word": lambda args: (
        "paragraphs",
        int(args["num_paragraphs"]),
        int(args["num_paragraphs"]),
    ),
    "detectable_format:number_bullet_lists": lambda args: (
        "bullets",
        int(args["num_bullets"]),
        int(args["num_bullets"]),
    ),
    "count:numbers": lambda args: ("numbers", int(args["N"]), int(args["N"])),
    "custom:multiples": lambda args: ("numbers", 6, 6),
}
"""What a kind limits, and between which numbers."""


def published_conflicts(one: Constraint, other: Constraint) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the kinds and the reason of each conflict between two constraints."""
    kinds = (one.kind, other.kind)
    if one.kind in _AMOUNTS and other.kind in _AMOUNTS:
        what, least, most = _AMOUNTS[one.kind](one.args)
        also, low, high = _AMOUNTS[other.kind](other.args)
        if what == also and max(least, low) > min(most, high):
            yield kinds, f"no number of {what} is in both ranges"
    if set(kinds) == set(_ENGLISH):
        yield kinds, "letters cannot be both"
    if set(kinds) == {"combination:two_responses", "length_constraints:number_paragraphs"}:
        yield kinds, "six stars part paragraphs with nothing between them"
    for first, second in ((one, other), (other, one)):
        if first.kind == _LANGUAGE and (why := _other_language(first.args["language"], second)):
            yield (first.kind, second.kind), why
            return  # two languages exclude each other once
        texts = _ASKED_TEXTS.get(second.kind, lambda args: [])(second.args)
        if first.kind == _NO_COMMA and any("," in text for text in texts):
            yield (first.kind, second.kind), "a comma is asked for and forbidden"


def _other_language(language: str, other: Constraint) -> str:
    if other.kind in _ENGLISH and language != "en":
        return f"{language!r} is not English"
    if other.kind == _LANGUAGE and language.partition("-")[0] != other.args["language"].partition("-")[0]:
        return f"{language!r} is not {other.args['language']!r}"
    return ""


_UNITS: Final = ("paragraphs", "sentences", "words", "characters")  # each has at least as many of the next
_LINES: Final = ("headings", "bullets", "table")  # a line of one of these is no line of JSON


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints that cannot hold together.

    Attributes:
        kinds: what they are.
        why: in a few words.
    """

    kinds: tuple[str, ...]
    why: str


def conflicts(constraints: Sequence[Constraint]) -> list[Conflict]:
    """Return the conflicts in a list of constraints: between two of them, then of all together."""
    found = [
        Conflict((one.kind, other.kind), why)
        for left, right in itertools.combinations(constraints, 2)
        for one, other in ((left, right), (right, left))
        for rule in _RULES.get((one.kind, other.kind), ())
        if (why := rule(one.args, other.args))
    ]
    found += [
        Conflict(kinds, why)
        for one, other in itertools.combinations(constraints, 2)
        for kinds, why in published_conflicts(one, other)
    ]
    return list(dict.fromkeys(found)) or list(_budget(constraints))


def _apart(one: Any, other: Any) -> str:
    empty = max(one.get("min", 0), other.get("min", 0)) > min(one.get("max", _MANY), other.get("max", _MANY))
    return "no number lies in both ranges" if empty else ""


def _different(name: str) -> Callable[[Any, Any], str]:
    return lambda one, other: f"two different values of {name}" if one[name] != other[name] else ""


def _always(why: str) -> Callable[[Any, Any], str]:
    return lambda one, other: why


def _certain(phrase: str, other: Any) -> tuple[int, str]:
    """Return how often a phrase stands in a text that a constraint asks for, and that text.

    The first word of an ending may be the end of a longer one, and the last of a beginning its start, so what stands
    there counts only where nothing could be joined to it.
    """
    if "phrases" in other:
        return max((occurrences(phrase, text), text) for text in other["phrases"])
    if "phrase" in other:
        return (occurrences(phrase, other["phrase"]) if other.get("min", 0) else 0), other["phrase"]
    text = other["text"]
    return min(occurrences(phrase, joined) for joined in (text, f"{text}a", f"a{text}")), text


def _banned(one: Any, other: Any) -> str:
    for bad in one["phrases"]:
        count, text = _certain(bad, other)
        if count:
            return f"{text!r} holds the forbidden {bad!r}"
    return ""


def _too_often(one: Any, other: Any) -> str:
    count, text = _certain(one["phrase"], other)
    return f"{text!r} holds {one['phrase']!r} more often than allowed" if count > one.get("max", _MANY) else ""


def _counts(one: Any, other: Any) -> str:
    inside = occurrences(other["phrase"], one["phrase"])
    # Occurrences of a phrase do not overlap, so each brings its own occurrences of what is inside it.
    if inside and one.get("min", 0) * inside > other.get("max", _MANY):
        return f"{one['phrase']!r} so often brings too many {other['phrase']!r}"
    return ""


def _commas(one: Any, other: Any) -> str:
    given = [*other.get("phrases", ()), other.get("text", ""), other.get("phrase", "") if other.get("min") else ""]
    return "a comma is asked for and forbidden" if any("," in text for text in given) else ""


def _words_of(one: Any) -> str:
    """Return a beginning or an end without the signs that may stand around its words."""
    return " ".join(re.split(r"[\s\"“”*_~`#>]+", in_plain_signs(one["text"]))).strip()


def _beginnings(one: Any, other: Any) -> str:
    first, second = _words_of(one), _words_of(other)
    fits = first.startswith(second) or second.startswith(first)
    return "" if fits else "two different beginnings"


def _endings(one: Any, other: Any) -> str:
    first, second = _words_of(one), _words_of(other)
    fits = first.endswith(second) or second.endswith(first)
    return "" if fits else "two different endings"


def _marked(one: Any, other: Any) -> str:
    return "" if _words_of(one).endswith(other["mark"]) else f"the ending has no {other['mark']!r} at its end"


def _not_upper(one: Any, other: Any) -> str:
    return "a small letter is asked for" if any(letter.islower() for letter in other["text"]) else ""


def _not_lower(one: Any, other: Any) -> str:
    return "a capital letter is asked for" if any(letter.isupper() for letter in other["text"]) else ""


def _not_capital(one: Any, other: Any) -> str:
    return "a word with a small letter is asked for" if any(map(str.islower, _initials(words(other["text"])))) else ""


def _not_capital_end(one: Any, other: Any) -> str:
    inner = words(f"a{other['text']}")[1:]  # the first may be the end of a longer word
    return "a word with a small letter is asked for" if any(map(str.islower, _initials(inner))) else ""


def _initials(found: Sequence[str]) -> list[str]:
    return [word[0] for word in found]


def _json_start(one: Any, other: Any) -> str:
    return "" if other["text"][0] in "{[" else "JSON begins with a bracket"


def _json_end(one: Any, other: Any) -> str:
    return "" if other["text"][-1] in "}]" else "JSON ends with a bracket"


_CASE = _always("letters cannot be both")
_RULES: Final[dict[tuple[str, str], tuple[Callable[[Any, Any], str], ...]]] = {
    **{(kind, kind): (_apart,) for kind in (*_UNITS, "table")},
    ("bullets", "bullets"): (_different("count"),),
    ("final_mark", "final_mark"): (_different("mark"),),
    ("language", "language"): (_different("language"),),
    ("forbidden", "keywords"): (_banned,),
    ("forbidden", "starts_with"): (_banned,),
    ("forbidden", "ends_with"): (_banned,),
    ("forbidden", "keyword_count"): (_banned,),
    ("keyword_count", "keywords"): (_too_often,),
    ("keyword_count", "starts_with"): (_too_often,),
    ("keyword_count", "ends_with"): (_too_often,),
    ("keyword_count", "keyword_count"): (_counts,),
    ("no_commas", "keywords"): (_commas,),
    ("no_commas", "keyword_count"): (_commas,),
    ("no_commas", "starts_with"): (_commas,),
    ("no_commas", "ends_with"): (_commas,),
    ("starts_with", "starts_with"): (_beginnings,),
    ("ends_with", "ends_with"): (_endings,),
    ("ends_with", "final_mark"): (_marked,),
    ("upper_case", "lower_case"): (_CASE,),
    ("lower_case", "capitalized"): (_CASE,),
    ("capitalized", "starts_with"): (_not_capital,),
    ("capitalized", "ends_with"): (_not_capital_end,),
    ("upper_case", "starts_with"): (_not_upper,),
    ("upper_case", "ends_with"): (_not_upper,),
    ("lower_case", "starts_with"): (_not_lower,),
    ("lower_case", "ends_with"): (_not_lower,),
    **{("json", kind): (_always("no line of JSON is one of Markdown"),) for kind in _LINES},
    ("json", "quoted"): (_always("JSON begins with a bracket"),),
    ("json", "final_mark"): (_always("JSON ends with a bracket"),),
    ("json", "starts_with"): (_json_start,),
    ("json", "ends_with"): (_json_end,),
}


def _budget(constraints: Sequence[Constraint]) -> Iterator[Conflict]:
    """Yield the conflict of lengths: what must be there needs more than the lengths allow."""
    least = dict.fromkeys(_UNITS, 0)
    most = dict.fromkeys(_UNITS, _MANY)
    blame: dict[str, set[str]] = {unit: set() for unit in _UNITS}
    for one in constraints:
        if one.kind in _UNITS:
            least[one.kind] = max(least[one.kind], one.args.get("min", 0))
            most[one.kind] = min(most[one.kind], one.args.get("max", _MANY))
            blame[one.kind].add(one.kind)
    needed, asking = _needed_words(constraints)
    if needed > least["words"]:
        least["words"] = needed
        blame["words"] |= asking
    for larger, unit in itertools.pairwise(_UNITS):
        if least[larger] > least[unit]:
            least[unit] = least[larger]
            blame[unit] |= blame[larger]
        if least[unit] > most[unit]:
            yield Conflict(tuple(sorted(blame[unit])), f"at least {least[unit]} {unit} are needed")
            return


def _needed_words(constraints: Sequence[Constraint]) -> tuple[int, set[str]]:
    """Return how many words a response needs at least, and the kinds of those that ask for them."""
    tokens: Counter[str] = Counter()
    asking: set[str] = set()
    for one in constraints:
        if one.kind == "keywords":
            phrases = [(phrase, 1) for phrase in one.args["phrases"]]
        elif one.kind == "keyword_count":
            phrases = [(one.args["phrase"], one.args.get("min", 0))]
        else:
            phrases = []
        for phrase, count in phrases:
            tokens |= Counter({word: number * count for word, number in Counter(words(phrase.casefold())).items()})
            asking.add(one.kind)
    return sum(tokens.values()), asking
