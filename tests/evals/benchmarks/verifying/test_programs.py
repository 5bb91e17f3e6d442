"""HumanEval, VerilogEval and BIRD: rows of each form, problems in a second file, and real scorers on small problems."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.benchmarks.labels import RIGHT, WRONG
from adjudge.evals.benchmarks.programs import Bird, HumanEval, VerilogEval, read_predictions
from adjudge.statistics.intervals import NO_DRAWS

PROBLEM: dict[str, Any] = {
    "task_id": "T/0", "prompt": "def add(a, b):\n", "entry_point": "add", "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}  # fmt: skip


def scored(benchmark: HumanEval, rows: list[dict[str, Any]], right: list[bool]) -> list[Outcome]:
    made = stored_outcomes(benchmark, rows)
    return [one.with_values([float(hit)]) for one, hit in zip(made, right, strict=True)]


def test_the_problems_themselves_must_pass(tmp_path: Path) -> None:
    (case,) = cases(HumanEval(), [PROBLEM])
    assert "def add(a, b):\n    return a + b\n" in str(case.samples[0].response)
    assert (case.gold["label"], case.cluster) == (RIGHT, "T/0")
    assert case.samples[0].reference == {"tests": PROBLEM["test"], "style": "humaneval", "entry_point": "add"}


def test_completions_and_programs_find_their_problem_in_a_second_file(tmp_path: Path) -> None:
    problems = written(tmp_path / "problems.json", [PROBLEM])
    rows: list[dict[str, Any]] = [
        {"task_id": "T/0", "completion": "    return b + a\n", "passed": True, "model": "m"},
        {"task_id": "T/0", "program": "def add(a, b): return 0", "label": "timeout"},
        {"task_id": "T/0", "completion": "    return 1\n"},
    ]
    found = cases(HumanEval(problems=problems), rows)
    assert [case.gold["label"] for case in found] == [RIGHT, WRONG, None]
    assert [case.part for case in found] == ["m", "", ""]
    assert str(found[0].samples[0].response).count("def add") == 1
    with pytest.raises(ValueError, match="'T/9' is not in"):
        cases(HumanEval(problems=problems), [{"task_id": "T/9", "completion": ""}])
    with pytest.raises(ValueError, match="name the file of problems with --problems"):
        cases(HumanEval(), rows)
    with pytest.raises(ValueError, match="is the second one for 'T/0'"):
        HumanEval(problems=written(tmp_path / "twice.json", [PROBLEM, PROBLEM]))


def test_pass_at_k_is_the_share_of_all_choices_of_k_programs() -> None:
    draw = random.Random(0)
    rows, right = [], []
    for task in range(6):
        for _ in range(5 if task else 2):
            rows.append({**PROBLEM, "task_id": f"T/{task}", "completion": "x", "passed": draw.random() < 0.4})
            right.append(draw.random() < 0.5)
    benchmark = HumanEval(k=(1, 3))
    found = numbers(benchmark.measures(scored(benchmark, rows, right), NO_DRAWS))
    for k in (1, 3):
        for name, hits in ((f"pass@{k}", right), (f"pass@{k} by labels", [row["passed"] for row in rows])):
            shares = []
            for task in range(6):
                own = [hit for row, hit in zip(rows, hits, strict=True) if row["task_id"] == f"T/{task}"]
                choices = list(combinations(own, k))
                shares += [sum(any(choice) for choice in choices) / len(choices)] if choices else []
            assert found[name, ""] == pytest.approx(math.fsum(shares) / len(shares))
    agreed = sum(hit == row["passed"] for row, hit in zip(rows, right, strict=True))
    assert found["accuracy", ""] == pytest.approx(agreed / len(rows))


def test_without_labels_pass_at_k_is_the_number() -> None:
    rows = [{**PROBLEM, "completion": "x", "model": model} for model in ("a", "a", "b")]
    benchmark = HumanEval()
    measures = benchmark.measures(scored(benchmark, rows, [True, False, True]), NO_DRAWS)
    assert (measures[0].name, measures[0].published) == ("pass@1", True)
    found = numbers(measures)
    assert (found["pass@1", "a"], found["pass@1", "b"]) == (0.5, 1.0)
    assert not any("label" in name or name == "accuracy" for name, _ in found)
    with pytest.raises(ValueError, match="k is "):
        HumanEval(k=(0,))


def test_a_reference_of_verilog_eval_is_a_candidate_under_its_name(tmp_path: Path) -> None:
    row = {
        "problem": "P1", "prompt": "Make a wire.", "testbench": "module tb; endmodule", "files": {"a.dat": "1"},
        "reference": "module RefModule (input a, output b); assign b = a; endmodule",
    }  # fmt: skip
    (case,) = cases(VerilogEval(), [row])
    assert "module TopModule (input a" in str(case.samples[0].response)
    assert case.samples[0].reference == {
        "reference": row["reference"], "top": "TopModule", "testbench": row["testbench"], "files": {"a.dat": "1"}
    }  # fmt: skip
    (bare,) = cases(VerilogEval(bench=False), [row])
    assert "testbench" not in bare.samples[0].reference
    problems = written(
        tmp_path / "problems.json", [{**row, "design": "d", "problem": None, "reference": "module d; endmodule"}]
    )
    rows = [
        {"design": "d", "source": "module d; endmodule", "status": status, "model": "m"}
        for status in ("pass", "compile", "fail", "timeout")
    ]
    found = cases(VerilogEval(problems=problems), rows)
    assert [one.gold["label"] for one in found] == [RIGHT, WRONG, WRONG, WRONG]
    assert "top" not in found[0].samples[0].reference
    assert found[0].samples[0].response == "```verilog\nmodule d; endmodule\n```"
    (chat,) = cases(VerilogEval(problems=problems), [{"design": "d", "response": "So:\n```\nmodule d; endmodule\n```"}])
    assert (str(chat.samples[0].response).count("```"), chat.gold["label"]) == (2, None)
    for bad, said in (({"files": {"a": 1}}, "an object of texts"), ({"reference": None}, "--problems")):
        with pytest.raises(ValueError, match=said):
            cases(VerilogEval(), [{**row, **bad}])


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "databases" / "shop"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE item (name TEXT, price INT); INSERT INTO item VALUES ('a', 1), ('b', 2);"
        )
    connection.close()
    return tmp_path / "databases"


QUESTIONS: list[dict[str, Any]] = [
    {"question_id": 7, "question": "Cheap?", "db_id": "shop", "SQL": "SELECT name FROM item WHERE price < 2",
     "difficulty": "simple", "evidence": "cheap is below 2"},
    {"question_id": 8, "question": "All?", "db_id": "shop", "SQL": "SELECT name FROM item", "difficulty": "moderate"},
]  # fmt: skip


def test_execution_accuracy_of_predictions_as_birds_script_writes_them(tmp_path: Path, shop: Path) -> None:
    said = {
        "0": "SELECT name FROM item WHERE price = 1\t----- bird -----\tshop",
        "1": "SELECT 'c'\t----- bird -----\tshop",
    }
    predictions = tmp_path / "predictions.json"
    predictions.write_text(json.dumps(said), encoding="utf-8")
    benchmark = Bird(predictions=str(predictions), db_root=str(shop))
    result = run(benchmark, written(tmp_path / "in.json", QUESTIONS), "sql")
    found = numbers(result.measures)
    assert result.measures[0].name == "execution accuracy"
    assert result.measures[0].published
    assert (found["execution accuracy", ""], found["execution accuracy", "simple"]) == (0.5, 1.0)
    assert [case.id for case in cases(benchmark, QUESTIONS)] == ["0:7", "1:8"]
    assert "cheap is below 2" in str(cases(benchmark, QUESTIONS)[0].samples[0].prompt)
    assert read_predictions(str(predictions))["1"] == "SELECT 'c'"


def test_labelled_queries_say_how_right_the_scorer_is(tmp_path: Path, shop: Path) -> None:
    rows = [
        {**QUESTIONS[0], "pred_sql": "SELECT name FROM item LIMIT 1", "eval": {"execution_accuracy": 1, "judge": 0}},
        {**QUESTIONS[1], "pred_sql": None, "eval": {"execution_accuracy": 0, "judge": 1}},
        {**QUESTIONS[1], "pred_sql": "SELECT 1", "eval": {"execution_accuracy": None, "judge": None}},
    ]
    source = written(tmp_path / "in.json", rows)
    scorer = tmp_path / "as_published.yaml"
    scorer.write_text("sql: {variations: 0}\n")
    found = numbers(run(Bird(db_root=str(shop)), source, str(scorer)).measures)
    assert (found["accuracy", ""], found["not labelled", ""]) == pytest.approx((1.0, 1 / 3))
    assert found["execution accuracy", ""] == pytest.approx(1 / 3)
    stored = numbers(run(Bird(score_column="eval.judge"), source).measures)
    assert (stored["accuracy", ""], stored["false accepts", ""], stored["failed", ""]) == pytest.approx(
        (0.0, 1.0, 1 / 3)
    )


def test_what_is_missing_for_queries_is_said(tmp_path: Path, shop: Path) -> None:
    row = {**QUESTIONS[0], "predicted_sql": "SELECT 1"}
    for benchmark, changed, said in (
        (Bird(), {}, "name their folder with --db-root"),
        (Bird(db_root=str(shop)), {"db_id": "zoo"}, "there is no database"),
        (Bird(db_root=str(shop)), {"db_id": "../shop"}, "it must be a plain name"),
        (Bird(db_root=str(shop)), {"SQL": ["SELECT 1", 2]}, "the accepted query is"),
    ):
        with pytest.raises(ValueError, match=said):
            cases(benchmark, [{**row, **changed}])
    with pytest.raises(ValueError, match="name the file of predictions with --predictions"):
        cases(Bird(db_root=str(shop)), [QUESTIONS[0]])
    with pytest.raises(ValueError, match="there is no such folder"):
        Bird(db_root=str(shop / "none"))
    file = tmp_path / "bad.json"
    for text, said in (
        ("[1]", "are not a JSON object"),
        ('{"0": 1}', "are not a JSON object"),
        ("{", "cannot be read"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            Bird(predictions=str(file))
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="has no prediction for the question 0"):
        cases(Bird(predictions=str(file), db_root=str(shop)), [QUESTIONS[0]])
