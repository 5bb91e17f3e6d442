"""Samples a second of every verifier on this machine, beside the peer it names, as one Markdown table.

    ADJUDGE_DATA=... python -m benchmarks.verifiers --only math sql --rounds 5

Each row judges its samples over and over, in rounds that alternate with its peer's; the table has the median of the
rounds, and the 95th percentile of one call in milliseconds.  Both sides run in this process on one core and keep their
caches, as in training, where a prompt is answered many times; the first pass over the samples is not timed.
`--workers N` gives the rates through the worker pool instead, with its limits of time and memory.  "same" is the
share of samples on which the peer has the same verdict (1 or not 1).

Verifiers that ask a model have a scripted one that answers at once, so their row is what they add to its time.  Samples
are real ones where `ADJUDGE_DATA` names the corpora, else few and short; `benchmarks.verifier_rows` has both.

Not covered: accuracy (tests/verifiers), hostile text, cold caches and long tables for one verifier
(`math_verifier.py`, `code_verifier.py`, `sql_verifier.py`, `verilog_verifier.py`).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

import tyro
from benchmarks.verifier_agent_rows import AGENT_ROWS
from benchmarks.verifier_rows import LEFT_OUT, ROWS, Row, honest

from adjudge.protocol import Sample, Score, Verifier
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.builtin import BUILTIN

_WRITTEN = [*ROWS, *AGENT_ROWS]
_NAMED = {name for row in _WRITTEN for name in (row.name.partition(",")[0], row.spec)} | {*LEFT_OUT}
_OTHERS = [name for name, home in BUILTIN.items() if home.startswith("adjudge.verifiers.") and name not in _NAMED]
ALL = [*_WRITTEN, *(Row(name=name, spec=name, make=honest(name)) for name in _OTHERS)]
COLUMNS = ("verifier", "samples", "samples/s", "p95 ms", "peer", "peer's samples/s", "ratio", "same")

BATCH = 0.2  # seconds of work that the pool is given at once, so that its start and end count little


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to time.

    Attributes:
        only: rows whose names begin so; all when empty.
        rounds: timed rounds of each side.
        seconds: least time of a side in a round; a side judges its samples again until it is over.
        most: samples of a row, at most.
        workers: worker processes for verifiers; 0 judges in this process.
        json: print JSON instead of a table.
        list: print the names of the rows and end.
    """

    only: tuple[str, ...] = ()
    rounds: int = 3
    seconds: float = 0.3
    most: int = 400
    workers: int = 0
    json: bool = False
    list: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """What was seen of a row; None where there is nothing to see.

    Attributes:
        verifier: name of the row.
        samples: how many different ones.
        rate: samples a second, the median of the rounds.
        p95_ms: 95th percentile of a call; a group of responses is one call.
        peer: its name.
        peer_rate: its samples a second.
        same: share of samples with the same verdict.
        problem: why there is no rate.
    """

    verifier: str
    samples: int = 0
    rate: float | None = None
    p95_ms: float | None = None
    peer: str = ""
    peer_rate: float | None = None
    same: float | None = None
    problem: str = ""


class Side:
    """One side of a row: what judges, its calls, and what they took.

    Attributes:
        rates: calls' samples a second, by round.
        took: seconds of each call.
    """

    def __init__(self, judge: Callable[[list[Sample]], object], calls: Sequence[list[Sample]]) -> None:
        """Hold what is timed."""
        self.judge, self.calls = judge, calls
        self.rates: list[float] = []
        self.took: list[float] = []

    def round(self, seconds: float) -> None:
        """Judge all samples until the time is over, and once at least."""
        done, started = 0, time.perf_counter()
        while not done or time.perf_counter() - started < seconds:
            for call in self.calls:
                before = time.perf_counter()
                self.judge(call)
                self.took.append(time.perf_counter() - before)
                done += len(call)
        self.rates.append(done / (time.perf_counter() - started))


def calls_of(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Return what is judged at once: a group, or a sample without one."""
    keyed = [(sample.group or str(at), sample) for at, sample in enumerate(samples)]
    return [[sample for _, sample in members] for _, members in groupby(keyed, key=lambda one: one[0])]


def measured(row: Row, options: Options, runner: asyncio.Runner) -> Line:
    """Time a row."""
    try:
        calls, made = calls_of(row.make()[: options.most]), row.judge()
    except ValueError as error:  # what a verifier says where its program is not installed
        return Line(verifier=row.name, problem=str(error))
    if not calls:
        return Line(verifier=row.name, problem="no samples: its attack suite has no honest cases")
    if not isinstance(made, Verifier):
        return timed(row, options, calls, lambda call: runner.run(made.score(call)))
    if not options.workers:
        return timed(row, options, calls, lambda call: [made.verify(sample) for sample in call])
    with Pool(workers=options.workers) as pool:
        scorer = VerifierScorer(made, pool)
        batch = [sample for call in calls for sample in call] * options.workers
        runner.run(scorer.score(batch))  # imports, and references that are kept ready
        started = time.perf_counter()
        runner.run(scorer.score(batch))
        batch *= max(1, int(BATCH / (time.perf_counter() - started)))
        line = timed(row, options, [batch], lambda call: runner.run(scorer.score(call)))
        return replace(line, samples=sum(map(len, calls)))


def timed(row: Row, options: Options, calls: list[list[Sample]], judge: Callable[[list[Sample]], list[Score]]) -> Line:
    """Time what judges the calls of a row, and its peer."""
    scores = [score for call in calls for score in judge(call)]
    failed = [score for score in scores if score.status == "failed"]
    count = sum(map(len, calls))
    if failed:
        said = f"{failed[0].reason} {failed[0].evidence.get('error', '')}".strip()
        return Line(verifier=row.name, samples=count, problem=f"{len(failed)} of {count} failed: {said}")
    ours = Side(judge, calls)
    peer = row.peer if row.peer is not None and not row.peer.missing and not options.workers else None
    sides, same = [ours], None
    if peer is not None:
        other = peer.make()
        theirs = [other(sample) for call in calls for sample in call]
        told = [
            (score.value == 1.0) == verdict
            for score, verdict in zip(scores, theirs, strict=True)
            if verdict is not None
        ]
        same = sum(told) / len(told) if told else None
        sides.append(Side(lambda call: [other(sample) for sample in call], calls))
    for _ in range(options.rounds):
        for side in sides:
            side.round(options.seconds)
    return Line(
        verifier=row.name,
        samples=count,
        rate=statistics.median(ours.rates),
        p95_ms=None if options.workers else percentile(ours.took) * 1000,
        peer=row.peer.title if row.peer is not None and peer is not None else "",
        peer_rate=statistics.median(sides[1].rates) if peer is not None else None,
        same=same,
        problem=row.peer.missing if row.peer is not None else "",
    )


def percentile(values: Sequence[float], share: float = 0.95) -> float:
    """Return the value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def chosen(options: Options) -> list[Row]:
    """Return the rows that are asked for; ends where a name is not a row's beginning."""
    for name in options.only:
        if not any(row.name.startswith(name) for row in ALL):
            sys.exit(f"no row begins with {name!r}; `--list` prints their names")
    return [row for row in ALL if not options.only or row.name.startswith(options.only)]


def cells(line: Line) -> Iterator[str]:
    """Yield what a line shows in each column."""
    ratio = line.rate / line.peer_rate if line.rate and line.peer_rate else None
    yield from (line.verifier, f"{line.samples:,}", number(line.rate), number(line.p95_ms))
    yield from (line.peer or line.problem, number(line.peer_rate), number(ratio), number(line.same))


def number(value: float | None) -> str:
    """Return a number with three digits that count, or nothing."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main(options: Options) -> None:
    """Print a line for each row."""
    rows = chosen(options)
    if options.list:
        print("\n".join(row.name for row in rows))
        return
    if not options.json:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    seen = []
    with asyncio.Runner() as runner:
        for row in rows:
            line = measured(row, options, runner)
            seen.append(asdict(line))
            if not options.json:
                print(f"| {' | '.join(cells(line))} |", flush=True)
    if options.json:
        print(json.dumps(seen, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
