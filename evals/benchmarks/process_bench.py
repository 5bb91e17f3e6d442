"""ProcessBench: the first wrong step of a solution, or that there is none (arXiv 2412.06559).

The number of a part is F1, the harmonic mean of two accuracies: of the place of the first error on solutions that have
one, and of "no error" on those that have none.  The benchmark's number is the plain mean over its parts.  The first
step whose value is below a threshold is the prediction; a critic's verdicts are values of 0 and 1.

A solution without a prediction is wrong, and counted beside: where the scorer gave no values, or other steps than the
benchmark's.  So is one whose steps before the prediction were not judged.

`processbench_f1` and `best_threshold` need no rows; the authors choose the threshold on the gsm8k part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace, random_share
from adjudge.evals.benchmarks.case import MISMATCH, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import as_whole, cluster_of, shown, solution_sample, text_of, texts_of, whole
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.confusion import ratio
from adjudge.statistics.intervals import Draws, Interval

NO_ERROR = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBenchResult:
    """The scores of a part.

    Attributes:
        error_accuracy: share of solutions with an error whose first one was named; None if there is no such solution.
        correct_accuracy: share of solutions without an error of which that was said; None if there is no such solution.
        f1: 2ab / (a + b) of the two, 0 if both are 0; None if one of them is.
    """

    error_accuracy: float | None
    correct_accuracy: float | None
    f1: float | None
    errors: int
    correct: int


def processbench_f1(predicted: Sequence[int | None], labels: Sequence[int]) -> ProcessBenchResult:
    """Return the scores of predictions: the place of the first wrong step, -1 for none, None for no prediction.

    A missing prediction is wrong, as in the benchmark's own code.

    Raises:
        ValueError: lengths differ, or there is nothing to score.
    """
    if len(predicted) != len(labels) or not labels:
        raise ValueError(f"there are {len(predicted)} predictions for {len(labels)} labels; give one for each")
    hits = [guess == label for guess, label in zip(predicted, labels, strict=True)]
    wrong = [hit for hit, label in zip(hits, labels, strict=True) if label != NO_ERROR]
    clean = [hit for hit, label in zip(hits, labels, strict=True) if label == NO_ERROR]
    error = sum(wrong) / len(wrong) if wrong else None
    correct = sum(clean) / len(clean) if clean else None
    f1 = None
    if error is not None and correct is not None:
        f1 = 2 * error * correct / (error + correct) if error + correct else 0.0
    return ProcessBenchResult(
        error_accuracy=error, correct_accuracy=correct, f1=f1, errors=len(wrong), correct=len(clean)
    )


def first_errors(values: Sequence[Sequence[float] | None], threshold: float) -> list[int | None]:
    """Return the prediction of each solution: its first step below a threshold; None where there are no values."""
    return [
        None if steps is None else next((at for at, value in enumerate(steps) if value < threshold), NO_ERROR)
        for steps in values
    ]


def best_threshold(values: Sequence[Sequence[float] | None], labels: Sequence[int]) -> tuple[float, ProcessBenchResult]:
    """Return the threshold with the highest F1 and its scores; of equally good ones, the middle of the widest gap.

    Only the least value before a step matters to a threshold, so the running minima are all the candidates there are:
    n log n for n steps.  Choose it on one part and use it on the others: chosen and scored on the same part, F1 is too
    high.

    Raises:
        ValueError: lengths differ, or there are not solutions of both kinds with values.
    """
    if len(values) != len(labels):
        raise ValueError(f"there are {len(values)} solutions and {len(labels)} labels; give one of each")
    errors = sum(label != NO_ERROR for label in labels)
    if not 0 < errors < len(labels):
        raise ValueError("a threshold is chosen on solutions with and without errors; give both kinds")
    # A solution counts as a hit for thresholds above `low` and up to `high`: (low, high].
    changes: dict[float, list[tuple[bool, int]]] = {}
    for steps, label in zip(values, labels, strict=True):
        if not steps or label >= len(steps):
            continue
        low, high = (
            (-math.inf, min(steps)) if label == NO_ERROR else (steps[label], min(steps[:label], default=math.inf))
        )
        if low < high:
            changes.setdefault(low, []).append((label != NO_ERROR, 1))
            changes.setdefault(high, []).append((label != NO_ERROR, -1))
    marks = sorted(changes)
    if not marks:
        raise ValueError("no threshold finds anything; the values are empty, or never fall at the labelled steps")
    hits = {True: 0, False: 0}
    best = (-1.0, 0.0, 0.0)  # F1, width of the gap between thresholds, threshold
    for mark, after in zip(marks, [*marks[1:], math.inf], strict=True):
        for wrong, by in changes[mark]:
            hits[wrong] += by
        error, correct = hits[True] / errors, hits[False] / (len(labels) - errors)
        f1 = 2 * error * correct / (error + correct) if error + correct else 0.0
        low = mark if math.isfinite(mark) else after - 1.0
        high = after if math.isfinite(after) else low + 1.0
        middle = low + (high - low) / 2
        best = max(best, (f1, high - low, middle if middle > low else high))
    threshold = best[2]
    return threshold, processbench_f1(first_errors(values, threshold), labels)


PARTS: Final = ("gsm8k", "math", "olympiadbench", "omnimath")


@dataclass(frozen=True, kw_only=True)
class ProcessBench(Benchmark):
    """ProcessBench, with any scorer of steps, or with stored predictions or values of steps.

    Bounds take a chosen threshold as given: it is not chosen anew in each resample.
    """

    name: ClassVar[str] = "process_bench"
    title: ClassVar[str] = "ProcessBench"
    source: ClassVar[str] = "arXiv 2412.06559; QwenLM/ProcessBench, code/run_eval.py"
    hub: ClassVar[str] = "Qwen/ProcessBench"
    split: ClassVar[str] = "+".join(PARTS)
    columns: ClassVar[str] = "id, problem, steps (a list), label (the first wrong step from 0, or -1)"
    wants: ClassVar[str] = "steps"

    threshold: float = 0.5
    """A step whose value is below it is wrong."""

    choose_on: str = ""
    """The part on which the threshold is chosen instead, as the authors do on gsm8k;
    the F1 of that part is then too high."""

    prediction: str = "prediction"
    """The column of stored predictions: the first wrong step from 0, or -1."""

    values: str = ""
    """The column of stored values of steps, in place of predictions."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the solution of a row."""
        name, problem = text_of(row, "id"), text_of(row, "problem")
        steps, label = texts_of(row, "steps"), whole(row, "label")
        if not NO_ERROR <= label < len(steps):
            raise ValueError(f"the column 'label' holds {label} for {len(steps)} steps; it must be a step, or -1")
        return [
            Case(
                id=name,
                samples=(solution_sample(problem, steps),),
                gold={"label": label, "steps": len(steps)},
                cluster=cluster_of(problem),
                part=_part(name, place.file),
                stored=self._stored(row, len(steps)),
            )
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for the right prediction, else 0; None without one.  The threshold is the fixed one, always."""
        place = prediction_of(outcome, self.threshold)
        return None if place is None else float(place == outcome.gold["label"])

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return the first wrong step, and what was predicted, as the rows count them: from 0."""
        label, count = outcome.gold["label"], outcome.gold["steps"]
        place = prediction_of(outcome, self.threshold)
        said = "no prediction" if place is None else f"predicted: {_step(place)}"
        return f"{_step(label)}, of {count} steps, counted from 0", (said,)

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return what is said without reading: no error, the first step, the last one, any one."""

        def said(outcome: Outcome, place: int) -> Outcome:
            count = outcome.gold["steps"]
            values = [self.threshold + (1 if at < place or place == NO_ERROR else -1) for at in range(count)]
            return outcome.with_values([min(values)], steps=[tuple(values)])

        places: dict[str, Callable[[Outcome], int]] = {
            "no_error": lambda _: NO_ERROR,
            "first_step": lambda _: 0,
            "last_step": lambda one: int(one.gold["steps"]) - 1,
            "random_step": lambda one: int(random_share(one.id) * one.gold["steps"]),
        }
        return {name: [said(one, place(one)) for one in outcomes] for name, place in places.items()}

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the mean F1, each part's F1 with its two accuracies, and how many have no prediction and why.

        Where a threshold was to be chosen and could not be, all but the last are unknown.
        """
        threshold = self._threshold(outcomes)
        predicted = [None if threshold is None else prediction_of(outcome, threshold) for outcome in outcomes]
        parts = list(dict.fromkeys(outcome.part for outcome in outcomes))
        sought = [Sought("mean F1", published=set(parts) == set(PARTS))]
        for part in parts:
            own = [outcome for outcome in outcomes if outcome.part == part]
            errors, problems = sum(one.gold["label"] != NO_ERROR for one in own), len({one.cluster for one in own})
            sought.append(Sought("F1", part, published=True, n=len(own)))
            for name, n in (("error accuracy", errors), ("correct accuracy", len(own) - errors)):
                sought.append(Sought(name, part, published=True, n=n, clusters=min(n, problems)))
        clusters = [outcome.cluster for outcome in outcomes]
        rates = measures_of_sums(
            sought,
            clusters,
            _columns(outcomes, predicted, parts),
            lambda sums: _numbers(sums.reshape(len(sums), len(parts), 4), known=threshold is not None),
            draws,
        )
        missing = {
            "no step values": [not outcome.steps[0] for outcome in outcomes],
            "other steps": [outcome.reasons == (MISMATCH,) for outcome in outcomes],
        }
        chosen = "threshold chosen here" if self.choose_on else "threshold"
        return [
            *rates,
            Measure(name=chosen, part=self.choose_on, interval=Interval(value=threshold), better="none"),
            *(Measure.mean(name, hits, clusters, draws, better="low") for name, hits in missing.items()),
        ]

    def _threshold(self, outcomes: Sequence[Outcome]) -> float | None:
        if not self.choose_on:
            return self.threshold
        rows = [outcome for outcome in outcomes if outcome.part == self.choose_on]
        known = [known_values(outcome) for outcome in rows]
        values = [one if one and len(one) == row.gold["steps"] else None for one, row in zip(known, rows, strict=True)]
        try:
            return best_threshold(values, [outcome.gold["label"] for outcome in rows])[0]
        except ValueError:
            return None

    def _stored(self, row: Mapping[str, Any], count: int) -> tuple[Stored, ...]:
        if self.values:
            return (_stored_values(row.get(self.values), self.values, count),)
        if self.prediction not in row:
            return ()
        cell = row[self.prediction]
        place = as_whole(cell)
        if place is None or not NO_ERROR <= place < count:
            said = "no prediction" if cell is None else f"predicted {shown(cell)} of {count} steps"
            return (Stored(value=None, reason=said),)
        return (Stored(value=float(place == NO_ERROR), steps=verdicts_until(place, count)),)


def verdicts_until(place: int, count: int) -> tuple[float | None, ...]:
    """Return the values of steps that say where the first error is: 1 before it, 0 there, None behind it."""
    if place == NO_ERROR:
        return (1.0,) * count
    return (*(1.0,) * place, 0.0, *(None,) * (count - place - 1))


def known_values(outcome: Outcome) -> tuple[float, ...] | None:
    """Return the values of a solution's steps up to the first that was not judged; None where they do not fit."""
    (steps,) = outcome.steps
    if len(steps) != outcome.gold["steps"]:
        return None
    known = []
    for value in steps:
        if value is None:
            break
        known.append(value)
    return tuple(known) or None


def prediction_of(outcome: Outcome, threshold: float) -> int | None:
    """Return the first step below a threshold, -1 for none; None where a step before it was not judged."""
    known = known_values(outcome)
    if known is None:
        return None
    (place,) = first_errors([known], threshold)
    return None if place == NO_ERROR and len(known) < outcome.gold["steps"] else place


def _step(place: int) -> str:
    return "no step is wrong" if place == NO_ERROR else f"the first wrong step is {place}"


def _part(name: str, file: str) -> str:
    """The part that an id such as "gsm8k-17" or the file's name says."""
    before, _, number = name.rpartition("-")
    return before if before and number.isdigit() else file.partition(".")[0]


def _stored_values(cell: Any, column: str, count: int) -> Stored:
    if cell is None:
        return Stored(value=None, reason="no values")
    if isinstance(cell, str) or not isinstance(cell, Sequence):
        raise ValueError(f"the column {column!r} holds {shown(cell)}; it must be a list of numbers")
    values = []
    for value in cell:
        if value is not None and (isinstance(value, bool | str) or not isinstance(value, int | float)):
            raise ValueError(f"the column {column!r} has the item {shown(value)}; all must be numbers or null")
        values.append(float(value) if value is not None and math.isfinite(value) else None)
    known = [value for value in values if value is not None]
    if len(values) != count or not known:
        return Stored(value=None, steps=tuple(values), reason=f"{len(known)} values for {count} steps")
    return Stored(value=min(known), steps=tuple(values))


def _columns(outcomes: Sequence[Outcome], predicted: Sequence[int | None], parts: Sequence[str]) -> Floats:
    """For each part: right on an error, errors, right on none, solutions without an error."""
    table = np.zeros((len(outcomes), len(parts), 4))
    places = {part: at for at, part in enumerate(parts)}
    for at, (outcome, place) in enumerate(zip(outcomes, predicted, strict=True)):
        first = 2 if outcome.gold["label"] == NO_ERROR else 0
        table[at, places[outcome.part], first] = place == outcome.gold["label"]
        table[at, places[outcome.part], first + 1] = 1.0
    return table.reshape(len(outcomes), -1)


def _numbers(sums: Floats, *, known: bool) -> Floats:
    """The mean F1, then F1 and the two accuracies of each part, of blocks (b, parts, 4); all unknown if not `known`."""
    error, correct = ratio(sums[..., 0], sums[..., 1]), ratio(sums[..., 2], sums[..., 3])
    both = error + correct
    f1 = np.where(both == 0, 0.0, ratio(2 * error * correct, both))
    rows = np.stack([f1, error, correct], axis=2).reshape(len(sums), -1)
    numbers = np.concatenate([f1.mean(axis=1)[:, None], rows], axis=1)
    return numbers if known else np.full_like(numbers, np.nan)
