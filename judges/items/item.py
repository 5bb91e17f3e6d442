"""One criterion of a rubric, and the reader of whole rubrics.

A criterion is judged by a language model ("yes_no", "support", "ordered", "rating") or by a program: "check" names one
of the scorer's own checks, "program" holds Python that runs in a sandbox.  A model's criterion may have a program
beside it, as RLCF's have; their mean counts.

Items are numbered from 1 in the prompt, each on one line, and the answer has one line `NONCE NUMBER: VERDICT` for each.
The nonce occurs in none of the texts, so an answer that quotes the response quotes no verdict.  Fewer, more or other
numbers, a verdict twice, or one that is not the item's: then nothing is read, for nobody knows which part to believe.

What is asked about one response does not depend on the others.  An item without a verdict has a `Fault` in its place,
and the caller gives the whole response none.

Not covered: criteria that depend on other criteria; a gate is the only tie between items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer, Fillable, cost_of
from adjudge.prompts.reading import Blank, keyed_lines
from adjudge.prompts.scorer import Case, ModelScorer, forced_of
from adjudge.prompts.template import Rendered, Template
from adjudge.protocol import NO_COST, Cost
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import entries_of, entry_of, flag_of, number_of, shown, text_of
from adjudge.verifiers.code.program import read_checker


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What a model said about the items of one response.

    Attributes:
        labels: for each item, one verdict for each time it was asked; empty if there is a fault.
        texts: for each item, what the model wrote the first time.
        forced: evidence on verdicts that the model gave only when it could give nothing else.
        fault: why there is no verdict on the response; None if there is.
        cost: what all calls took.
    """

    labels: tuple[tuple[str, ...], ...] = ()
    texts: tuple[str, ...] = ()
    forced: Mapping[str, Any] = field(default_factory=dict)
    fault: Fault | None = None
    cost: Cost = NO_COST


async def ask_items(
    scorer: ModelScorer,
    template: Template,
    cases: Sequence[Case],
    items: Sequence[Sequence[Item]],
    *,
    per_call: int,
    unsure: bool = False,
) -> list[Verdicts]:
    """Return the verdicts on the items of each case, in order.

    Args:
        scorer: whose engine and options are used.
        template: a prompt with the fields question, response, criteria and verdicts.
        cases: what is judged.
        items: for each case, its items; none is fine.
        per_call: most items of one call.
        unsure: whether a judge may say that it cannot tell.
    """
    questions: list[Question] = []
    owners: list[int] = []
    for place, (case, listed) in enumerate(zip(cases, items, strict=True)):
        for start in range(0, len(listed), per_call):
            part = tuple(listed[start : start + per_call])
            questions.append(Question(sample=case.sample, response=case.response, items=part))
            owners.append(place)

    def prompt(question: Question) -> Rendered:
        values = {
            "question": question.sample.prompt,
            "response": question.response,
            "criteria": criteria_text(question.items),
            "verdicts": verdicts_text(question.items, unsure=unsure),
        }
        return scorer.render(template, values)

    extra = (UNSURE,) if unsure else ()
    reads = [_reader([(*item.worth, *extra) for item in question.items]) for question in questions]
    answered = await scorer.asked_often(questions, prompt, reads, scorer.runs)
    return [
        _verdicts([answered[at] for at, owner in enumerate(owners) if owner == place]) for place in range(len(cases))
    ]


def _verdicts(calls: Sequence[Sequence[Answer[tuple[str, ...]] | Fault]]) -> Verdicts:
    cost = sum((cost_of(answers) for answers in calls), NO_COST)
    labels: list[tuple[str, ...]] = []
    texts: list[str] = []
    for answers in calls:
        read = [answer for answer in answers if isinstance(answer, Answer)]
        fault = next((answer for answer in answers if isinstance(answer, Fault)), None)
        if fault is not None:
            return Verdicts(fault=fault, cost=cost)
        labels += zip(*(answer.value for answer in read), strict=True)
        texts += [read[0].text] * len(read[0].value)
    forced = forced_of(answer for answers in calls for answer in answers if isinstance(answer, Answer))
    return Verdicts(labels=tuple(labels), texts=tuple(texts), forced=forced, cost=cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Case):
    """A response and the items that one call asks about."""

    items: tuple[Item, ...]


def _reader(labels: Sequence[Sequence[str]]) -> Fillable[tuple[str, ...]]:
    named = {str(number): some for number, some in enumerate(labels, start=1)}
    return Fillable(partial(read_verdicts, labels), partial(Blank.of_lines, choices=named))


def read_verdicts(labels: Sequence[Sequence[str]], text: str, nonce: str = "", /) -> tuple[str, ...] | None:
    """Return a verdict for each item in order, or None; `labels` are the verdicts that each item takes."""
    names = [str(number) for number in range(1, len(labels) + 1)]
    known = dict.fromkeys(label for some in labels for label in some)
    given = keyed_lines(text, nonce, names, tuple(known))
    if given is None or not all(given[name] in some for name, some in zip(names, labels, strict=True)):
        return None
    return tuple(given[name] for name in names)


def criteria_text(items: Sequence[Item], *, weights: bool = False) -> str:
    """Return the items as numbered lines; a line break inside one becomes a space, so that one line is one item."""
    named = {value: name for name, value in IMPORTANCE.items()}
    lines = []
    for number, item in enumerate(items, start=1):
        line = f"{number}. {one_line(item.text)}"
        if item.kind == "ordered":
            choices = "; ".join(f"({at}) {one_line(choice)}" for at, choice in enumerate(item.choices, start=1))
            line += f" Choices from worst to best: {choices}"
        lines.append(f"{line} (matters: {named.get(item.weight, f'{item.weight:g}')})" if weights else line)
    return "\n".join(lines)


def verdicts_text(items: Sequence[Item], *, unsure: bool) -> str:
    """Return which verdicts each item takes, in our own words alone."""
    extra = f", or {UNSURE} if the response leaves it open" if unsure else ""
    lines = []
    for number, item in enumerate(items, start=1):
        said = f"the number of one choice, 1 to {len(item.choices)}" if item.kind == "ordered" else _WORDS[item.kind]
        lines.append(f"{number}: {said}{extra}")
    return "\n".join(lines)


def numbered(texts: Sequence[str]) -> str:
    """Return texts as numbered lines, each on one line."""
    return "\n".join(f"{number}. {one_line(text)}" for number, text in enumerate(texts, start=1))


def one_line(text: str) -> str:
    """Return a text without line breaks and runs of spaces."""
    return " ".join(text.split())


Kind: TypeAlias = Literal["yes_no", "support", "ordered", "rating", "check", "program"]
KINDS: tuple[Kind, ...] = get_args(Kind)
JUDGED: tuple[Kind, ...] = ("yes_no", "support", "ordered", "rating")
"""The kinds that a language model judges."""

UNSURE = "unsure"
SUPPORT: Mapping[str, float] = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_WORTH: Mapping[Kind, Mapping[str, float]] = {
    "yes_no": {"yes": 1.0, "no": 0.0},
    "support": SUPPORT,
    "rating": {str(number): number / 100 for number in range(101)},
}
_WORDS: Mapping[Kind, str] = {
    "yes_no": "yes or no",
    "support": (
        "support (the response says it in full), partial_support (in part) or not_support (not, or the opposite)"
    ),
    "rating": "a whole number from 0 (not at all) to 100 (perfectly)",
}

_TEXT = ("text", "criterion", "description")
_WEIGHT = ("weight", "points", "importance")
_KEYS = (*_TEXT, *_WEIGHT, "kind", "name", "gate", "choices", "check", "program", "reference", "title", "tags")

# Rubrics as Rewards (2507.17746): what its four levels weigh.  A pitfall is worded so that avoiding it meets it.
IMPORTANCE: Mapping[str, float] = {"essential": 1.0, "important": 0.7, "optional": 0.3, "pitfall": 0.9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One criterion.

    Attributes:
        text: what is asked of the response; untrusted like all data.
        weight: its weight or points; negative ones are for what must not be there, and only some formulas take them.
        kind: how it is judged.
        name: its key in `Score.parts`.
        gate: whether the whole is worth nothing unless this item is met in full.
        choices: for "ordered", what may be the case, from worst to best; the k-th of n is worth (k - 1) / (n - 1).
        check: for "check", the name of one of the scorer's checks.
        reference: for "check", what that check compares with.
        program: Python source that defines `check(prompt, response)` and returns a truth value or a number in [0, 1].
    """

    text: str
    weight: float = 1.0
    kind: Kind = "yes_no"
    name: str = ""
    gate: bool = False
    choices: tuple[str, ...] = ()
    check: str = ""
    reference: Any = None
    program: str = ""

    @property
    def worth(self) -> Mapping[str, float]:
        """The verdicts a model may give and what each is worth, "unsure" left out; none for what no model judges.

        They are our own words, whatever the data says: the k-th of several choices has the label k.
        """
        if self.kind == "ordered":
            return {str(at): (at - 1) / (len(self.choices) - 1) for at in range(1, len(self.choices) + 1)}
        return _WORTH.get(self.kind, {})

    def value_of(self, label: str) -> float | None:
        """Return what a verdict is worth, in [0, 1]; None for "unsure"."""
        return None if label == UNSURE else self.worth[label]


def read_rubric(reference: Any) -> tuple[Item, ...]:
    """Return the items of `{"rubric": [...]}` or of a plain list; an entry is a text or a mapping.

    Keys: text (or criterion, description), weight (or points, or importance: essential, important, optional,
    pitfall), kind, name (or title), gate, choices, check, program, reference; tags are ignored.

    Raises:
        BadReferenceError: an entry cannot be read, or two have the same name.
    """
    items: list[Item] = []
    for at, entry in enumerate(entries_of(reference, "rubric", inside="rubric"), start=1):
        where = f"rubric item {at}"
        made = entry_of(entry, _KEYS, where=where, give="it must be a text or a mapping with a text")
        items.append(_item(made, at, where))
    names = [item.name for item in items]
    for name in names:
        if names.count(name) > 1:
            raise BadReferenceError(f"two rubric items have the name {name!r}; give one of them another")
    return tuple(items)


def _item(entry: Mapping[str, Any], at: int, where: str) -> Item:
    kind = entry.get("kind", "program" if "program" in entry else "check" if "check" in entry else "yes_no")
    if kind not in KINDS:
        raise BadReferenceError(f"{where} has the kind {shown(kind)}; it must be one of {', '.join(KINDS)}")
    name = entry.get("name", entry.get("title", f"item_{at}"))
    if not isinstance(name, str) or not name.strip():
        raise BadReferenceError(f"{where} has the name {shown(name)}; it must be a text that is not empty")
    check, program = entry.get("check", ""), entry.get("program", "")
    if check and program:
        raise BadReferenceError(f"{where} has both a check and a program; make two items of it")
    if (kind == "check") != bool(check) or not isinstance(check, str):
        raise BadReferenceError(f'{where} has the kind {kind!r} and the check {shown(check)}; "check" needs a name')
    if kind == "program" and not program:
        raise BadReferenceError(f'{where} has the kind "program" and no program')
    if program:
        read_checker(program, where=where)
    judged = kind in JUDGED
    text = text_of(entry, _TEXT, where=where) if judged or any(key in entry for key in _TEXT) else name
    return Item(
        text=text,
        weight=_weight(entry, where),
        kind=kind,
        name=name.strip(),
        gate=flag_of(entry, "gate", where=where),
        choices=_choices(entry, kind, where),
        check=check,
        reference=entry.get("reference"),
        program=program,
    )


def _weight(entry: Mapping[str, Any], where: str) -> float:
    given = [name for name in _WEIGHT if name in entry]
    if len(given) > 1:
        raise BadReferenceError(f"{where} has {' and '.join(given)}; give one of them")
    if not given:
        return 1.0
    value = entry[given[0]]
    if given[0] == "importance" and isinstance(value, str):
        if value.lower() not in IMPORTANCE:
            raise BadReferenceError(f"{where} has the importance {shown(value)}; known are {', '.join(IMPORTANCE)}")
        return IMPORTANCE[value.lower()]
    weight = number_of(value, where=where, what=given[0])
    if weight == 0:
        raise BadReferenceError(f"{where} weighs nothing; leave it out, or make it a gate with a weight")
    return weight


def _choices(entry: Mapping[str, Any], kind: Kind, where: str) -> tuple[str, ...]:
    choices = entry.get("choices", ())
    if kind != "ordered":
        if choices:
            raise BadReferenceError(f'{where} has choices and the kind {kind!r}; choices are for "ordered"')
        return ()
    if isinstance(choices, str) or not all(isinstance(choice, str) and choice.strip() for choice in choices):
        raise BadReferenceError(f"{where} has the choices {shown(choices)}; give texts from worst to best")
    named = tuple(choice.strip() for choice in choices)
    folded = {choice.casefold() for choice in named}
    if len(named) < 2 or len(folded) != len(named):
        raise BadReferenceError(f"{where} has the choices {shown(named)}; give two or more different texts")
    return named
