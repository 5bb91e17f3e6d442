"""Constraints of public data sets in our kinds: IFEval's from their arguments, MulDimIF's from their English.

What is not understood is left out.  Reading English with patterns is good enough to see whether real combinations are
called conflicting; it is no way to judge responses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adjudge.verifiers.instructions.constraint import Constraint
from adjudge.verifiers.instructions.text_units import SCRIPTS

_BOUNDS = (
    ("both", r"between (\d+)(?: and |-| to )(\d+) {unit}"),
    ("max", r"(?:at most|no more than|not exceed|maximum of|up to|fewer than or equal to) (\d+) {unit}"),
    ("min", r"(?:at least|no fewer than|minimum of|more than or equal to) (\d+) {unit}"),
    ("exact", r"exactly (\d+) {unit}"),
)


def ifeval(folder: Path) -> Iterator[list[Constraint]]:
    """The constraints of each IFEval prompt."""
    for line in (folder / "instructions" / "ifeval_prompts.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = [_of_ifeval(*item) for item in zip(row["instruction_id_list"], row["kwargs"], strict=True)]
        yield [one for one in found if one is not None]


def _of_ifeval(name: str, args: Mapping[str, Any]) -> Constraint | None:
    kind = name.partition(":")[2]
    if kind in ("length_constraints:number_words", "length_constraints:number_sentences"):
        unit = kind.rpartition("_")[2]
        number = args[f"num_{unit}"]
        return Constraint(unit, {"min": number} if args["relation"] == "at least" else {"max": number - 1})
    if kind == "keywords:frequency":
        number = args["frequency"]
        limits = {"min": number} if args["relation"] == "at least" else {"max": number - 1}
        return Constraint("keyword_count", {"phrase": args["keyword"].strip(), **limits})
    if kind == "language:response_language" and args["language"] in SCRIPTS:
        return Constraint("language", {"language": args["language"]})
    if kind == "startend:end_checker":
        return Constraint("ends_with", {"text": args["end_phrase"].strip().strip('"')})
    plain: dict[str, tuple[str, dict[str, Any]]] = {
        "punctuation:no_comma": ("no_commas", {}),
        "detectable_format:title": ("title", {}),
        "detectable_format:json_format": ("json", {}),
        "detectable_format:number_bullet_lists": ("bullets", {"count": args.get("num_bullets")}),
        "change_case:english_lowercase": ("lower_case", {}),
        "change_case:english_capital": ("upper_case", {}),
        "startend:quotation": ("quoted", {}),
        "keywords:existence": ("keywords", {"phrases": args.get("keywords")}),
        "keywords:forbidden_words": ("forbidden", {"phrases": args.get("forbidden_words")}),
    }
    return Constraint(*plain[kind]) if kind in plain else None


def muldimif(folder: Path) -> Iterator[tuple[list[Constraint], int]]:
    """The constraints of each MulDimIF prompt that are understood, and how many it has."""
    for row in json.loads((folder / "instructions" / "muldimif_test.json").read_text(encoding="utf-8")):
        found = [one for item in row["constraints"] for one in _of_muldimif(*map(str, item))]
        yield found, len(row["constraints"])


def _of_muldimif(group: str, kind: str, text: str) -> list[Constraint]:
    lower = text.lower().replace("must not exceed", "at most").replace("not exceed", "at most")
    about_all = not re.search(r"\b(?:each|every|if|per|title|first|last|subject|question)\b", lower)
    if group == "Length" and about_all:
        unit = kind.partition(":")[0].lower()
        limits = _limits(lower, unit.rstrip("s") + "s?")
        return [Constraint(unit, limits)] if limits else []
    if kind.endswith("Row limit") and "if " not in lower and (limits := _limits(lower, "(?:data )?rows?")):
        return [Constraint("table", limits)]
    if "capitalized letters for each word" in lower or "each word capitalized" in lower:
        return [Constraint("capitalized", {})]
    if "uppercase" in lower and group == "Language" and about_all:
        return [Constraint("upper_case", {})]
    if "Keywords" in kind and "include" in lower:
        phrases = [one.strip() for one in re.findall(r"['\"‘“]([^'\"’”]+)['\"’”]", text)]
        fit = [one for one in phrases if one[:1].isalnum() and one[-1:].isalnum()]
        return [Constraint("keywords", {"phrases": fit})] if fit else []
    ending = re.search(r"(?:end|ends|conclude|concludes|punctuation must be)(?: with)? (?:a|an) (\w+(?: mark)?)", lower)
    marks = {"period": ".", "question mark": "?", "exclamation mark": "!"}
    if "unctuation" in group + kind and ending and ending[1] in marks and about_all:
        return [Constraint("final_mark", {"mark": marks[ending[1]]})]
    heading = re.search(r"(?:a|one) level (\d) heading", lower)
    return [Constraint("headings", {"level": int(heading[1]), "min": 1})] if heading else []


def _limits(text: str, unit: str) -> dict[str, int]:
    for form, pattern in _BOUNDS:
        if found := re.search(pattern.format(unit=unit), text):
            numbers = [int(one) for one in found.groups()]
            if form == "both":
                return {"min": min(numbers), "max": max(numbers)}
            return {"min": numbers[0], "max": numbers[0]} if form == "exact" else {form: numbers[0]}
    return {}
