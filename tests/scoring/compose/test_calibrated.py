from __future__ import annotations

import asyncio
import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Calibrated, Calibration

repeatable = settings(deadline=None, derandomize=True)


@dataclass(frozen=True)
class Reads:
    """Scores the response as a number, or fails."""

    name: str = "reads"
    fingerprint: str = "reads:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self.one(str(sample.response)) for sample in samples]

    def one(self, response: str) -> Score:
        return Score.failed("engine_unavailable") if response == "failed" else Score.scored(float(response))


def drawn(count: int, slope: float, intercept: float, seed: int = 3) -> tuple[list[float], list[int]]:
    """Scores on a wide scale with labels drawn from a logistic curve."""
    rng = random.Random(seed)
    values = [rng.uniform(-4.0, 4.0) for _ in range(count)]
    labels = [int(rng.random() < 1 / (1 + math.exp(-(slope * value + intercept)))) for value in values]
    return values, labels


def test_isotonic_is_the_pool_of_adjacent_violators() -> None:
    # 1 2 | 3 4 5 -> 0 0 | 1 0 1: the violating pair (3, 4) is averaged.
    fitted = Calibration.fit([1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 1, 0, 1])
    assert [fitted(value) for value in (0.0, 1.5, 3.0, 3.5, 4.0, 4.5, 9.0)] == [0.0, 0.0, 0.5, 0.5, 0.5, 0.75, 1.0]
    assert fitted(2.5) == 0.25


def test_isotonic_equals_scikit_learn_everywhere() -> None:
    from sklearn.isotonic import IsotonicRegression

    values, labels = drawn(500, 1.0, 0.2)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(values, labels)
    ours = Calibration.fit(values, labels)
    grid = [x / 50 for x in range(-300, 301)]
    assert [ours(x) for x in grid] == pytest.approx(theirs.predict(grid).tolist(), abs=1e-12)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1000.0, 5000.0), (1e-4, -3.0)])
def test_platt_recovers_the_curve_on_any_scale(scale: float, shift: float) -> None:
    values, labels = drawn(4000, 1.5, -0.5)
    fitted = Calibration.fit([scale * value + shift for value in values], labels, kind="platt")
    for value in (-2.0, 0.0, 1.0, 3.0):
        expected = 1 / (1 + math.exp(-(1.5 * value - 0.5)))
        assert fitted(scale * value + shift) == pytest.approx(expected, abs=0.03)


def test_platt_minimises_the_smoothed_loss_of_the_paper() -> None:
    values, labels = drawn(60, 1.0, 0.0)
    fitted = Calibration.fit(values, labels, kind="platt")
    right = sum(labels)
    targets = [(right + 1) / (right + 2) if label else 1 / (len(labels) - right + 2) for label in labels]
    errors = [fitted(value) - target for value, target in zip(values, targets, strict=True)]
    assert sum(errors) == pytest.approx(0.0, abs=1e-3)  # the gradient in the intercept
    assert sum(e * x for e, x in zip(errors, values, strict=True)) == pytest.approx(0.0, abs=1e-3)  # and in the slope


def test_platt_stays_finite_on_separable_data() -> None:
    fitted = Calibration.fit([0.0, 0.1, 0.9, 1.0], [0, 0, 1, 1], kind="platt")
    assert 0.1 < fitted(0.0) < 0.5 < fitted(1.0) < 0.9
    assert (fitted(-1e300), fitted(1e300)) == (0.0, 1.0)


@repeatable
@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20), st.sampled_from(["isotonic", "platt"]))
def test_maps_never_fall_and_stay_probabilities(points: list[float], kind: str) -> None:
    values, labels = drawn(200, 0.7, 0.1)
    fitted = Calibration.fit(values, labels, kind=kind)  # type: ignore[arg-type]
    found = [fitted(point) for point in sorted([*points, *(point / 1e9 for point in points)])]
    assert found == sorted(found)
    assert all(0.0 <= value <= 1.0 for value in found)


def test_maps_survive_json_exactly(tmp_path: Path) -> None:
    values, labels = drawn(300, 1.0, 0.0)
    for kind in ("isotonic", "platt"):
        fitted = Calibration.fit(values, labels, kind=kind)
        fitted.save(tmp_path / "map.json")
        assert Calibration.load(tmp_path / "map.json") == fitted
        assert json.loads((tmp_path / "map.json").read_text()) == fitted.to_dict()


def test_using_a_map_imports_no_scikit_learn(tmp_path: Path) -> None:
    Calibration(kind="isotonic", knots=((0.0, 0.25), (1.0, 0.75))).save(tmp_path / "map.json")
    program = (
        "import sys; from adjudge.scoring.compose import Calibration\n"
        "assert Calibration.load(sys.argv[1])(0.5) == 0.5\n"
        "assert not {'sklearn', 'numpy', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "map.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_without_scikit_learn_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'adjudge\[data\]'"):
        Calibration.fit([0.0, 1.0], [0, 1])


def test_a_calibrated_scorer_maps_values_and_keeps_failures() -> None:
    scorer = Calibrated(scorer=Reads(), map=Calibration(kind="isotonic", knots=((0.0, 0.25), (1.0, 0.75))))
    samples = [Sample(prompt="p", response=response) for response in ("0.5", "failed", "7")]
    scores = asyncio.run(scorer.score(samples))
    assert [score.value for score in scores] == [0.5, None, 0.75]
    assert scores[1].reason == "engine_unavailable"
    assert scores[2].parts["reads"].value == 7.0


@pytest.mark.parametrize(
    ("values", "labels", "complaint"),
    [
        ([0.0, 1.0], [0], "2 values and 1 labels"),
        ([0.0, 1.0], [0, 2], "the label 2 is neither 0 nor 1"),
        ([0.0, math.nan], [0, 1], "value nan"),
        ([0.0, 1.0], [1, 1], "both right and wrong"),
        ([1.0, 1.0], [0, 1], "two different values"),
    ],
)
def test_data_that_allow_no_fit_are_refused(values: list[float], labels: list[int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Calibration.fit(values, labels)


def test_a_scorer_that_is_the_wrong_way_round_is_not_calibrated() -> None:
    with pytest.raises(ValueError, match="do not have higher values"):
        Calibration.fit([0.0, 1.0, 2.0, 3.0], [1, 1, 0, 0], kind="platt")


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "spline"},
        {"knots": []},
        {"kind": "isotonic"},
        {"kind": "isotonic", "knots": [[0, 0.5], [0, 0.6]]},
        {"kind": "isotonic", "knots": [[0, 0.5], [1, 0.4]]},
        {"kind": "isotonic", "knots": [[0, -0.1], [1, 0.4]]},
        {"kind": "isotonic", "knots": [[0, 0.5], [1, 1.1]]},
        {"kind": "isotonic", "knots": [[0, "x"]]},
        {"kind": "isotonic", "knots": [1, 2]},
        {"kind": "platt", "slope": 0.0},
        {"kind": "platt", "slope": -1.0},
        {"kind": "platt", "intercept": math.inf},
        {"kind": "platt", "offset": 1.0},
    ],
)
def test_maps_that_are_not_monotone_probabilities_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="alibration"):
        Calibration.from_dict(data)


def test_a_map_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text("{")
    with pytest.raises(ValueError, match=r"map\.json"):
        Calibration.load(tmp_path / "map.json")
