"""GSM8K, MATH, VerifierBench and VerifyBench: rows of each form, and the numbers of each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sklearn import metrics
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.answers import Gsm8k, Math, VerifierBench, VerifyBench, answer_of, boxed_of
from adjudge.evals.benchmarks.labels import RIGHT, WRONG
from adjudge.statistics.intervals import NO_DRAWS

PROBLEM = {"question": "48 / 2?", "ground_truth": "48/2 = <<48/2=24>>24\n#### 24"}


def test_each_model_of_gsm8k_is_a_part_and_calculator_notes_are_no_text() -> None:
    row = {
        **PROBLEM,
        "6b": {"is_correct": True, "solution": "It is <<48/2=24>>24\n#### 24"},
        "175b": {"is_correct": False, "solution": "#### 25"},
    }
    first, second = cases(Gsm8k(), [row])
    assert [first.part, second.part] == ["6b", "175b"]
    assert [first.gold["label"], second.gold["label"]] == [RIGHT, WRONG]
    assert first.samples[0].response == "It is 24\n#### 24"
    assert {case.samples[0].reference for case in (first, second)} == {"24"}
    assert first.cluster == second.cluster


def test_gsm8k_itself_is_a_set_of_right_solutions(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "So #### is next\n#### 1,000"}, {"question": "r", "answer": "A: -3"}]
    result = run(Gsm8k(), written(tmp_path / "in.json", rows), "math")
    assert numbers(result.measures)["accuracy", ""] == 1.0
    (case,) = cases(Gsm8k(), [{**PROBLEM, "response": "#### 2", "is_correct": 0}])
    assert (case.samples[0].response, case.gold["label"], case.part) == ("#### 2", WRONG, "")
    with pytest.raises(ValueError, match="it must have a line '#### ANSWER'"):
        cases(Gsm8k(), [{"question": "q", "answer": "24"}])
    with pytest.raises(ValueError, match="the solution in 'm' is 3; it must be text"):
        cases(Gsm8k(), [{**PROBLEM, "m": {"solution": 3, "is_correct": True}}])


def test_the_last_answer_line_counts() -> None:
    assert answer_of("#### 1\nno\n####  2 \n") == "2"
    assert answer_of("the #### 1") is None


def test_math_rows_of_lists_of_one_response_and_of_none() -> None:
    row = {
        "problem": "p",
        "gt": "1",
        "code": ["a", "b"],
        "score": [True, False],
        "pred_score": [[1.5], None],
        "level": 2,
    }
    first, second = cases(Math(), [row])
    assert [(case.id, case.part, case.gold["label"]) for case in (first, second)] == [
        ("0:0", "2", RIGHT),
        ("0:1", "2", WRONG),
    ]
    assert [case.stored[0].value for case in (first, second)] == [1.5, None]
    (alone,) = cases(Math(), [{"problem": "p", "answer": "1", "response": "r", "label": 0}])
    assert (alone.id, alone.gold["label"]) == ("0", WRONG)
    (own,) = cases(Math(), [{"problem": "p", "solution": "so \\boxed{\\frac{1}{2}}.", "subject": "Algebra"}])
    assert (own.samples[0].reference, own.part, own.gold["label"]) == ("\\frac{1}{2}", "Algebra", RIGHT)
    for bad, said in (
        ({"score": [True]}, "2 responses, and 'score' 1 labels"),
        ({"pred_score": [1.0]}, r"holds \[1.0\] for 2 responses"),
        ({"score": None}, "the column 'score' is missing"),
    ):
        with pytest.raises(ValueError, match=said):
            cases(Math(), [{**row, **bad}])
    with pytest.raises(ValueError, match="it must have an answer in"):
        cases(Math(), [{"problem": "p", "solution": "no box"}])


def test_the_last_box_counts_with_its_braces() -> None:
    assert boxed_of("\\boxed{1} and \\boxed{\\sqrt{2}}") == "\\sqrt{2}"
    assert boxed_of("\\boxed{1} and \\boxed{2") is None
    assert boxed_of("") is None


def bench_rows(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "question": f"q{draw.randrange(20)}", "gold_answer": "1", "llm_response": "r", "domain": draw.choice("mk"),
            "gold_judgment": draw.choice(["A", "B", "C", "Correct", "incorrect", "INVALID"]),
            "judgment": draw.choice(["A", "B", "C", "I cannot say", None]),
        }
        for _ in range(150)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_verifier_bench_has_three_classes_and_the_numbers_of_two(seed: int) -> None:
    rows, benchmark = bench_rows(seed), VerifierBench()
    made = stored_outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    letters = {"Correct": "a", "incorrect": "b", "INVALID": "c"}
    gold = [letters.get(row["gold_judgment"], row["gold_judgment"].lower()) for row in rows]
    said = [row["judgment"].lower() if row["judgment"] in ("A", "B", "C") else "x" for row in rows]
    assert found["accuracy", ""] == pytest.approx(metrics.accuracy_score(gold, said))
    macro = metrics.f1_score(gold, said, labels=["a", "b", "c"], average="macro")
    assert found["macro-F1", ""] == pytest.approx(macro)
    assert found["F1", ""] == pytest.approx(metrics.f1_score(gold, said, labels=["a"], average=None)[0])
    two = [[one.replace("c", "b") for one in side] for side in (gold, said)]
    assert found["accuracy, invalid as wrong", ""] == pytest.approx(metrics.accuracy_score(*two))
    assert found["macro-F1, invalid as wrong", ""] == pytest.approx(
        metrics.f1_score(*two, labels=["a", "b"], average="macro")
    )
    own = [one == other for one, other, row in zip(gold, said, rows, strict=True) if row["domain"] == "m"]
    assert found["accuracy", "m"] == pytest.approx(sum(own) / len(own))


def test_a_scorer_says_invalid_by_its_reason(tmp_path: Path) -> None:
    rows = [
        {"question": "q", "gold_answer": "7", "llm_response": said, "gold_judgment": gold}
        for said, gold in (("\\boxed{7}", "A"), ("\\boxed{8}", "B"), ("", "C"))
    ]
    found = numbers(run(VerifierBench(), written(tmp_path / "in.json", rows), "math").measures)
    assert (found["accuracy", ""], found["accuracy, invalid as wrong", ""]) == (1.0, 1.0)
    rows[1]["gold_judgment"] = "C"
    found = numbers(run(VerifierBench(), written(tmp_path / "in.json", rows), "math").measures)
    assert (found["accuracy", ""], found["accuracy, invalid as wrong", ""]) == pytest.approx((2 / 3, 1.0))
    with pytest.raises(ValueError, match="the label 'D' is none of"):
        cases(VerifierBench(), [{**rows[0], "gold_judgment": "D"}])


def test_stored_words_that_are_no_verdict_are_missing_ones(tmp_path: Path) -> None:
    row = {"question": "q", "gold_answer": "7", "llm_response": "r", "gold_judgment": "C"}
    rows = [{**row, "judgment": said} for said in ("C", "B", "Final Judgment: maybe", None)]
    result = run(VerifierBench(), written(tmp_path / "in.json", rows))
    assert numbers(result.measures)["accuracy", ""] == 0.25
    assert (result.counts.failed, dict(result.counts.reasons)) == (2, {"no_verdict": 2})


def test_verify_bench_means_its_answer_types_and_clusters_by_question() -> None:
    rows = [
        {
            "question": f"q{at // 2}", "answer": "1", "completion": "c", "gold_correct": at % 2 == 0,
            "answer_type": "Numeric Values" if at < 6 else "String", "judgement": judged,
        }
        for at, judged in enumerate([True, "No", "yes", True, 1, 0.0, "perhaps", True])
    ]  # fmt: skip
    benchmark = VerifyBench()
    made = stored_outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert found["accuracy", ""] == pytest.approx(5 / 8)
    assert found["mean of 2 answer types", ""] == pytest.approx((5 / 6 + 0 / 2) / 2)
    assert len({outcome.cluster for outcome in made}) == 4
    assert [benchmark.credit(outcome) for outcome in made[-2:]] == [None, 0.0]
    one_type = VerifyBench(part_column="none")
    assert not any("mean" in name for name, _ in numbers(one_type.measures(stored_outcomes(one_type, rows), NO_DRAWS)))
