"""The published scores, on tables small enough to work out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adjudge.verifiers.sql.engine import Row, Table
from adjudge.verifiers.sql.rewards import (
    REWARDS,
    Judgement,
    Stage,
    cell_precision,
    cell_recall,
    qatch,
    soft_f1,
    soft_f1_aligned,
    tuple_cardinality,
    usual_ratio,
    ves_reward,
    ves_value,
)
from adjudge.verifiers.sql.verifier import jaccard, ngram_similarity, schema_items, schema_similarity

AB: list[Row] = [(1, "a"), (2, "b")]

# gold, candidate, published Soft-F1, aligned Soft-F1
SOFT_F1: dict[str, tuple[list[Row], list[Row], float, float]] = {
    "the same": (AB, AB, 1.0, 1.0),
    "both empty": ([], [], 1.0, 1.0),
    "nothing": (AB, [], 0.0, 0.0),
    "too much": ([], AB, 0.0, 0.0),
    "reversed": (AB, AB[::-1], 0.0, 1.0),
    "half of each row": (AB, [(1, "x"), (2, "y")], 0.5, 0.5),
    # matched 2, only in the candidate 0, only in the reference 1: P 1, R 2/3
    "a row short": ([*AB, (3, "c")], AB, 0.8, 0.8),
    "a column short": (AB, [(1,), (2,)], 2 / 3, 2 / 3),
    # the first cell is matched twice as published, and once when aligned
    "a column twice": ([(1, "a")], [(1, 1, "x")], 2 / 3, 0.4),
    "a row twice": (AB, [*AB, AB[0]], 1.0, 0.8),
}


@pytest.mark.parametrize(("gold", "candidate", "published", "aligned"), SOFT_F1.values(), ids=SOFT_F1.keys())
def test_soft_f1(gold: list[Row], candidate: list[Row], published: float, aligned: float) -> None:
    assert soft_f1(gold, candidate) == pytest.approx(published)
    assert soft_f1_aligned(gold, candidate) == pytest.approx(aligned)


# gold, candidate, precision, recall, cardinality: the examples of QATCH's documentation, and edges
QATCH: dict[str, tuple[list[Row], list[Row], float, float, float]] = {
    "the same": ([("a", "b"), ("c", "d")], [("a", "b"), ("c", "d")], 1.0, 1.0, 1.0),
    "one cell wrong": ([("a", "b"), ("c", "d")], [("a", "b"), ("c", "e")], 0.75, 0.75, 1.0),
    "another shape": ([("a", "b"), ("c", "d")], [("a",), ("b",), ("c",), ("d",)], 1.0, 1.0, 0.5),
    "two cells wrong": ([("a", "b"), ("c", "d")], [("a", "x"), ("y", "d")], 0.5, 0.5, 1.0),
    "cells repeated": ([("a", "b"), ("c", "d")], [("a", "a"), ("b", "b"), ("c", "d")], 1.0, 1.0, 2 / 3),
    "fewer rows": ([("a", "b")] * 4, [("a", "b"), (3, 2)], 0.5, 1.0, 0.5),
    "both empty": ([], [], 1.0, 1.0, 1.0),
    "one empty": ([("a",)], [], 0.0, 0.0, 0.0),
}


@pytest.mark.parametrize(("gold", "candidate", "precision", "recalled", "rows"), QATCH.values(), ids=QATCH.keys())
def test_qatch(gold: list[Row], candidate: list[Row], precision: float, recalled: float, rows: float) -> None:
    assert cell_precision(gold, candidate) == pytest.approx(precision)
    assert cell_recall(gold, candidate) == pytest.approx(recalled)
    assert tuple_cardinality(gold, candidate) == pytest.approx(rows)
    assert qatch(gold, candidate) == pytest.approx((precision + recalled + rows) / 3)


@pytest.mark.parametrize(
    ("ratio", "reward"),
    [
        (9.0, 1.25),
        (2.0, 1.25),
        (1.99, 1.0),
        (1.0, 1.0),
        (0.99, 0.75),
        (0.5, 0.75),
        (0.3, 0.5),
        (0.25, 0.5),
        (0.1, 0.25),
    ],
)
def test_r_ves_steps(ratio: float, reward: float) -> None:
    assert ves_reward(ratio) == reward
    assert ves_value(ratio) == math.sqrt(reward)


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan])
def test_a_ratio_that_is_none(ratio: float) -> None:
    with pytest.raises(ValueError, match="cost ratio"):
        ves_reward(ratio)


def test_outliers_are_left_out() -> None:
    assert usual_ratio([2.0] * 20 + [2000.0], [1.0] * 21) == 2.0
    assert usual_ratio([3.0], [2.0]) == 1.5
    with pytest.raises(ValueError, match="as many"):
        usual_ratio([], [])


def judged(stage: Stage, response: str = "", rows: list[Row] | None = None, ratio: float = 0.0) -> Judgement:
    pairs: Any = ()
    if rows is not None:
        pairs = (((Table(columns=("x", "y"), rows=AB), Table(columns=("x", "y"), rows=rows)),),)
    return Judgement(stage=stage, query="SELECT 1", response=response, pairs=pairs, ratio=ratio)


HALF: list[Row] = [(1, "x"), (2, "y")]  # cells: 2 of 4 right, all rows
R1 = "<think>abc</think>\n<answer>\n```sql\nSELECT 1\n```\n</answer>"
R1_ANSWER = "```sql\nSELECT 1\n```"
R1_BONUS = (3 + len(R1_ANSWER)) / 2048 * 0.5 + 8 / len(R1_ANSWER)
THINK = "<reasoning>abc</reasoning><answer>SELECT 1</answer>"

REWARD_CASES: list[tuple[str, Judgement, float]] = [
    ("execution", judged("match"), 1.0),
    ("execution", judged("compare"), 0.0),
    ("arctic", judged("match"), 1.0),
    ("arctic", judged("compare"), 0.1),
    ("arctic", judged("run"), 0.0),
    ("r_ves", judged("match", ratio=2.5), math.sqrt(1.25)),
    ("r_ves", judged("compare"), 0.0),
    ("think2sql", judged("match", THINK), 1.0),
    ("think2sql", judged("match", "SELECT 1"), 0.85),
    ("think2sql", judged("compare", THINK), 0.15),
    ("think2sql", judged("compare", THINK + "more"), 0.0),
    ("staged", judged("run"), 0.0),
    ("staged", judged("compare", rows=HALF), (0.5 + 0.5 + 1) / 3),
    ("staged", judged("compare", rows=[]), 0.1),
    ("staged", judged("match", rows=AB), 1.0),
    ("qatch", judged("compare", rows=HALF), (0.5 + 0.5 + 1) / 3),
    ("cell_precision", judged("compare", rows=[(1, "a")]), 1.0),
    ("cell_recall", judged("compare", rows=[(1, "a")]), 0.5),
    ("tuple_cardinality", judged("compare", rows=[(1, "a")]), 0.5),
    ("soft_f1", judged("compare", rows=HALF), 0.5),
    ("soft_f1", judged("refused"), 0.0),
    ("soft_f1_aligned", judged("compare", rows=HALF), 0.5),
    ("sql_r1", judged("match", R1), 6.0 + R1_BONUS),
    ("sql_r1", judged("compare", R1), 0.0),
    ("sql_r1", judged("run", R1), -1.0),
    ("sql_r1", judged("match", "SELECT 1"), -1.0),
    ("sql_r1", judged("match", R1 + "<answer></answer>"), -1.0),
    ("sql_r1", judged("match", "<answer>x</answer><think>y</think>"), -1.0),
    ("sql_r1", judged("match", f"<think>{'x' * 9000}</think><answer>{R1_ANSWER}</answer>"), 6.5 + 8 / len(R1_ANSWER)),
]


@pytest.mark.parametrize(
    ("name", "judgement", "value"), REWARD_CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(REWARD_CASES)]
)
def test_published_rewards(name: str, judgement: Judgement, value: float) -> None:
    assert REWARDS[name](judgement) == pytest.approx(value)


def test_every_reward_has_a_case() -> None:
    assert {case[0] for case in REWARD_CASES} == set(REWARDS)


def test_the_best_accepted_query_counts_and_databases_are_averaged() -> None:
    gold, right, half = (Table(columns=("x", "y"), rows=rows) for rows in (AB, AB, HALF))
    other = Table(columns=("x", "y"), rows=[(9, "z")])
    judgement = Judgement(stage="compare", pairs=(((other, right),) * 2, ((gold, right), (gold, half))))
    assert REWARDS["soft_f1"](judgement) == pytest.approx(0.75)


def test_schema_items_and_similarity() -> None:
    found = schema_items("WITH x AS (SELECT a FROM t) SELECT X.a, u.B FROM x JOIN u ON x.a = u.id", "sqlite")
    assert found is not None
    assert set(found.tables) == {"t", "u"}
    assert set(found.columns) == {"a", "b", "id"}
    assert schema_similarity("SELECT a FROM t", "SELECT a, b FROM t", "sqlite") == pytest.approx(2 / 3)
    assert schema_similarity("SELECT a FROM t", "SELECT (((", "sqlite") == 0.0
    assert schema_similarity("SELECT a FROM t", "SELECT " + "(" * 9000, "sqlite") == 0.0


def test_ngram_similarity() -> None:
    assert ngram_similarity("SELECT a FROM t", "select A from T;", "sqlite") == 1.0
    # select-a, a-from, from-t | select-b, b-from, from-t
    assert ngram_similarity("SELECT a FROM t", "SELECT b FROM t", "sqlite") == pytest.approx(1 / 5)
    assert jaccard(set(), set()) == 1.0
