"""Outcomes of stored scores, as a run makes them, with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.evals.benchmarks.judging.made import cases

from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Outcome, OutcomeMaker, Stored, measured, of_stored


def stored_outcomes(benchmark: Benchmark, rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """What is kept of each case of rows; a case without a stored score has none."""
    maker = OutcomeMaker()
    return [
        maker.outcome(
            case,
            [of_stored(one) for one in case.stored or [Stored(value=None)] * len(case.samples)],
            [measured(sample) for sample in case.samples],
            False,
        )
        for case in cases(benchmark, rows)
    ]
