"""Outcomes of benchmarks without a run: each case with its stored scores, or with scores that a test gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.reports.result import Measure

Row = Mapping[str, Any]
Values = Sequence[float | None]


def outcome_of(case: Case, values: Values | None = None, *, compared: bool | None = None) -> Outcome:
    """What is kept of a case that got these values, or the stored ones."""
    count = len(case.samples)
    got = [one.value for one in case.stored] if values is None else list(values)
    assert len(got) == count, "the case has other samples than the test thinks"
    return Outcome(
        id=case.id,
        gold=case.gold,
        cluster=case.cluster or case.id,
        part=case.part,
        values=tuple(got),
        statuses=tuple("failed" if value is None else "scored" for value in got),
        reasons=("",) * count,
        cut_off=(False,) * count,
        steps=tuple(one.steps for one in case.stored) or ((),) * count,
        sizes=tuple(len(str(sample.response)) for sample in case.samples),
        step_counts=(0,) * count,
        compared=case.compared if compared is None else compared,
    )


@pytest.fixture(scope="session")
def outcomes() -> Callable[..., list[Outcome]]:
    """Outcomes of a benchmark's rows; `values` for each case in place of the stored scores."""

    def made(
        benchmark: Benchmark, rows: Sequence[Row], values: Sequence[Values] | None = None, *, file: str = ""
    ) -> list[Outcome]:
        cases = [
            case for number, row in enumerate(rows) for case in benchmark.cases(row, RowPlace(number=number, file=file))
        ]
        assert len({case.id for case in cases}) == len(cases)
        given: Sequence[Values | None] = [None] * len(cases) if values is None else values
        return [outcome_of(case, some) for case, some in zip(cases, given, strict=True)]

    return made


@pytest.fixture(scope="session")
def numbers() -> Callable[[Sequence[Measure]], dict[tuple[str, str], float | None]]:
    """Values of measures by name and part; no two measures share both."""

    def found(measures: Sequence[Measure]) -> dict[tuple[str, str], float | None]:
        table = {(measure.name, measure.part): measure.interval.value for measure in measures}
        assert len(table) == len(measures)
        for measure in measures:
            low, value, high = measure.interval.low, measure.interval.value, measure.interval.high
            assert low is None or high is None or (value is not None and low <= high)
        return table

    return found


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of public corpora."""
    root = os.environ.get("ADJUDGE_DATA")
    if not root:
        pytest.skip("ADJUDGE_DATA is not set")
    return Path(root)
