"""Stored verdicts: what raters said about rows, in memory without texts.

The texts of the few rows that a person is to read are fetched afterwards (`texts_of`), so that files of any size are
read with a few hundred bytes for each row.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from adjudge import wire
from adjudge.evals.benchmarks.fields import cluster_of
from adjudge.evals.reports.config import EvalConfig, input_facts
from adjudge.evals.reports.result import Counts, ReadCase, ReadResponse, cut
from adjudge.io.columns import GUESSES, Choice, Column, flag_of
from adjudge.io.columns import MISSING as ABSENT
from adjudge.io.row import Cursor
from adjudge.io.values import name_of
from adjudge.protocol import STATUSES

Said: TypeAlias = float | str
"""A number or a label."""

MISSING = "missing"
"""The status of a rater that was not asked, or whose cell is empty."""


class Verdict(NamedTuple):
    """What a rater said.

    Attributes:
        value: a finite number, a label, or None.
        status: "scored", "abstained", "failed", or "missing" where nothing is written.
        reason: why there is no value, or what the response did; "" if nobody said.
    """

    value: Said | None
    status: str
    reason: str = ""

    @property
    def number(self) -> float | None:
        """The number; None where there is none."""
        return self.value if isinstance(self.value, float) else None

    @property
    def shown(self) -> str:
        """The verdict as text for people."""
        text = f"{self.number:.6g}" if self.number is not None else str(self.value or self.status)
        return f"{text} ({self.reason})" if self.reason else text


NOTHING = Verdict(None, MISSING)


def verdict_of(cell: Any) -> Verdict:
    """Return what a cell says: a score that `adjudge label` wrote, a number, a truth value, a label, or nothing.

    A number that is not finite is a failure to judge.  Text that is a number is one, as all cells of a .csv are text.

    """
    if isinstance(cell, Mapping):
        return _of_score(cell)
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return NOTHING
    if isinstance(cell, str):
        try:
            number = float(cell.replace("_", "x"))  # Python takes 1_0 for 10; here it is a label
        except ValueError:
            return Verdict(cell.strip(), "scored")
    elif isinstance(cell, int | float):
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
    else:
        raise ValueError(f"it holds a {type(cell).__name__}; a verdict is a number, a label, or a score")
    return Verdict(number, "scored") if math.isfinite(number) else Verdict(None, "failed", "not_finite")


def _of_score(score: Mapping[str, Any]) -> Verdict:
    if "value" not in score:
        raise ValueError(f"it is an object without `value`; its fields are {', '.join(map(str, list(score)[:12]))}")
    inner = NOTHING if isinstance(score["value"], Mapping) else verdict_of(score["value"])
    status = score.get("status") or ("scored" if inner.value is not None else inner.status)
    if status not in (*STATUSES, MISSING) or (status == "scored") != (inner.value is not None):
        if inner.reason:
            return inner
        value = reprlib.repr(score["value"])
        raise ValueError(f"its status is {status!r} and its value {value}; a score is one exactly if scored")
    return Verdict(inner.value, status, str(score.get("reason") or inner.reason))


@dataclass(frozen=True, kw_only=True)
class VerdictConfig(EvalConfig):
    """Options of an evaluation of stored verdicts."""

    id_column: str = ""
    """Column of the id; without it the usual names, and then the row's number.
    Of every column: a.b.c reaches into nested objects."""

    group_column: str = ""
    """Column that rows of one prompt share; they are drawn together.
    Without it the usual names, and then the prompt itself; "-" takes every row for itself."""

    prompt_column: str = ""
    """Column of the prompt."""

    response_column: str = ""
    """Column of the response, for the cases to read."""


_PEEKED: Final = 100
SHOWN: Final = 2_000
"""Characters of a text that a person reads; the middle is cut."""
_ALONE: Final = "-"


@dataclass(slots=True, kw_only=True)
class VerdictTable:
    """The verdicts of a file.

    Attributes:
        ids: one for each row; no two are equal.
        groups: rows that depend on each other share one.
        verdicts: by rater, one for each row.
        places: the number of each row in the file.
        who: by rater, what its first score says of its scorer: "name", "fingerprint"; empty where nothing is said.
    """

    name: str
    ids: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    who: dict[str, dict[str, str]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    guesses: list[str] = field(default_factory=list)

    def by_id(self, rater: str) -> dict[str, Verdict]:
        """Return a rater's verdicts by id."""
        return dict(zip(self.ids, self.verdicts[rater], strict=True))


def read_verdicts(config: VerdictConfig, raters: Sequence[str], *, path: str = "") -> VerdictTable:
    """Read what raters said, by their columns, or NAME=COLUMN; without any, the scores that `adjudge label` wrote.

    Of another file than `config.input`, at `path`, all is read, whatever the limit.
    """
    source = config.opened(path)
    peeked = [row.data for row in itertools.islice(source.rows(Cursor()), _PEEKED) if row.data is not None]
    if not peeked:
        raise ValueError(f"{source.name} holds no rows that can be read; is it the format that its name says?")
    filled = dict.fromkeys(str(name) for row in peeked for name, cell in row.items() if cell not in (None, ""))
    choice = Choice(list(filled), peeked, flag=lambda role: f"{source.name}: {flag_of(role) if role else 'the column'}")
    columns = _rater_columns(raters, peeked[0], choice, source.name)
    id_of = None if config.id_column == _ALONE else choice.pick("id", config.id_column)
    alone = config.group_column == _ALONE
    named = config.group_column in choice.known or not path  # rows of another file are known by their ids
    group_of = None if alone else choice.pick("group", config.group_column if named else "")
    table = VerdictTable(name=source.name, verdicts={name: [] for name in columns}, guesses=choice.notes)
    known: set[str] = set()
    for row in itertools.islice(source.rows(Cursor()), None if path else config.limit or None):
        if row.data is None:
            table.unreadable.append(f"row {row.index}: {row.error}")
            continue
        name = (name_of(id_of.of(row.data)) if id_of is not None else "") or str(row.index)
        if name in known:
            raise ValueError(
                f"two rows of {source.name} have the id {name!r}, the second is row {row.index}; remove one"
            )
        known.add(name)
        for rater, column in columns.items():
            table.verdicts[rater].append(_said(row.data, column, rater, row.index, table))
        group = name_of(group_of.of(row.data)) if group_of is not None else ""
        table.ids.append(name)
        asked = "" if alone or group else _asked(row.data, config)
        table.groups.append(f"group {group}" if group else f"prompt {asked}" if asked else f"row {row.index}")
        table.places.append(row.index)
    if not table.ids:
        raise ValueError(f"none of the rows of {source.name} can be read: {table.unreadable[0]}")
    table.facts = input_facts(source, len(table.ids) + len(table.unreadable))
    return table


def texts_of(config: VerdictConfig, places: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return prompt and response of some rows, by their number; "" where the file has no such column.

    Outputs of `adjudge label` hold texts only where it was asked to keep the columns.
    """
    wanted = set(places)
    texts: dict[int, tuple[str, str]] = {}
    if not wanted:
        return texts
    for row in itertools.islice(config.opened().rows(Cursor()), max(wanted) + 1):
        cells = row.cells() if row.index in wanted else None
        if cells is not None:
            texts[row.index] = (
                cut(_named_text(cells, config.prompt_column, "prompt"), SHOWN),
                cut(_named_text(cells, config.response_column, "response"), SHOWN),
            )
    return texts


def read_case(
    texts: tuple[str, str] | None,
    *,
    id: str,
    verdict: str,
    weight: float,
    said: str,
    value: float | None = None,
    gold: str = "",
) -> ReadCase:
    """Return a row that a person is to read, with its prompt and response, as `ReadCase` has it."""
    prompt, response = texts or ("", "")
    responses = (ReadResponse(text=response, said=said, value=value),)
    return ReadCase(id=id, part="", verdict=verdict, weight=weight, prompt=prompt, responses=responses, gold=gold)


def counts_of(said: Sequence[Verdict], unreadable: int) -> Counts:
    """Return how many verdicts there are of each status; a cell that is empty could not be judged."""
    statuses = Counter(one.status for one in said)
    return Counts(
        cases=len(said),
        samples=len(said),
        scored=statuses["scored"],
        abstained=statuses["abstained"],
        failed=statuses["failed"] + statuses[MISSING],
        unreadable=unreadable,
        reasons=Counter(one.reason or one.status for one in said if one.value is None),
    )


def unreadable_notes(unreadable: Sequence[str]) -> list[str]:
    """Return notes on the first rows that could not be read."""
    return [f"cannot be read: {problem}" for problem in unreadable[:5]]


def _asked(row: Mapping[str, Any], config: VerdictConfig) -> str:
    """Return a short name of a row's prompt, which label jobs write; "" where there is none."""
    if not config.prompt_column and (name := name_of(row.get("prompt_hash"))):
        return name
    prompt = _named_text(row, config.prompt_column, "prompt")
    return cluster_of(prompt) if prompt else ""


def _rater_columns(raters: Sequence[str], first: Mapping[str, Any], choice: Choice, source: str) -> dict[str, Column]:
    scores = first.get("scores")
    if not raters and isinstance(scores, Mapping) and scores:
        return {str(name): Column(f"scores.{name}") for name in scores}
    if not raters and "value" in first and "status" in first:
        return {"value": Column("value")}
    if not raters:
        raise ValueError(
            f"{source} is not an output of `adjudge label`, so say with --column where its scores are; its columns "
            f"are {', '.join(map(str, list(first)[:40]))}"
        )
    columns: dict[str, Column] = {}
    for given in raters:
        name, _, path = given.rpartition("=")
        if (name or path) in columns:
            raise ValueError(f"two raters are called {name or path!r}; give each its own name, as NAME=COLUMN")
        columns[name or path] = choice.given("", path)
    return columns


def _said(row: Mapping[str, Any], column: Column, rater: str, index: int, table: VerdictTable) -> Verdict:
    cell = column.of(row)
    holder = row if column.path == ("value",) else Column(".".join(column.path[:-1])).of(row)
    if column.path[-1] == "value" and isinstance(holder, Mapping) and "status" in holder:
        cell = holder  # the status and the reason stand beside the value
    if cell is ABSENT:
        return NOTHING
    if rater not in table.who and isinstance(cell, Mapping) and isinstance(cell.get("provenance"), Mapping):
        told = cell["provenance"]
        table.who[rater] = {"name": name_of(told.get("scorer")), "fingerprint": name_of(told.get("fingerprint"))}
    try:
        return verdict_of(cell)
    except ValueError as error:
        raise ValueError(f"row {index} of {table.name}, column {column.name!r}: {error}") from error


def kept_input(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the columns that `adjudge label --keep-columns` kept in a row; None if it kept none."""
    kept = row.get("input")
    if isinstance(kept, str) and kept.startswith("{"):  # text in Parquet, whose columns have one shape
        with contextlib.suppress(ValueError):
            kept = json.loads(kept)
    return kept if isinstance(kept, Mapping) else None


def _named_text(row: Mapping[str, Any], given: str, role: str) -> str:
    kept = kept_input(row)
    for holder in (row, {} if kept is None else kept):
        for name in (given,) if given else GUESSES[role]:
            cell = Column(name).of(holder)
            if cell is not ABSENT and cell is not None and cell is not kept:
                return cell if isinstance(cell, str) else wire.dumps(cell)
    return ""
