from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evals.results import written

from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.job import run_label
from adjudge.evals.reports.result import Result
from adjudge.evals.trust import rescoring
from adjudge.evals.trust.rescoring import order_measures, run_drift
from adjudge.evals.trust.verdicts import DriftConfig
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked
from adjudge.statistics.intervals import NO_DRAWS


def score(name: str, value: float | None, status: str = "", reason: str = "", *, group: str = "") -> dict[str, Any]:
    return {
        "id": name,
        "group": group,
        "value": value,
        "status": status or "scored",
        "reason": reason,
        "provenance": {"scorer": "judge", "fingerprint": "f1"},
    }


def values(result: Result) -> dict[str, float | None]:
    return {one.name: one.interval.value for one in result.measures}


def checks(result: Result) -> dict[str, bool | None]:
    return {one.name: one.passed for one in result.checks}


BEFORE = [
    score("a", 0.2, group="p"),
    score("b", 0.8, group="p"),
    score("c", 0.5, group="q"),
    score("d", 0.5, group="q"),
    score("e", None, "failed", "engine_timeout", group="r"),
    score("f", 0.9, group="r"),
]
AFTER = [
    score("f", None, "abstained", "low_confidence", group="r"),
    score("e", 0.3, group="r"),
    score("d", 0.7, group="q"),
    score("c", 0.5, group="q"),
    score("b", 0.1, group="p"),
    score("a", 0.2, group="p"),
]


def test_changes_are_counted_by_hand(tmp_path: Path) -> None:
    first, second = written(tmp_path, BEFORE, "a.jsonl"), written(tmp_path, AFTER, "b.jsonl")
    result = run_drift(DriftConfig(input=first, against=second, threshold=0.5, resamples=50))
    found = values(result)
    assert found["changed"] == pytest.approx(4 / 6)
    assert found["status changed"] == pytest.approx(2 / 6)
    assert found["mean |difference|"] == pytest.approx((0.7 + 0.2) / 4)
    assert found["mean difference"] == pytest.approx(-0.5 / 4)
    assert found["largest |difference|"] == pytest.approx(0.7)
    assert found["verdict flips"] == pytest.approx(1 / 4)
    assert found["pair order flips"] == 0.5  # p turned round, q's tie broke
    assert found["pair order changes"] == 1.0
    assert found["best of group changed"] == 1.0
    assert checks(result) == {"no change": False, "one fingerprint, one score": False, "same rows": True}
    status = result.figures[0].to_dict()
    assert status["rows"] == ["scored", "abstained", "failed", "missing"]
    assert status["values"][0] == [4, 1, 0, 0]
    assert status["values"][2] == [1, 0, 0, 0]
    assert [one.id for one in result.worst] == ["e", "f", "b", "d"]
    assert result.worst[0].responses[0].said == "before: failed (engine_timeout); after: 0.3"
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_same_scores_have_no_drift(tmp_path: Path) -> None:
    first, second = written(tmp_path, BEFORE, "a.jsonl"), written(tmp_path, BEFORE[::-1], "b.jsonl")
    result = run_drift(DriftConfig(input=first, against=second, resamples=50))
    assert checks(result) == {"no change": True, "one fingerprint, one score": True, "same rows": True}
    assert values(result)["rank correlation"] == pytest.approx(1.0)
    (flips,) = [one.interval for one in result.measures if one.name == "pair order flips"]
    assert (flips.value, flips.low) == (0.0, 0.0)
    assert flips.high is not None
    assert flips.high > 0.1  # two groups do not rule flips out
    assert result.comparisons[0].p == 1.0
    assert result.worst == ()


def test_small_differences_and_few_changes_may_be_allowed(tmp_path: Path) -> None:
    later = [one | {"value": one["value"] + 0.001} if one["value"] is not None else one for one in BEFORE]
    later[0]["value"] = 0.9
    first, second = written(tmp_path, BEFORE, "a.jsonl"), written(tmp_path, later, "b.jsonl")
    strict = run_drift(DriftConfig(input=first, against=second, resamples=0))
    assert values(strict)["changed"] == pytest.approx(5 / 6)
    loose = run_drift(DriftConfig(input=first, against=second, tolerance=0.01, allowed=0.2, resamples=0))
    assert values(loose)["changed"] == pytest.approx(1 / 6)
    assert checks(loose)["no change"] is True


def test_rows_of_one_scoring_alone_are_named(tmp_path: Path) -> None:
    first, second = written(tmp_path, BEFORE, "a.jsonl"), written(tmp_path, [*AFTER[2:], score("z", 1)], "b.jsonl")
    result = run_drift(DriftConfig(input=first, against=second, resamples=0))
    assert checks(result)["same rows"] is False
    assert any("2 rows are in the earlier scoring alone, the first one is 'e'" in note for note in result.notes)
    assert result.counts.cases == 4


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=14),
    st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_order_within_groups_is_that_of_all_pairs(rows: list[tuple[str, int, int]], tolerance: float) -> None:
    first, second = (np.array([row[at] for row in rows], dtype=float) for at in (1, 2))
    groups = [row[0] for row in rows]

    def sign(x: float) -> int:
        return 0 if abs(x) <= tolerance else 1 if x > 0 else -1

    pairs = [(i, j) for i, j in itertools.combinations(range(len(rows)), 2) if groups[i] == groups[j]]
    before = [sign(first[j] - first[i]) for i, j in pairs]
    after = [sign(second[j] - second[i]) for i, j in pairs]
    found = {
        one.name: one.interval.value for one in order_measures(first, second, groups, NO_DRAWS, tolerance=tolerance)
    }
    if not pairs:
        assert not found
        return
    turned = sum(a * b < 0 for a, b in zip(before, after, strict=True))
    other = sum(a != b for a, b in zip(before, after, strict=True))
    assert found["pair order flips"] == pytest.approx(turned / len(pairs))
    assert found["pair order changes"] == pytest.approx(other / len(pairs))
    members = {group: [i for i, name in enumerate(groups) if name == group] for group in groups}
    several = [places for places in members.values() if len(places) > 1]
    best = [
        [{i for i in places if side[i] >= max(side[places]) - tolerance} for side in (first, second)]
        for places in several
    ]
    moved = sum(then != now for then, now in best)
    assert found["best of group changed"] == pytest.approx(moved / len(several))


def solutions(folder: Path) -> str:
    rows = [
        {"prompt": f"{at} + 1?", "response": [f"\\boxed{{{at + 1}.0}}", f"\\boxed{{{at}}}"], "answer": str(at + 1)}
        for at in range(6)
    ]
    return written(folder, rows, "rows.jsonl")


@pytest.mark.parametrize("kept", [True, False])
def test_rows_are_scored_again_by_their_ids(tmp_path: Path, kept: bool) -> None:
    rows, labels = solutions(tmp_path), str(tmp_path / "labels.jsonl")
    run_label(LabelConfig(input=rows, output=labels, scorer="exact", keep_columns=kept, workers=1))
    where = "" if kept else rows
    same = run_drift(DriftConfig(input=labels, scorer="exact", rows=where, resamples=0))
    assert same.counts.cases == 12
    assert checks(same) == {"no change": True, "one fingerprint, one score": True, "same rows": True}
    other = run_drift(DriftConfig(input=labels, scorer="math", rows=where, resamples=0))
    assert checks(other)["no change"] is False
    assert checks(other)["one fingerprint, one score"] is None
    assert other.worst[0].prompt.endswith("+ 1?")
    assert other.worst[0].responses[0].text.startswith("\\boxed")


@pytest.mark.parametrize("kept", [True, False])
def test_responses_of_several_columns_are_scored_again(tmp_path: Path, kept: bool) -> None:
    lines = [{"id": f"p{at}", "prompt": "q", "a": "1", "b": str(at), "reference": "1"} for at in range(4)]
    rows, labels = written(tmp_path, lines, "rows.jsonl"), str(tmp_path / "labels.jsonl")
    run_label(
        LabelConfig(input=rows, output=labels, scorer="exact", response_column=("a", "b"), keep_columns=kept, workers=1)
    )
    same = run_drift(DriftConfig(input=labels, scorer="exact", rows="" if kept else rows, resamples=0))
    assert same.counts.cases == 8
    assert set(checks(same).values()) == {True}


def test_a_limit_is_of_the_earlier_scoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = written(tmp_path, BEFORE, "a.jsonl"), written(tmp_path, AFTER, "b.jsonl")
    found = run_drift(DriftConfig(input=first, against=second, limit=2, resamples=0))
    assert found.counts.cases == 2
    assert checks(found)["same rows"] is True
    rows, labels = solutions(tmp_path), str(tmp_path / "labels.jsonl")
    run_label(LabelConfig(input=rows, output=labels, scorer="exact", workers=1))
    asked: list[str] = []

    async def counted(scorer: Scorer, samples: Sequence[Sample]) -> list[Score]:
        asked.extend(one.id for one in samples)
        return await score_checked(scorer, samples)

    monkeypatch.setattr(rescoring, "score_checked", counted)
    again = run_drift(DriftConfig(input=labels, scorer="exact", rows=rows, limit=3, resamples=0))
    assert len(asked) == 3
    assert again.counts.cases == 3
    assert set(checks(again).values()) == {True}


def test_mistakes_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, BEFORE, "a.jsonl")
    with pytest.raises(ValueError, match="share no id"):
        run_drift(DriftConfig(input=path, against=written(tmp_path, [score("zz", 1)], "b.jsonl")))
    with pytest.raises(ValueError, match="name the labelled file with --rows"):
        run_drift(DriftConfig(input=path, scorer="exact"))
    words = written(tmp_path, [{"id": "a", "value": "good"}], "c.jsonl")
    with pytest.raises(ValueError, match="is the text 'good'"):
        run_drift(DriftConfig(input=words, column="value", against=path))
    named = written(tmp_path, [{"id": "a", "scores": {"x": score("a", 1), "y": score("a", 0)}}], "d.jsonl")
    with pytest.raises(ValueError, match="say which with --column"):
        run_drift(DriftConfig(input=named, against=path))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "neither is given"),
        ({"against": "x", "scorer": "y"}, "both are given"),
        ({"against": "x", "rows": "y"}, "rows is 'y'"),
        ({"against": "x", "tolerance": -1.0}, "tolerance"),
        ({"against": "x", "allowed": 2.0}, "allowed"),
        ({"against": "x", "threshold": float("nan")}, "threshold"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        DriftConfig(input="a.jsonl", **options)
