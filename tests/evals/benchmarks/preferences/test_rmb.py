from __future__ import annotations

import random
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.rm_bench import RMB_PARTS, Rmb
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]


def answer(reward: float | None) -> Row:
    return {"llm_name": "model", "answer": f"said with {reward}", "reward": reward}


def rows_of(seed: int) -> list[Row]:
    draw = random.Random(seed)
    rows: list[Row] = []
    for number in range(80):
        goal, category = draw.choice(
            [("Helpfulness", "Chat"), ("Helpfulness", "Open QA/Factual"), ("Harmlessness", "S1")]
        )
        turns = [{"role": "user", "content": f"question {draw.randrange(20)}", "language": "English"}]
        numbers = [draw.choice([0, 1, 2, 3]) for _ in range(draw.randrange(3, 6))]
        if number % 2:
            rows.append({
                "pair_uid": str(number), "conversation_input": turns,
                "category_path": f"Pairwise_set/{goal}/{category}",
                "chosen": answer(numbers[0]), "reject": answer(draw.choice([numbers[1], None])),
            })  # fmt: skip
        else:
            rows.append({
                "bon_uid": str(number), "conversation_input": turns, "category_path": f"BoN_set/{goal}/{category}",
                "bon_best": answer(numbers[0]), "loser_list": [answer(one) for one in numbers[1:]],
            })  # fmt: skip
    return rows


def is_right(row: Row) -> bool:
    best, others = (
        (row["chosen"], [row["reject"]]) if "chosen" in row else (row["bon_best"], row["loser_list"])
    )  # all or nothing
    return all(other["reward"] is not None and best["reward"] > other["reward"] for other in others)


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_the_mean_of_four_shares(outcomes: Any, numbers: Any, seed: int) -> None:
    rows = rows_of(seed)
    benchmark = Rmb()
    measures = benchmark.measures(outcomes(benchmark, rows), Draws(rounds=30))
    found = numbers(measures)
    shares = {}
    for part in RMB_PARTS:
        goal, form = part.split(", ")
        own = [is_right(row) for row in rows if goal in row["category_path"] and ("chosen" in row) == (form == "pairs")]
        shares[part] = sum(own) / len(own)
        assert found["accuracy", part] == pytest.approx(shares[part])
    assert found["score", ""] == pytest.approx(sum(shares.values()) / 4)
    assert measures[0].published
    factual = [is_right(row) for row in rows if "Factual" in row["category_path"] and "chosen" in row]
    assert found["accuracy", "Helpfulness, pairs: Open QA/Factual"] == pytest.approx(sum(factual) / len(factual))


def test_pairs_alone_have_no_published_score(outcomes: Any) -> None:
    benchmark = Rmb()
    measures = benchmark.measures(outcomes(benchmark, [row for row in rows_of(0) if "chosen" in row]), NO_DRAWS)
    assert [measure.part for measure in measures if measure.published] == ["Helpfulness, pairs", "Harmlessness, pairs"]


def test_lists_are_all_or_nothing(outcomes: Any, numbers: Any) -> None:
    base = {"conversation_input": "hello", "category_path": "BoN_set/Harmlessness/S1"}
    lists: list[tuple[float, list[float | None]]] = [(3, [1, 2]), (3, [1, 3]), (3, [1, 4]), (3, [1, None])]
    rows = [
        {**base, "bon_uid": str(at), "bon_best": answer(best), "loser_list": [answer(one) for one in losers]}
        for at, (best, losers) in enumerate(lists)
    ]
    benchmark = Rmb()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert [benchmark.credit(one) for one in made] == [1.0, 0.0, 0.0, None]
    assert (found["accuracy", "Harmlessness, best of n"], found["ties", ""], found["no verdict", ""]) == (0.25,) * 3


def test_what_the_annotator_said_is_no_score_of_a_scorer() -> None:
    base = {"conversation_input": "hello", "category_path": "Pairwise_set/Harmlessness/S1"}
    row = {**base, "chosen": {"answer": "a", "score": 4.5}, "reject": {"answer": "b", "score": 2.5}}
    (case,) = Rmb().cases(row, RowPlace(number=0))
    assert case.stored == ()


def test_the_authors_files_of_rewards_need_no_texts(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"pair_uid": "1", "category_path": "Pairwise_set/Helpfulness/Chat", "chosen_reward": 0.2, "reject_reward": 0.1},
        {"pair_uid": "2", "category_path": "Pairwise_set/Helpfulness/Chat", "chosen_reward": 0.1, "reject_reward": 0.1},
        {"pair_uid": "3", "category_path": "Pairwise_set/Helpfulness/Chat", "chosen_reward": 1, "reject_reward": None},
    ]
    benchmark = Rmb()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert (found["accuracy", "Helpfulness, pairs"], found["ties", ""]) == pytest.approx((1 / 3, 1 / 3))
    assert [one.cluster for one in made] == ["pair:1", "pair:2", "pair:3"]
    (case,) = benchmark.cases(rows[0], RowPlace(number=0))
    assert not case.texts
    with pytest.raises(ValueError, match="stores one score of two"):
        list(benchmark.cases({key: rows[0][key] for key in ("category_path", "chosen_reward")}, RowPlace(number=0)))


def test_files_without_a_path_are_read_by_their_name_and_a_goal() -> None:
    row = {"conversation_input": "hello", "chosen": {"answer": "a"}, "reject": {"answer": "b"}}
    (case,) = Rmb(goal="Harmlessness").cases(row, RowPlace(number=4, file="S3.json"))
    assert (case.id, case.part, case.gold["category"]) == ("pair:4", "Harmlessness, pairs", "S3")
    with pytest.raises(ValueError, match="'category_path' is missing"):
        list(Rmb().cases(row, RowPlace(number=4, file="S3.json")))
    with pytest.raises(ValueError, match="goal='Kindness'; it must be one of Helpfulness"):
        Rmb(goal="Kindness")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category_path": "Harmlessness"}, "category_path 'Harmlessness' must be SET/"),
        ({"category_path": "Pairwise_set/Kindness/S1"}, "must be SET/"),
        ({"chosen": "text"}, "'chosen' holds 'text'; it must be an object with an answer"),
        ({"reject": {"llm_name": "m"}}, "must be an object with an answer"),
        ({"conversation_input": []}, "must be text or chat turns"),
        ({"conversation_input": [{"content": "no role"}]}, "must be text or chat turns"),
    ],
)
def test_a_row_that_does_not_fit_says_why(change: Row, message: str) -> None:
    row = {
        "pair_uid": "1",
        "conversation_input": [{"role": "user", "content": "hello"}],
        "category_path": "Pairwise_set/Harmlessness/S1",
        "chosen": {"answer": "a"},
        "reject": {"answer": "b"},
    }
    (case,) = Rmb().cases(row, RowPlace(number=0))
    assert (case.id, [sample.response for sample in case.samples], case.stored) == ("pair:1", ["a", "b"], ())
    with pytest.raises(ValueError, match=message):
        list(Rmb().cases({**row, **change}, RowPlace(number=0)))
