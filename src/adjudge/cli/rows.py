"""The rows that `adjudge check` and `adjudge compare` read, and what they look like.

Columns and cells are read as everywhere (`adjudge.io`), so what is shown here is what a job, an evaluation or a
training run will see.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from adjudge.cli.trials import Finding
from adjudge.data_pipelines.label.plan import check_rows
from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.io.columns import (
    GUESSES,
    MISSING,
    Column,
    ColumnMap,
    ColumnOptions,
    map_columns,
)
from adjudge.io.jobs.opening import Glance, glance
from adjudge.io.positions import refuse_position
from adjudge.io.preferences import (
    CHOSEN,
    LABELS,
    PROMPTS,
    RANKS,
    REJECTED,
    RESPONSES,
    SCORES,
    SIDES,
    Preference,
    PreferenceColumns,
    PreferenceOptions,
    is_preference,
    read_preference,
)
from adjudge.io.row import Cursor, Row
from adjudge.io.source import DatasetChoice, Source
from adjudge.io.values import is_chat, nested_names, reference_of
from adjudge.io.values import plain as plain_data
from adjudge.protocol import Sample
from adjudge.score_view import plain
from adjudge.scoring.compose.auto import auto_scorer
from adjudge.training.examples import Reading, rated_columns

_REFERENCES: Final = {
    "math": "answers", "code": "tests", "sql": "queries", "verilog": "designs", "instructions": "constraints",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFact:
    """What one column is."""

    name: str
    role: str
    guessed: bool
    holds: str
    first: str


def column_facts(
    roles: Sequence[tuple[Column, str]],
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    named: Sequence[str],
    references: Mapping[str, int],
) -> list[ColumnFact]:
    """Return what each column is, those that are taken for something first."""
    tops = {top for column, _ in roles for top in column.tops(names)}
    facts = []
    for column, role in [*roles, *((Column(name), "") for name in names if name not in tops)]:
        values = [column.of(row) for row in rows]
        there = next((value for value in values if not _is_empty(value)), None)
        facts.append(
            ColumnFact(
                name=column.name,
                role=role,
                guessed=bool(role) and column.name not in named,
                holds=said_of_references(references) if role == "reference" else _holds(values),
                first="" if there is None else plain(plain_data(there), 40),
            )
        )
    return facts


def references_by_kind(samples: Iterable[Sample]) -> dict[str, int]:
    """Return how many references there are of each kind: by the scorer that they call for, "none" and "unknown"."""
    counted: Counter[str] = Counter()
    for sample in samples:
        try:
            kind = "none" if sample.reference is None else scorer_name(auto_scorer(sample.reference, sample.prompt))
        except ValueError:
            kind = "unknown"
        counted[kind] += 1
    return dict(counted.most_common())


def scorer_name(spec: str) -> str:
    """Return the name of the scorer that "auto" means by a spec."""
    return str(next(iter(json.loads(spec)))) if spec.startswith("{") else spec


def said_of_references(counts: Mapping[str, int]) -> str:
    """Return the counts of references as words."""
    words = {"none": "rows without one", "unknown": "whose form names no scorer"}
    return ", ".join(
        f"{count} {words.get(name) or (f'{_REFERENCES[name]} ({name})' if name in _REFERENCES else name)}"
        for name, count in counts.items()
    )


def preference_roles(rows: Sequence[Mapping[str, Any]], given: PreferenceColumns) -> list[tuple[Column, str]]:
    """Return the columns that preference rows are read from, each with what it is read as."""

    def there(named: str, usual: Sequence[str]) -> list[str]:
        have = [name for name in usual if any(not _is_empty(Column(name).of(row)) for row in rows)]
        return [named] if named else have[:1]

    sides = next((pair for pair in SIDES if all(rows[0].get(name) is not None for name in pair)), ("", ""))
    roles = [(name, "prompt") for name in there(given.prompt, PROMPTS)]
    if given.first or (sides[0] and not there(given.chosen, CHOSEN)):
        first, second = (given.first, given.second) if given.first else sides
        roles += [(first, "first response"), (second, "second response")]
        roles += [(name, "label") for name in there(given.label, LABELS)]
    elif there(given.chosen, CHOSEN):
        roles += [(name, "chosen") for name in there(given.chosen, CHOSEN)]
        roles += [(name, "rejected") for name in there(given.rejected, REJECTED)]
    else:
        roles += [(name, "responses") for name in there(given.responses, RESPONSES)]
        ranks = there(given.ranks, RANKS)
        roles += [(name, "ranks") for name in ranks] or [(name, "scores") for name in there(given.scores, SCORES)]
    return [(Column(name), role) for name, role in roles]


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or (isinstance(value, str | list | Mapping) and not value)


def _holds(values: Sequence[Any]) -> str:
    """The kinds of some values, the most frequent first, with counts where there are several."""
    counted = Counter(_kind(plain_data(value)) for value in values).most_common(3)
    return counted[0][0] if len(counted) == 1 else ", ".join(f"{count} {kind}" for kind, count in counted)


def _kind(value: Any) -> str:
    if _is_empty(value):
        return "empty"
    if is_chat(value):
        return "chat"
    if isinstance(value, Mapping):
        return f"object of {', '.join(list(value)[:4])}"
    if isinstance(value, list):
        return f"list of {_kind(value[0])}"
    if isinstance(value, str):
        return "text" if isinstance(reference_of(value), str) else "JSON text"
    return "true or false" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "other data"


Kind = Literal["preferences", "ratings", "answers", "references", "prompts"]

KINDS: Final[Mapping[Kind, str]] = {
    "preferences": "preferences: which response is better",
    "ratings": "responses with ratings",
    "answers": "responses",
    "references": "references without responses",
    "prompts": "prompts alone",
}
"""What rows look like, in words."""

_ROW_BYTES: Final = 16 << 20
_HELD_BYTES: Final = 64 << 20  # rows that are looked at, together


@dataclass(frozen=True, kw_only=True)
class RowOptions(DatasetChoice, ColumnOptions):
    """Which rows a command reads, and what their columns are."""

    def source(self, name: str) -> Source:
        """Open an input.

        Raises:
            ValueError: there is no such input, or it cannot be read.
        """
        return self.opened(name, limit=_ROW_BYTES)

    def seen(self, source: Source) -> Glance:
        """Return what the first rows of an input show.

        Raises:
            ValueError: there are none, or none can be read.
        """
        seen = glance(source)
        if not seen.rows:
            raise ValueError(f"{source.name} holds no rows")
        return seen


@dataclass(frozen=True, kw_only=True)
class PairOptions(RowOptions, PreferenceOptions):
    """The same, and the columns of rows that say which of two responses is better."""


@dataclass(slots=True, kw_only=True)
class Rows:
    """The first rows of an input.

    Attributes:
        name: what the user called it.
        kind: what they look like.
        columns: which column is what.
        facts: the same for people, with the columns that are taken for nothing.
        missing: what was not found, or is not read as it stands.
        ratings: the columns of ratings.
        read: how many rows were looked at.
        total: how many there are, or None if nobody knows.
        asked: the prompt and the reference of each row, with an empty response.
        answered: one sample for each response.
        preferences: what preference rows say, by id.
        unread: the rows and responses that cannot be used.
    """

    name: str
    kind: Kind
    columns: ColumnMap
    read: int
    total: int | None
    facts: Sequence[ColumnFact] = ()
    missing: Sequence[str] = ()
    ratings: tuple[str, ...] = ()
    asked: list[Sample] = field(default_factory=list)
    answered: list[Sample] = field(default_factory=list)
    preferences: list[tuple[str, Preference]] = field(default_factory=list)
    unread: list[Finding] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what the columns are as plain data."""
        return {
            "kind": self.kind,
            "rows": self.read,
            "total_rows": self.total,
            "columns": [asdict(fact) for fact in self.facts],
            "references": references_by_kind(self.asked),
            "notes": list(self.missing),
        }


def read_rows(name: str, options: PairOptions, limit: int, *, choosing: bool = False) -> Rows:
    """Read the first rows of an input.

    Args:
        name: a file, a folder, a pattern, an address or a dataset.
        options: the columns that the user named.
        limit: most rows; 0 for all.
        choosing: whether the references choose the scorer.

    Raises:
        ValueError: the input cannot be read, no column is known, or a column is of the wrong type in every row.
    """
    names, wanted = options.preference_columns(), options.wanted_columns()
    source = options.source(name)
    seen = options.seen(source)
    read, more = _first(source, limit)
    total = source.count() if more else len(read)
    cells = [data for row in read if (data := row.cells()) is not None]
    columns, notes = map_columns(wanted, seen.columns, seen.rows, closed=seen.closed, needs_response=False)
    ratings: tuple[str, ...] = ()
    if not options.response_column and _are_preferences(cells[: len(seen.rows)], names, columns):
        kind: Kind = "preferences"
    elif columns.responses:
        ratings = () if columns.reference is not None else _ratings(cells, columns)
        kind = "ratings" if ratings else "answers"
    elif columns.reference is not None:
        kind = "references"
    elif columns.prompt is not None:
        kind = "prompts"
    else:
        tried = "; ".join(f"{role}: {', '.join(GUESSES[role])}" for role in ("prompt", "response", "reference"))
        known = ", ".join([*seen.columns, *nested_names(seen.rows)][:40])
        raise ValueError(
            f"no column of {name} has a usual name ({tried}; pair: chosen, rejected); name yours with --prompt-column, "
            "--response-column, --reference-column, or --chosen-column and --rejected-column. "
            f"The columns are: {known}."
        )
    if kind != "preferences":
        notes += check_rows(wanted, name, seen.rows, columns)
    missing = [note for note in notes if "(guessed;" not in note and kind != "preferences"]
    rows = Rows(name=name, kind=kind, columns=columns, read=len(read), total=total, missing=missing, ratings=ratings)
    for row in read:
        _add(rows, row, names)
    if not (rows.answered if kind in ("answers", "ratings") else rows.asked):
        raise ValueError(f"none of {rows.read} rows can be used: {rows.unread[0].problem}; name other columns")
    if choosing:
        refuse_position(columns.reference, cells)
    roles = _roles(rows)
    if kind == "preferences":
        roles = preference_roles(cells, names) + [(column, role) for column, role in roles if role == "id"]
    named = [wanted.prompt, *wanted.responses, wanted.reference, wanted.id, wanted.group, wanted.finish_reason]
    named += [*wanted.extra, names.chosen, names.rejected, names.first, names.second, names.label]
    rows.facts = column_facts(roles, cells, seen.columns, named, references_by_kind(rows.asked))
    return rows


def read_items(name: str, options: RowOptions, sampler: Sampler) -> Iterator[Item]:
    """Yield the items of all rows of an input, with the columns that the options name or the usual ones.

    Raises:
        ValueError: there is no such input or column.
    """
    source = options.source(name)
    seen = options.seen(source)
    columns, _ = map_columns(options.wanted_columns(), seen.columns, seen.rows, closed=seen.closed)
    reader = replace(sampler, columns=columns)
    return (item for row in source.rows(Cursor()) for item in reader.items(row, reader.group_of(row)))


def _first(source: Source, limit: int) -> tuple[list[Row], bool]:
    """The first rows, and whether there are more."""
    read: list[Row] = []
    held = 0
    for row in source.rows(Cursor()):
        if limit and (len(read) == limit or held >= _HELD_BYTES):
            return read, True
        read.append(row)
        held += row.size
    return read, False


def _are_preferences(rows: Sequence[Mapping[str, Any]], names: PreferenceColumns, columns: ColumnMap) -> bool:
    """Whether most rows can be read as preferences, and have no other use: a list of scored answers to check has one.

    Raises:
        ValueError: the user named columns of preferences, and no row can be read by them; or rows look like
            preferences and like nothing else, and cannot be read.
    """
    named = replace(names, prompt="") != PreferenceColumns()
    if not named and 2 * sum(is_preference(row) for row in rows) < len(rows):
        return False
    layouts, problem = [], ""
    for row in rows:
        try:
            layouts.append(read_preference(row, names).layout)
        except ValueError as error:
            problem = problem or str(error)
    if 2 * len(layouts) < len(rows):
        if named or not columns.responses:
            raise ValueError(
                f"the rows look like preferences, and most of the first {len(rows)} cannot be read: {problem}"
            )
        return False
    return named or layouts[0] != "listed" or columns.reference is None


def _ratings(rows: Sequence[Mapping[str, Any]], columns: ColumnMap) -> tuple[str, ...]:
    """The columns that rate the response: the usual one, or all numbers where every further column is a number."""
    usual = rated_columns(rows[0], Reading(columns={}))
    taken = {column.name for column in columns.all()}
    more = [name for name in rows[0] if name not in taken]
    numeric = [
        name for name in (*usual, *more) if all(isinstance(row.get(name), bool | int | float | None) for row in rows)
    ]
    return usual if usual and usual[0] in numeric else tuple(more) if more and numeric == more else ()


def _add(rows: Rows, row: Row, names: PreferenceColumns) -> None:
    """Put what a row says where it belongs."""
    columns = rows.columns
    sampler = Sampler(columns=columns)
    if rows.kind == "preferences" and (cells := row.cells()) is not None:
        (bare,) = Sampler(columns=ColumnMap(id=columns.id)).items(row, "")
        try:
            said = read_preference(cells, names)
        except ValueError as error:
            rows.unread.append(Finding(row=bare.id, how="the row", problem=str(error)))
            return
        rows.preferences.append((bare.id, said))
        rows.asked.append(Sample(prompt=said.prompt, response="", id=bare.id))
        return
    (bare,) = replace(sampler, columns=replace(columns, responses=(), finish_reason=None)).items(row, "")
    items = sampler.items(row, sampler.group_of(row)) if columns.responses and row.data is not None else [bare]
    for item in items:
        if item.sample is None:
            rows.unread.append(Finding(row=item.id, how="the row", problem=item.error))
        elif columns.responses:
            rows.answered.append(item.sample)
    first = next((item.sample for item in items if item.sample is not None), None)
    if bare.sample is not None:  # a response that is a whole chat holds the prompt
        rows.asked.append(replace(bare.sample, prompt=first.prompt) if first is not None else bare.sample)


def _roles(rows: Rows) -> list[tuple[Column, str]]:
    """The columns that are read, each with what it is read as."""
    columns = rows.columns
    whole = columns.prompt is None and rows.answered and rows.answered[0].prompt  # chats, each with its prompt
    roles: list[tuple[Column | None, str]] = [(columns.prompt, "prompt")]
    roles += [(column, "prompt and response" if whole else "response") for column in columns.responses]
    roles += [(columns.reference, "reference"), (columns.id, "id"), (columns.group, "group")]
    roles += [(columns.finish_reason, "finish reason"), *((Column(name), "rating") for name in rows.ratings)]
    return [(column, role) for column, role in roles if column is not None] + [
        (each, "extra") for each in columns.extra
    ]
