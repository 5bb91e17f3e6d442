"""Preferences of one or several files, with what could not be used counted, and the split into training and held-out.

A held-out prompt is never trained on: examples that share a prompt's opening, or a group, stay together.

Not covered: near-duplicates that differ in wording.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, get_args

from adjudge import wire
from adjudge.protocol import Message
from adjudge.reward_models.training.bad_rows import BadRows
from adjudge.reward_models.training.pair_readers import READERS, Example, Format, Reading, format_of, rated_columns
from adjudge.reward_models.training.pairs import Pair, opening
from adjudge.reward_models.training.row_files import Row, rows_of


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
    """Return the examples of files, as `row_files.rows_of` reads them.

    Args:
        paths: files, folders or data sets.
        format: see `pair_readers`; "auto" looks at the first row.
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
    examples: list[Example] = []
    bad = BadRows()
    number = 0
    for number, row in enumerate(rows, start=1):
        try:
            if isinstance(row, ValueError):
                raise row
            if name == "auto":
                name = format_of(row, chosen)
            if name == "rating" and not chosen.attributes:  # one column for all rows
                chosen = replace(chosen, attributes=rated_columns(row, chosen))
            example = READERS[name](row, chosen)
            if examples and type(example) is not type(examples[0]):
                raise ValueError("a list among pairs, or a pair among lists; give files of one kind")
            examples.append(example)
        except ValueError as error:
            bad.add(number, error)
    return PreferenceData(
        examples=tuple(examples),
        rows=number,
        bad=bad.reasons,
        first_bad=tuple(bad.first),
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


def unseen(examples: Sequence[Grouped], held: Sequence[Grouped]) -> list[int]:
    """Return the places of examples that share no opening and no group with held-out examples of other files."""
    names = families([*examples, *held])
    kept = set(names[len(examples) :])
    return [at for at in range(len(examples)) if names[at] not in kept]
