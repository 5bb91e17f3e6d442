"""PRMBench's numbers, computed one row at a time: what the benchmark's vectorised ones must equal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjudge.evals.benchmarks.prm_bench import CORRECT, GROUPS, NO_ERRORS, REDUNDANCY


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of steps, and the numbers made of them; a number that needs a class which has no step is None.

    Attributes:
        true_positive: right steps that were called right.
        false_positive: wrong steps that were called right.
        true_negative: wrong steps that were called wrong.
        false_negative: right steps that were called wrong.
        first_errors: for each row with an error in reach, whether its first one was called wrong.
    """

    true_positive: int = 0
    false_positive: int = 0
    true_negative: int = 0
    false_negative: int = 0
    first_errors: tuple[bool, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            true_positive=self.true_positive + other.true_positive,
            false_positive=self.false_positive + other.false_positive,
            true_negative=self.true_negative + other.true_negative,
            false_negative=self.false_negative + other.false_negative,
            first_errors=self.first_errors + other.first_errors,
        )

    @property
    def f1(self) -> float | None:
        """F1 of the right steps."""
        return _f1(self.true_positive, self.false_positive, self.false_negative)

    @property
    def negative_f1(self) -> float | None:
        """F1 of the wrong steps."""
        return _f1(self.true_negative, self.false_negative, self.false_positive)

    @property
    def prm_score(self) -> float | None:
        """The mean of the two F1."""
        if self.f1 is None or self.negative_f1 is None:
            return None
        return 0.5 * self.f1 + 0.5 * self.negative_f1

    @property
    def accuracy(self) -> float | None:
        """Share of all steps judged right."""
        wrong = self.false_positive + self.false_negative
        return _share_of(self.true_positive + self.true_negative, self.true_positive + self.true_negative + wrong)

    @property
    def correct_step_accuracy(self) -> float | None:
        """Share of right steps called right."""
        return _share_of(self.true_positive, self.true_positive + self.false_negative)

    @property
    def wrong_step_accuracy(self) -> float | None:
        """Share of wrong steps called wrong."""
        return _share_of(self.true_negative, self.true_negative + self.false_positive)

    @property
    def first_error_accuracy(self) -> float | None:
        """Share of rows whose first wrong step was called wrong."""
        return _share_of(sum(self.first_errors), len(self.first_errors))


def tally(said: Sequence[bool], errors: Iterable[int]) -> Tally:
    """Return the counts of one case: what was said of each step, and the places of wrong ones."""
    wrong = set(errors)
    first = min(wrong, default=len(said))
    return Tally(
        true_positive=sum(good for at, good in enumerate(said) if at not in wrong),
        false_negative=sum(not good for at, good in enumerate(said) if at not in wrong),
        false_positive=sum(good for at, good in enumerate(said) if at in wrong),
        true_negative=sum(not good for at, good in enumerate(said) if at in wrong),
        first_errors=(not said[first],) if first < len(said) else (),
    )


def _f1(hits: int, false: int, missed: int) -> float | None:
    """2 hits / (2 hits + false + missed): the harmonic mean of precision and recall; None if the class has no step."""
    return 2 * hits / (2 * hits + false + missed) if hits + missed else None


def _share_of(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A solution of PRMBench: an original one, or one into which errors were put.

    Attributes:
        id: category and name, "circular_prm_test_p1_0".
        name: the name, shared by all variants of a solution.
        question: the problem, as the steps answer it.
        steps: the steps.
        errors: the places (from 0) of wrong steps.
        category: the kind of error, or "correct".
    """

    id: str
    name: str
    question: str
    steps: tuple[str, ...]
    errors: frozenset[int]
    category: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What a model says about the steps of a case.

    Attributes:
        valid: for each step, whether it is right.
        redundant: for each step, whether it is redundant; None if the model does not tell.
    """

    valid: Sequence[bool]
    redundant: Sequence[bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrmBenchResult:
    """The benchmark's numbers.

    Attributes:
        total: over all categories but `correct`.
        categories: for each category, `correct` included.
        scores: the PRMScore of each category; F1 for `multi_solutions`.
        groups: the mean of the scores of "simplicity", "soundness" and "sensitivity", where all of a group are there.
        similarity: mean distance between the share of steps called right in a row and in its original; 0 for a model
            that does not tell them apart.  None where no original was judged.
        missing: rows without verdicts; they count nowhere, so none should be.
    """

    total: Tally
    categories: dict[str, Tally]
    scores: dict[str, float | None]
    groups: dict[str, float]
    similarity: float | None
    missing: int


def prmbench_result(cases: Sequence[Variant], verdicts: Sequence[Verdicts | None]) -> PrmBenchResult:
    """Return the benchmark's numbers; None stands for a case that was not judged.

    Raises:
        ValueError: lengths differ, or a case has not one verdict for each step.
    """
    if len(cases) != len(verdicts):
        raise ValueError(f"there are {len(cases)} cases and {len(verdicts)} verdicts; give one for each")
    categories: defaultdict[str, Tally] = defaultdict(Tally)
    original: dict[str, float] = {}
    shares: list[tuple[str, float]] = []
    for case, found in zip(cases, verdicts, strict=True):
        if found is None:
            continue
        said = _said(case, found)
        categories[case.category] += tally(said, case.errors)
        share = sum(said) / len(said)
        if case.category == CORRECT:
            original[case.name] = share
        else:
            shares.append((case.name, share))
    scores = {
        category: counts.f1 if category == NO_ERRORS else counts.prm_score
        for category, counts in categories.items()
        if category != CORRECT
    }
    distances = [abs(share - original[name]) for name, share in shares if name in original]
    return PrmBenchResult(
        total=_summed(counts for category, counts in categories.items() if category != CORRECT),
        categories=dict(categories),
        scores=scores,
        groups=_grouped(scores),
        similarity=math.fsum(distances) / len(distances) if distances else None,
        missing=sum(found is None for found in verdicts),
    )


def verdicts_of(
    values: Sequence[float],
    *,
    threshold: float = 0.5,
    redundancy: Sequence[float] | None = None,
    redundancy_threshold: float = 0.15,
) -> Verdicts:
    """Return verdicts made of numbers: a step above the threshold is right; 0.5 and 0.15 are the benchmark's own."""
    return Verdicts(
        valid=[value > threshold for value in values],
        redundant=None if redundancy is None else [value > redundancy_threshold for value in redundancy],
    )


def _said(case: Variant, found: Verdicts) -> list[bool]:
    said = list(found.valid)
    if case.category in REDUNDANCY and found.redundant is not None:
        said = [not redundant for redundant in found.redundant]
    if len(said) != len(case.steps) or not said:
        raise ValueError(
            f"the case {case.id!r} has {len(case.steps)} steps and {len(said)} verdicts; give one for each"
        )
    return said


def _grouped(scores: dict[str, float | None]) -> dict[str, float]:
    found = {}
    for group, categories in GROUPS.items():
        known = [score for category in categories if (score := scores.get(category)) is not None]
        if len(known) == len(categories):
            found[group] = math.fsum(known) / len(known)
    return found


def _summed(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total += one
    return total
