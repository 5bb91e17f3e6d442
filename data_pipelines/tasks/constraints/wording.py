"""Constraints in words, and prompts that state them: as a list, woven into the text, or after an example.

Not covered: other languages than English, and wordings by a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from adjudge.instructions.constraint import Constraint

PATTERNS: Final = ("listing", "incorporation", "example")
_LANGUAGES = {"en": "English", "zh": "Chinese", "ru": "Russian", "ar": "Arabic", "ko": "Korean"}
_MARKS = {".": "a period", "!": "an exclamation mark", "?": "a question mark"}

_ONE = re.compile(r"\b1 (word|sentence|paragraph|character|bullet point|row|Markdown heading|time)s\b")

_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "keywords": ("include {phrases}", "use {phrases} at least once each"),
    "forbidden": ("never use {phrases}", "do without {phrases}"),
    "keyword_count": ("use {phrase} {range}", "let {phrase} occur {range}"),
    "starts_with": ("begin with {text}", "start the response with {text}"),
    "ends_with": ("end with {text}", "close the response with exactly {text}"),
    "final_mark": ("end with {mark}", "let the last character be {mark}"),
    "no_commas": ("use no commas", "write without any comma"),
    "json": ("answer with one JSON object or list alone", "make the response valid JSON, an object or a list"),
    "bullets": ("use exactly {count} bullet points", "have a bulleted list of {count} items in all"),
    "headings": ("use at least {min} level {level} headings", "have {min} or more level {level} Markdown headings"),
    "table": (
        "include a Markdown table with {range} rows below its head",
        "have a table in Markdown of {range} rows, the head not counted",
    ),
    "title": ("give a title in double angle brackets, such as <<title>>", "put a title between << and >>"),
    "quoted": ("put the whole response in double quotation marks", "wrap the response in double quotes"),
    "language": ("write in {language}", "give the response in {language}"),
    "upper_case": ("write in capital letters only", "use upper case throughout"),
    "lower_case": ("write in small letters only", "use lower case throughout"),
    "capitalized": ("capitalize the first letter of every word", "begin each word with a capital letter"),
    "words": ("write {range} words", "keep the response to {range} words"),
    "sentences": ("write {range} sentences", "use {range} sentences"),
    "paragraphs": (
        "write {range} paragraphs, with a blank line between them",
        "use {range} paragraphs set apart by blank lines",
    ),
    "characters": ("write {range} characters", "stay with {range} characters, spaces included"),
}  # fmt: skip


def phrase_of(constraint: Constraint, random: Random) -> str:
    """Return a constraint as a request in the imperative: "write at most 50 words"."""
    form = random.choice(_FORMS[constraint.kind])
    text = form.format_map({name: _shown(name, value) for name, value in _values(constraint.args).items()})
    return _ONE.sub(r"1 \1", text)


def stated(
    prompt: str, constraints: Sequence[Constraint], pattern: str, random: Random, example: tuple[str, str]
) -> str:
    """Return a prompt that states constraints.

    Args:
        prompt: what is asked.
        constraints: at least one.
        pattern: "listing", "incorporation" or "example".
        random: which wording.
        example: another request, and a response to it that meets the constraints; for the pattern "example".
    """
    phrases = [phrase_of(one, random) for one in constraints]
    prompt = prompt.strip()
    if pattern == "incorporation":
        return f"{prompt} {_woven(phrases, random)}"
    rules = "\n".join(f"{number}. {_sentence(phrase)}" for number, phrase in enumerate(phrases, 1))
    if pattern == "listing":
        return f"{prompt}\n\nThe response must follow these rules:\n{rules}"
    request, response = example
    return (
        f"Responses must follow these rules:\n{rules}\n\nAn example.\nRequest: {request}\nResponse:\n{response}\n\n"
        f"Now respond by the same rules.\nRequest: {prompt}"
    )


def _woven(phrases: Sequence[str], random: Random) -> str:
    openings = ("In your response", "Please", "Also", "Besides", "Make sure to", "It is required to", "Moreover")
    order = random.sample(openings, len(openings))
    woven = []
    for number, phrase in enumerate(phrases):
        opening = order[number % len(order)]
        comma = "," if opening in ("In your response", "Also", "Besides", "Moreover") else ""
        woven.append(f"{opening}{comma} {phrase}.")
    return " ".join(woven)


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def _values(args: Mapping[str, Any]) -> dict[str, Any]:
    return {**args, "range": args}


def _shown(name: str, value: Any) -> str:
    if name == "phrases":
        quoted = [f'"{phrase}"' for phrase in value]
        return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
    if name in ("phrase", "text"):
        return f'"{value}"'
    if name == "language":
        return _LANGUAGES[value]
    if name == "mark":
        return _MARKS[value]
    if name == "range":
        return _range(value)
    return str(value)


def _range(args: Mapping[str, Any]) -> str:
    times = " times" if "phrase" in args else ""
    if "min" in args and "max" in args:
        return (
            f"{args['min']} to {args['max']}{times}" if args["min"] != args["max"] else f"exactly {args['min']}{times}"
        )
    return f"at least {args['min']}{times}" if "min" in args else f"at most {args.get('max')}{times}"
