"""Any file of labelled responses: its columns, its classes, what trivial scorers get, and a scorer in a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.labels import INVALID, RIGHT, WRONG, Labels
from adjudge.statistics.intervals import NO_DRAWS

ROWS: list[dict[str, Any]] = [
    {"question": "2+2?", "response": "\\boxed{4}", "answer": "4", "is_correct": True},
    {"question": "2+2?", "response": "\\boxed{5}", "answer": "4", "is_correct": False},
    {"question": "3+3?", "response": "It is six, and I am sure of it: \\boxed{6}.", "answer": "6", "is_correct": True},
    {"question": "3+3?", "response": "\\boxed{6}", "answer": "6", "is_correct": False},
]


def test_a_verifier_is_judged_by_labels_and_a_wrong_label_is_a_case_to_read(tmp_path: Path) -> None:
    result = run(Labels(), written(tmp_path / "in.json", ROWS), "math", resamples=50)
    found = numbers(result.measures)
    assert (found["accuracy", ""], found["false accepts", ""], found["false rejects", ""]) == (0.75, 0.5, 0.0)
    assert [(case.id, case.gold, case.responses[0].note) for case in result.worst] == [
        ("3", "labelled wrong", "called right")
    ]
    baselines = result.measures[0].baselines
    assert (baselines["always_right"], baselines["always_wrong"], baselines["longer"]) == (0.5, 0.5, 0.75)
    (grid,) = result.figures
    assert grid.to_dict()["values"] == [[2, 0, 0], [1, 1, 0]]
    assert result.measures[0].interval.low is not None
    assert len({outcome.cluster for outcome in stored_outcomes(Labels(), ROWS)}) == 2, "a prompt is a cluster"


def test_every_column_can_be_named() -> None:
    row = {
        "ask": {"text": "q"}, "said": [{"role": "assistant", "content": "yes"}], "gold": {"x": ["a"]}, "human": "ok",
        "kind": 3, "family": "f", "name": "n", "judge": {"p": 0.25},
    }  # fmt: skip
    benchmark = Labels(
        prompt_column="ask.text", response_column="said", reference_column="gold.x", label_column="human",
        right_label=("OK",), wrong_label=("bad",), part_column="kind", cluster_column="family", id_column="name",
        score_column="judge.p", threshold=0.2,
    )  # fmt: skip
    (case,) = cases(benchmark, [row])
    assert (case.id, case.part, case.cluster, case.gold["label"]) == ("n", "3", "f", RIGHT)
    assert (case.samples[0].prompt, case.samples[0].reference, case.stored[0].value) == ("q", ["a"], 0.25)
    assert benchmark.credit(stored_outcomes(benchmark, [row])[0]) == 1.0


def test_rows_without_a_label_are_left_out_and_rows_without_the_column_are_wrong(tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[0], "is_correct": None}]
    for benchmark in (Labels(), Labels(label_column="is_correct")):
        result = run(benchmark, written(tmp_path / "in.json", rows), "math")
        assert result.counts.cases == 4
        assert any("1 rows are not part" in note for note in result.notes)
    with pytest.raises(ValueError, match=r"the column 'verdict' is missing"):
        run(Labels(label_column="verdict"), written(tmp_path / "in.json", rows), "math")
    with pytest.raises(ValueError, match=r"no column of a label; name it with --label-column. The row has 'question'"):
        run(Labels(), written(tmp_path / "in.json", [{"question": "q", "response": "r"}]), "math")


def test_no_answer_is_wrong_or_a_class_of_its_own() -> None:
    rows = [
        {"prompt": "p", "response": "r", "label": "invalid", "value": 0},
        {"prompt": "p", "response": "r", "label": "correct", "value": 1},
    ]
    two, three = Labels(), Labels(three_classes=True)
    assert [case.gold["label"] for case in cases(two, rows)] == [WRONG, RIGHT]
    assert [case.gold["label"] for case in cases(three, rows)] == [INVALID, RIGHT]
    assert numbers(two.measures(stored_outcomes(two, rows), NO_DRAWS))["accuracy", ""] == 1.0
    assert numbers(three.measures(stored_outcomes(three, rows), NO_DRAWS))["accuracy", ""] == 0.5


def test_columns_of_verdicts_alone_are_for_stored_scores(tmp_path: Path) -> None:
    rows = [{"human": 1, "judge": True}, {"human": 0, "judge": 1}, {"human": 0, "judge": None}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    benchmark = Labels(label_column="human", score_column="judge")
    result = run(benchmark, path)
    found = numbers(result.measures)
    assert (found["accuracy", ""], found["failed", ""]) == pytest.approx((1 / 3, 1 / 3))
    assert "longer" not in result.measures[0].baselines
    with pytest.raises(ValueError, match="scores and no texts"):
        run(benchmark, path, "exact")


def test_words_in_a_column_that_is_called_prediction_are_no_score() -> None:
    row = {"prompt": "p", "response": "r", "label": 1, "prediction": "B", "score": 0.75}
    (case,) = cases(Labels(), [row])
    assert case.stored[0].value == 0.75
    assert cases(Labels(), [{**row, "score": "high"}])[0].stored == ()
    with pytest.raises(ValueError, match="a score must be a number"):
        cases(Labels(score_column="prediction"), [row])


def test_two_scorers_are_tested_against_each_other(tmp_path: Path) -> None:
    source, other = written(tmp_path / "in.json", ROWS), "{length: {unit: characters, max_length: 30, buffer: 20}}"
    result = run(Labels(), source, "math", against=other, resamples=50)
    (comparison,) = result.comparisons
    alone = run(Labels(), source, other).measures[0].interval.value
    assert (comparison.first, comparison.second) == (0.75, alone)
    assert alone != 0.75
    assert comparison.p is not None


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), 1e301])
def test_a_threshold_is_a_number(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold="):
        Labels(threshold=threshold)
