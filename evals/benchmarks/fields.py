"""Columns of a row as what they must be: texts, turns, numbers and lists, with errors that name the column.

Texts and turns are what they are in every command (`adjudge.io.values`).  A function that is given several names of
columns reads the first that the row has.  Each raises a ValueError that names the column where the row has none of
them, or where it holds something else.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from adjudge.evals.benchmarks.benchmark import AnyFile, RowPlace
from adjudge.evals.benchmarks.case import NOT_FINITE, NOTHING_SAID, Case, Stored, finite
from adjudge.io.columns import Column, flag_of
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import Text, exchange, plain, prompt_of, text_or_chat
from adjudge.protocol import Sample

Row: TypeAlias = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)

_LONGEST: Final = 1 << 26  # bytes of one row of a text file
_SHOWN: Final = 60  # characters of a wrong value in an error
_SUFFIXES: Final = re.compile(r"(\.(jsonl?|csv|tsv|parquet|ndjson|gz))+$", re.IGNORECASE)


def has(row: Row, name: str) -> bool:
    """Return whether a row has a column with something in it; dotted names reach into nested objects."""
    return Column(name).cell(row) is not None


def first_of(row: Row, names: Sequence[str]) -> str | None:
    """Return the first of these columns that the row has, None if it has none."""
    return next((name for name in names if has(row, name)), None)


def named(row: Row, name: str, usual: Sequence[str], role: str) -> str:
    """Return the column that a user named for a role, or the first of the usual ones that the row has."""
    column = name or first_of(row, usual)
    if not column:
        what = role if role.endswith("s") else f"a {role}"
        raise ValueError(
            f"no column of {what}; name it with {flag_of(role)}. The row has {names_of(row)}; tried {', '.join(usual)}"
        )
    return column


def labelled_by(row: Row, name: str, usual: Sequence[str], role: str) -> str | None:
    """Return the column that says what is true of a row, as `named` does; None where there is nothing in it."""
    column = named(row, name or first_of(row, usual) or next((one for one in usual if one in row), ""), usual, role)
    if not has(row, column) and (column in row or "." in column):
        return None
    return _first(row, [column])


def field(row: Row, *names: str) -> Any:
    """Return what a column holds, whatever it is."""
    return Column(_first(row, names)).of(row)


def text(row: Row, *names: str) -> Text:
    """Return a text, or chat turns."""
    name = _first(row, names)
    return as_text(Column(name).of(row), name)


def as_text(value: Any, name: str) -> Text:
    """Return a value as a text or as chat turns."""
    return text_or_chat(plain(value), "value", name)


def asked_and_said(row: Row, prompt: str | None, response: str | None) -> tuple[Text, Text]:
    """Return the prompt and the response of two columns, as every command reads them; "" for a column that is None.

    A whole chat must begin with the prompt.
    """
    asked = prompt_of(field(row, prompt), prompt) if prompt else ""
    return exchange(asked, text(row, response)) if response else (asked, "")


def text_of(row: Row, *names: str) -> str:
    """Return what must be text, no turns."""
    value = field(row, *names)
    if not isinstance(value, str):
        raise ValueError(f"the column {_first(row, names)!r} holds {shown(value)}; it must be text")
    return value


def texts(row: Row, name: str) -> tuple[Text, ...]:
    """Return a list of texts or of turns."""
    return tuple(as_text(value, f"{name}.{at}") for at, value in enumerate(items(row, name)))


def texts_of(row: Row, name: str) -> tuple[str, ...]:
    """Return a list of texts that is not empty."""
    values = items(row, name)
    for item in values:
        if not isinstance(item, str):
            raise ValueError(f"the column {name!r} has the item {shown(item)}; all must be texts")
    return tuple(values)


def items(row: Row, name: str) -> Sequence[Any]:
    """Return a list that is not empty."""
    value = field(row, name)
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a list with something in it")
    return value


def word(row: Row, name: str) -> str:
    """Return a name: text, or a whole number as text."""
    value = field(row, name)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a name")


def said_of(row: Row, name: str) -> str:
    """Return a text, where "True" or "15" may have been written to the file as what they look like."""
    value = field(row, name)
    return str(value) if isinstance(value, bool | int | float) else text_of(row, name)


def whole(row: Row, name: str) -> int:
    """Return a whole number; "3" and 3.0 are 3."""
    value = field(row, name)
    number = as_whole(value)
    if number is None:
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a whole number")
    return number


def as_whole(value: Any) -> int | None:
    """Return a whole number that is written as one, as a float or as text; None for anything else, truth included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = value.strip() if isinstance(value, str) else ""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def as_flag(value: Any, name: str) -> bool:
    """Return a label of a response: 1 or true where it is right, else 0 or false."""
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise ValueError(f"the column {name!r} holds {shown(value)}; a label must be 1 or 0, true or false")


def score(value: Any, name: str) -> Stored:
    """Return a stored score: a number, a list with one number in it, or None where nobody gave one.

    Numbers that are not finite are not scores.  Text that is a number is one, as all cells of a .csv are text.
    """
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0]
    if value is None or value == "":
        return NOTHING_SAID
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the column {name!r} holds {shown(value)}; a score must be a number, or null for none")
    number = finite(value)
    return Stored(value=number, reason=NOT_FINITE if number is None else "")


def scores(row: Row, name: str, count: int) -> tuple[Stored, ...]:
    """Return a list of so many stored scores."""
    values = items(row, name)
    if len(values) != count:
        raise ValueError(f"the column {name!r} holds {len(values)} scores for {count} responses; give one for each")
    return tuple(score(value, f"{name}.{at}") for at, value in enumerate(values))


def stored_pair(row: Row, first: Sequence[str], second: Sequence[str]) -> tuple[Stored, ...]:
    """Return the two scores that a row stores under one of these names each; nothing where it has neither."""
    names = [next((name for name in side if name in row), None) for side in (first, second)]
    if names == [None, None]:
        return ()
    if None in names:
        lacking = first if names[0] is None else second
        raise ValueError(f"the row stores one score of two; the other one is missing under any of {', '.join(lacking)}")
    return tuple(score(row[name], name) for name in names if name is not None)


def rows_of(row: Row, place: RowPlace, column: str) -> list[tuple[Row, RowPlace]]:
    """Return the rows of a table that was written as one object of columns, each with its number; or the row itself.

    Scores of RewardBench are published so: `{"subset": [..], "scores_chosen": [..], "model": ".."}`.  What is not a
    list holds for all rows.
    """
    if not isinstance(row.get(column), list):
        return [(row, place)]
    columns = {name: values for name, values in row.items() if isinstance(values, list)}
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the columns {shown(sizes)} differ in length; a table has as many values in each")
    return [
        ({**row, **{name: values[at] for name, values in columns.items()}}, replace(place, number=at))
        for at in range(sizes[column])
    ]


def keyed_rows(
    path: str, key: Callable[[Row], Key | None], *, several: bool = False
) -> dict[Key, list[dict[str, Any]]]:
    """Return the rows of a second file ("" for none) by a key, to be joined with those of the input.

    A row whose key is None is left out; only with `several` may a key come more than once.
    """
    keyed: dict[Key, list[dict[str, Any]]] = {}
    for row in open_source(path, limit=_LONGEST).rows(Cursor()) if path else ():
        data = row.cells()
        if data is None:
            raise ValueError(f"row {row.index} of {path!r} cannot be read: {row.error}")
        try:
            name = key(data)
        except ValueError as error:
            raise ValueError(f"row {row.index} of {path!r}: {error}") from error
        if name is None:
            continue
        if name in keyed and not several:
            raise ValueError(f"row {row.index} of {path!r} is the second one for {shown(name)}; keep one of them")
        keyed.setdefault(name, []).append(dict(data))
    return keyed


def stored_column(row: Row, column: str) -> Stored | None:
    """Return the score that a column stores, if one is named; a row without it has no verdict."""
    if not column:
        return None
    return score(field(row, column), column) if has(row, column) else NOTHING_SAID


def case_of(
    *,
    id: str,
    prompt: Text,
    responses: Sequence[Text] | int,
    gold: Any,
    part: str = "",
    cluster: str = "",
    stored: Sequence[Stored] = (),
    compared: bool = False,
    reference: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Case:
    """Return a case of responses to one prompt, which names the cluster where no other name is given.

    Where the row holds their scores alone, `responses` is how many there are.
    """
    bare = isinstance(responses, int)
    texts = [""] * responses if isinstance(responses, int) else responses
    return Case(
        id=id,
        samples=tuple(Sample(prompt=prompt, response=one, reference=reference, extra=extra or {}) for one in texts),
        gold=gold,
        cluster=cluster or (id if bare and not prompt else cluster_of(prompt)),
        part=part,
        stored=stored,
        compared=compared,
        texts=not bare,
    )


def solution_sample(problem: str, steps: Sequence[str]) -> Sample:
    """Return a solution as a sample; scorers of steps find the steps in `extra["steps"]`."""
    return Sample(prompt=problem, response="\n\n".join(steps), extra={"steps": list(steps)})


def case_id(place: RowPlace, *names: str) -> str:
    """Return an id that no other row has: the row's number, and what the file calls it; "" is not a name."""
    return ":".join(filter(None, (str(place.number), *names)))


def named_case(options: AnyFile, row: Row, place: RowPlace, prompt: Text) -> tuple[str, str, str]:
    """Return id, part and cluster of a row of any file; a row without a prompt is a cluster of its own."""
    return (
        word(row, options.id_column) if options.id_column else case_id(place),
        word(row, options.part_column) if options.part_column else "",
        word(row, options.cluster_column) if options.cluster_column else cluster_of(prompt) if prompt else "",
    )


def optional_word(row: Row, column: str | None) -> str:
    """Return a name; "" where no column is named, or the row has nothing in it."""
    return word(row, column) if column and has(row, column) else ""


def cluster_of(prompt: Text) -> str:
    """Return a short name of a prompt; rows that ask the same share it."""
    said = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=True, sort_keys=True, default=str)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def stem_of(file: str) -> str:
    """Return the name of a file without what says its format: "chat_filtered" of "chat_filtered.json.gz"."""
    return _SUFFIXES.sub("", file)


def shown(value: Any) -> str:
    """Return a value as an error may show it: short, and with nothing that a terminal would obey."""
    said = ascii(value)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}.."


def names_of(row: Row) -> str:
    """Return the columns of a row that hold something, for an error."""
    return ", ".join([shown(name) for name, cell in row.items() if cell is not None][:20]) or "no columns"


def _first(row: Row, names: Sequence[str]) -> str:
    name = first_of(row, names)
    if name is None:
        raise ValueError(f"the column {' or '.join(map(repr, names))} is missing; the row has {names_of(row)}")
    return name
