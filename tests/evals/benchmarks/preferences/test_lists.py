from __future__ import annotations

import random
from typing import Any

import pytest
from scipy.stats import rankdata

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.pairs import Lists, ranked
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]


def rows_of(seed: int) -> list[Row]:
    draw = random.Random(seed)
    rows = []
    for number in range(80):
        count = draw.randrange(2, 7)
        labels = [1] + [draw.choice([0, 0, 1]) for _ in range(count - 2)] + [0]
        draw.shuffle(labels)
        scores = [draw.choice([0, 1, 2]) for _ in range(count)] if number % 10 else [None] * count
        rows.append(
            {"prompt": f"p{draw.randrange(20)}", "responses": ["r"] * count, "labels": labels, "scores": scores}
        )
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_rates_are_those_of_a_plain_count(outcomes: Any, numbers: Any, seed: int) -> None:
    rows = rows_of(seed)
    benchmark = Lists()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, Draws(rounds=20)))
    credit: list[float] = []
    alone: list[bool] = []
    rank: list[float] = []
    for row in rows:
        if None in row["scores"]:
            credit, alone, rank = [*credit, 0.0], [*alone, False], [*rank, 0.0]
            continue
        top = [label for label, score in zip(row["labels"], row["scores"], strict=True) if score == max(row["scores"])]
        credit.append(sum(top) / len(top))
        alone.append(all(top))
        own = max(score for label, score in zip(row["labels"], row["scores"], strict=True) if label)
        wrong = [score for label, score in zip(row["labels"], row["scores"], strict=True) if not label]
        rank.append(1 / rankdata([-own, *(-score for score in wrong)])[0])
    assert found["accuracy", ""] == pytest.approx(sum(credit) / len(rows))
    assert found["right alone on top", ""] == pytest.approx(sum(alone) / len(rows))
    assert found["reciprocal rank", ""] == pytest.approx(sum(rank) / len(rows))
    assert found["no verdict", ""] == 0.1
    assert [benchmark.credit(one) for one in made] == [
        None if None in row["scores"] else share for row, share in zip(rows, credit, strict=True)
    ]


def test_the_right_place_may_be_one_number_or_several(outcomes: Any) -> None:
    rows: list[Row] = [
        {"question": "q", "candidates": ["a", "b", "c"], "best": 2},
        {"question": "q", "candidates": ["a", "b", "c"], "best": [0, 2, 2]},
    ]
    assert [case.gold for row in rows for case in Lists().cases(row, RowPlace(number=0))] == [
        {"right": [2]},
        {"right": [0, 2]},
    ]


def test_guessing_one_of_k_earns_what_a_constant_scorer_gets(outcomes: Any, numbers: Any) -> None:
    rows = [{"prompt": "p", "responses": ["a"] * 4, "right": at, "scores": [7, 7, 7, 7]} for at in range(4)]
    benchmark = Lists()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert (found["accuracy", ""], found["right alone on top", ""], found["right and wrong tied on top", ""]) == (
        0.25,
        0.0,
        1.0,
    )
    trivial = benchmark.baselines(made)
    assert numbers(benchmark.measures(trivial["first"], NO_DRAWS))["accuracy", ""] == 0.25


def test_ranks_by_hand() -> None:
    assert ranked([3, 1, 2], [0]).credit == 1
    tied = ranked([2, 2, 1], [0])
    assert (tied.credit, tied.alone, tied.tied) == (0.5, 0, 1)
    assert (tied.reciprocal_rank, tied.best_reciprocal_rank) == (1 / 1.5, 1)
    both = ranked([2, 2, 1], [0, 1])
    assert (both.credit, both.alone, both.tied, both.reciprocal_rank) == (1, 1, 0, 1)
    assert ranked([None, 2, 1], [1]).credit == 0


def test_every_column_can_be_named() -> None:
    row = {"a": {"q": "ask"}, "b": ["x", "y"], "c": [False, True], "d": [1.5, None], "e": "p", "f": 3, "g": "own"}
    benchmark = Lists(
        prompt_column="a.q",
        responses_column="b",
        labels_column="c",
        scores_column="d",
        part_column="e",
        cluster_column="f",
        id_column="g",
    )
    (case,) = benchmark.cases(row, RowPlace(number=0))
    assert (case.id, case.part, case.cluster, case.gold) == ("own", "p", "3", {"right": [1]})
    assert ([one.value for one in case.stored], case.samples[1].prompt) == ([1.5, None], "ask")


@pytest.mark.parametrize(
    ("options", "row", "message"),
    [
        ({}, {"prompt": "p"}, "no column of responses; name it with --responses-column"),
        ({}, {"responses": []}, "must be a list with something in it"),
        ({}, {"responses": ["a", "b"]}, "nothing says which response is right"),
        ({}, {"responses": ["a", "b"], "right": 2}, "must be a place from 0 to 1"),
        ({}, {"responses": ["a", "b"], "right": True}, "must be a place from 0 to 1"),
        ({}, {"responses": ["a", "b"], "right": [0, 1]}, "2 of 2 responses are right"),
        ({}, {"responses": ["a", "b"], "labels": [0, 0]}, "0 of 2 responses are right"),
        ({}, {"responses": ["a", "b"], "labels": [1]}, "holds 1 labels for 2 responses"),
        ({}, {"responses": ["a", "b"], "labels": [1, 0.5]}, "a label must be 1 or 0"),
        ({}, {"responses": ["a", "b"], "labels": [1, "no"]}, "a label must be 1 or 0"),
        ({"scores_column": "s"}, {"responses": ["a", "b"], "right": 0, "s": [1]}, "1 scores for 2 responses"),
        ({"right_column": "x"}, {"responses": ["a", "b"], "labels": [1, 0]}, "the column 'x' is missing"),
        ({}, {"responses": ["a", {"n": 5}], "right": 0}, "'responses.1' is an object"),
    ],
)
def test_a_row_that_does_not_fit_says_why(options: dict[str, Any], row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(Lists(**options).cases(row, RowPlace(number=0)))
    with pytest.raises(ValueError, match="both say what is right"):
        Lists(right_column="a", labels_column="b")


def test_saying_the_same_of_everything_gets_what_guessing_gets() -> None:
    found = ranked([5] * 10, [3])
    assert [found.alone, found.tied, found.credit] == pytest.approx([0.0, 1.0, 0.1])
    assert (found.best_reciprocal_rank, found.reciprocal_rank) == (1.0, 1 / 5.5)
