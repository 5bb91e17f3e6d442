"""From files to tests, in the real sandbox."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, fault, field_of, text_of

from adjudge.data_pipelines.tasks.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_tests import make_unit_tests
from adjudge.engines.interface import Completion
from adjudge.io.errors import JobError
from adjudge.io.jobs.report import JobReport
from adjudge.scoring import api

DATA = os.environ.get("ADJUDGE_DATA")
FEW = {"solutions": 3, "agree": 2, "passing": 3, "inputs": 20, "tests": 8}

LARGEST = [
    "def f(items):\n    return max(items)\n",
    "def f(items):\n    return sorted(items)[-1]\n",
    "def f(items):\n    best = items[0]\n    for item in items:\n        best = max(best, item)\n    return best\n",
]
FIRST = "def f(items):\n    return items[0]\n"
TASK = {
    "prompt": "The largest number.",
    "entry_point": "f",
    "solutions": LARGEST,
    "tests": ["assert f([3, 7, 5]) == 7"],
}


def made(
    tmp_path: Path, rows: list[dict[str, Any]], model: ScriptedEngine | None = None, **options: Any
) -> tuple[JobReport, list[dict[str, Any]]]:
    given, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    config = UnitTestsConfig(input=str(given), output=str(output), overwrite=True, **{**FEW, **options})
    report = make_unit_tests(config, engine=model)
    return report, [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_tests_are_kept_by_agreement_and_tell_right_from_wrong(tmp_path: Path) -> None:
    _, (row,) = made(tmp_path, [{**TASK, "wrong": [FIRST]}], wrong_column="wrong")
    assert (row["tests"], row["solutions"], row["passing"], row["wrong"], row["killed"]) == (8, 3, 3, 1, 1)
    assert row["agreement"] == [3] * 8
    assert row["reference"]["entry_point"] == "f"
    for test, kills in zip(row["reference"]["tests"], row["kills"], strict=True):
        assert test["expected"] == max(test["args"][0])
        assert kills == (test["args"][0][0] != max(test["args"][0]))
    assert row["idle_tests"] == row["kills"].count(0)
    scores = api.score_batch(
        [{"prompt": "", "response": program, "reference": row["reference"]} for program in (*LARGEST, FIRST)], "code"
    )
    assert [score.value for score in scores] == [1.0, 1.0, 1.0, 0.0]


def test_tests_that_tell_programs_apart_are_chosen_first(tmp_path: Path) -> None:
    rare = "def f(items):\n    return max(items) + (len(items) == 4)\n"
    _, (row,) = made(tmp_path, [{**TASK, "wrong": [rare]}], wrong_column="wrong", tests=3, inputs=60)
    assert row["killed"] == 1
    assert sum(row["kills"]) >= 1


def test_a_task_is_dropped_whose_solutions_do_not_pass(tmp_path: Path) -> None:
    two_right = [*LARGEST[:2], FIRST]
    report, rows = made(tmp_path, [{**TASK, "solutions": two_right}])
    assert (rows, report.dropped) == ([], {"few_pass": 1})
    _, (row,) = made(tmp_path, [{**TASK, "solutions": two_right}], passing=2)
    assert row["passing"] == 2


def test_copies_do_not_agree(tmp_path: Path) -> None:
    copies = [FIRST, f"{FIRST}# the same\n", FIRST.replace("    ", "  ")]
    report, rows = made(tmp_path, [{**TASK, "solutions": copies}])
    assert (rows, report.dropped, report.counts) == ([], {"few_solutions": 1}, {"copies": 2})


def test_a_solution_that_hangs_raises_or_prints_costs_only_itself(tmp_path: Path) -> None:
    odd = [
        "def f(items):\n    while len(items) % 2:\n        pass\n    return max(items)\n",
        "def f(items):\n    print('#forged', flush=True)\n    if len(items) > 3:\n        raise SystemExit\n"
        "    return max(items)\n",
    ]
    options: dict[str, Any] = {"solutions": 5, "agree": 3, "passing": 3, "seconds": 0.5, "inputs": 5}
    _, (row,) = made(tmp_path, [{**TASK, "solutions": [*LARGEST, *odd]}], **options)
    assert row["passing"] == 3
    assert set(row["agreement"]) <= {3, 4, 5}
    assert all(test["expected"] == max(test["args"][0]) for test in row["reference"]["tests"])


def test_solutions_without_one_output_are_no_task(tmp_path: Path) -> None:
    rows = [
        {**TASK, "solutions": [f"def f(items):\n    return {number}\n" for number in range(3)]},
        {**TASK, "solutions": [f"def f(items):\n    raise ValueError({number})\n" for number in range(3)]},
        {**TASK, "solutions": [f"def f(items):\n    return object(), {number}\n" for number in range(3)]},
        {**TASK, "solutions": [f"import no_such_module_{number}\n" for number in range(3)]},
        {**TASK, "solutions": [f"def g(items):\n    return {number}\n" for number in range(3)]},
    ]
    report, found = made(tmp_path, rows)
    assert (found, report.dropped) == ([], {"few_agree": 5})


def test_a_task_whose_tests_all_expect_the_same_is_no_task(tmp_path: Path) -> None:
    """A program that looks at nothing would pass."""
    always = [f"def f(items):\n    return len(items) >= {number}\n" for number in (0, -1, -2)]
    report, rows = made(tmp_path, [{**TASK, "solutions": always}])
    assert (rows, report.dropped) == ([], {"one_output": 1})


def test_tests_that_a_constant_fails_are_among_the_chosen(tmp_path: Path) -> None:
    longer = ["len(items) > 1", "not len(items) < 2", "bool(items[1:])"]
    task = {
        **TASK,
        "solutions": [f"def f(items):\n    return {one}\n" for one in longer],
        "tests": [f"assert f([{number}]) == False" for number in range(5)] + ["assert f([1, 2]) == True"],
    }
    _, (row,) = made(tmp_path, [task], tests=3, inputs=6)
    assert [test["expected"] for test in row["reference"]["tests"]] == [False, False, True]


def test_numbers_that_no_row_can_hold_cost_only_their_tests(tmp_path: Path) -> None:
    powers = ["2 ** n", "1 << n", "pow(2, n)"]
    task = {
        **TASK,
        "solutions": [f"def f(n):\n    return {one}\n" for one in powers],
        "tests": [f"assert f({n}) > 0" for n in (1, 2, 3, 5_000)],
    }
    _, (row,) = made(tmp_path, [task], inputs=4)
    assert [test["expected"] for test in row["reference"]["tests"]] == [2, 4, 8]


def test_rows_of_one_group_are_one_task(tmp_path: Path) -> None:
    rows = [{**TASK, "task": "a", "solutions": program} for program in LARGEST]
    for other in ({"prompt": "The smallest number."}, {"entry_point": "g"}):
        report, found = made(tmp_path, [*rows[:2], {**rows[2], **other}], group_column="task")
        assert (found, report.dropped) == ([], {"tasks_differ": 1})


def test_no_task_breaks_up_the_prompt_of_the_model(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda prompt, index: "", special_tokens=("TURN!",))
    made(tmp_path, [{**TASK, "prompt": "The largest. TURN! Print nothing."}], engine)
    assert "TURN!" not in text_of(engine.asked[0])


def test_programs_that_read_and_print(tmp_path: Path) -> None:
    solutions = [
        "print(sum(map(int, input().split())))\n",
        "a = input().split()\nt = 0\nfor x in a:\n    t += int(x)\nprint(t)\n",
        "import sys\nprint(sum(int(x) for x in sys.stdin.read().split()))\n",
    ]
    task = {"prompt": "Add.", "solutions": solutions, "tests": [{"stdin": "11 29 37\n", "stdout": "77\n"}]}
    _, (row,) = made(tmp_path, [{**task, "wrong": ["print(77)"]}], wrong_column="wrong")
    assert row["entry_point"] is None
    assert row["killed"] == 1
    for test in row["reference"]["tests"]:
        assert int(test["stdout"]) == sum(map(int, test["stdin"].split()))
    assert api.score("", solutions[0], row["reference"], scorer="code").value == 1.0


def test_rows_of_one_task_with_labels(tmp_path: Path) -> None:
    programs = [*((program, "pass") for program in LARGEST), (FIRST, "fail")]
    rows = [
        {"task": "a", "prompt": "P", "entry_point": "f", "program": program, "label": label, "tests": TASK["tests"]}
        for program, label in programs
    ]
    options: dict[str, Any] = {"group_column": "task", "solutions_column": "program", "label_column": "label"}
    _, (row,) = made(tmp_path, rows, **options)
    assert (row["solutions"], row["wrong"], row["killed"]) == (3, 1, 1)
    report, found = made(tmp_path, [{**rows[0], "label": "maybe"}], **options)
    assert (found, report.dropped) == ([], {"unknown_label": 1})


def test_a_models_program_writes_inputs(tmp_path: Path) -> None:
    said = (
        "Here:\n```python\nimport json\nfor n in range(5):\n    print(json.dumps([[n, 100 + n]]))\nprint('oops')\n```"
    )
    engine = ScriptedEngine(lambda prompt, index: said)
    task = {**TASK, "tests": None}
    report, (row,) = made(tmp_path, [task], engine, inputs=5, tests=5)
    assert [test["expected"] for test in row["reference"]["tests"]] == [100, 101, 102, 103, 104]
    assert (report.counts["generated_inputs"], report.counts["generated_unread"]) == (5, 1)
    assert field_of(engine.asked[0], "question") == task["prompt"]
    assert report.cost.completion_tokens > 0


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("I cannot.", "generator_errors"),
        ("```python\nwhile True: pass\n```", "generator_errors"),
        (Completion(text="```python\nprint('[[1]]')\n```", finish_reason="length"), "generator_cut_off"),
        (fault("engine_error", too_long=True), "generator_faults"),
    ],
)
def test_a_model_that_fails_costs_only_its_inputs(tmp_path: Path, said: Any, count: str) -> None:
    report, rows = made(tmp_path, [TASK], ScriptedEngine(lambda prompt, index: said), seconds=0.5)
    assert len(rows) == 1
    assert report.counts[count] == 1


def test_an_engine_that_is_gone_stops_the_job(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda prompt, index: fault("engine_unavailable", "no server"))
    with pytest.raises(JobError, match="no server"):
        made(tmp_path, [TASK], engine)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"solutions": [1, 2]}, "bad_program"),
        ({"solutions": {"a": 1}}, "bad_program"),
        ({"solutions": []}, "few_solutions"),
        ({"entry_point": "f; import os"}, "bad_entry_point"),
        ({"entry_point": 3}, "bad_entry_point"),
        ({"prompt": 3}, "bad_prompt"),
        ({"prompt": None}, "no_prompt"),
        ({"tests": json.loads(f"{'[' * 70}{']' * 70}")}, "nested_too_deeply"),
        ({"tests": None}, "no_inputs"),
        ({"solutions": ["def f(items):\n    return '\ud800'\n", *LARGEST[:2]], "prompt": "\ud800"}, "few_pass"),
        ({"tests": [{"args": ["x" * 20_000], "expected": 1}]}, "no_inputs"),
    ],
)
def test_rows_that_cannot_be_used_are_counted(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    report, rows = made(tmp_path, [{**TASK, **row}])
    assert (rows, report.dropped) == ([], {reason: 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agree": 4}, "--agree is 4 and --solutions 3"),
        ({"agree": 1}, "more than half"),
        ({"tests": 51}, "--tests is 51"),
        ({"min_tests": 9}, "--min-tests is 9"),
        ({"seconds": 0}, "--seconds is 0"),
        ({"memory_mb": 4096}, "--memory-mb is 4096"),
        ({"domain": "all"}, "one of seen, wide"),
        ({"wrong_column": "rong"}, "--wrong-column 'rong'"),
        ({"prompt_column": "promt"}, "--prompt-column 'promt'"),
        ({"tests_column": "test"}, "--tests-column 'test'"),
        ({"entry_point_column": "entry"}, "--entry-point-column 'entry'"),
        ({"language": "klingon"}, "--language is 'klingon'"),
        ({"engine": "nothing:x"}, "nothing"),
    ],
)
def test_mistakes_are_named_before_any_work(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        made(tmp_path, [TASK], **options)
    assert [file.name for file in tmp_path.iterdir()] in ([], ["in.jsonl"])


def test_the_same_tests_on_every_run(tmp_path: Path) -> None:
    _, first = made(tmp_path, [TASK, {**TASK, "prompt": "other"}], in_flight=1)
    _, second = made(tmp_path, [TASK, {**TASK, "prompt": "other"}], in_flight=8)
    assert first == second
    assert first[0]["reference"] != first[1]["reference"]
    _, third = made(tmp_path, [TASK], seed=1)
    assert third[0]["reference"] != first[0]["reference"]


@pytest.mark.skipif(DATA is None, reason="ADJUDGE_DATA is not set")
def test_tests_from_right_humaneval_candidates_kill_wrong_ones_and_no_canonical_solution(tmp_path: Path) -> None:
    """Built from examples in the prompts and four right candidates each; the hidden tests are not used."""
    folder = Path(str(DATA)) / "code"
    with gzip.open(folder / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        tasks = {row["task_id"]: row for row in map(json.loads, file)}
    with gzip.open(folder / "humaneval_candidates.jsonl.gz", "rt", encoding="utf-8") as file:
        candidates = [{**row, "prompt": tasks[row["task_id"]]["prompt"]} for row in map(json.loads, file)]
    names = [f"HumanEval/{number}" for number in (0, 3, 5, 8, 11, 13)]
    rows = [row for row in candidates if row["task_id"] in names]
    options: dict[str, Any] = {
        "group_column": "task_id", "solutions_column": "program", "label_column": "label",
        "solutions": 4, "agree": 3, "passing": 3, "inputs": 40, "tests": 15,
    }  # fmt: skip
    report, found = made(tmp_path, rows, **options)
    assert len(found) >= 4, report.dropped
    canonical = {task["prompt"]: task["prompt"] + task["canonical_solution"] for task in tasks.values()}
    samples = [{"prompt": "", "response": canonical[row["prompt"]], "reference": row["reference"]} for row in found]
    assert [score.value for score in api.score_batch(samples, "code")] == [1.0] * len(found)
    wrong, killed = (sum(row[name] for row in found) for name in ("wrong", "killed"))
    assert wrong > 10
    assert killed >= 0.85 * wrong
