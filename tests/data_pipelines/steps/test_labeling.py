"""Whole jobs: every method from a file to step data that trainings read, with an engine that a script plays."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.steps.sums import Oracle, Row, adder, config, read, rows_of, solution
from tests.engines.scripted import ScriptedEngine

from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.data_pipelines.steps.step_labeller import FIELDS
from adjudge.training.data_files import read_steps


@pytest.mark.parametrize("method", ["mc", "binary"])
def test_rollouts_find_the_planted_errors_and_trainings_read_the_file(tmp_path: Path, method: Any) -> None:
    rows = rows_of(12)
    options = config(tmp_path, rows, method=method)
    report = label_steps(options, engine=ScriptedEngine(adder()))
    made = read(options.output)
    assert [row["first_error"] for row in made] == [row["error"] for row in rows]
    assert [row["id"] for row in made] == [row["id"] for row in rows]
    assert all(list(row) == list(FIELDS) for row in made)
    examples = read_steps(options.output).examples
    assert len(examples) == report.made == 12
    for example, row in zip(examples, made, strict=True):
        assert (example.steps, example.labels) == (tuple(row["steps"]), tuple(row["labels"]))
        assert example.outcome == row["outcome"] == float(row["first_error"] == -1)
    assert report.counts["calls"] == sum(row["calls"] for row in made)
    assert report.counts["labelled_steps"] + sum(row["unknown"] for row in made) == report.counts["steps"]
    assert "rollouts" in report.notes[-1]


def test_halving_costs_less_than_asking_everywhere(tmp_path: Path) -> None:
    cost = {}
    for method in ("mc", "binary"):
        folder = tmp_path / method
        folder.mkdir()
        report = label_steps(config(folder, rows_of(12), method=method), engine=ScriptedEngine(adder()))
        cost[method] = report.counts["calls"]
    assert cost["mc"] == 12 * 5 * 4
    assert cost["binary"] <= 8 * 4 * 4  # 4 right solutions cost nothing, 8 wrong ones of 6 steps at most 3 + 1 asks


def test_soft_labels_are_shares_and_hard_ones_say_whether_any_got_there(tmp_path: Path) -> None:
    made = {}
    for labels in ("soft", "hard"):
        folder = tmp_path / labels
        folder.mkdir()
        options = config(folder, rows_of(6), method="mc", labels=labels)
        label_steps(options, engine=ScriptedEngine(adder(slip=0.3)))
        made[labels] = read(options.output)
    soft = [label for row in made["soft"] for label in row["labels"]]
    hard = [label for row in made["hard"] for label in row["labels"]]
    assert set(hard) == {0.0, 1.0}
    assert {0.25, 0.5, 0.75} & set(soft)
    assert [float(label > 0) for label in soft] == hard
    for row in made["soft"]:
        shares = [right / judged for right, judged in zip(row["right"], row["judged"], strict=True)]
        assert row["values"] == row["labels"] == shares


def test_a_tree_makes_solutions_of_its_own(tmp_path: Path) -> None:
    rows = [{key: row[key] for key in ("id", "prompt", "reference")} for row in rows_of(6)]
    options = config(tmp_path, rows, method="tree", tree_searches=6, rollouts=8)
    report = label_steps(options, engine=ScriptedEngine(adder(slip=0.15)))
    made = read(options.output)
    assert made
    assert report.counts["calls"] == sum(row["calls"] for row in made)
    for row in made:
        assert row["outcome"] == 0.0
        assert row["labels"][-1] == 0.0
        bad = next(at for at, line in enumerate(row["steps"][:-1]) if not holds(line, row, at))
        assert row["first_error"] == bad
    assert len(read_steps(options.output).examples) == len(made)


def holds(line: str, row: Row, at: int) -> bool:
    """Whether a line goes on from the one before with the next term, rightly."""
    terms = [int(term) for term in row["prompt"].rstrip("=").split("+")]
    return int(line.split("=")[1]) == sum(terms[: at + 2])


def test_a_problem_always_solved_gives_no_tree(tmp_path: Path) -> None:
    rows = [{key: row[key] for key in ("prompt", "reference")} for row in rows_of(3)]
    report = label_steps(config(tmp_path, rows, method="tree"), engine=ScriptedEngine(adder()))
    assert (report.made, dict(report.dropped)) == (0, {"always_solved": 3})


def test_advantages_fall_at_the_planted_error(tmp_path: Path) -> None:
    rows = rows_of(9)
    options = config(tmp_path, rows, method="pav", rollouts=8, best_of=4)
    label_steps(options, engine=ScriptedEngine(adder(slip=0.2)))
    for row, made in zip(rows, read(options.output), strict=True):
        assert made["start"] is not None
        total = made["start"] + sum(made["values"])
        assert total == pytest.approx(made["outcome"])  # advantages telescope
        if row["error"] >= 0:
            assert min(range(5), key=lambda at: made["values"][at]) == row["error"]


def test_a_prover_of_its_own_is_asked_instead(tmp_path: Path) -> None:
    mine, other = ScriptedEngine(adder()), ScriptedEngine(adder())
    label_steps(config(tmp_path, rows_of(3), method="pav", best_of=1), engine=mine, prover=other)
    assert not mine.asked
    assert other.asked


def test_quality_values_reach_one_on_right_solutions_and_drop_on_wrong_ones(tmp_path: Path) -> None:
    rows = rows_of(6)
    options = config(tmp_path, rows, method="rest_mcts")
    label_steps(options, engine=ScriptedEngine(adder()))
    for row, made in zip(rows, read(options.output), strict=True):
        if row["error"] < 0:
            assert made["values"] == pytest.approx([at / 6 for at in range(1, 7)])
        else:
            error = row["error"]
            assert made["values"][:error] == pytest.approx([at / 6 for at in range(1, error + 1)])
            assert made["values"][error] < (made["values"][error - 1] if error else 1e-9)


@pytest.mark.parametrize("opinion", ["mc", "binary"])
def test_consensus_keeps_what_both_say(tmp_path: Path, opinion: Any) -> None:
    rows = rows_of(9)
    errors = {row["id"]: row["error"] for row in rows}
    errors["p1"] = 0 if errors["p1"] else 1  # the judge errs
    options = config(tmp_path, rows, method="consensus", opinion=opinion)
    report = label_steps(options, engine=ScriptedEngine(adder()), critic=Oracle(errors))
    made = read(options.output)
    assert [row["id"] for row in made] == [f"p{number}" for number in range(9) if number != 1]
    assert dict(report.dropped) == {"disagreed": 1}
    for row in made:
        error = errors[row["id"]]
        want = [1.0] * 6 if error < 0 else [*[1.0] * error, 0.0, *[None] * (5 - error)]
        assert row["labels"] == want


def test_arithmetic_checks_every_line_without_an_engine(tmp_path: Path) -> None:
    rows = rows_of(6)
    options = config(tmp_path, rows, method="arithmetic")
    report = label_steps(options)
    for row, made in zip(rows, read(options.output), strict=True):
        assert made["labels"] == [*[float(at != row["error"]) for at in range(5)], None]
        assert made["first_error"] == (None if row["error"] < 0 else row["error"])
    assert "calls" not in report.counts


def test_a_worked_solution_shows_where_another_leaves_it(tmp_path: Path) -> None:
    rows = rows_of(6)
    for row in rows:
        terms = [int(term) for term in row["prompt"].rstrip("=").split("+")]
        row |= {"worked": solution(terms, None), "right": row["error"] < 0}
    options = config(tmp_path, rows, method="worked", reference_column="worked", outcome_column=("right",))
    label_steps(options)
    assert [made["first_error"] for made in read(options.output)] == [row["error"] for row in rows]


@pytest.mark.parametrize("rule", ["regression", "centred"])
def test_final_rewards_are_explained_turn_by_turn(tmp_path: Path, rule: Any) -> None:
    chance = random.Random(1)
    worth = {"take it": 0.4, "look around": 0.1, "drop it": 0.0}
    rows: list[Row] = []
    for number in range(90):
        turns = chance.choices(list(worth), k=2)
        chat = [
            turn
            for text in turns
            for turn in ({"role": "assistant", "content": text}, {"role": "tool", "content": "ok"})
        ]
        rows.append({"prompt": f"task {number // 3}", "response": chat, "reward": sum(worth[turn] for turn in turns)})
    options = config(tmp_path, rows, method="spa", rule=rule, outcome_column=("reward",), ridge=1e-3)
    report = label_steps(options)
    made = read(options.output)
    assert report.made == 90
    for at, row in enumerate(made):
        assert row["steps"] == [turn["content"] for turn in rows[at]["response"] if turn["role"] == "assistant"]
        if rule == "regression":
            assert row["values"] == pytest.approx([worth[step] for step in row["steps"]], abs=0.01)
            assert row["labels"] == pytest.approx([row["values"][0], sum(row["values"])])
        else:
            mine = rows[at]["reward"]
            others = [rows[other]["reward"] for other in range(at // 3 * 3, at // 3 * 3 + 3) if other != at]
            assert row["values"] == pytest.approx([mine - sum(others) / 2] * 2)
            assert row["labels"] == [None, None]


def test_rewards_beyond_zero_and_one_make_no_probabilities(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"prompt": f"task {number}", "response": "win" if number % 2 else "lose", "reward": float(number % 2) * 2 - 1}
        for number in range(40)
    ]
    options = config(tmp_path, rows, method="spa", outcome_column=("reward",))
    label_steps(options)
    for row in read(options.output):
        assert row["labels"] == [None]
        assert row["values"] == pytest.approx([1.0 if row["response"] == "win" else -1.0], abs=0.2)


def test_several_solutions_of_a_row_share_prefixes_and_have_names(tmp_path: Path) -> None:
    row = rows_of(2)[1]
    engine = ScriptedEngine(adder())
    twice = {**row, "response": [row["response"], row["response"]]}
    options = config(tmp_path, [twice], method="mc")
    report = label_steps(options, engine=engine)
    made = read(options.output)
    assert [one["id"] for one in made] == ["p1/0", "p1/1"]
    assert made[0]["labels"] == made[1]["labels"]
    assert (made[0]["calls"], made[1]["calls"]) == (20, 0)
    assert len(engine.asked) == report.counts["asks"] == 5
