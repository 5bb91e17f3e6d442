from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from tests.evals.results import written

from adjudge.evals.reports.result import Measure, Result
from adjudge.evals.trust.calibration import areas_of, binned_intervals, error_by_chance, run_calibration
from adjudge.evals.trust.reliability import Binning, bin_of, calibration_error, risk_coverage
from adjudge.evals.trust.verdicts import CalibrationConfig, Map
from adjudge.statistics.intervals import NO_DRAWS, Draws


def measure(result: Result, name: str, part: str = "") -> Measure:
    (found,) = [one for one in result.measures if one.name == name and one.part.startswith(part)][:1]
    return found


def value(result: Result, name: str, part: str = "") -> float:
    return measure(result, name, part).interval.known


def some_rows(count: int, seed: int, *, power: float = 1.0) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    said = draw.beta(2, 2, size=count)
    return [
        {"id": f"r{at}", "group": f"g{at // 2}", "value": float(p), "gold": int(draw.random() < p**power)}
        for at, p in enumerate(said)
    ]


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1]), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 12),
    st.sampled_from(["equal_width", "equal_mass"]),
)
@settings(max_examples=80, deadline=None)
def test_bins_are_those_of_the_plain_calibration_error(
    rows: list[tuple[float, bool]], bins: int, binning: Binning
) -> None:
    said, labels = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows], dtype=float)
    told = calibration_error(said.tolist(), labels.astype(int).tolist(), bins=bins, binning=binning)
    at = bin_of(said, bins, binning)
    found = binned_intervals(said, labels, [str(place) for place in range(len(rows))], at, NO_DRAWS)
    assert found["expected"].known == pytest.approx(told.expected)
    assert found["largest"].known == pytest.approx(told.largest)
    parts = {name: one.known for name, one in found.items()}
    assert parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["inside"] == pytest.approx(
        metrics.brier_score_loss(labels, said, labels=[0, 1]) if len(rows) > 1 else (said[0] - labels[0]) ** 2
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 1.0]), st.integers(0, 3)), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_weighted_areas_are_those_of_copied_rows(rows: list[tuple[int, float, int]]) -> None:
    sure, losses, weights = (np.array([row[at] for row in rows], dtype=float) for at in range(3))
    found = areas_of(sure, losses)(weights)
    if not weights.any():
        assert np.isnan(found).all()
        return
    copies = weights.astype(int)
    told = risk_coverage(np.repeat(sure, copies).tolist(), np.repeat(losses, copies).tolist())
    assert found.tolist() == pytest.approx([told.area, told.excess])


def test_every_number_is_that_of_scikit_learn_or_of_plain_lists(tmp_path: Path) -> None:
    rows = some_rows(400, 1, power=1.5)
    result = run_calibration(CalibrationConfig(input=written(tmp_path, rows), resamples=50))
    said, labels = [row["value"] for row in rows], [row["gold"] for row in rows]
    assert value(result, "Brier") == pytest.approx(metrics.brier_score_loss(labels, said))
    assert value(result, "log loss") == pytest.approx(metrics.log_loss(labels, said))
    assert value(result, "AUROC") == pytest.approx(metrics.roc_auc_score(labels, said))
    assert value(result, "average precision") == pytest.approx(metrics.average_precision_score(labels, said))
    assert value(result, "ECE", "10 bins of equal mass") == pytest.approx(
        calibration_error(said, labels, binning="equal_mass").expected
    )
    wrong = [float((p >= 0.5) != bool(label)) for p, label in zip(said, labels, strict=True)]
    told = risk_coverage([abs(p - 0.5) for p in said], wrong)
    assert value(result, "AURC") == pytest.approx(told.area)
    assert value(result, "accuracy") == pytest.approx(1 - sum(wrong) / 400)
    assert measure(result, "Brier").baselines["constant"] == pytest.approx(np.var(labels))
    json.dumps(result.to_dict(), allow_nan=False)
    assert [one.verdict for one in result.worst[:2]] == ["wrong", "wrong"]
    assert result.worst[0].weight >= result.worst[1].weight


def test_the_error_of_a_perfect_scorer_is_what_chance_makes_and_of_another_one_is_more() -> None:
    draw = np.random.default_rng(2)
    said = draw.beta(2, 2, size=2000)
    bins, alone = bin_of(said, 10, "equal_width"), [str(at) for at in range(2000)]
    chance = error_by_chance(said, bins)
    fair = binned_intervals(said, (draw.random(2000) < said).astype(float), alone, bins, NO_DRAWS)
    off = binned_intervals(said, (draw.random(2000) < said**2).astype(float), alone, bins, Draws(rounds=300))
    assert fair["expected"].known == pytest.approx(chance, rel=0.5)
    drawn = binned_intervals(said, (draw.random(2000) < said).astype(float), alone, bins, Draws(rounds=300))["expected"]
    assert drawn.low is not None
    assert drawn.high is not None
    assert drawn.low < chance / 5  # uncorrected percentiles begin above what chance alone makes
    assert drawn.known < drawn.high < 2.5 * chance
    assert off["expected"].known > 5 * chance
    true = float(np.mean(said - said**2))
    assert off["expected"].low is not None
    assert off["expected"].high is not None
    assert off["expected"].low < true < off["expected"].high
    assert off["expected"].low < off["expected"].known < off["expected"].high


def test_who_has_no_number_is_never_right_and_counted_apart(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "value": 0.9, "status": "scored", "reason": "", "gold": 1},
        {"id": "b", "value": 0.2, "status": "scored", "reason": "", "gold": 0},
        {"id": "c", "value": None, "status": "abstained", "reason": "low_confidence", "gold": 1},
        {"id": "d", "value": None, "status": "failed", "reason": "engine_timeout", "gold": 0},
        {"id": "e", "value": 0.4, "status": "scored", "reason": "", "gold": None},
    ]
    result = run_calibration(CalibrationConfig(input=written(tmp_path, rows), resamples=10))
    assert (result.counts.cases, result.counts.scored, result.counts.abstained, result.counts.failed) == (4, 2, 1, 1)
    assert dict(result.counts.reasons) == {"low_confidence": 1, "engine_timeout": 1}
    assert value(result, "accuracy") == 0.5
    assert value(result, "coverage") == 0.5
    assert value(result, "selective risk") == 0.0
    assert any("1 rows have no gold" in note for note in result.notes)
    risk = result.figures[1].to_dict()
    assert risk["series"][0]["x"][-1] == 0.5  # the curve ends where abstaining begins
    grid = result.figures[3].to_dict()
    assert grid["values"] == [[1, 0, 1], [0, 1, 1]]


def test_raw_scores_are_mapped_without_their_own_groups_and_it_is_said(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    rows = [
        {
            "id": str(at),
            "group": str(at // 4),
            "value": float(z := draw.normal() * 5),
            "gold": int(z + draw.normal() > 0),
        }
        for at in range(400)
    ]
    path = written(tmp_path, rows)
    kinds: tuple[Map, ...] = ("auto", "platt")
    for kind in kinds:
        result = run_calibration(CalibrationConfig(input=path, map=kind, resamples=0))
        assert value(result, "ECE") < 0.08
        assert value(result, "AUROC") == pytest.approx(
            metrics.roc_auc_score([row["gold"] for row in rows], [row["value"] for row in rows])
        )
        assert any("fitted on the rows of other groups" in note for note in result.notes)
    with pytest.raises(ValueError, match="which is not a probability"):
        run_calibration(CalibrationConfig(input=path, map="none"))


def test_gold_may_be_graded_and_lie_in_another_file(tmp_path: Path) -> None:
    scores = [{"id": str(at), "value": at / 10} for at in range(11)]
    golds = [{"id": str(10 - at), "stars": 10 - at} for at in range(9)]
    path, gold = written(tmp_path, scores), written(tmp_path, golds, "gold.jsonl")
    config = CalibrationConfig(input=path, gold=gold, gold_column="stars", gold_threshold=5, resamples=0)
    result = run_calibration(config)
    assert result.counts.cases == 9
    assert value(result, "accuracy") == 1.0
    assert value(result, "rank correlation with the grade") == pytest.approx(1.0)
    with pytest.raises(ValueError, match="say with --gold-threshold"):
        run_calibration(CalibrationConfig(input=path, gold=gold, gold_column="stars"))
    apart = written(tmp_path, [{"id": "x", "gold": 1}], "apart.jsonl")
    with pytest.raises(ValueError, match="share no id"):
        run_calibration(CalibrationConfig(input=path, gold=apart))


def test_a_limit_is_of_the_scores_and_golds_without_a_score_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": str(at), "value": at / 10} for at in range(8)])
    gold = written(tmp_path, [{"id": str(at), "gold": int(at > 4)} for at in range(10, -1, -1)], "gold.jsonl")
    whole = run_calibration(CalibrationConfig(input=path, gold=gold, resamples=0))
    assert whole.counts.cases == 8
    assert any(note.startswith(f"3 rows of {gold} are not in") for note in whole.notes)
    some = run_calibration(CalibrationConfig(input=path, gold=gold, limit=3, resamples=0))
    assert some.counts.cases == 3
    assert not any("are not in" in note or "have no gold" in note for note in some.notes)


def test_a_certain_error_has_an_infinite_loss_which_is_no_number(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"value": 1, "gold": 0}, {"value": 0.5, "gold": 1}]
    result = run_calibration(CalibrationConfig(input=written(tmp_path, rows), resamples=20))
    assert measure(result, "log loss").interval.value is None
    assert any("1 rows were said to be impossible" in note for note in result.notes)


def test_a_csv_is_text_and_one_outcome_says_nothing_about_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["value", "gold"], ["0.7", "true"], ["", "1"], ["nan", "1"], ["0.2", "True"]])
    result = run_calibration(CalibrationConfig(input=str(path), resamples=20))
    assert measure(result, "AUROC").interval.value is None
    assert (result.counts.scored, result.counts.failed) == (2, 2)
    assert dict(result.counts.reasons) == {"missing": 1, "not_finite": 1}
    assert value(result, "accuracy") == 0.25


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"value": 0.5, "gold": "maybe"}], "gold of '0' is the text 'maybe'"),
        ([{"value": "good", "gold": 1}], "score of '0' is the text 'good'"),
        ([{"value": None, "gold": 1}], "has a score"),
        ([{"value": 1, "gold": None}], "has a gold"),
        ([{"value": [1], "gold": 1}], "holds a list"),
        ([{"score": 1, "gold": 1}], "no such column"),
        ([{"id": "x", "value": 1, "gold": 1}] * 2, "have the id 'x'"),
        ([{"value": None, "status": "scored", "gold": 1}], "a score is one exactly if scored"),
        ([], "holds no rows"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, rows: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        run_calibration(CalibrationConfig(input=written(tmp_path, rows)))


@pytest.mark.parametrize(
    "options",
    [{"bins": 0}, {"folds": 1}, {"map": "linear"}, {"threshold": 1.5}, {"gold_threshold": math.nan}, {"level": 1.0}],
)
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        CalibrationConfig(input="x.jsonl", **options)
