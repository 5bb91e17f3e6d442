from __future__ import annotations

import asyncio
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Ensemble, Part

repeatable = settings(deadline=None, derandomize=True)


@dataclass(frozen=True)
class Reads:
    """Scores what the response says under its name: a number, [number, uncertainty], or None to fail."""

    name: str
    fingerprint: str = "reads:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self.one(json.loads(str(sample.response))[self.name]) for sample in samples]

    def one(self, entry: Any) -> Score:
        if entry is None:
            return Score.failed("engine_unavailable")
        value, spread = entry if isinstance(entry, list) else (entry, None)
        return Score(value=value, uncertainty=spread)


def one(entries: Sequence[Any], **options: Any) -> Score:
    names = "abcdefgh"[: len(entries)]
    ensemble = Ensemble(parts=tuple(Part(Reads(name)) for name in names), **options)
    response = json.dumps(dict(zip(names, entries, strict=True)))
    (score,) = asyncio.run(ensemble.score([Sample(prompt="p", response=response)]))
    return score


VALUES = [1.0, 3.0, 8.0]  # mean 4, population variance (9 + 1 + 16) / 3
SPREAD = math.sqrt(26 / 3)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({}, 4.0),
        ({"rule": "median"}, 3.0),
        ({"rule": "min"}, 1.0),
        ({"rule": "lower_bound"}, 4.0 - SPREAD),
        ({"rule": "lower_bound", "k": 0.5}, 4.0 - 0.5 * SPREAD),
        ({"rule": "lower_bound", "k": 0}, 4.0),
        ({"rule": "nominal_min"}, 0.5 * 4.0 + 0.5 * 1.0),
        ({"rule": "nominal_min", "share": 0.2}, 0.2 * 4.0 + 0.8 * 1.0),
        ({"rule": "nominal_min", "share": 1.0, "nominal": "b"}, 3.0),
    ],
)
def test_the_documented_formulas(options: dict[str, Any], value: float) -> None:
    score = one(VALUES, **options)
    assert score.value == pytest.approx(value, rel=1e-15)
    assert score.uncertainty == pytest.approx(SPREAD, rel=1e-15)
    assert [part.value for part in score.parts.values()] == VALUES


@repeatable
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_against_the_statistics_module(values: list[float]) -> None:
    scale = max(1.0, *(abs(value) for value in values))
    assert one(values).value == pytest.approx(statistics.fmean(values), rel=1e-12, abs=1e-12 * scale)
    assert one(values).uncertainty == pytest.approx(statistics.pstdev(values), rel=1e-6, abs=1e-9 * scale)
    assert one(values, rule="median").value == statistics.median(values)
    assert one(values, rule="min").value == min(values)


def test_the_surest_member_is_the_nominal_one() -> None:
    options = {"rule": "nominal_min", "nominal": "surest"}
    assert one([[1.0, 0.5], [5.0, 0.1], [9.0, 0.2]], **options).value == 0.5 * 5.0 + 0.5 * 1.0
    assert one([[1.0, 0.5], 5.0, [9.0, 0.2]], **options).value == 0.5 * 9.0 + 0.5 * 1.0
    assert one([1.0, 5.0], **options).reason == "part_failed"


def test_members_without_a_number() -> None:
    assert one([1.0, None, 3.0]).reason == "engine_unavailable"
    assert one([1.0, None, 3.0]).evidence == {"missing": {"b": "failed: engine_unavailable"}, "needed": 3}
    two = one([1.0, None, 3.0], min_members=2)
    assert (two.value, two.uncertainty) == (2.0, 1.0)
    assert two.evidence == {"missing": {"b": "failed: engine_unavailable"}}
    assert one([1.0, None, None], min_members=2).reason == "engine_unavailable"
    assert one([None, 2.0, 3.0], rule="nominal_min", nominal="a", min_members=1).reason == "engine_unavailable"


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "max"},
        {"k": -1.0},
        {"k": math.inf},
        {"share": 1.5},
        {"share": True},
        {"nominal": "z"},
        {"min_members": 0},
        {"min_members": 4},
        {"min_members": True},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"(Ensemble )?(option |\.){next(iter(options))}"):
        one(VALUES, **options)
