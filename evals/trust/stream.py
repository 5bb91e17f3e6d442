"""A log of scores as numbers over time: one array for each thing that is watched.

A row is a score: `value`, `status` and `reason` as `adjudge label` writes them, and whatever it has of a time, a group,
a length (or the response itself) and a latency.  The score log of `adjudge serve` has all of it; its access log and the
journals of a training run are read as far as they hold such columns.
"""

from __future__ import annotations

import itertools
import math
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from adjudge.evals.trust.config import LiveDriftConfig
from adjudge.evals.trust.verdicts import MISSING as MISSING_STATUS
from adjudge.evals.trust.verdicts import verdict_of
from adjudge.io.columns import GUESSES, MISSING, Column, unknown_column
from adjudge.io.row import Cursor
from adjudge.statistics.arrays import Floats, Ints, np

_TIMES: Final = ("time", "timestamp", "step")
_LENGTHS: Final = ("length", "response_length")
_LATENCIES: Final = ("latency", "milliseconds", "cost.seconds", "seconds")
SHARES: Final = ("failed", "abstained", "zero", "one")
"""Signals that are 0 or 1 for each row; the others are numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A log: by row a time (ascending; its number where nothing is known), a group and signals, NaN where it has none.

    Attributes:
        reasons: how many scores had each status and reason, as "failed engine_timeout".
        fingerprints: of the scorers named, in order of appearance.
    """

    name: str
    times: Floats
    axis: str
    groups: Ints
    signals: Mapping[str, Floats]
    reasons: Mapping[str, int]
    fingerprints: tuple[str, ...]
    unreadable: tuple[str, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.times)


@dataclass(slots=True)
class _Columns:
    """Lists that grow row by row."""

    times: list[float | None] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    signals: dict[str, list[float]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    fingerprints: dict[str, None] = field(default_factory=dict)


def read_stream(config: LiveDriftConfig, path: str = "") -> Stream:
    """Read a log."""
    name = path or config.input
    read, unreadable = _Columns(), []
    chosen = [(Column(key), text) for key, _, text in (given.partition("=") for given in config.where)]
    known: dict[str, None] = {}
    rows = config.opened(path)
    for row in itertools.islice(rows.rows(Cursor()), config.limit or None):
        if row.data is None:
            unreadable.append(f"row {row.index}: {row.error}")
            continue
        known |= dict.fromkeys(map(str, row.data))
        if all(str(column.of(row.data)) == text for column, text in chosen):
            _take(row.data, row.index, config, read)
    if not read.times:
        why = f"is as --where says; its columns are {', '.join(known)}" if known else "can be read"
        raise ValueError(f"no row of {name} {why}")
    _check_named(config, read, name, list(known))
    signals = {key: np.array(numbers) for key, numbers in read.signals.items() if np.isfinite(numbers).any()}
    if not signals:
        raise ValueError(f"{name} holds no scores, lengths or latencies; its columns are {', '.join(known)}")
    timed = all(time is not None for time in read.times)
    times = np.array(
        [time for time in read.times if time is not None] if timed else range(len(read.times)), dtype=float
    )
    order = np.argsort(times, kind="stable")
    if timed and times[order[0]] > 1e8:  # seconds since 1970; a step is never as large
        times, axis = times - times[order[0]], "time since the first row"
    else:
        axis = "time" if timed else "row"
    numbered = {group: at for at, group in enumerate(dict.fromkeys(read.groups))}
    return Stream(
        name=name,
        times=times[order],
        axis=axis,
        groups=np.array([numbered[group] for group in read.groups], dtype=np.int64)[order],
        signals={key: numbers[order] for key, numbers in signals.items()},
        reasons=read.reasons,
        fingerprints=tuple(read.fingerprints),
        unreadable=tuple(unreadable),
        notes=() if timed else (f"the rows of {name} have no time, and are taken in their order",),
    )


def _take(row: Mapping[str, Any], index: int, config: LiveDriftConfig, read: _Columns) -> None:
    time = _first(row, (config.time_column,) if config.time_column else _TIMES)
    read.times.append(_time(time, index))
    group = _first(row, _group_names(config.group_column))
    read.groups.append(f"g {group}" if isinstance(group, str | int) and group != "" else f"r {index}")
    signals: dict[str, float] = {}
    cell = Column(config.value_column).of(row)
    if cell is not MISSING:
        holder = row if config.value_column == "value" and "status" in row else cell
        try:
            said = verdict_of(holder)
        except ValueError as error:
            raise ValueError(f"row {index}, column {config.value_column!r}: {error}") from error
        if isinstance(said.value, str):
            text = reprlib.repr(said.value)
            raise ValueError(f"row {index}, column {config.value_column!r}: the score is the text {text}")
        read.reasons[f"{said.status} {said.reason}".rstrip()] += 1
        signals |= {
            "failed": float(said.status in ("failed", MISSING_STATUS)),
            "abstained": float(said.status == "abstained"),
        }
        if said.value is not None:
            signals |= {"value": said.value, "zero": float(said.value == 0), "one": float(said.value == 1)}
    signals["length"] = _number(_first(row, (config.length_column,) if config.length_column else _LENGTHS))
    response = row.get("response")
    if math.isnan(signals["length"]) and not config.length_column and isinstance(response, str):
        signals["length"] = float(len(response))
    signals["latency"] = _number(_first(row, (config.latency_column,) if config.latency_column else _LATENCIES))
    provenance = row.get("provenance")
    mark = (provenance if isinstance(provenance, Mapping) else row).get("fingerprint")
    if isinstance(mark, str) and mark:
        read.fingerprints[mark] = None
    for name in ("value", *SHARES, "length", "latency"):
        read.signals.setdefault(name, []).append(signals.get(name, math.nan))


def _check_named(config: LiveDriftConfig, read: _Columns, name: str, known: Sequence[str]) -> None:
    """Raise `ValueError` for a column that was named and is in no row."""
    seen = {
        "time_column": any(time is not None for time in read.times),
        "length_column": any(map(math.isfinite, read.signals["length"])),
        "latency_column": any(map(math.isfinite, read.signals["latency"])),
        "value_column": bool(read.reasons) or config.value_column == "value",
    }
    for option, there in seen.items():
        if getattr(config, option) and not there:
            flag = f"--{option.replace('_', '-')}"
            raise ValueError(f"{name}: {unknown_column(getattr(config, option), known, flag)}")


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        cell = Column(name).of(row)
        if cell is not MISSING and cell is not None and cell != "":
            return cell
    return None


def _group_names(given: str) -> Sequence[str]:
    return () if given == "-" else (given,) if given else GUESSES["group"]


def _number(cell: Any) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return math.nan
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _time(cell: Any, index: int) -> float | None:
    if cell is None:
        return None
    number = _number(cell)
    if math.isfinite(number):
        return number
    try:
        return datetime.fromisoformat(str(cell)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"row {index}: the time {reprlib.repr(cell)} is neither a number nor an ISO date") from error
