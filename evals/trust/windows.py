"""A log of scores over time, cut into the reference and windows, each tested against chance, and where it changed.

A row is a score: `value`, `status` and `reason` as `adjudge label` writes them, and whatever it has of a time, a group,
a length (or the response itself) and a latency.  The score log of `adjudge serve` has all of it; its access log and the
journals of a training run are read as far as they hold such columns.

Rows of one group are alike, so tests count fewer rows than there are: by the design effect of the reference, the
variance of sums over groups over that of as many independent rows (Kish 1965).  Windows are compared by the distance of
Kolmogorov 1933 and Smirnov 1948, with Stephens' (1970) approximation of the tail, and by the population stability index
of credit scoring, the symmetric divergence of binned shares.

Change points are cumulative sums (Page 1954), one for each direction, of blocks of rows against the reference: of 0 and
1 for shares, and for numbers of their ranks in the reference, which giants cannot move.  They forgive half a standard
deviation a block.  Their limit is not taken from a table: streams without a change are drawn, with the uncertainty of
the reference in them, and the limit is what so few of them pass.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from adjudge.evals.trust.verdicts import MISSING as MISSING_STATUS
from adjudge.evals.trust.verdicts import LiveDriftConfig, verdict_of
from adjudge.io.columns import GUESSES, MISSING, Column, unknown_column
from adjudge.io.row import Cursor
from adjudge.io.values import number_of
from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.intervals import numbered
from adjudge.statistics.significance import holm

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
    for row in itertools.islice(config.opened(path).rows(Cursor()), config.limit or None):
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
    times = np.array(read.times if timed else range(len(read.times)), dtype=float)
    order = np.argsort(times, kind="stable")
    if timed and times[order[0]] > 1e8:  # seconds since 1970; a step is never as large
        times, axis = times - times[order[0]], "time since the first row"
    else:
        axis = "time" if timed else "row"
    return Stream(
        name=name,
        times=times[order],
        axis=axis,
        groups=numbered(read.groups)[order],
        signals={key: numbers[order] for key, numbers in signals.items()},
        reasons=read.reasons,
        fingerprints=tuple(read.fingerprints),
        unreadable=tuple(unreadable),
        notes=() if timed else (f"the rows of {name} have no time, and are taken in their order",),
    )


def _take(row: Mapping[str, Any], index: int, config: LiveDriftConfig, read: _Columns) -> None:
    read.times.append(_time(_first(row, config.time_column, _TIMES), index))
    group = None if config.group_column == "-" else _first(row, config.group_column, GUESSES["group"])
    read.groups.append(f"g {group}" if isinstance(group, str | int) else f"r {index}")
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
        signals["failed"] = float(said.status in ("failed", MISSING_STATUS))
        signals["abstained"] = float(said.status == "abstained")
        if said.value is not None:
            signals |= {"value": said.value, "zero": float(said.value == 0), "one": float(said.value == 1)}
    signals["length"] = _number(_first(row, config.length_column, _LENGTHS))
    response = row.get("response")
    if math.isnan(signals["length"]) and not config.length_column and isinstance(response, str):
        signals["length"] = float(len(response))
    signals["latency"] = _number(_first(row, config.latency_column, _LATENCIES))
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


def _first(row: Mapping[str, Any], given: str, usual: Sequence[str]) -> Any:
    cells = (Column(name).of(row) for name in ((given,) if given else usual))
    return next((cell for cell in cells if cell is not MISSING and cell not in (None, "")), None)


def _number(cell: Any) -> float:
    number = None if isinstance(cell, bool) else number_of(cell)
    return math.nan if number is None else number


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


_BINS = 10


def design_effect(numbers: Floats, groups: Ints) -> float:
    """Return how many rows count as one; 1 for independent rows."""
    moved = numbers - numbers.mean()
    square = float((moved**2).sum())
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], moved)
    return max(1.0, float((sums**2).sum()) / square) if square > 0 else 1.0


def stability_index(reference: Floats, window: Floats) -> float:
    """Return the population stability index, >= 0, in ten bins of about equal mass in the reference.

    Values of which there are at most ten in the reference get a bin each.  Half a row is added to each bin, so that an
    empty one does not make it infinite.
    """
    distinct = np.unique(reference)
    if len(distinct) <= _BINS:
        edges = (distinct[1:] + distinct[:-1]) / 2
    else:
        edges = np.unique(np.quantile(reference, np.arange(1, _BINS) / _BINS))
    shares = []
    for side in (reference, window):
        counts = np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1) + 0.5
        shares.append(counts / counts.sum())
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


def ks_distance(reference: Floats, window: Floats) -> float:
    """Return the largest distance of the two distribution functions, in [0, 1]."""
    places = np.concatenate([reference, window])
    below = [np.searchsorted(np.sort(side), places, side="right") / len(side) for side in (reference, window)]
    return float(np.abs(below[0] - below[1]).max())


def ks_p(distance: float, first: float, second: float) -> float:
    """Return the chance of so large a distance between samples of these effective sizes from one distribution."""
    size = math.sqrt(first * second / (first + second))
    at = (size + 0.12 + 0.11 / size) * distance
    if at < 0.2:
        return 1.0  # the alternating series does not converge there, and its sum is 1 to ten digits
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * at) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, math.fsum(terms)))


def share_p(first: float, first_rows: float, second: float, second_rows: float) -> float:
    """Return the chance of so different shares of effective sizes, by the corrected chi-square test (Yates 1934)."""
    total = first_rows + second_rows
    pooled = (first * first_rows + second * second_rows) / total
    spread = pooled * (1 - pooled) * (1 / first_rows + 1 / second_rows)
    if spread <= 0:
        return 1.0
    distance = max(0.0, abs(first - second) - 0.5 * (1 / first_rows + 1 / second_rows))
    return math.erfc(distance / math.sqrt(2 * spread))


_FORGIVEN = 0.5
_ROUNDS = 4_000
_MIN_RANK = 0.05
"""A change point moves the chance that a row is above one of the reference by at least this much, or is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """What the cumulative sums say.

    Attributes:
        rises: sum of what is above the reference, one for each block; `falls`, of what is below it.
        limit: that only so few streams without a change pass.
        alarm: the first block that passes it; None if none does.
        change: the block with which the change seems to begin.
        moved: the mean since then minus that of the reference, in shares or ranks from 0 to 1.
    """

    rises: Floats
    falls: Floats
    limit: float
    alarm: int | None = None
    change: int | None = None
    moved: float = 0.0


def find_change(
    reference: Floats,
    stream: Floats,
    groups: Ints,
    *,
    block: int,
    alarm: float,
    share: float | None = None,
    seed: int = 0,
) -> ChangePoint:
    """Look for a change.

    Args:
        reference: rows without one, at least two.
        stream: the rows behind it, NaN where a row has no number; blocks without any are left out of the sums.
        groups: of the rows of the reference, for the design effect.
        block: rows of a block.
        alarm: chance that a stream without a change is said to have one.
        share: the least difference that matters, where rows are 0 or 1; None for numbers.
        seed: of the streams that the limit is drawn from.
    """
    ranked = share is None
    said = _ranks(reference, reference) if ranked else reference
    effect = design_effect(said, groups)
    size, known = block / effect, len(said) / effect
    mean, spread = _moments(said, known, ranked=ranked)
    error = spread / math.sqrt(size)
    blocks = [stream[at : at + block] for at in range(0, len(stream) - block + 1, block)]
    kept = [one[np.isfinite(one)] for one in blocks]
    means = np.array([(_ranks(reference, one) if ranked else one).mean() if len(one) else mean for one in kept])
    rises, falls = _sums((means - mean) / error)
    limit = _limit(len(blocks), mean, error, size, known, ranked=ranked, alarm=alarm, seed=seed)
    quiet = ChangePoint(rises=rises, falls=falls, limit=limit)
    passed = np.flatnonzero(np.maximum(rises, falls) > limit)
    if not len(passed):
        return quiet
    at = int(passed[0])
    side = rises if rises[at] > limit else falls
    zeros = np.flatnonzero(side[: at + 1] == 0)
    begin = int(zeros[-1]) + 1 if len(zeros) else 0
    moved = float(means[begin : at + 1].mean()) - mean
    if abs(moved) < (_MIN_RANK if share is None else share):
        return quiet
    return dataclasses.replace(quiet, alarm=at, change=begin, moved=moved)


def _ranks(reference: Floats, numbers: Floats) -> Floats:
    """Return the share of the reference below each number, ties as half."""
    ordered = np.sort(reference)
    below = [np.searchsorted(ordered, numbers, side=side) for side in ("left", "right")]
    ranks: Floats = (below[0] + below[1]) / (2 * len(ordered))
    return ranks


def _moments(said: Floats, known: float, *, ranked: bool) -> tuple[float, float]:
    """Return mean and standard deviation of a row; of a share with half a row on either side, so that it is not 0."""
    if ranked:
        return float(said.mean()), max(float(said.std()), 1e-9)
    share = (float(said.mean()) * known + 0.5) / (known + 1)
    return share, math.sqrt(share * (1 - share))


def _sums(moved: Floats) -> tuple[Floats, Floats]:
    """Return Page's sums in both directions."""
    rises, falls = np.zeros_like(moved), np.zeros_like(moved)
    up = down = np.zeros(())
    for at, by in enumerate(moved):
        up, down = _step(up, down, by)
        rises[at], falls[at] = up, down
    return rises, falls


def _step(up: Floats, down: Floats, moved: Floats) -> tuple[Floats, Floats]:
    return np.maximum(0.0, up + moved - _FORGIVEN), np.maximum(0.0, down - moved - _FORGIVEN)


def _limit(
    blocks: int, mean: float, error: float, size: float, known: float, *, ranked: bool, alarm: float, seed: int
) -> float:
    """Return what the highest sum of a stream without a change stays below, but for a share `alarm` of streams."""
    if not blocks:
        return math.inf
    draw = np.random.default_rng(seed)
    if ranked:
        truth = draw.normal(0.0, math.sqrt(size / known), size=_ROUNDS)  # of the reference's mean, in errors of a block
    else:
        truth = draw.beta(mean * known + 0.5, (1 - mean) * known + 0.5, size=_ROUNDS)
    highest, up, down = np.zeros(_ROUNDS), np.zeros(_ROUNDS), np.zeros(_ROUNDS)
    rows = max(1, round(size))
    for _ in range(blocks):
        drawn = draw.normal(size=_ROUNDS) if ranked else (draw.binomial(rows, truth) / rows - mean) / error
        up, down = _step(up, down, drawn + truth if ranked else drawn)
        highest = np.maximum(highest, np.maximum(up, down))
    return float(np.quantile(highest, 1 - alarm, method="higher"))


_BLOCKS = 10  # of a window, for the cumulative sums
_LEAST = 20  # rows with a number, without which a window says nothing of a signal


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTest:
    """One signal of one window; without `p` there are too few rows.

    Attributes:
        change: of the mean.
        effect: the stability index of a number, the absolute change of a share.
        distance: of the distributions (Kolmogorov and Smirnov), or of the shares.
        p_adjusted: corrected for all windows and signals.
        alarm: whether it is too large for chance, and large enough to matter.
    """

    signal: str
    window: int
    change: float = 0.0
    effect: float = 0.0
    distance: float = 0.0
    p: float | None = None
    p_adjusted: float | None = None
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDrift:
    """What became of a log.

    Attributes:
        stream: the rows behind the reference.
        reference: by signal, its numbers in the reference, which has so many `rows`.
        edges: where windows begin, and where the last one ends; rows behind that are too few for a window.
        block: rows of a block of the cumulative sums.
    """

    stream: Stream
    reference: Mapping[str, Floats]
    rows: int
    edges: tuple[int, ...]
    tests: tuple[WindowTest, ...]
    changes: Mapping[str, ChangePoint]
    block: int
    reference_stream: Stream

    def of_window(self, signal: str, window: int) -> Floats:
        """Return the numbers that a signal has in a window."""
        numbers = self.stream.signals[signal][self.edges[window] : self.edges[window + 1]]
        known: Floats = numbers[np.isfinite(numbers)]
        return known


def look(config: LiveDriftConfig) -> LiveDrift:
    """Read a log and test it.

    Half of the chance of a false alarm is for windows, and half, in equal parts for all signals, for change points.
    """
    whole = read_stream(config)
    origin = read_stream(config, config.reference) if config.reference else whole
    begin = 0 if config.reference else config.reference_rows
    rows = min(len(origin), config.reference_rows) if not config.reference else len(origin)
    if len(whole) - begin < config.window or rows < 2 * config.window:
        raise ValueError(
            f"{whole.name} has {len(whole)} rows and the reference {rows}; two windows of {config.window} rows are "
            "needed for the reference, and one behind it: give a smaller --window and fewer --reference-rows"
        )
    edges = tuple(range(begin, len(whole) + 1, config.window))
    reference: dict[str, Floats] = {}
    effects: dict[str, float] = {}
    groups: dict[str, Ints] = {}
    for signal in whole.signals:
        if signal not in origin.signals:
            continue
        numbers = origin.signals[signal][:rows]
        known = np.isfinite(numbers)
        if known.sum() >= _LEAST:
            reference[signal], groups[signal] = numbers[known], origin.groups[:rows][known]
            effects[signal] = design_effect(reference[signal], groups[signal])
    tests = [
        _test(signal, at, reference[signal], whole.signals[signal][slice(*ends)], effects[signal])
        for signal in reference
        for at, ends in enumerate(itertools.pairwise(edges))
    ]
    block = max(1, config.window // _BLOCKS)
    changes = {
        signal: find_change(
            numbers,
            whole.signals[signal][begin:],
            groups[signal],
            block=block,
            alarm=config.alarm / 2 / len(reference),
            share=config.share if signal in SHARES else None,
            seed=config.seed,
        )
        for signal, numbers in reference.items()
    }
    judged = tuple(
        dataclasses.replace(
            one,
            p_adjusted=p,
            alarm=p is not None
            and p < config.alarm / 2
            and one.effect >= (config.share if one.signal in SHARES else config.psi),
        )
        for one, p in zip(tests, holm([one.p for one in tests]), strict=True)
    )
    return LiveDrift(
        stream=whole,
        reference=reference,
        rows=rows,
        edges=edges,
        tests=judged,
        changes=changes,
        block=block,
        reference_stream=origin,
    )


def _test(signal: str, at: int, reference: Floats, window: Floats, effect: float) -> WindowTest:
    numbers = window[np.isfinite(window)]
    if len(numbers) < _LEAST:
        return WindowTest(signal=signal, window=at)
    sizes = len(reference) / effect, len(numbers) / effect
    change = float(numbers.mean() - reference.mean())
    if signal in SHARES:
        distance = size = abs(change)
        p = share_p(float(reference.mean()), sizes[0], float(numbers.mean()), sizes[1])
    else:
        distance, size = ks_distance(reference, numbers), stability_index(reference, numbers)
        p = ks_p(distance, *sizes)
    return WindowTest(signal=signal, window=at, change=change, effect=size, distance=distance, p=p)
