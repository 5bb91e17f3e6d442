"""Runs and outcomes that the tests of these benchmarks share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.evals.benchmarks.preferences.conftest import outcome_of

from adjudge.evals.benchmarks.benchmark import Benchmark, BenchmarkConfig, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.reports.result import Measure, Result
from adjudge.protocol import Sample, Score, Verifier, response_text

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shouts(Verifier):
    """The share of capitals among the letters."""

    name: ClassVar[str] = "shouts"
    needs_reference: ClassVar[bool] = False

    def verify(self, sample: Sample) -> Score:
        """Return the share."""
        letters = [letter for letter in response_text(sample) if letter.isalpha()]
        return Score.scored(sum(letter.isupper() for letter in letters) / max(1, len(letters)))


class Louder:
    """The louder one of two, for whoever is shown first; it fails on the word that says so."""

    name = "louder"
    fingerprint = "louder:1"
    against = "reference"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the response's share against its reference."""
        found = []
        for sample in samples:
            own, other = response_text(sample), str(sample.reference)
            if "fail" in own:
                found.append(Score.failed("judge_unparsable"))
            else:
                found.append(Score.scored(1.0 if own.isupper() > other.isupper() else 0.0 if other.isupper() else 0.75))
        return found


def written(path: Path, rows: Sequence[Row]) -> str:
    """Write rows as a JSON list and return the file's name."""
    path.write_text(json.dumps(list(rows)), encoding="utf-8")
    return str(path)


def run(benchmark: Benchmark, path: str | Path, scorer: str = "stored", **options: Any) -> Result:
    """The result of a run without bounds, unless they are asked for."""
    return run_benchmark(BenchmarkConfig(input=str(path), scorer=scorer, **{"resamples": 0, **options}), benchmark)


def numbers(measures: Sequence[Measure]) -> dict[tuple[str, str], float | None]:
    """Values by name and part; no two measures share both."""
    found = {(one.name, one.part): one.interval.value for one in measures}
    assert len(found) == len(measures)
    return found


def cases(benchmark: Benchmark, rows: Sequence[Row], file: str = "") -> list[Case]:
    """The cases of rows."""
    return [case for at, row in enumerate(rows) for case in benchmark.cases(row, RowPlace(number=at, file=file))]


def outcomes(benchmark: Benchmark, rows: Sequence[Row], file: str = "") -> list[Outcome]:
    """What is kept of the stored scores of rows."""
    return [outcome_of(case) for case in cases(benchmark, rows, file)]
