"""Rows of public instruction-following sets as lists of constraints, the reference of the scorer `instructions`.

A row of IFEval or IFBench has "instruction_id_list" and, in the same order, "kwargs".  IFEval's ids come with a
language before them in some copies ("en:punctuation:no_comma"); IFBench's kwargs name every argument there is, most of
them null, and give whole numbers as 36.0.

A row of RLVR-IFeval (Tulu 3) has one "func_name" of open-instruct's `if_functions.py` and its arguments, null where
they are another's.  Kinds of IFEval stand for them where they ask the same; where a number is to be met exactly, or
"around" (by a tenth, sentences by one), our own or two of them do.  Letters count in either case, as in IFEval.

Not covered: whether the kinds exist and the arguments fit, which `constraint` checks, and
constraints written as prose (`muldimif`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

IDS: Final = ("instruction_id_list", "instruction_id")
"""What the list of ids is called: in IFEval and IFBench, and in RLVR's `ground_truth`."""

FUNCTION: Final = "func_name"
"""What tells a row of RLVR-IFeval."""


def ifeval_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of IFEval or IFBench asks for: `[{"kind": .., "args": {..}}, ..]`.

    Raises:
        ValueError: the row has no list of ids, or not as many arguments.
    """
    name = next((name for name in IDS if name in row), IDS[0])
    ids = row.get(name)
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise ValueError(f'an IFEval row has "{name}" {ids!r}; it must be a list of ids, "group:name"')
    given = row.get("kwargs")
    if isinstance(given, str):
        with contextlib.suppress(ValueError, RecursionError):
            given = json.loads(given)
    if not isinstance(given, list) or len(given) != len(ids):
        raise ValueError(
            f'an IFEval row has "kwargs" {given!r}; it must be a list of {len(ids)} objects, one for each id'
        )
    constraints = []
    for kind, args in zip(ids, given, strict=True):
        if not isinstance(args, Mapping | None):
            raise ValueError(f"an IFEval row has the kwargs {args!r} for {kind!r}; they must be an object")
        plain = {str(name): _plain(value) for name, value in (args or {}).items() if value is not None}
        constraints.append({"kind": kind.removeprefix("en:"), "args": plain})
    return constraints


_ALIKE: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "verify_keywords": ("keywords:existence", {"keyword_list": "keywords"}),
    "validate_forbidden_words": ("keywords:forbidden_words", {"forbidden_words": "forbidden_words"}),
    "validate_response_language": ("language:response_language", {"language": "language"}),
    "verify_paragraph_count": ("length_constraints:number_paragraphs", {"N": "num_paragraphs"}),
    "validate_paragraphs": (
        "length_constraints:nth_paragraph_first_word",
        {"N": "num_paragraphs", "i": "nth_paragraph", "first_word": "first_word"},
    ),
    "verify_postscript": ("detectable_content:postscript", {"postscript_marker": "postscript_marker"}),
    "validate_placeholders": ("detectable_content:number_placeholders", {"N": "num_placeholders"}),
    "verify_bullet_points": ("detectable_format:number_bullet_lists", {"N": "num_bullets"}),
    "validate_title": ("detectable_format:title", {}),
    "validate_choice": ("format:options", {"options": "options"}),
    "validate_highlighted_sections": ("detectable_format:number_highlighted_sections", {"N": "num_highlights"}),
    "validate_sections": (
        "detectable_format:multiple_sections",
        {"N": "num_sections", "section_splitter": "section_spliter"},
    ),
    "validate_json_format": ("detectable_format:json_format", {}),
    "validate_repeat_prompt": ("combination:repeat_prompt", {"original_prompt": "prompt_to_repeat"}),
    "validate_two_responses": ("combination:two_responses", {}),
    "validate_uppercase": ("change_case:english_capital", {}),
    "validate_lowercase": ("change_case:english_lowercase", {}),
    "validate_end": ("startend:end_checker", {"end_phrase": "end_phrase"}),
    "validate_quotation": ("startend:quotation", {}),
    "validate_no_commas": ("punctuation:no_comma", {}),
    "validate_word_constraint": ("words", {}),
    "verify_sentence_constraint": ("sentences", {}),
    "verify_keyword_frequency": ("keyword_count", {"word": "phrase"}),
    "verify_letter_frequency": ("keywords:letter_frequency", {"letter": "letter"}),
    "validate_frequency_capital_words": ("change_case:capital_word_frequency", {}),
}
_COUNTED: Final = {
    "keywords:letter_frequency": ("let_frequency", "let_relation"),
    "change_case:capital_word_frequency": ("capital_frequency", "capital_relation"),
}


def rlvr_constraints(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a row of RLVR-IFeval asks for, as `ifeval_constraints`.

    Raises:
        ValueError: the row has another function, or a count that cannot be read.
    """
    name = row.get(FUNCTION)
    if not isinstance(name, str) or name not in _ALIKE:
        raise ValueError(f'an RLVR row has "{FUNCTION}" {name!r}; it must be one of {", ".join(_ALIKE)}')
    kind, names = _ALIKE[name]
    args = {ours: _plain(row[theirs]) for theirs, ours in names.items() if row.get(theirs) is not None}
    if isinstance(args.get("options"), list):
        args["options"] = "/".join(map(str, args["options"]))
    if kind == "length_constraints:number_paragraphs":
        args["rule"] = "* * *"
    if kind not in (*_COUNTED, "words", "sentences", "keyword_count"):
        return [{"kind": kind, "args": args}]
    low, high = _limits(kind, _plain(row.get("N")), row.get("quantifier"))
    if kind not in _COUNTED:
        limits = {"min": low, "max": high}
        return [{"kind": kind, "args": args | {key: end for key, end in limits.items() if end is not None}}]
    count, relation = _COUNTED[kind]
    ends = (("at least", low), ("less than", None if high is None else high + 1))
    return [{"kind": kind, "args": {**args, count: end, relation: word}} for word, end in ends if end is not None]


def _limits(kind: str, number: Any, quantifier: Any) -> tuple[int | None, int | None]:
    """The least and the most that a count may be; None where that is open."""
    near = 1 if kind == "sentences" else max(round(number * 0.1), 1) if isinstance(number, int) else 0
    if isinstance(number, int) and number >= 0:
        match quantifier:
            case None:
                return number, number
            case "at least":
                return number, None
            case "at most":
                return None, number
            case "around":
                return max(number - near, 0), number + near
    raise ValueError(f'an RLVR row has "N" {number!r} and "quantifier" {quantifier!r}; no count is asked for')


def _plain(value: Any) -> Any:
    """Return a whole number as an `int`; other values stay."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
