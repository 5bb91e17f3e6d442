"""PRMBench's numbers, computed one row at a time: what the benchmark's vectorised ones must equal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjudge.evals.benchmarks.prm_bench import CORRECT, GROUPS, NO_ERRORS, REDUNDANCY, Tally, tally


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
