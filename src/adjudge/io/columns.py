"""Which column of the input is what.

A column is named as in the input:

- a dotted path reaches into nested objects and, by number, into lists ("175b_verification.solution", "choices.0.text");
  `*` takes every item of a list ("choices.*.message.content");
- "answer|tests" is the first of several that is not empty;
- "test+entry_point" is one object that holds several, by their names; texts of a prompt or a response are joined
  ("prompt+completion").

A column whose own name holds such a sign comes first.  A row that `adjudge label --keep-columns` wrote has the columns
of the row that was labelled, too.  What is not named is guessed from the usual names, and every guess is told.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from adjudge.io.guesses import BESIDE_TESTS, CHATS, MOST, SEVERAL, TESTS
from adjudge.io.guesses import GUESSES as GUESSES
from adjudge.io.guesses import USUAL as USUAL
from adjudge.io.questions import ANSWER_KEYS, OPTIONS, points_to_option
from adjudge.io.values import MISSING as MISSING
from adjudge.io.values import (
    are_answered,
    are_completions,
    each_message,
    is_chat,
    is_empty,
    is_no_response,
    list_of,
    looks_like_list,
    nested_names,
    reference_of,
    refuse_unread,
    turns_of,
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name or dotted path; of a `listed` one, lists are read that are JSON text, as in CSV.

    Where the name is in the plural (`responses`), a list of an assistant's messages is a list of responses.
    """

    name: str
    listed: bool = False
    path: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", tuple(self.name.split(".")))

    def of(self, row: Mapping[str, Any]) -> Any:
        """Return the value in a row, or `MISSING`."""
        value = self._of(row)
        value = list_of(value) if self.listed else value
        return each_message(value) if self.path[-1] in SEVERAL or "*" in self.path else value

    def splits(self, row: Mapping[str, Any]) -> bool:
        """Return whether the cell is a chat as it stands, and several responses as it is read."""
        return is_chat(list_of(self._of(row))) and not is_chat(read := self.of(row)) and len(read) > 1

    def cell(self, row: Mapping[str, Any]) -> Any:
        """Return the value in a row; None where there is none."""
        value = self.of(row)
        return None if value is MISSING else value

    def _of(self, row: Mapping[str, Any]) -> Any:
        value = row.get(self.name, MISSING)
        if value is not MISSING:
            return value
        if "|" in self.name:
            return _first_there(row, self.name).of(row)
        if "+" in self.name:
            each = {name: Column(name).of(row) for name in self.name.split("+") if name}
            first = next(iter(each.values()))  # the others say nothing without it
            there = {name: value for name, value in each.items() if value is not MISSING and value is not None}
            return first if first in (MISSING, None, "") else there
        value = _followed(row, self.path) if len(self.path) > 1 else MISSING
        labelled = labelled_row(row) if value is MISSING else None
        return value if labelled is None else self._of(labelled)

    def with_item(self, row: Mapping[str, Any], index: int | None) -> dict[str, Any]:
        """Return a copy of a row with one item of the list that the column holds in the list's place; None leaves none.

        A list that a `*` went through keeps that item alone.
        """
        if self.name not in row and "|" in self.name:
            return _first_there(row, self.name).with_item(row, index)
        path = (self.name,) if self.name in row else self.path
        labelled = labelled_row(row)
        if labelled is not None and path[0] not in row:
            return {**row, "input": self.with_item(labelled, index)}
        return dict(_with_item(row, path, index))

    def tops(self, names: Iterable[str]) -> list[str]:
        """Return the top-level columns that it is read from."""
        if self.name in names:
            return [self.name]
        parts = [part for part in re.split(r"[|+]", self.name) if part]
        if len(parts) > 1:
            return [top for part in parts for top in Column(part).tops(names)]
        marks = [] if self.path[0] in names else [name for name in _LABEL_MARKS if name in names]
        return ["input", *marks] if marks and "input" in names else [self.path[0]]


_LABEL_MARKS: Final = ("provenance", "not_asked")
"""Columns of what `adjudge label` writes: of one scorer's, or of several ones'."""


def labelled_row(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the row that a row of `adjudge label --keep-columns` has labelled; None of any other row."""
    given = row.get("input")
    return given if isinstance(given, Mapping) and any(name in row for name in _LABEL_MARKS) else None


def _labelled_rows(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the row that a row has labelled, and what that one has, where answers were labelled in several rounds."""
    while (inner := labelled_row(row)) is not None:
        yield inner
        row = inner


_columns = functools.lru_cache(lambda names: tuple(map(Column, names.split("|"))))


def _first_there(row: Mapping[str, Any], names: str) -> Column:
    columns: tuple[Column, ...] = _columns(names)
    return next((column for column in columns if column.of(row) not in (MISSING, None, "")), columns[0])


def _followed(value: Any, path: Sequence[str]) -> Any:
    for place, key in enumerate(path):
        if isinstance(value, Mapping):
            value = value.get(key, MISSING)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, list) and key == "*":
            items = [_followed(item, path[place + 1 :]) for item in value]
            there = not items or any(item is not MISSING for item in items)
            return [None if item is MISSING else item for item in items] if there else MISSING
        else:
            return MISSING
    return value


def _with_item(value: Any, path: Sequence[str], index: int | None) -> Any:
    if not path:
        return None if index is None else list_of(value)[index]
    key, *rest = path
    if isinstance(value, Mapping):
        return {**value, key: _with_item(value[key], rest, index)}
    if key == "*":
        return [] if index is None else [value[index]]
    return [_with_item(item, rest, index) if place == int(key) else item for place, item in enumerate(value)]


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
        answered: whether the prompts are chats that end with an answer other than the response; it is left out.
    """

    prompt: Column | None = None
    responses: tuple[Column, ...] = ()
    reference: Column | None = None
    id: Column | None = None
    group: Column | None = None
    finish_reason: Column | None = None
    extra: tuple[Column, ...] = ()
    answered: bool = False

    def all(self) -> list[Column]:
        """Return every column that is read."""
        single = [self.prompt, self.reference, self.id, self.group, self.finish_reason]
        return [column for column in (*single, *self.responses, *self.extra) if column is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the names as plain data."""

        def named(held: Column | tuple[Column, ...] | None) -> str | list[str]:
            return [column.name for column in held] if isinstance(held, tuple) else held.name if held else ""

        return {item.name: named(getattr(self, item.name)) for item in fields(self) if item.name != "answered"}


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


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """The options of whoever reads samples: which column is what."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns.
    Of every column: a.b.c reaches into nested objects; where none is named, the usual names are tried."""

    response_column: tuple[str, ...] = ()
    """Column of the response: text, chat turns, or a list of responses, which gives one score for each.
    Give it several times to score several columns of a row."""

    reference_column: str = ""
    """Column of what the scorer checks against."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    group_column: str = ""
    """Column that samples of one prompt share.
    Without one, several responses of one row are a group."""

    finish_reason_column: str = ""
    """Column of the finish reason; "length" marks a response that was cut off."""

    extra_column: tuple[str, ...] = ()
    """A further column that the scorer asks for by name; give it several times for several."""

    def wanted_columns(self) -> Wanted:
        """Return the column names that were given."""
        roles = ("prompt", "reference", "id", "group", "finish_reason", "extra")
        return Wanted(responses=self.response_column, **{role: getattr(self, f"{role}_column") for role in roles})


def flag_of(role: str) -> str:
    """Return the option of the command line that names the column of a role."""
    return f"--{role.replace('_', '-')}-column"


def map_columns(
    wanted: Wanted,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    closed: bool,
    needs_response: bool = True,
) -> tuple[ColumnMap, list[str]]:
    """Decide which column is what.

    Args:
        wanted: what the user named.
        names: top-level columns, from the schema or from the first rows.
        rows: the first readable rows; they show what nested columns hold.
        closed: whether there can be no columns but `names`; otherwise, with no readable row, given names are believed.
        needs_response: whether a missing response column is an error.

    Returns:
        The map, and one sentence for each guess and each thing left out.

    Raises:
        ValueError: a named column does not exist, or no response column was named or guessed.
    """
    choice = Choice(names, rows, closed=closed, taken=(*wanted.responses, wanted.prompt, wanted.reference))
    responses = tuple(choice.given("response", name) for name in wanted.responses)
    twice = {name for name in wanted.responses if wanted.responses.count(name) > 1}
    if twice:
        raise ValueError(f"--response-column names {sorted(twice)[0]!r} twice; name each column once")
    if not responses:
        guessed = choice.pick("response") or choice.chat()
        if guessed is None and needs_response:
            raise ValueError(no_column("response", choice.known))
        responses = (guessed,) if guessed is not None else ()
    responses = tuple(choice.unpacked(column, SEVERAL) for column in responses)
    split = [column.name for column in responses if any(map(column.splits, rows))]
    choice.notes += [
        f"{name!r} holds lists of assistant messages; each is read as a response of its own" for name in split
    ]
    prompt = choice.pick("prompt", wanted.prompt)
    answered = False
    if prompt is not None and responses and not wanted.prompt and are_answered(prompt.of(row) for row in rows):
        answered = True
        choice.notes.append(
            f"prompt: without the answers that end the chats (--prompt-column {prompt.name} keeps them)"
        )
    if prompt is None and not choice.chats:
        choice.notes.append("prompt: no such column, so scorers see an empty prompt (--prompt-column names one)")
    reference = choice.reference(wanted.reference)
    if reference is None:
        choice.notes.append("reference: no such column, so samples have none (--reference-column names one)")
    finish = choice.pick("finish_reason", wanted.finish_reason)
    mapped = ColumnMap(
        prompt=prompt,
        responses=responses,
        reference=reference,
        id=choice.pick("id", wanted.id),
        group=choice.pick("group", wanted.group),
        finish_reason=None if finish is None else choice.unpacked(finish),
        extra=tuple(choice.given("extra", name) for name in wanted.extra),
        answered=answered,
    )
    return mapped, choice.notes


class Choice:
    """Decides which column is what, one after the other; a column that was taken is not guessed again.

    Attributes:
        known: the columns there are, nested ones by their paths.
        notes: one sentence for each guess.
        chats: whether the responses are whole chats, which hold their prompts.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        *,
        closed: bool = True,
        taken: Iterable[str] = (),
        flag: Callable[[str], str] = flag_of,
    ) -> None:
        labelled = [inner for row in rows for inner in _labelled_rows(row)]
        own = [name for name in dict.fromkeys(name for row in labelled for name in row) if name not in names]
        self.known = [*names, *own, *nested_names(rows), *nested_names(labelled)]
        self._own = {name.lower().replace(" ", "_"): name for name in self.known} | {name: name for name in self.known}
        self.notes: list[str] = []
        self.chats = False
        self._names, self._rows, self._taken, self._flag = names, rows, set(taken), flag
        self._believed = not closed and not rows

    def given(self, role: str, name: str) -> Column:
        """Return the column that a user named.

        Raises:
            ValueError: there is no such column.
        """
        column = Column(name)
        if self._believed or name in self.known or any(column.of(row) is not MISSING for row in self._rows):
            return column
        raise ValueError(unknown_column(name, self.known, self._flag(role)))

    def check(self, named: Mapping[str, str]) -> None:
        """Raise `ValueError` for a column that a user named for a role and that is not there; "" names none."""
        for role, name in named.items():
            if name:
                self.given(role, name)

    def pick(self, role: str, name: str = "", usual: Sequence[str] = ()) -> Column | None:
        """Return the column that a user named for a role, or the first that looks like one; None if none does."""
        if name:
            return self.given(role, name)
        tried = [self._spelled(guess) for guess in usual or GUESSES[role]]
        fits = self._fitting(role, tried)
        if role == "id":  # a labelled row's own comes before that of the row which was labelled
            fits.sort(key=lambda guess: guess not in self._names)
        if not fits and role == "response":  # one that cannot be read is named in the error that follows
            known = set(self.known) - self._taken - {"choices", "solutions"}
            fits = [guess for guess in tried if guess in known]
        return self._guessed(role, fits[0]) if fits else None

    def chat(self) -> Column | None:
        """Return a column of whole chats, each with the prompt and an assistant's answer; None if there is none."""
        for name in CHATS:
            chats = [row[name] for row in self._rows if row.get(name)] if self._fits("response", name) else []
            if chats and all(is_chat(chat) and turns_of(chat)[-1]["role"] == "assistant" for chat in chats):
                self.chats = True
                return self._guessed("response", name)
        return None

    def reference(self, name: str = "") -> Column | None:
        """Return the column of references; where answers and tests have columns of their own, the one that says it."""
        if name:
            column = self.given("reference", name)
            for part in re.split(r"[|+]", name):
                if part in OPTIONS:
                    refuse_unread(part, [Column(part).of(row) for row in self._rows])
            return column
        alternatives = self._fitting("reference", [*map(self._spelled, GUESSES["reference"])])[:1]
        if both := self._question((*ANSWER_KEYS[1:-1], *alternatives)):  # of MMLU "answer"
            return self._guessed("reference", both)
        for names in TESTS:
            first, *more = names.split("+")
            if self._fits("reference", first):
                there = [first, *(name for name in more if self._fits("reference", name))]
                beside = BESIDE_TESTS if first == "test" and self._fits("reference", BESIDE_TESTS[0]) else ()
                there += [name for name in beside if any(isinstance(row.get(name), str) for row in self._rows)]
                alone = len(there) == 1 and more and more != ["entry_point"]  # a part of a row, and not tests as such
                alternatives.append("+".join([*there, ""] if alone else there))
                break
        if not alternatives:  # what follows may be something else, where there is any other
            both = self._question(ANSWER_KEYS[-1:])
            s1k = "attempt" in self.known and self._fits("reference", "solution")
            alternatives = [both] if both else ["solution"] if s1k else []
        return self._guessed("reference", "|".join(alternatives)) if alternatives else None

    def _question(self, keys: Sequence[str]) -> str:
        """Return the columns of a question's options and of the key that points to one in most rows; "" for none."""
        for name, key in itertools.product(OPTIONS, keys):
            if self._fits("reference", name) and self._fits("reference", key):
                both = Column(f"{name}+{key}")
                keyed = [reference_of(both.of(row)) for row in self._rows if not is_empty(Column(key).of(row))]
                if keyed and sum(points_to_option(one, alone=key == "answer") for one in keyed) >= MOST * len(keyed):
                    return both.name
        return ""

    def unpacked(self, column: Column, names: Sequence[str] = ()) -> Column:
        """Return a column so that it reads lists where its cells hold them as JSON text.

        Only one of these names, if any are given: a text in `response` may be a list that a model wrote.

        Raises:
            ValueError: the cells hold lists as Python or NumPy write them.
        """
        cells = [cell for row in self._rows if (cell := column.of(row)) not in (MISSING, None, "")]
        if (names and column.path[-1] not in names) or not cells or not all(map(looks_like_list, cells)):
            return column
        refuse_unread(column.name, cells)
        self.notes.append(f"{column.name!r} holds lists as JSON text; each of their items is read as one")
        return Column(column.name, listed=True)

    def _spelled(self, usual: str) -> str:
        """Return a usual name as the input spells it: "Correct Answer" for "correct_answer" (GPQA)."""
        return "+".join(self._own.get(part, part) for part in usual.split("+"))

    def _fitting(self, role: str, names: Sequence[str]) -> list[str]:
        """Return the names that fit, but not one that a few stray rows have in the place of the most frequent one."""
        fits = [Column(name) for name in names if self._fits(role, name)]
        there = [{at for at, row in enumerate(self._rows) if not is_empty(column.of(row))} for column in fits]
        most = max(there, key=len, default=set())
        kept = [bool(rows & most) or len(rows) >= (1 - MOST) * len(most) for rows in there]
        return [column.name for column in itertools.compress(fits, kept)]

    def _fits(self, role: str, name: str) -> bool:
        parts = name.split("+")
        if any(part not in self.known for part in parts) or self._taken.intersection((name, *parts)):
            return False
        values = [value for row in self._rows if (value := Column(name).cell(row)) is not None]
        if not values and self._rows:
            return False  # a column that is null in every row says nothing
        if role == "response" and name == "solutions" and all(value in ("", "[]", []) for value in values):
            return False  # of a task (APPS), which has none
        if role == "response" and name.endswith("choices"):
            # of an OpenAI-compatible server, or the options of a question
            return all(are_completions(list_of(value)) for value in values)
        return role != "response" or not values or not all(map(is_no_response, values))

    def _guessed(self, role: str, name: str) -> Column:
        self._taken.update((name, *name.split("+")))
        self.notes.append(f"{role.replace('_', ' ')}: column {name!r} (guessed; {self._flag(role)} chooses another)")
        return Column(name)


def unknown_column(name: str, known: Sequence[str], flag: str) -> str:
    """Return the error text for a column that does not exist."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    lowered = [other for other in known if other.lower() == name.lower()]
    hint = f" Did you mean {(lowered or near)[0]!r}?" if lowered or near else ""
    return f"{flag} {name!r}: the input has no such column.{hint} {_there_are(known)}"


def no_column(role: str, known: Sequence[str], flag: str = "", usual: Sequence[str] = ()) -> str:
    """Return the error text for a role that no column was named for, and that none looks like."""
    tried = ", ".join(usual or GUESSES[role])
    return (
        f"no column looks like a {role.replace('_', ' ')} (tried {tried}); name it with {flag or flag_of(role)}. "
        f"{_there_are(known)}"
    )


def _there_are(known: Sequence[str]) -> str:
    if not known:
        return "The input shows no columns at all."
    shown = ", ".join(known[:40])
    return f"The columns are: {shown}{f', and {len(known) - 40} more' if len(known) > 40 else ''}."
