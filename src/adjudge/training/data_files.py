"""Files of preferences and step data, with every row that cannot be used counted, and the split by prompt.

A bad row never stops a file and is never dropped in silence: the reading says how many there were, why, and where the
first of them stand.  A held-out prompt is never trained on: examples that share a prompt's opening, or a group, stay
together.

Not covered: near-duplicates that differ in wording, and streaming; training keeps its data in memory.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar, get_args

from adjudge import wire
from adjudge.io.errors import JobError
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.protocol import Message
from adjudge.training.examples import READERS, Example, Format, Pair, Reading, format_of, opening, rated_columns
from adjudge.training.step_data import StepExample, StepOptions
from adjudge.training.step_formats import STEP_READERS, step_format_of

Row = Mapping[str, Any] | ValueError
E = TypeVar("E")

_ROW_BYTES = 64 << 20


def rows_of(path: str, *, split: str = "") -> Iterator[Row]:
    """Yield the rows of a file, a folder, a pattern, an address or a data set.

    Raises:
        ValueError: there is no such input, it cannot be read, or has no such split.
    """
    try:
        for row in open_source(path, limit=_ROW_BYTES, split=split, usual_split="train").rows(Cursor()):
            data = row.cells()
            yield data if data is not None else ValueError(row.error)
    except JobError as error:
        raise ValueError(f"the data {path!r} cannot be read: {error}") from error


_SHOWN = 20
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


class RowReader:
    """Reads rows, and counts those that cannot be used.

    Attributes:
        rows: how many were read, bad ones included.
        first: the first bad ones, "row 7: why", counted from 1.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.first: list[str] = []
        self._counts: Counter[str] = Counter()

    def read(self, rows: Iterable[Row], example_of: Callable[[Mapping[str, Any]], E]) -> list[E]:
        """Return what `example_of` makes of rows; a row for which it raises `ValueError`, or that is one, is bad."""
        examples = []
        for row in rows:
            self.rows += 1
            try:
                if isinstance(row, ValueError):
                    raise row
                examples.append(example_of(row))
            except ValueError as error:
                self._counts[_QUOTED.sub("*", str(error))] += 1
                if len(self.first) < _SHOWN:
                    self.first.append(f"row {self.rows}: {error}")
        return examples

    @property
    def reasons(self) -> dict[str, int]:
        """How many there are by reason, the commonest first; names and numbers are left out of the reasons."""
        return dict(self._counts.most_common())


class Grouped(Protocol):
    """What is split by prompt."""

    @property
    def prompt(self) -> str | Sequence[Message]:
        """Text or turns."""
        ...

    @property
    def group(self) -> str:
        """What examples share that stay together; "" for nothing beyond the prompt."""
        ...


@dataclass(frozen=True, kw_only=True)
class PreferenceData:
    """What the files held.

    Attributes:
        examples: pairs, lists or ratings, in the files' order; all of one kind.
        rows: rows that were read, bad ones included.
        bad: how many could not be used, by reason, with names and numbers left out of the reasons.
        first_bad: the first of them, "row 7: why", counted from 1 over all files.
        attributes: names of the ratings; () for preferences.
    """

    examples: tuple[Example, ...]
    rows: int
    bad: Mapping[str, int] = field(default_factory=dict)
    first_bad: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """16 hex digits that change with any example, and with their order."""
        found = hashlib.sha256()
        for example in self.examples:
            record = [type(example).__name__, *(getattr(example, item.name) for item in fields(example))]
            found.update(wire.dumps(record).encode("utf-8", "surrogatepass") + b"\n")
        return found.hexdigest()[:16]


def read_preferences(
    paths: Sequence[str],
    *,
    format: Format = "auto",
    columns: Mapping[str, str] | None = None,
    attributes: Sequence[str] = (),
    split: str = "",
    limit: int | None = None,
) -> PreferenceData:
    """Return the examples of files, as `rows_of` reads them.

    Args:
        paths: files, folders or data sets.
        format: see `adjudge.training.examples`; "auto" looks at the first row.
        columns: our name of a field to the column that holds it, where they differ.
        attributes: columns of ratings, for the format "rating".
        split: which part of a data set that has several; "train" without it.
        limit: only the first rows, so many, of all files together.

    Raises:
        ValueError: a file cannot be read, or not one row can be used.
    """
    if format not in get_args(Format):
        raise ValueError(f"the format of preferences is {format!r}; give one of {', '.join(get_args(Format))}")
    rows = itertools.islice(itertools.chain.from_iterable(rows_of(path, split=split) for path in paths), limit)
    reading = Reading(columns=dict(columns or {}), attributes=tuple(attributes))
    found = parse_preferences(rows, format=format, reading=reading)
    if not found.examples:
        shown = "; ".join(found.first_bad[:3]) or "there are no rows"
        raise ValueError(f"no row of {', '.join(paths)} can be used ({shown}); name another format, columns or file")
    return found


def parse_preferences(
    rows: Iterable[Row], *, format: Format = "auto", reading: Reading | None = None
) -> PreferenceData:
    """Return the examples of rows that are at hand; items that are a `ValueError` count as bad rows."""
    chosen, name = reading or Reading(columns={}), format
    kind: type | None = None

    def example_of(row: Mapping[str, Any]) -> Example:
        nonlocal chosen, name, kind
        if name == "auto":
            name = format_of(row, chosen)
        if name == "rating" and not chosen.attributes:  # one column for all rows
            chosen = replace(chosen, attributes=rated_columns(row, chosen))
        example = READERS[name](row, chosen)
        kind = kind or type(example)
        if type(example) is not kind:
            raise ValueError("a list among pairs, or a pair among lists; give files of one kind")
        return example

    reader = RowReader()
    examples = reader.read(rows, example_of)
    return PreferenceData(
        examples=tuple(examples),
        rows=reader.rows,
        bad=reader.reasons,
        first_bad=tuple(reader.first),
        attributes=chosen.attributes if name == "rating" else (),
    )


def without_ties(data: PreferenceData) -> PreferenceData:
    """Return the data without tied pairs, which are counted among the bad rows."""
    kept = tuple(example for example in data.examples if not (isinstance(example, Pair) and example.tie))
    dropped = len(data.examples) - len(kept)
    return replace(data, examples=kept, bad={**data.bad, "a tie": dropped}) if dropped else data


def families(examples: Sequence[Grouped]) -> list[str]:
    """Return a name for each example that all examples share which share an opening or a group, even through others."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    keys = [("opening", opening(example.prompt)) for example in examples]
    for key, example in zip(keys, examples, strict=True):
        if example.group:
            one, other = sorted((root(key), root(("group", example.group))))
            parent[other] = one
    return [hashlib.sha256(repr(root(key)).encode("utf-8", "surrogatepass")).hexdigest()[:16] for key in keys]


def held_out(examples: Sequence[Grouped], share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Return which examples are trained on and which are held out, by place; families stay together.

    Args:
        examples: pairs, lists or ratings.
        share: of the examples that is held out, in (0, 1), as near as whole families allow.
        seed: another one holds out other families.  Families that are added do not move the others' order.

    Raises:
        ValueError: there are fewer than two families.
    """
    if not 0 < share < 1:
        raise ValueError(f"the held-out share is {share!r}; it must be above 0 and below 1")
    names = families(examples)
    sizes = Counter(names)
    if len(sizes) < 2:
        raise ValueError(
            "all examples answer one prompt, so none can be held out from training; give held-out files of their own"
        )
    order = sorted(sizes, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    taken: set[str] = set()
    count = 0
    for name in order[:-1]:
        if taken and count + sizes[name] / 2 > share * len(examples):
            break
        taken.add(name)
        count += sizes[name]
    places = range(len(examples))
    return [at for at in places if names[at] not in taken], [at for at in places if names[at] in taken]


def split_off(
    examples: Sequence[E], aside: Sequence[E] | None, share: float, *, seed: int, key: Callable[[E], Grouped]
) -> tuple[list[E], list[E]]:
    """Return what is trained on and what is held out.

    Args:
        examples: what there is.
        aside: examples of held-out files, if there are such: what shares a prompt with them is not trained on.
        share: of the examples that is held out where there are none.
        seed: see `held_out`.
        key: what an example's prompt and group are read of.

    Raises:
        ValueError: nothing is left to train on, or to measure on.
    """
    if aside is None:
        mine, theirs = held_out([key(one) for one in examples], share, seed=seed)
        return [examples[at] for at in mine], [examples[at] for at in theirs]
    kept = [examples[at] for at in unseen([key(one) for one in examples], [key(one) for one in aside])]
    if not kept:
        raise ValueError(
            "every training example shares its prompt with held-out ones; name other files in data.held_out_path"
        )
    return kept, list(aside)


def unseen(examples: Sequence[Grouped], held: Sequence[Grouped]) -> list[int]:
    """Return the places of examples that share no opening and no group with held-out examples of other files."""
    names = families([*examples, *held])
    kept = set(names[len(examples) :])
    return [at for at in range(len(examples)) if names[at] not in kept]


@dataclass(frozen=True, kw_only=True)
class StepData:
    """What a file held.

    Attributes:
        examples: in the file's order; a row can give several.
        format: the rows' format.
        rows: rows that were read, bad ones included; blank lines are none.
        bad: how many rows could not be used, by reason, with the numbers and names left out of the reasons.
        first_bad: the first of them: "row 7: why", rows counted from 1.
        digest: 16 hex digits of the examples.
    """

    examples: tuple[StepExample, ...]
    format: str
    rows: int
    bad: Mapping[str, int] = field(default_factory=dict)
    first_bad: tuple[str, ...] = ()
    digest: str = ""

    @property
    def bad_rows(self) -> int:
        """How many rows could not be used."""
        return sum(self.bad.values())


def read_steps(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    options: StepOptions | None = None,
    limit: int | None = None,
    split: str = "",
) -> StepData:
    """Return the examples of a file.

    Args:
        path: a .jsonl, .json (also .gz) or .parquet file, a folder of `datasets`, or "hub:NAME".
        format: a name of `step_formats.STEP_READERS`; "auto" looks at the first row that is an object.
        options: what becomes of labels that can be read in several ways.
        limit: only the first rows, so many.
        split: which part of a data set that has several; "train" without it.

    Raises:
        ValueError: the file cannot be read, no format has its fields, or not one row can be used.
    """
    if format != "auto" and format not in STEP_READERS:
        raise ValueError(f"the format of step data is {format!r}; give auto or one of {', '.join(STEP_READERS)}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit!r}; it must be at least 1 row, or None")
    rows = itertools.islice(rows_of(os.fspath(path), split=split), limit)
    found = parse_steps(rows, format=format, options=options)
    if not found.examples:
        shown = "; ".join(found.first_bad[:3]) or "the file holds no rows"
        raise ValueError(
            f"no row of {os.fspath(path)!r} can be used as step data ({shown}); name its format, or another"
        )
    return found


def parse_steps(rows: Iterable[Any], *, format: str = "auto", options: StepOptions | None = None) -> StepData:
    """Return the examples of rows that are at hand; items that are a `ValueError` count as bad rows."""
    chosen, name = options or StepOptions(), format

    def examples_of(row: Mapping[str, Any]) -> list[StepExample]:
        nonlocal name
        if not isinstance(row, Mapping):
            raise ValueError(f"the row is a {type(row).__name__}; it must be a JSON object")
        if name == "auto":
            name = step_format_of(row)
        return STEP_READERS[name](row, chosen)

    reader = RowReader()
    examples = list(itertools.chain.from_iterable(reader.read(rows, examples_of)))
    return StepData(
        examples=tuple(examples),
        format=name,
        rows=reader.rows,
        bad=reader.reasons,
        first_bad=tuple(reader.first),
        digest=digest_of(examples),
    )


def digest_of(examples: Iterable[StepExample]) -> str:
    """Return 16 hex digits that change with any text, label or outcome of the examples, and with their order."""
    found = hashlib.sha256()
    for example in examples:
        record = [example.prompt, example.steps, example.labels, example.outcome, example.group]
        found.update(json.dumps(record).encode() + b"\n")
    return found.hexdigest()[:16]
