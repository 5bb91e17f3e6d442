"""Which constraints exclude each other, found by reasoning on their arguments.

Every rule here is a proof: what it names cannot be met by any response, as `Constraint.met` judges responses.  What
no rule names may still be impossible; only a response that meets everything (`witness`) shows that it is not.  The
loose check of the scorer `instructions` looks at several forms of a response; one may meet what another does not.
IFEval's own table of conflicts is another: it keeps apart what reads badly together.

Not covered: what constraints mean for a given prompt ("a poem" of 3 words).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from adjudge.verifiers.instructions.constraint import Constraint
from adjudge.verifiers.instructions.text_units import in_plain_signs, may_share_a_word, occurrences, words

Args: TypeAlias = Mapping[str, Any]

_MANY: Final = 1 << 30
_UNITS: Final = ("paragraphs", "sentences", "words", "characters")  # each has at least as many of the next
_CASE: Final = "letters cannot be both"
_COMMA: Final = "a comma is asked for and forbidden"
_LANGUAGE: Final = "language:response_language"
_ENGLISH: Final = ("change_case:english_capital", "change_case:english_lowercase")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints that cannot hold together: their kinds, and why in a few words."""

    kinds: tuple[str, ...]
    why: str


def conflicts(constraints: Sequence[Constraint]) -> list[Conflict]:
    """Return the conflicts in a list of constraints: between two of them, then of all together."""
    pairs = list(itertools.combinations(constraints, 2))
    named = [
        Conflict((one.kind, other.kind), why)
        for pair in pairs
        for one, other in (pair, pair[::-1])
        if (rule := _RULES.get((one.kind, other.kind))) and (why := rule(one.args, other.args))
    ]
    named += [conflict for pair in pairs for conflict in _published(*pair)]
    return list(dict.fromkeys(named)) or list(_budget(constraints))


def _range_of(number: str, relation: str = "relation") -> Callable[[Args], tuple[int, int]]:
    def read(args: Args) -> tuple[int, int]:
        return (int(args[number]), _MANY) if args[relation] == "at least" else (0, int(args[number]) - 1)

    return read


def _exactly(number: str) -> Callable[[Args], tuple[int, int]]:
    return lambda args: (int(args[number]), int(args[number]))


def _at_least(number: str) -> Callable[[Args], tuple[int, int]]:
    return lambda args: (int(args[number]), _MANY)


_AMOUNTS: Final[Mapping[str, tuple[str, Callable[[Args], tuple[int, int]]]]] = {
    "length_constraints:number_words": ("words", _range_of("num_words")),
    "count:word_count_range": ("words", lambda args: (int(args["min_words"]), int(args["max_words"]))),
    "length_constraints:number_sentences": ("sentences", _range_of("num_sentences")),
    "ratio:sentence_words": ("sentences", lambda args: (3, 3)),
    "custom:sentence_alphabet": ("sentences", lambda args: (26, 26)),
    "sentence:keyword": ("sentences", _at_least("N")),
    "words:keywords_specific_position": ("sentences", _at_least("n")),
    "keywords:frequency": ("times {keyword!r}", _range_of("frequency")),
    "keywords:letter_frequency": ("times {letter!r}", _range_of("let_frequency", "let_relation")),
    "change_case:capital_word_frequency": (
        "words in capital letters",
        _range_of("capital_frequency", "capital_relation"),
    ),
    "change_case:english_lowercase": ("words in capital letters", lambda args: (0, 0)),
    "length_constraints:number_paragraphs": ("parts", _exactly("num_paragraphs")),
    "length_constraints:nth_paragraph_first_word": ("paragraphs", _exactly("num_paragraphs")),
    "detectable_format:number_bullet_lists": ("bullets", _exactly("num_bullets")),
    "count:numbers": ("numbers", _exactly("N")),
    "custom:multiples": ("numbers", lambda args: (6, 6)),
}
"""What a published kind limits, and between which numbers."""

_ASKED: Final = {
    "keywords:existence": "keywords",
    "keywords:frequency": "keyword",
    "startend:end_checker": "end_phrase",
    "combination:repeat_prompt": "prompt_to_repeat",
}
"""Where IFEval's kinds name what a response must hold."""


def _amount(constraint: Constraint) -> tuple[str, int, int] | None:
    if constraint.kind not in _AMOUNTS:
        return None
    what, bounds = _AMOUNTS[constraint.kind]
    texts = {name: value.strip().lower() for name, value in constraint.args.items() if isinstance(value, str)}
    least, most = bounds(constraint.args)
    return what.format_map(texts), least, most


def _published(one: Constraint, other: Constraint) -> Iterator[Conflict]:
    """Yield the conflicts between two constraints of IFEval's and IFBench's kinds."""
    kinds = (one.kind, other.kind)
    amount, others = _amount(one), _amount(other)
    if amount and others and amount[0] == others[0] and max(amount[1], others[1]) > min(amount[2], others[2]):
        yield Conflict(kinds, f"no number of {amount[0]} is in both ranges")
    if set(kinds) == set(_ENGLISH):
        yield Conflict(kinds, _CASE)
    if set(kinds) == {"combination:two_responses", "length_constraints:number_paragraphs"}:
        yield Conflict(kinds, "six stars part paragraphs with nothing between them")
    for first, second in ((one, other), (other, one)):
        if first.kind == _LANGUAGE and (why := _other_language(first.args["language"], second)):
            yield Conflict((first.kind, second.kind), why)
            return  # two languages exclude each other once
        if first.kind == "punctuation:no_comma" and second.kind in _ASKED:
            least = (_amount(second) or ("", 1, _MANY))[1]
            if least and any("," in text for text in second.args[_ASKED[second.kind]]):  # of words, or of letters
                yield Conflict((first.kind, second.kind), _COMMA)


def _other_language(language: str, other: Constraint) -> str:
    if other.kind in _ENGLISH and language != "en":
        return f"{language!r} is not English"
    if other.kind == _LANGUAGE and language.partition("-")[0] != other.args["language"].partition("-")[0]:
        return f"{language!r} is not {other.args['language']!r}"
    return ""


def _apart(one: Args, other: Args) -> str:
    empty = max(one.get("min", 0), other.get("min", 0)) > min(one.get("max", _MANY), other.get("max", _MANY))
    return "no number lies in both ranges" if empty else ""


def _different(name: str) -> Callable[[Args, Args], str]:
    return lambda one, other: f"two different values of {name}" if one[name] != other[name] else ""


def _when(why: str, excluded: Callable[[Args], bool] = lambda other: True) -> Callable[[Args, Args], str]:
    """Return a rule that holds where the second constraint's arguments are such."""
    return lambda one, other: why if excluded(other) else ""


def _certain(phrase: str, other: Args) -> tuple[int, str]:
    """Return how often a phrase stands in a text that a constraint asks for, and that text.

    The first word of an ending may be the end of a longer one, and the last of a beginning its start, so what stands
    there counts only where nothing could be joined to it.
    """
    if "phrases" in other:
        return max((occurrences(phrase, text, banned=True), text) for text in other["phrases"])
    if "phrase" in other:
        return (occurrences(phrase, other["phrase"], banned=True) if other.get("min", 0) else 0), other["phrase"]
    text = other["text"]
    return min(occurrences(phrase, joined, banned=True) for joined in (text, f"{text}a", f"a{text}")), text


def _banned(one: Args, other: Args) -> str:
    for bad in one["phrases"]:
        count, text = _certain(bad, other)
        if count:
            return f"{text!r} holds the forbidden {bad!r}"
    return ""


def _too_often(one: Args, other: Args) -> str:
    count, text = _certain(one["phrase"], other)
    return f"{text!r} holds {one['phrase']!r} more often than allowed" if count > one.get("max", _MANY) else ""


def _counts(one: Args, other: Args) -> str:
    inside = occurrences(other["phrase"], one["phrase"], banned=True)
    # Occurrences of a phrase do not overlap, so each brings its own occurrences of what is inside it.
    if inside and one.get("min", 0) * inside > other.get("max", _MANY):
        return f"{one['phrase']!r} so often brings too many {other['phrase']!r}"
    return ""


def _has_comma(other: Args) -> bool:
    asked = [*other.get("phrases", ()), other.get("text", ""), other.get("phrase", "") if other.get("min") else ""]
    return any("," in text for text in asked)


def _words_of(one: Args) -> str:
    """Return a beginning or an end without the signs that may stand around its words."""
    return " ".join(re.split(r"[\s\"“”*_~`#>]+", in_plain_signs(one["text"]))).strip()


def _beginnings(one: Args, other: Args) -> str:
    first, second = _words_of(one), _words_of(other)
    return "" if first.startswith(second) or second.startswith(first) else "two different beginnings"


def _endings(one: Args, other: Args) -> str:
    first, second = _words_of(one), _words_of(other)
    return "" if first.endswith(second) or second.endswith(first) else "two different endings"


def _marked(one: Args, other: Args) -> str:
    return "" if _words_of(one).endswith(other["mark"]) else f"the ending has no {other['mark']!r} at its end"


_TEXTS: Final = ("keywords", "starts_with", "ends_with")
_EDGES: Final = ("starts_with", "ends_with")
_SMALL: Final = "a word with a small letter is asked for"
_RULES: Final[dict[tuple[str, str], Callable[[Args, Args], str]]] = {
    **{(kind, kind): _apart for kind in (*_UNITS, "table")},
    ("bullets", "bullets"): _different("count"),
    ("final_mark", "final_mark"): _different("mark"),
    ("language", "language"): _different("language"),
    **{("forbidden", kind): _banned for kind in (*_TEXTS, "keyword_count")},
    **{("keyword_count", kind): _too_often for kind in _TEXTS},
    ("keyword_count", "keyword_count"): _counts,
    **{("no_commas", kind): _when(_COMMA, _has_comma) for kind in (*_TEXTS, "keyword_count")},
    ("starts_with", "starts_with"): _beginnings,
    ("ends_with", "ends_with"): _endings,
    ("ends_with", "final_mark"): _marked,
    ("upper_case", "lower_case"): _when(_CASE),
    ("lower_case", "capitalized"): _when(_CASE),
    ("capitalized", "starts_with"): _when(
        _SMALL, lambda other: any(word[0].islower() for word in words(other["text"]))
    ),
    ("capitalized", "ends_with"): _when(  # the first word may be the end of a longer one
        _SMALL, lambda other: any(word[0].islower() for word in words(f"a{other['text']}")[1:])
    ),
    **{
        ("upper_case", kind): _when("a small letter is asked for", lambda other: any(map(str.islower, other["text"])))
        for kind in _EDGES
    },
    **{
        ("lower_case", kind): _when("a capital letter is asked for", lambda other: any(map(str.isupper, other["text"])))
        for kind in _EDGES
    },
    **{("json", kind): _when("no line of JSON is one of Markdown") for kind in ("headings", "bullets", "table")},
    ("json", "quoted"): _when("JSON begins with a bracket"),
    ("json", "final_mark"): _when("JSON ends with a bracket"),
    ("json", "starts_with"): _when("JSON begins with a bracket", lambda other: other["text"][0] not in "{["),
    ("json", "ends_with"): _when("JSON ends with a bracket", lambda other: other["text"][-1] not in "}]"),
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
            numbers = Counter(word for word in words(phrase.casefold()) if not may_share_a_word(word))
            tokens |= Counter({word: number * count for word, number in numbers.items()})
            asking.add(one.kind)
    return sum(tokens.values()), asking
