"""Evaluating a scorer on a benchmark: rows become cases, cases are scored, and the numbers come with their bounds.

Rows are read, scored and kept in step, with a bounded number of batches under way.  Of each case only numbers are kept;
texts, of the worst cases alone.

The samples of a benchmark can be written for others to score: each line has the columns that `adjudge label` looks for,
and each extra column under its own name, and never the gold.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, BenchmarkConfig
from adjudge.evals.benchmarks.case import Case, Given, Outcome, OutcomeMaker, fitted, measured
from adjudge.evals.benchmarks.pairs import verdict
from adjudge.evals.benchmarks.reading import Batch, CaseReader, OtherInput, ScoreFile, Voice
from adjudge.evals.benchmarks.versus import Sides, compared
from adjudge.evals.benchmarks.voices import StoredVoice, beside, check_texts, voices
from adjudge.evals.reports.config import tell_rows, timed
from adjudge.evals.reports.result import Comparison, Counts, Measure, ReadCase, ReadResponse, Result, as_text, cut
from adjudge.io.errors import JobStopped
from adjudge.io.jobs.ordered import in_order, run_to_end
from adjudge.io.jobs.report import JobProgress, Pace, Patience
from adjudge.io.row import Cursor
from adjudge.protocol import NO_COST, Cost, Sample
from adjudge.statistics.intervals import NO_DRAWS
from adjudge.statistics.significance import NOTE

_ENDING: Final = ".jsonl"


def write_samples(reader: CaseReader, path: Path, *, compare: bool) -> tuple[int, int]:
    """Write the samples of all cases, and return how many cases and samples there are.

    The file appears when it is complete.
    """
    if path.suffix != _ENDING:
        raise ValueError(f"samples are written as JSON Lines, and {path} does not end in {_ENDING}; change the name")
    if path.exists():
        raise ValueError(f"{path} is there already; remove it, or choose another name")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}; make it, or choose another one for the samples")
    partial = path.with_name(f"{path.name}.partial")
    try:
        counts = _written(reader, partial, compare=compare)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return counts


def _written(reader: CaseReader, path: Path, *, compare: bool) -> tuple[int, int]:
    cases = samples = 0
    with path.open("w", encoding="ascii") as stream:
        for (batch,) in reader.batches():
            check_texts(batch.cases)
            for case in batch.cases:
                some = beside(case) if compare else case.samples
                cases, samples = cases + 1, samples + len(some)
                stream.writelines(f"{_line(case, sample)}\n" for sample in some)
    reader.check_any(cases)
    return cases, samples


def _line(case: Case, sample: Sample) -> str:
    fields = {
        "id": sample.id,
        "prompt": sample.prompt,
        "response": sample.response,
        "reference": sample.reference,
        "group": sample.group or None,
        "finish_reason": sample.finish_reason,
    }
    line = {name: value for name, value in fields.items() if value is not None}
    clash = next((name for name in sample.extra if name in fields), None)
    if clash is not None:
        raise ValueError(f"the case {case.id!r} has an extra column {clash!r}, which is the name of a field of samples")
    try:
        return json.dumps({**line, **sample.extra}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the case {case.id!r} cannot be written as JSON: {error}") from error


_NAMED: Final = 8  # parts that have a sentence


def with_baselines(
    benchmark: Benchmark, outcomes: Sequence[Outcome], measures: Sequence[Measure]
) -> tuple[Measure, ...]:
    """Return the measures with what the benchmark's trivial scorers get in each, found by name and part.

    A number of which neither end is good (how many ties, what people say among themselves) has none, unless the
    benchmark's numbers are all so.
    """
    trivial: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)
    for name, theirs in benchmark.baselines(outcomes).items():
        for measure in benchmark.measures(theirs, NO_DRAWS):
            trivial[measure.name, measure.part][name] = measure.interval.value
    return tuple(
        measure
        if measure.better == "none" and benchmark.of_scorer
        else replace(measure, baselines={**measure.baselines, **trivial.get((measure.name, measure.part), {})})
        for measure in measures
    )


def baseline_notes(measures: Sequence[Measure]) -> list[str]:
    """Return a sentence for each part in which a trivial scorer is as good as the scorer, within its bounds, or better.

    Only the first measure and its parts are looked at; a benchmark may give many more, which say the same again.
    """
    notes = []
    for row in (one for one in measures if one.name == measures[0].name and one.better != "none"):
        as_good = {
            name: value for name, value in row.baselines.items() if value is not None and _is_as_good(row, value)
        }
        if as_good:
            shown = ", ".join(f"{name} {value:.3f}" for name, value in as_good.items())
            place = f" of {row.part}" if row.part else ""
            notes.append(
                f"{row.name}{place} is {row.interval}, and trivial scorers do better or lie within its bounds: {shown}"
            )
    more = [f"and so it is in {len(notes) - _NAMED} further parts"] if len(notes) > _NAMED else []
    return [*notes[:_NAMED], *more]


def _is_as_good(row: Measure, value: float) -> bool:
    own, low, high = row.interval.value, row.interval.low, row.interval.high
    if own is None:
        return True
    sign = 1 if row.better == "high" else -1
    edge = low if sign == 1 else high
    return sign * value >= sign * (own if edge is None else edge)


def counted(outcomes: Sequence[Outcome], unreadable: int) -> Counts:
    """Return the counts of all cases."""
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for outcome in outcomes:
        statuses.update(outcome.statuses)
        for status, reason in zip(outcome.statuses, outcome.reasons, strict=True):
            if status != "scored":
                reasons[reason] += 1
    return Counts(
        cases=len(outcomes),
        samples=sum(statuses.values()),
        scored=statuses["scored"],
        abstained=statuses["abstained"],
        failed=statuses["failed"],
        cut_off=sum(sum(outcome.cut_off) for outcome in outcomes),
        tied=sum(_is_tied(outcome) for outcome in outcomes),
        unreadable=unreadable,
        reasons=dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))),
    )


def _is_tied(outcome: Outcome) -> bool:
    """Whether the best value is shared, or two orders of a pair come to nothing."""
    if len(outcome.values) == 2:
        return verdict(outcome) == 0
    known = [value for value in outcome.values if value is not None]
    return len(known) > 1 and known.count(max(known)) > 1


_MAX_RESPONSES: Final = 16


class Worst:
    """Keeps the worst cases; one is worse the less it earns, and the further apart the numbers were that decided it."""

    def __init__(self, benchmark: Benchmark, most: int) -> None:
        self._benchmark = benchmark
        self._most = most
        self._wrong: list[tuple[float, int, ReadCase]] = []
        self._unjudged: list[ReadCase] = []
        self._seen = 0

    def look(self, case: Case, outcome: Outcome, given: Sequence[Given]) -> None:
        """Keep the case if it is among the worst so far."""
        if not self._most:
            return
        self._seen += 1
        credit = self._benchmark.credit(outcome)
        if credit is None:
            status = next((status for status in outcome.statuses if status != "scored"), "")
            if status and len(self._unjudged) < self._most:  # without one, the benchmark itself has no right answer
                self._unjudged.append(self._read(case, outcome, given, status, 0.0))
            return
        if credit >= 1:
            return
        known = [value for value in outcome.values if value is not None]
        weight = (1 - credit) * (1 + max(known) - min(known)) if known else 1 - credit
        entry = (weight, -self._seen)  # of two that are as bad, the earlier one
        if len(self._wrong) == self._most and entry <= self._wrong[0][:2]:
            return
        said = "tied" if len(outcome.values) == 2 and _is_tied(outcome) else "wrong" if credit <= 0 else "partly right"
        read = self._read(case, outcome, given, said, weight)
        push = heapq.heappush if len(self._wrong) < self._most else heapq.heappushpop
        push(self._wrong, (*entry, read))

    def cases(self) -> tuple[ReadCase, ...]:
        """Return the cases, the worst ones first; a quarter of the places is for those without a verdict."""
        reserved = min(len(self._unjudged), max(self._most // 4, self._most - len(self._wrong)))
        wrong = [read for _, _, read in sorted(self._wrong, key=lambda entry: entry[:2], reverse=True)]
        return (*wrong[: self._most - reserved], *self._unjudged[:reserved])

    def _read(self, case: Case, outcome: Outcome, given: Sequence[Given], said: str, weight: float) -> ReadCase:
        gold, notes = self._benchmark.words(outcome)
        shown = list(zip(case.samples, given, strict=True))[:_MAX_RESPONSES]
        return ReadCase(
            id=case.id,
            part=case.part,
            verdict=said,
            weight=weight,
            prompt=cut(as_text(case.samples[0].prompt)),
            responses=tuple(
                ReadResponse(
                    text=cut(as_text(sample.response)),
                    said=one.said,
                    value=one.value,
                    note=notes[place] if place < len(notes) else "",
                )
                for place, (sample, one) in enumerate(shown)
            ),
            gold=cut(gold),
        )


@timed
def run_benchmark(config: BenchmarkConfig, benchmark: Benchmark, *, progress: JobProgress | None = None) -> Result:
    """Evaluate a scorer, or stored scores, on a benchmark.

    Works from any thread, inside a running event loop too.

    Raises:
        ValueError: a mistake in the call: no such input or scorer, rows of another shape, scores that do not fit.
        BrokenScorer: the scorer raised, or its answer breaks the protocol.
        JobError: the scorer stopped judging, or the input broke off.
        JobStopped: Ctrl-C; with an output folder, the same call goes on.
    """
    reader = CaseReader(config, benchmark)
    if config.samples:
        return _only_samples(config, benchmark, reader)
    with voices(config, benchmark) as asked:
        run = _Run(config, benchmark, reader, asked, progress)
        run.gather()
    return run.result()


class _Side:
    """What one of the two said about all cases; `asks` says whether it is a scorer, and not a file of scores."""

    def __init__(self, voice: Voice, benchmark: Benchmark, config: BenchmarkConfig) -> None:
        self.voice = voice
        self.outcomes: list[Outcome] = []
        self.cost: Cost = NO_COST
        self._maker = OutcomeMaker()
        self._asked = False
        self.asks = not isinstance(voice, StoredVoice | ScoreFile | OtherInput)
        self._wants_steps = benchmark.wants == "steps"
        after = "goes on behind what was scored" if config.output else "begins anew"
        self._patience = Patience(self.name, after=after) if self.asks else None

    @property
    def name(self) -> str:
        """Who it is, as far as is known by now."""
        return str(self.voice.facts()["name"])

    async def asked(self, batch: Batch) -> list[list[Given]]:
        """Return what is given to a batch, unless it is time to stop."""
        if self.asks:
            check_texts(batch.cases)
        first, self._asked = not self._asked, True  # batches are asked about in order, and answered in any
        given = [
            [fitted(sample, one) for sample, one in zip(case.samples, some, strict=True)]
            for case, some in zip(batch.cases, await self.voice.given(batch.cases), strict=True)
        ]
        if self._patience is not None:
            all_given = [one for some in given for one in some]
            self._patience.watch(all_given, first=first)
            if first and self._wants_steps:
                self._check_steps(all_given)
        return given

    def _check_steps(self, given: Sequence[Given]) -> None:
        if any(one.status != "failed" for one in given) and not any(one.steps for one in given):
            raise ValueError(
                f"the benchmark judges steps, and the scorer {self.name!r} gave none to the first {len(given)} "
                "samples; take a process reward model, or a critic whose scores have steps"
            )

    def take(self, batch: Batch, given: Sequence[Sequence[Given]], sizes: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Keep what was given to a batch."""
        for case, some, measures in zip(batch.cases, given, sizes, strict=True):
            shares = len(case.samples) == 2 and self.voice.sees_orders(case)
            self.outcomes.append(self._maker.outcome(case, some, measures, shares))
            for one in some:
                if one.cost is not NO_COST:
                    self.cost = self.cost + one.cost


@dataclass
class _Run:
    config: BenchmarkConfig
    benchmark: Benchmark
    reader: CaseReader
    asked: Sequence[Voice]
    progress: JobProgress | None

    def __post_init__(self) -> None:
        self._sides = [_Side(voice, self.benchmark, self.config) for voice in self.asked]
        self._first = self._sides[0]
        self._worst = Worst(self.benchmark, self.config.worst)
        self._pace = Pace(self.reader.source, self.config.limit or None, Cursor())
        self._after = Cursor()
        self._tally: Counter[str] = Counter()

    def gather(self) -> None:
        """Score all cases."""
        try:
            run_to_end(
                in_order(
                    self.reader.batches(),
                    self._given,
                    self._keep,
                    at_once=self.config.in_flight,
                    ahead=2 * self.config.in_flight,
                    told=self._tell,
                )
            )
        except KeyboardInterrupt:
            kept = "the scores so far are kept; make the same call again to go on"
            raise JobStopped(f"stopped; {kept if self.config.output else 'nothing was kept'}") from None
        self.reader.check_any(len(self._first.outcomes))
        if not self._first.asks:
            self._check_scores()

    def _check_scores(self) -> None:
        side, benchmark = self._first, self.benchmark
        if any(status != "failed" for outcome in side.outcomes for status in outcome.statuses):
            return
        if isinstance(side.voice, ScoreFile):
            raise ValueError(f"{side.voice.path} holds no score that is a number; label the samples again")
        raise ValueError(
            f"the input stores no score, and {benchmark.name} was asked for stored ones; name a scorer with --scorer. "
            f"Its rows hold {benchmark.columns}"
        )

    def result(self) -> Result:
        """Return what comes of the scores."""
        config, benchmark, outcomes = self.config, self.benchmark, self._first.outcomes
        measures = tuple(benchmark.measures(outcomes, config.draws))
        measures = with_baselines(benchmark, outcomes, measures)
        comparisons: tuple[Comparison, ...] = ()
        for other in self._sides[1:]:
            sides = Sides(benchmark=benchmark, first=outcomes, second=other.outcomes, other=other.name)
            comparisons = compared(sides, measures, config.draws)
        notes = [*self.reader.notes(), *self._notes_on_scores(), *baseline_notes(measures)]
        if len(comparisons) > 1:
            notes.append(f"{len(comparisons)} comparisons. {NOTE}")
        return Result(
            kind=benchmark.name,
            title=benchmark.title,
            scorer=self._first.voice.facts(),
            source={**self.reader.facts(), "benchmark": benchmark.source},
            measures=measures,
            counts=counted(outcomes, self.reader.unreadable),
            comparisons=comparisons,
            figures=tuple(benchmark.figures(outcomes, measures)),
            worst=self._worst.cases(),
            notes=tuple(notes),
            options=_options(config, benchmark),
            cost=self._first.cost,
            asked=self._first.asks,
        )

    async def _given(self, batch: Batch) -> list[list[list[Given]]]:
        return [await side.asked(batch) for side in self._sides]

    def _keep(self, done: Sequence[tuple[Batch, list[list[list[Given]]]]]) -> None:
        for batch, given in done:
            sizes = [[measured(sample) for sample in case.samples] for case in batch.cases]
            for side, some in zip(self._sides, given, strict=True):
                side.take(batch, some, sizes)
            kept = self._first.outcomes[-len(batch.cases) :]
            for case, outcome, own in zip(batch.cases, kept, given[0], strict=True):
                self._worst.look(case, outcome, own)
                self._tally.update(outcome.statuses)
            self._after = batch.after

    def _tell(self) -> None:
        dropped = {status: self._tally[status] for status in ("failed", "abstained")}
        dropped["unreadable"] = self.reader.unreadable
        tell_rows(self.progress, self._pace, self._after, made=self._tally["scored"], dropped=dropped)

    def _notes_on_scores(self) -> list[str]:
        """Return what must be said about the files of scores, and about the other scorer."""
        notes = []
        partly = bool(self.config.limit or self.reader.unreadable)
        for side in self._sides:
            if isinstance(side.voice, ScoreFile):
                notes += side.voice.check_left(side.outcomes, partly=partly)
        for other in self._sides[1:]:
            counts = counted(other.outcomes, 0)
            if counts.failed or counts.abstained:
                notes.append(f"{other.name} failed on {counts.failed} samples and abstained from {counts.abstained}")
        return notes


def _only_samples(config: BenchmarkConfig, benchmark: Benchmark, reader: CaseReader) -> Result:
    cases, samples = write_samples(reader, Path(config.samples), compare=config.compare == "yes")
    return Result(
        kind=benchmark.name,
        title=benchmark.title,
        source={**reader.facts(), "benchmark": benchmark.source},
        counts=Counts(cases=cases, samples=samples, unreadable=reader.unreadable),
        notes=(*reader.notes(), f"{samples} samples written to {config.samples}; bring their scores with --scores"),
        options=_options(config, benchmark),
    )


def _options(config: BenchmarkConfig, benchmark: Benchmark) -> dict[str, Any]:
    """Return the options that decide the numbers: the benchmark's own, and those of the run."""
    own = {item.name: getattr(benchmark, item.name) for item in dataclasses.fields(benchmark)}  # type: ignore[arg-type]
    shown = ("limit", "resamples", "level", "seed", "compare", "split", "subset", "revision")
    given = {name: getattr(config, name) for name in shown}
    return {**own, **{name: value for name, value in given.items() if value not in ("", 0) or name == "seed"}}
