"""Prompts with constraints that a program can check, made of prompts without, or looked at in prompts that have some.

Constraints are drawn at random, the kinds of a class with arguments that responses can have, and stated in words: as a
list, woven into the text, or after an example.

Not covered: prompts that contradict a constraint by what they ask ("write a long poem", at most 5 words); other
languages than English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final

from adjudge.data_pipelines.tasks.config import LEVELS, ConstraintsConfig
from adjudge.data_pipelines.tasks.constraint_witness import witness
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of
from adjudge.verifiers.instructions.composed import COMPOSED, MARKS
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import CLASSES, Constraint
from adjudge.verifiers.instructions.kind import Group
from adjudge.verifiers.instructions.text_units import SCRIPTS, words

_TRIES: Final = 40
_CASELESS = frozenset({"zh", "ar", "ko"})
_GENERAL = ("example", "reason", "result", "detail", "question", "important", "first", "together")
_STARTS = ("Certainly", "In short", "To begin with", "Here is the answer")
_ENDS = ("That is all", "Thank you for asking", "I hope this helps")
_COMMON = frozenset("about after also been before could does from have here into just like make more most much only "
                    "other over please some such than that their them then there these they this those very want what "
                    "when where which while will with would write your".split())  # fmt: skip


def drawn(level: int, prompt: str, random: Random) -> list[Constraint] | None:
    """Return constraints of a level that do not contradict each other; None if none were found in 40 tries each."""
    least, most = LEVELS[level]
    topics = _topics(prompt)
    groups: list[Group] = random.sample(CLASSES, level)
    chosen: list[Constraint] = []
    for place in range(random.randint(least, most)):
        group = groups[place] if place < level else random.choice(groups)
        one = _fitting(group, chosen, topics, random)
        if one is not None:
            chosen.append(one)
        elif place < level:
            return None
    return chosen if len(chosen) >= least else None


def _fitting(group: Group, chosen: Sequence[Constraint], topics: list[str], random: Random) -> Constraint | None:
    taken = {one.kind for one in chosen}
    kinds = [kind for kind, rule in COMPOSED.items() if rule.group == group and kind not in taken]
    for _ in range(_TRIES if kinds else 0):
        kind = random.choice(kinds)
        one = Constraint(kind, _ARGS[kind](random, topics) if kind in _ARGS else {})
        if not conflicts([*chosen, one]) and not _senseless([*chosen, one]):
            return one
    return None


def _senseless(constraints: Sequence[Constraint]) -> bool:
    """Return whether letters without capitals are asked for in capitals: a stray Latin letter would meet that."""
    kinds = {one.kind for one in constraints}
    languages = {one.args["language"] for one in constraints if one.kind == "language"}
    return bool(languages & _CASELESS) and bool(kinds & {"upper_case", "lower_case", "capitalized"})


def _topics(prompt: str) -> list[str]:
    distinct = dict.fromkeys(word.casefold() for word in words(prompt))
    topics = [word for word in distinct if len(word) > 3 and word.isalpha() and word not in _COMMON]
    return topics or list(_GENERAL)


def _range(random: Random, low: int, high: int, step: int) -> dict[str, int]:
    """Return a least, a most, or both, in round numbers."""
    first = random.randrange(low, high + 1, step)
    form = random.choice(("min", "max", "both"))
    if form == "both":
        return {"min": first, "max": first + step * random.randint(1, 4)}
    return {form: first}


_ARGS: Final[Mapping[str, Callable[[Random, list[str]], dict[str, Any]]]] = {
    "keywords": lambda random, topics: {"phrases": random.sample(topics, min(len(topics), random.randint(1, 3)))},
    "forbidden": lambda random, topics: {"phrases": random.sample(_GENERAL, random.randint(1, 3))},
    "keyword_count": lambda random, topics: {"phrase": random.choice(topics), "min": random.randint(1, 4)},
    "starts_with": lambda random, topics: {"text": random.choice(_STARTS)},
    "ends_with": lambda random, topics: {"text": random.choice(_ENDS)},
    "final_mark": lambda random, topics: {"mark": random.choice(MARKS)},
    "bullets": lambda random, topics: {"count": random.randint(2, 8)},
    "headings": lambda random, topics: {"level": random.randint(1, 3), "min": random.randint(1, 3)},
    "table": lambda random, topics: {"max": random.randint(2, 6)},
    "language": lambda random, topics: {"language": random.choice(tuple(SCRIPTS))},
    "words": lambda random, topics: _range(random, 50, 400, 50),
    "sentences": lambda random, topics: _range(random, 2, 15, 1),
    "paragraphs": lambda random, topics: _range(random, 1, 5, 1),
    "characters": lambda random, topics: _range(random, 400, 2000, 100),
}


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
    values = {**constraint.args, "range": constraint.args}
    return _ONE.sub(r"1 \1", form.format_map({name: _shown(name, value) for name, value in values.items()}))


def stated(
    prompt: str, constraints: Sequence[Constraint], pattern: str, random: Random, example: tuple[str, str]
) -> str:
    """Return a prompt that states constraints."""
    phrases = [phrase_of(one, random) for one in constraints]
    prompt = prompt.strip()
    if pattern == "incorporation":
        return f"{prompt} {_woven(phrases, random)}"
    rules = "\n".join(f"{number}. {phrase[0].upper()}{phrase[1:]}." for number, phrase in enumerate(phrases, 1))
    if pattern == "listing":
        return f"{prompt}\n\nThe response must follow these rules:\n{rules}"
    request, response = example
    return (
        f"Responses must follow these rules:\n{rules}\n\nAn example.\nRequest: {request}\nResponse:\n{response}\n\n"
        f"Now respond by the same rules.\nRequest: {prompt}"
    )


def _woven(phrases: Sequence[str], random: Random) -> str:
    openings = ("In your response,", "Please", "Also,", "Besides,", "Make sure to", "It is required to", "Moreover,")
    order = random.sample(openings, len(openings))
    return " ".join(f"{order[number % len(order)]} {phrase}." for number, phrase in enumerate(phrases))


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
        return _range_in_words(value)
    return str(value)


def _range_in_words(args: Mapping[str, Any]) -> str:
    times = " times" if "phrase" in args else ""
    if "min" in args and "max" in args:
        same = args["min"] == args["max"]
        return f"exactly {args['min']}{times}" if same else f"{args['min']} to {args['max']}{times}"
    return f"at least {args['min']}{times}" if "min" in args else f"at most {args.get('max')}{times}"


_VERSION = "1"
_DRAWS: Final = 8  # draws, until one has a witness
_MAX_CONSTRAINTS: Final = 100
_MAX_ARGS: Final = 10_000  # characters of all; two lists of 1,000 short phrases each take a second to compare
_MAX_PROMPT: Final = 50_000  # characters
_REQUESTS = (
    "Tell me about your day.", "Describe a city you know.", "Explain how a bicycle works.",
    "Recommend a book to a friend.", "What makes a good meal?",
)  # fmt: skip


class _ConstraintMaker(RowMaker[ConstraintsConfig]):
    name = "constraints"
    reads = ("prompt", "constraints")
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "text", "reference": "any", "scorer": "text", "kinds": "texts", "classes": "texts",
        "level": "whole", "pattern": "text", "verdict": "text", "witness": "text", "source_prompt": "text",
    }  # fmt: skip

    @property
    def fingerprint(self) -> str:
        config = self.config
        options = [list(config.pattern), list(config.level), config.per_prompt, config.witness, config.seed]
        return fingerprint_of(self.name, _VERSION, options, config.prompt_column, config.constraints_column)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        self.check_columns(columns, first)
        if self.config.constraints_column:
            return ("constraints are looked at, none are added",)
        return (f"levels {', '.join(map(str, self.config.level))}; {', '.join(self.config.pattern)}",)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        (row,) = unit.rows
        prompt = self.cell(row, "prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise DroppedError("no_prompt")
        if len(prompt) > _MAX_PROMPT:
            raise DroppedError("prompt_too_long")
        if self.config.constraints_column:
            return [self._looked_at(prompt, self.cell(row, "constraints"))]
        first = unit.first * self.config.per_prompt
        made = [self._composed(prompt, first + number) for number in range(self.config.per_prompt)]
        account.drop("no_witness" if self.config.witness == "required" else "no_combination", made.count(None))
        return [row for row in made if row is not None]

    def _composed(self, prompt: str, number: int) -> Mapping[str, Any] | None:
        """Return a prompt with constraints; its level and pattern follow from its number."""
        config = self.config
        levels, patterns = config.level, config.pattern
        level, pattern = levels[number % len(levels)], patterns[number // len(levels) % len(patterns)]
        random = Random(f"{config.seed} {number} {prompt}".encode("utf-8", "surrogatepass"))
        for _ in range(_DRAWS):
            constraints = drawn(level, prompt, random)
            if constraints is None:
                continue
            example = witness(constraints)
            if example is None and (config.witness == "required" or pattern == "example"):
                continue
            text = stated(prompt, constraints, pattern, random, (random.choice(_REQUESTS), example or ""))
            return _row(text, constraints, example, prompt, level, pattern)
        return None

    def _looked_at(self, prompt: str, given: Any) -> Mapping[str, Any]:
        try:
            items = given.get("constraints") if isinstance(given, Mapping) else given
            if not isinstance(items, list) or not 0 < len(items) <= _MAX_CONSTRAINTS:
                raise ValueError("there are no constraints, or too many")
            constraints = [Constraint.read(item) for item in items]
            if sum(len(str(one.args)) for one in constraints) > _MAX_ARGS:
                raise ValueError("the arguments are too long")
        except ValueError as error:
            raise DroppedError("bad_constraints") from error
        if conflicts(constraints):
            raise DroppedError("conflict")
        example = witness(constraints)
        if example is None and self.config.witness == "required":
            raise DroppedError("no_witness")
        return _row(prompt, constraints, example, prompt, None, None)


def _row(
    text: str,
    constraints: Sequence[Constraint],
    example: str | None,
    source: str,
    level: int | None,
    pattern: str | None,
) -> Mapping[str, Any]:
    return {
        "prompt": text,
        "reference": {"constraints": [one.to_dict() for one in constraints]},
        "scorer": "instructions",
        "kinds": [one.kind for one in constraints],
        "classes": sorted({one.group for one in constraints}),
        "level": level,
        "pattern": pattern,
        "verdict": "open" if example is None else "satisfiable",
        "witness": example,
        "source_prompt": source,
    }


def make_constraints(config: ConstraintsConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Add constraints to the prompts of a file, or look at those they have."""
    return run_job(config, _ConstraintMaker(config), progress=progress)
