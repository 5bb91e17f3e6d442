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
from typing import Any, Generic, TypeAlias, TypeVar, get_args

from adjudge import wire
from adjudge.io.errors import JobError
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.training.examples import READERS, Example, Format, Pair, Reading, format_of, opening, rated_columns
from adjudge.training.step_data import StepExample, StepOptions
from adjudge.training.step_formats import STEP_READERS, step_format_of

Row = Mapping[str, Any] | ValueError
Grouped: TypeAlias = Example | StepExample
E = TypeVar("E", bound=Grouped)

_ROW_BYTES = 64 << 20
_SHOWN = 20
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class ReadRows(Generic[E]):
    """What rows held.

    Attributes:
        examples: in the rows' order; all preferences of one kind.
        rows: rows that were read, bad ones included.
        bad: how many could not be used, by reason, the commonest first, without names and numbers.
        first_bad: the first of them, "row 7: why", counted from 1 over all files.
        format: of the rows.
        attributes: names of the ratings; () for anything else.
    """

    examples: tuple[E, ...]
    rows: int
    bad: Mapping[str, int] = field(default_factory=dict)
    first_bad: tuple[str, ...] = ()
    format: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """16 hex digits that change with any example, and with their order."""
        return digest_of(self.examples)

    @property
    def counts(self) -> dict[str, Any]:
        """What a training's report says of the rows."""
        return {"rows": self.rows, "bad_rows": dict(self.bad), "first_bad_rows": list(self.first_bad[:3])}


def digest_of(examples: Iterable[Grouped]) -> str:
    """Return 16 hex digits that change with anything that is learnt from examples, and with their order."""
    digest = hashlib.sha256()
    for example in examples:
        if isinstance(example, StepExample):
            line = json.dumps([example.prompt, example.steps, example.labels, example.outcome, example.group])
        else:
            line = wire.dumps([type(example).__name__, *(getattr(example, item.name) for item in fields(example))])
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:16]


def rows_of(paths: Sequence[str], *, split: str = "", limit: int | None = None) -> Iterator[Row]:
    """Yield the rows of files, folders, patterns, addresses or data sets, the first `limit` of all together.

    Raises:
        ValueError: there is no such input, it cannot be read, or has no such split.
    """
    return itertools.islice(itertools.chain.from_iterable(_rows(path, split) for path in paths), limit)


def _rows(path: str, split: str) -> Iterator[Row]:
    try:
        for row in open_source(path, limit=_ROW_BYTES, split=split, usual_split="train").rows(Cursor()):
            data = row.cells()
            yield data if data is not None else ValueError(row.error)
    except JobError as error:
        raise ValueError(f"the data {path!r} cannot be read: {error}") from error


def parsed(rows: Iterable[Any], examples_of: Callable[[Mapping[str, Any]], Iterable[E]]) -> ReadRows[E]:
    """Return what `examples_of` makes of rows; a row for which it raises `ValueError`, or that is one, is bad."""
    examples: list[E] = []
    reasons: Counter[str] = Counter()
    first: list[str] = []
    count = 0
    for count, row in enumerate(rows, start=1):
        try:
            if isinstance(row, ValueError):
                raise row
            examples += examples_of(row)
        except ValueError as error:
            reasons[_QUOTED.sub("*", str(error))] += 1
            if len(first) < _SHOWN:
                first.append(f"row {count}: {error}")
    return ReadRows(examples=tuple(examples), rows=count, bad=dict(reasons.most_common()), first_bad=tuple(first))


def usable(data: ReadRows[E], paths: Sequence[str]) -> ReadRows[E]:
    """Return what was read, or raise `ValueError` if not one row can be used."""
    if not data.examples:
        shown = "; ".join(data.first_bad[:3]) or "there are no rows"
        raise ValueError(f"no row of {', '.join(paths)} can be used ({shown}); name another format, columns or file")
    return data


def read_preferences(
    paths: Sequence[str],
    *,
    format: Format = "auto",
    columns: Mapping[str, str] | None = None,
    attributes: Sequence[str] = (),
    split: str = "",
    limit: int | None = None,
) -> ReadRows[Example]:
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
    reading = Reading(columns=dict(columns or {}), attributes=tuple(attributes))
    return usable(parse_preferences(rows_of(paths, split=split, limit=limit), format=format, reading=reading), paths)


def parse_preferences(
    rows: Iterable[Row], *, format: Format = "auto", reading: Reading | None = None
) -> ReadRows[Example]:
    """Return the examples of rows that are at hand; items that are a `ValueError` count as bad rows."""
    chosen, name = reading or Reading(columns={}), format
    kind: type | None = None

    def examples_of(row: Mapping[str, Any]) -> list[Example]:
        nonlocal chosen, name, kind
        if name == "auto":
            name = format_of(row, chosen)
        if name == "rating" and not chosen.attributes:  # one column for all rows
            chosen = replace(chosen, attributes=rated_columns(row, chosen))
        example = READERS[name](row, chosen)
        kind = kind or type(example)
        if type(example) is not kind:
            raise ValueError("a list among pairs, or a pair among lists; give files of one kind")
        return [example]

    data = parsed(rows, examples_of)
    return replace(data, format=name, attributes=chosen.attributes if name == "rating" else ())


def without_ties(data: ReadRows[Example]) -> ReadRows[Example]:
    """Return the data without tied pairs, which are counted among the bad rows."""
    kept = tuple(example for example in data.examples if not (isinstance(example, Pair) and example.tie))
    dropped = len(data.examples) - len(kept)
    return replace(data, examples=kept, bad={**data.bad, "a tie": dropped}) if dropped else data


def read_steps(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    options: StepOptions | None = None,
    limit: int | None = None,
    split: str = "",
) -> ReadRows[StepExample]:
    """Return the solutions of a file; a row can give several.

    Args:
        path: a .jsonl, .json (also .gz) or .parquet file, a folder of `datasets`, or "hub:NAME".
        format: a name of `step_formats.STEP_READERS`; "auto" looks at the first row that is an object.
        options: what becomes of labels that can be read in several ways.
        limit: only the first rows, so many.
        split: which part of a data set that has several; "train" without it.

    Raises:
        ValueError: the file cannot be read, no format has its fields, or not one row can be used.
    """
    paths = [os.fspath(path)]
    return usable(parse_steps(rows_of(paths, split=split, limit=limit), format=format, options=options), paths)


def parse_steps(
    rows: Iterable[Any], *, format: str = "auto", options: StepOptions | None = None
) -> ReadRows[StepExample]:
    """Return the solutions of rows that are at hand; items that are a `ValueError` count as bad rows."""
    chosen, name = options or StepOptions(), format
    if name not in ("auto", *STEP_READERS):
        raise ValueError(f"the format of step data is {name!r}; give auto or one of {', '.join(STEP_READERS)}")

    def examples_of(row: Mapping[str, Any]) -> list[StepExample]:
        nonlocal name
        if not isinstance(row, Mapping):
            raise ValueError(f"the row is a {type(row).__name__}; it must be a JSON object")
        if name == "auto":
            name = step_format_of(row)
        return STEP_READERS[name](row, chosen)

    return replace(parsed(rows, examples_of), format=name)


def families(examples: Sequence[Grouped]) -> list[str]:
    """Return a name for each example that all examples share which share an opening or a group, even through others.

    An opening that all prompts share, and as many turns, is a worked example before their questions: there the whole
    prompt counts.
    """
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    openings = [opening(example.prompt) for example in examples]
    turns = {0 if isinstance(example.prompt, str) else len(example.prompt) for example in examples}
    worked = len({*openings}) == len(turns) == 1 and max(turns) > 1
    keys = [
        ("prompt", wire.dumps(example.prompt)) if worked else ("opening", first)
        for first, example in zip(openings, examples, strict=True)
    ]
    for key, first, example in zip(keys, openings, examples, strict=True):
        if example.group and not (worked and example.group == first):  # which is the group of who has none
            one, other = sorted((root(key), root(("group", example.group))))
            parent[other] = one
    return [hashlib.sha256(repr(root(key)).encode("utf-8", "surrogatepass")).hexdigest()[:16] for key in keys]


def held_out(examples: Sequence[Grouped], share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Return which examples are trained on and which are held out, by place; families stay together.

    `share` is what is held out, in (0, 1), as near as whole families allow.  Another seed holds out other families;
    families that are added do not move the others' order.

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


def split_off(examples: Sequence[E], aside: Sequence[E] | None, share: float, *, seed: int) -> tuple[list[E], list[E]]:
    """Return what is trained on and what is held out: a share, or what other files hold (`aside`).

    What shares a prompt with held-out examples of other files is not trained on.

    Raises:
        ValueError: nothing is left to train on, or to measure on.
    """
    if aside is None:
        mine, theirs = held_out(examples, share, seed=seed)
        return [examples[at] for at in mine], [examples[at] for at in theirs]
    kept = [examples[at] for at in unseen(examples, aside)]
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
