"""Which column of the input is what.

A column is named as in the input; a dotted path reaches into nested objects and, by number, into lists
("175b_verification.solution", "choices.0.text").  A column whose own name holds the dots comes first.
What is not named is guessed from the usual names, and every guess is told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

GUESSES: Final[dict[str, tuple[str, ...]]] = {
    "prompt": ("prompt", "question", "problem", "instruction", "query", "messages", "input"),
    "response": (
        "response", "responses", "completion", "completions", "output", "outputs",
        "generation", "generations", "solution", "solutions",
    ),
    "reference": (
        "reference", "ground_truth", "gold", "gt", "expected_answer", "target", "answer", "reward_model.ground_truth",
    ),
    "id": ("id", "uid", "sample_id"),
    "group": ("group", "group_id", "prompt_id"),
    "finish_reason": ("finish_reason", "stop_reason"),
}  # fmt: skip

MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name or dotted path."""

    name: str
    path: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Split the path once."""
        object.__setattr__(self, "path", tuple(self.name.split(".")))

    def of(self, row: Mapping[str, Any]) -> Any:
        """Return the value in a row, or `MISSING`."""
        value = row.get(self.name, MISSING)
        if value is not MISSING or len(self.path) == 1:
            return value
        value = row
        for key in self.path:
            if isinstance(value, Mapping):
                value = value.get(key, MISSING)
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return MISSING
        return value

    def top(self, names: Iterable[str]) -> str:
        """Return the top-level column that holds it."""
        return self.name if self.name in names else self.path[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """The columns a job reads.

    Attributes:
        prompt: the prompt, or None: every prompt is then empty.
        responses: one or several response columns.
        reference: the reference, or None.
        id: the id, or None: the row number is used.
        group: the group, or None.
        finish_reason: the finish reason, or None.
        extra: columns handed to the scorer in `Sample.extra`.
    """

    prompt: Column | None = None
    responses: tuple[Column, ...] = ()
    reference: Column | None = None
    id: Column | None = None
    group: Column | None = None
    finish_reason: Column | None = None
    extra: tuple[Column, ...] = ()

    def all(self) -> list[Column]:
        """Return every column that is read."""
        single = [self.prompt, self.reference, self.id, self.group, self.finish_reason]
        return [column for column in single if column is not None] + [*self.responses, *self.extra]

    def to_dict(self) -> dict[str, Any]:
        """Return the names as plain data."""

        def name(column: Column | None) -> str:
            return column.name if column else ""

        return {
            "prompt": name(self.prompt),
            "responses": [column.name for column in self.responses],
            "reference": name(self.reference),
            "id": name(self.id),
            "group": name(self.group),
            "finish_reason": name(self.finish_reason),
            "extra": [column.name for column in self.extra],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The column names a user gave; "" and () leave the choice to the guesses."""

    prompt: str = ""
    responses: tuple[str, ...] = ()
    reference: str = ""
    id: str = ""
    group: str = ""
    finish_reason: str = ""
    extra: tuple[str, ...] = ()


def map_columns(
    wanted: Wanted, names: Sequence[str], rows: Sequence[Mapping[str, Any]], *, closed: bool
) -> tuple[ColumnMap, list[str]]:
    """Decide which column is what.

    Args:
        wanted: what the user named.
        names: top-level columns, from the schema or from the first rows.
        rows: the first readable rows; they show what nested columns hold.
        closed: whether there can be no columns but `names`; otherwise, with no readable row, given names are believed.

    Returns:
        The map, and one sentence for each guess and each thing left out.

    Raises:
        ValueError: a named column does not exist, or no response column was named or guessed.
    """
    known = [*names, *nested_names(rows)]
    believed = not closed and not rows
    notes: list[str] = []

    def given(name: str, flag: str) -> Column:
        column = Column(name)
        if believed or name in known or any(column.of(row) is not MISSING for row in rows):
            return column
        raise ValueError(unknown_column(name, known, flag))

    taken: set[str] = {*wanted.responses, wanted.prompt, wanted.reference, wanted.id, wanted.group}

    def pick(role: str, name: str) -> Column | None:
        flag = f"--{role.replace('_', '-')}-column"
        if name:
            return given(name, flag)
        for guess in GUESSES[role]:
            if guess in known and guess not in taken:
                taken.add(guess)
                notes.append(f"{role.replace('_', ' ')}: column {guess!r} (guessed; {flag} chooses another)")
                return Column(guess)
        return None

    responses = tuple(given(name, "--response-column") for name in wanted.responses)
    if not responses:
        guessed = pick("response", "")
        if guessed is None:
            raise ValueError(
                f"no column looks like a response (tried {', '.join(GUESSES['response'])}); "
                f"name it with --response-column. {_there_are(known)}"
            )
        responses = (guessed,)
    twice = {name for name in wanted.responses if wanted.responses.count(name) > 1}
    if twice:
        raise ValueError(f"--response-column names {sorted(twice)[0]!r} twice; name each column once")
    prompt = pick("prompt", wanted.prompt)
    if prompt is None:
        notes.append("prompt: no such column, so scorers see an empty prompt (--prompt-column names one)")
    reference = pick("reference", wanted.reference)
    if reference is None:
        notes.append("reference: no such column, so samples have none (--reference-column names one)")
    mapped = ColumnMap(
        prompt=prompt,
        responses=responses,
        reference=reference,
        id=pick("id", wanted.id),
        group=pick("group", wanted.group),
        finish_reason=pick("finish_reason", wanted.finish_reason),
        extra=tuple(given(name, "--extra-column") for name in wanted.extra),
    )
    return mapped, notes


def nested_names(rows: Sequence[Mapping[str, Any]], depth: int = 3) -> list[str]:
    """Return the dotted paths of the objects nested in these rows, each once, in order of appearance."""
    found: dict[str, None] = {}

    def walk(value: Mapping[str, Any], prefix: str, left: int) -> None:
        for key, item in value.items():
            if prefix:
                found[f"{prefix}{key}"] = None
            if left > 1 and isinstance(item, Mapping):
                walk(item, f"{prefix}{key}.", left - 1)

    for row in rows:
        walk(row, "", depth)
    return list(found)


def unknown_column(name: str, known: Sequence[str], flag: str) -> str:
    """Return the error text for a column that does not exist."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    lowered = [other for other in known if other.lower() == name.lower()]
    guess = (lowered or near or [""])[0]
    hint = f" Did you mean {guess!r}?" if guess else ""
    return f"{flag} {name!r}: the input has no such column.{hint} {_there_are(known)}"


def _there_are(known: Sequence[str]) -> str:
    if not known:
        return "The input shows no columns at all."
    shown = ", ".join(known[:40])
    return f"The columns are: {shown}{f', and {len(known) - 40} more' if len(known) > 40 else ''}."
