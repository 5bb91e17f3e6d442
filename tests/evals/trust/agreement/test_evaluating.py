from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.evals.results import measure, written

from adjudge.evals.trust.agreement import majority, run_agreement
from adjudge.evals.trust.verdicts import AgreementConfig


def judged(folder: Path, count: int = 60) -> str:
    draw = np.random.default_rng(1)
    gold = draw.integers(2, size=count)
    rows = [
        {
            "id": f"i{at}",
            "group": f"g{at // 2}",
            "a": int(gold[at]),
            "b": int(gold[at] if draw.random() < 0.8 else 1 - gold[at]),
            "c": None if at % 10 == 0 else int(gold[at] if draw.random() < 0.7 else 1 - gold[at]),
            "gold": int(gold[at]),
            "prompt": f"question {at}",
            "response": "<b>&{}%s",
        }
        for at in range(count)
    ]
    return written(folder, rows)


def test_columns_of_one_file_are_raters_and_gaps_are_gaps(tmp_path: Path) -> None:
    config = AgreementConfig(input=judged(tmp_path), column=("a", "b", "third=c"), gold_column="gold", resamples=100)
    result = run_agreement(config)
    rows = [json.loads(line) for line in Path(config.input).read_text(encoding="utf-8").splitlines()]
    told = cohen_kappa_score([row["a"] for row in rows], [row["b"] for row in rows])
    assert measure(result, "kappa", "a / b").interval.known == pytest.approx(told)
    assert measure(result, "kappa", "a / third").interval.n == 54
    assert measure(result, "verdicts given", "third").interval.value == 0.9
    assert measure(result, "accuracy", "a").interval.value == 1.0
    right = sum(row["c"] == row["gold"] for row in rows)
    assert measure(result, "accuracy", "third").interval.known == pytest.approx(right / 60)  # a gap is not right
    assert measure(result, "accuracy", "majority").interval.value is not None
    assert list(measure(result, "accuracy", "a").baselines) == ["commoner label"]
    assert {one.other for one in result.comparisons} == {"a", "b", "third"}
    assert all(one.test == "signs of clusters" and one.p_adjusted is not None for one in result.comparisons)
    assert (result.counts.cases, result.counts.samples, result.counts.scored) == (60, 180, 174)
    assert dict(result.counts.reasons) == {"missing": 6}
    assert {figure.to_dict()["title"] for figure in result.figures} == {
        "Kappa of each two",
        "Agreement of each two",
        "Gold and majority",
    }
    assert result.worst[0].verdict == "disagree"
    assert result.worst[0].prompt.startswith("question ")
    assert "third: " in result.worst[0].responses[0].said
    json.dumps(result.to_dict(), allow_nan=False)


def test_scores_by_name_and_files_joined_by_id(tmp_path: Path) -> None:
    def score(value: float | None, reason: str = "") -> dict[str, Any]:
        status = "scored" if value is not None else "failed"
        return {"value": value, "status": status, "reason": reason, "provenance": {"scorer": "x", "fingerprint": "f1"}}

    both = [{"row": at, "id": str(at), "group": "", "scores": {"math": score(1.0), "judge": score(at / 19)}}
            for at in range(20)]  # fmt: skip
    named = run_agreement(AgreementConfig(input=written(tmp_path, both), resamples=20))
    assert measure(named, "Spearman", "math / judge").interval.value is None  # one of them is constant
    assert named.scorer["raters"]["math"] == {"name": "x", "fingerprint": "f1"}
    one = written(tmp_path, [{"id": str(at), **score(at / 19)} for at in range(20)], "one.jsonl")
    lines = [{"id": str(at), **score(at / 19 if at else None, "engine_timeout" if not at else "")}
             for at in range(19, -1, -1)]  # fmt: skip
    other = written(tmp_path, [*lines, {"id": "new", **score(0.5)}], "other.jsonl")
    joined = run_agreement(AgreementConfig(input=one, file=(other,), resamples=20))
    assert measure(joined, "Krippendorff's alpha, interval").interval.known == pytest.approx(1.0)
    assert measure(joined, "Spearman", "one / other").interval.n == 19
    assert dict(joined.counts.reasons) == {"engine_timeout": 1, "missing": 1}
    halves = run_agreement(AgreementConfig(input=one, file=(f"again={other}",), threshold=0.5, resamples=20))
    assert measure(halves, "kappa", "one / again").interval.value == 1.0


def test_a_limit_is_of_the_first_file(tmp_path: Path) -> None:
    one = written(tmp_path, [{"id": str(at), "value": at % 2, "status": "scored"} for at in range(9)], "one.jsonl")
    turned = [{"id": str(at), "value": at % 2, "status": "scored"} for at in range(8, -1, -1)]
    result = run_agreement(
        AgreementConfig(input=one, file=(written(tmp_path, turned, "other.jsonl"),), limit=4, resamples=0)
    )
    assert result.counts.cases == 4
    assert measure(result, "kappa", "one / other").interval.n == 4
    assert measure(result, "verdicts given", "one").interval.value == 1.0


def test_texts_are_labels_and_ratings_are_ranks(tmp_path: Path) -> None:
    pairs = [("A", "A"), ("B", "tie"), ("B", "B"), ("tie", "tie")] * 5
    rows = [
        {"a": label, "b": other, "s": 1 + at % 5, "t": 1 + (at + (at % 4 == 0)) % 5}
        for at, (label, other) in enumerate(pairs)
    ]
    path = written(tmp_path, rows)
    words = run_agreement(AgreementConfig(input=path, column=("a", "b"), resamples=0))
    assert "the scale is nominal" in words.notes
    assert measure(words, "agreement").interval.value == 0.75
    stars = run_agreement(AgreementConfig(input=path, column=("s", "t"), resamples=0))
    assert "the scale is ordinal" in stars.notes
    assert stars.measures[0].name == "Krippendorff's alpha, ordinal"
    with pytest.raises(ValueError, match="text has no order"):
        run_agreement(AgreementConfig(input=path, column=("a", "b"), scale="ordinal"))


def test_numbers_with_gold_have_distances(tmp_path: Path) -> None:
    rows = [{"a": at / 7, "b": at / 7 + 0.5, "gold": at / 7} for at in range(30)]
    result = run_agreement(
        AgreementConfig(input=written(tmp_path, rows), column=("a", "b"), gold_column="gold", resamples=20)
    )
    assert measure(result, "distance from gold", "b").interval.known == pytest.approx(0.5)
    assert measure(result, "distance from gold", "mean").interval.known == pytest.approx(0.25)
    assert measure(result, "rank correlation with gold", "b").interval.known == pytest.approx(1.0)


def test_a_threshold_is_of_the_raters_where_gold_is_cut_already(tmp_path: Path) -> None:
    rows = [{"a": 3 + 5 * (at % 3 > 0), "b": 2 + 7 * (at % 3 > 0), "gold": int(at % 3 > 0)} for at in range(30)]
    for more in ({}, {"gold": 2}):  # a grade is cut as the raters are
        path = written(tmp_path, [*rows, {"a": 1, "b": 1, "gold": 0, **more}])
        options: dict[str, Any] = {"column": ("a", "b"), "gold_column": "gold", "threshold": 6, "resamples": 0}
        result = run_agreement(AgreementConfig(input=path, **options))
        assert measure(result, "accuracy", "a").interval.known == (1.0 if not more else pytest.approx(11 / 31))


def test_a_majority_stands_alone_in_front() -> None:
    values = np.array([[0, 0, 1], [0, 1, np.nan], [np.nan] * 3, [2, np.nan, np.nan], [0, 1, 2]])
    assert np.array_equal(majority(values), [0, np.nan, np.nan, 2, np.nan], equal_nan=True)
    assert np.array_equal(majority(np.array([[0, 0], [np.nan] * 2])), [0, np.nan], equal_nan=True)  # of one class


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([{"a": 1}], {"column": ("a",)}, "there is one rater"),
        ([{"a": 1, "b": 1}], {}, "say with --column where its scores are"),
        ([{"a": 1, "b": None}], {"column": ("a", "b")}, "no item has verdicts of two raters"),
        ([{"a": 1, "b": 1}], {"column": ("a", "B")}, "Did you mean 'b'"),
        ([{"a": 1, "b": 1}], {"column": ("a", "a")}, "two raters are called 'a'"),
        ([{"a": f"t{at}", "b": "x"} for at in range(60)], {"column": ("a", "b")}, "61 different verdicts"),
        ([{"a": at, "b": 0} for at in range(30)], {"column": ("a", "b"), "scale": "ordinal"}, "30 different"),
        (
            [{"a": at % 2, "b": 1, "gold": "ny"[at % 2]} for at in range(9)],
            {"column": ("a", "b"), "gold_column": "gold"},
            "no verdict is a label of the gold: raters say 0, 1, the gold is n, y",
        ),
        ([{"a": 1, "b": {"x": 1}}], {"column": ("a", "b")}, "object without `value`"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, rows: list[dict[str, Any]], options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        run_agreement(AgreementConfig(input=written(tmp_path, rows), **options))


@pytest.mark.parametrize("options", [{"scale": "odd"}, {"threshold": float("inf")}, {"column": 5}])
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AgreementConfig(input="x.jsonl", **options)
