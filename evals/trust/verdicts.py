"""Stored verdicts, in memory without texts, and the options of measuring agreement, calibration and drift by them.

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
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from adjudge import wire
from adjudge.data_pipelines.label.samples import row_id
from adjudge.evals.benchmarks.fields import cluster_of
from adjudge.evals.reports.config import EvalConfig, input_facts
from adjudge.evals.reports.result import Counts, ReadCase, ReadResponse, cut
from adjudge.io.columns import GUESSES, Choice, Column, flag_of
from adjudge.io.columns import MISSING as ABSENT
from adjudge.io.row import Cursor
from adjudge.io.values import name_of
from adjudge.options import Range
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
        name = row_id(row, id_of)
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
            cell = Column(name).cell(holder)
            if cell is not None and cell is not kept:
                return cell if isinstance(cell, str) else wire.dumps(cell)
    return ""


Scale = Literal["auto", "nominal", "ordinal", "interval"]


@dataclass(frozen=True, kw_only=True)
class AgreementConfig(VerdictConfig):
    """Measure how far raters agree: judges, verifiers, people."""

    column: tuple[str, ...] = ()
    """Column of a rater, or NAME=COLUMN; give it several times. Without it, the
    scores that adjudge label wrote, by their names."""

    file: tuple[str, ...] = ()
    """Another file with verdicts on the same ids, or NAME=FILE; give it several
    times."""

    gold_column: str = ""
    """Column of what is right, if anybody knows; of the input."""

    scale: Scale = "auto"
    """nominal (equal or not), ordinal (ranks) or interval (distances). "auto" takes
    nominal for text and for two values, ordinal up to ten numbers, else interval."""

    threshold: float | None = None
    """Numbers from this one on are 1, and others 0; gold of 0 and 1 stays what it is."""


Map = Literal["auto", "none", "isotonic", "platt", "temperature"]


@dataclass(frozen=True, kw_only=True)
class CalibrationConfig(VerdictConfig):
    """Measure how well scores match outcomes, as probabilities and as an order."""

    score_column: str = "value"
    """Column of the score; "value" is where adjudge label writes it."""

    gold_column: str = "gold"
    """Column of what is right: 1 or 0."""

    gold: str = ""
    """Another file that holds the gold column, joined by id."""

    gold_threshold: float | None = None
    """For a graded gold: from this grade on a row is right."""

    threshold: Annotated[float, Range(ge=0, le=1)] = 0.5
    """From this probability on a row is called right."""

    bins: Annotated[int, Range(ge=1)] = 10
    """Bins of the calibration error, which depends on them."""

    map: Map = "auto"
    """How scores become probabilities: isotonic, platt, temperature (of log-odds),
    each fitted without the rows it is used on; or none. "auto" takes
    scores in [0, 1] as they are, and isotonic for others."""

    folds: Annotated[int, Range(ge=2)] = 5
    """Parts that the map is fitted without, in turn; groups stay whole."""


@dataclass(frozen=True, kw_only=True)
class DriftConfig(VerdictConfig):
    """Compare two scorings of the same rows: what changed, and whether the order did."""

    against: str = ""
    """A file with later verdicts on the same ids."""

    scorer: str = ""
    """Score the rows again with this, in place of a second file."""

    rows: str = ""
    """The rows that were labelled, for --scorer. Without it, the columns that
    adjudge label --keep-columns kept."""

    column: str = ""
    """Column of the score; without it, where adjudge label writes it."""

    tolerance: Annotated[float, Range(ge=0)] = 0.0
    """Two numbers that differ by no more than this are the same."""

    allowed: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Share of changed rows with which the check still passes."""

    threshold: float | None = None
    """Numbers from this one on count as right, for the share of verdicts that flip."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.against) == bool(self.scorer):
            given = "both are given" if self.scorer else "neither is given"
            raise ValueError(f"drift compares with a file or with a scorer, and {given}; give --against or --scorer")
        if self.rows and not self.scorer:
            raise ValueError(f"rows is {self.rows!r}, which only --scorer reads; leave it out")


@dataclass(frozen=True, kw_only=True)
class LiveDriftConfig(EvalConfig):
    """Watch the scores of a service or a run over time: has anything changed since the beginning?

    The input has a row for each score, as a log writes them.
    """

    value_column: str = "value"
    """Column of the score; status and reason stand beside it, as adjudge label
    writes them. Without such a column, only lengths and latencies are watched."""

    time_column: str = ""
    """Column of the time: seconds, a step, or an ISO date; without it the usual
    names, and then the order of the rows."""

    length_column: str = ""
    """Column of the response's length; without it the usual names, and then the
    characters of the response."""

    latency_column: str = ""
    """Column of how long a score took; without it the usual names."""

    group_column: str = ""
    """Column that rows of one prompt share, which are alike; without it the usual
    names; "-" takes every row for itself."""

    where: tuple[str, ...] = ()
    """COLUMN=TEXT: only rows that say so, such as scorer=math; give it several
    times."""

    reference: str = ""
    """Another log to compare with; without it, the first rows of this one."""

    reference_rows: int = 2_000
    """How many first rows the others are compared with."""

    window: Annotated[int, Range(ge=20)] = 500
    """Rows of a window."""

    alarm: Annotated[float, Range(gt=0, lt=1)] = 0.01
    """Chance of any false alarm in the whole log."""

    psi: Annotated[float, Range(ge=0)] = 0.1
    """A window whose numbers have less than this population stability index
    is not an alarm, however sure the difference is."""

    share: Annotated[float, Range(ge=0)] = 0.02
    """A share (of failures, of zeros) that changes by less than this is not an alarm."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_rows < 2 * self.window and not self.reference:
            raise ValueError(
                f"reference_rows is {self.reference_rows!r}; give two windows of {self.window} rows at least"
            )
        for given in self.where:
            if "=" not in given:
                raise ValueError(f"where is {given!r}; give COLUMN=TEXT")
