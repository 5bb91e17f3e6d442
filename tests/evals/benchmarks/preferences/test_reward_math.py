from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import spearmanr

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.reward_math import RewardMath
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]
MODELS = ["human_to_GPT-4", *(f"model-{number}" for number in range(5))]


def steps_of(draw: random.Random) -> list[float]:
    return [draw.random() for _ in range(draw.randrange(1, 7))]


def plain_mrr(scores: list[float]) -> float:
    """1 / place of the first one when sorted from the highest, where it stands before its equals."""
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at != 0))
    return 1 / (1 + order.index(0))


def test_lists_of_scores_are_counted_the_plain_way(outcomes: Any, numbers: Any) -> None:
    draw = random.Random(0)
    lists = [[float(draw.randrange(5)) for _ in MODELS] for _ in range(60)]
    rows = [{"problem": f"p{at}", "solution_reference": MODELS, "score": scores} for at, scores in enumerate(lists)]
    benchmark = RewardMath()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), Draws(rounds=20)))
    assert found["accuracy", ""] == pytest.approx(sum(one[0] > max(one[1:]) for one in lists) / 60)
    assert found["accuracy, ties as right", ""] == pytest.approx(sum(one[0] >= max(one[1:]) for one in lists) / 60)
    assert found["MRR", ""] == pytest.approx(sum(map(plain_mrr, lists)) / 60)


def flat(draw: random.Random) -> list[Row]:
    """One solution in each row, in any order, some with a step that has no value."""
    rows: list[Row] = []
    for problem in range(30):
        for kind in ["chosen", *["rejected"] * draw.randrange(1, 4)]:
            steps: list[float | None] = [*steps_of(draw)]
            if draw.random() < 0.05:
                steps[0] = None
            rows.append({
                "problem": f"p{problem}", "problem_id": problem, "solution_type": kind,
                "eval_solution": ["a step"] * len(steps), "output": {"step_scores": steps},
            })  # fmt: skip
    draw.shuffle(rows)
    return rows


PLAIN: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "mean": lambda steps: sum(steps) / len(steps),
    "product": math.prod,
    "last": lambda steps: steps[-1],
    "sum": sum,
}


@pytest.mark.parametrize("how", PLAIN)
def test_single_solutions_are_put_together_by_problem(outcomes: Any, numbers: Any, how: Any) -> None:
    rows = flat(random.Random(4))
    benchmark = RewardMath(aggregate=how)
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    right = missing = 0
    all_values: list[float] = []
    counts: list[int] = []
    for problem in range(30):
        own = [row for row in rows if row["problem_id"] == problem]
        values = [
            None if None in row["output"]["step_scores"] else PLAIN[how](row["output"]["step_scores"]) for row in own
        ]
        missing += None in values
        known = [(value, row) for value, row in zip(values, own, strict=True) if value is not None]
        sides = {
            kind: [value for value, row in known if row["solution_type"] == kind] for kind in ("chosen", "rejected")
        }
        right += None not in values and sides["chosen"][0] > max(sides["rejected"])
        all_values += [value for value, _ in known]
        counts += [len(row["output"]["step_scores"]) for _, row in known]
    assert missing > 0, "the rows hold such a case"
    assert found["accuracy", ""] == pytest.approx(right / 30)
    assert found[f"accuracy ({how})", ""] == pytest.approx(right / 30)
    assert found["no verdict", ""] == pytest.approx(missing / 30)
    expected = spearmanr(all_values, counts)[0]
    assert found[f"rank correlation with the number of steps ({how})", ""] == pytest.approx(expected)
    assert {benchmark.credit(one) for one in made} == {None}, "a solution alone is neither right nor wrong"


def test_the_number_of_steps_is_a_trivial_scorer_of_stored_steps(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"problem": "p", "solution_reference": ["chosen", "rejected"], "score": [[0.5] * 2, [0.9] * 5]},
        {"problem": "q", "solution_reference": ["chosen", "rejected"], "score": [[0.5] * 4, [0.9] * 3]},
    ]
    benchmark = RewardMath()
    trivial = benchmark.baselines(outcomes(benchmark, rows))
    assert "longer" not in trivial, "there are no texts"
    assert "first" not in trivial, "the right one is always first"
    rates = {name: numbers(benchmark.measures(trivial[name], NO_DRAWS))["accuracy", ""] for name in trivial}
    assert {name: rates[name] for name in ("more_steps", "fewer_steps")} == {"more_steps": 0.5, "fewer_steps": 0.5}


def test_steps_that_are_no_probabilities_have_no_products(outcomes: Any, numbers: Any) -> None:
    rows = [{"problem": "p", "solution_reference": ["chosen", "rejected"], "score": [[0.5, -0.5], [0.9, -0.9]]}]
    benchmark = RewardMath()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))
    assert ("accuracy (product)", "") not in found
    assert found["accuracy (min)", ""] == 1.0


def test_verdicts_of_pairs_by_problem(outcomes: Any, numbers: Any) -> None:
    """The published rule: all comparisons won; 1 / (1 + those that were not); a missing verdict is not a win."""
    rows = [
        {"problem": "p", "score": ["A", "B", "A"], "chosen_position": ["A", "B", "A"]},
        {"problem": "q", "score": ["A", "A", None], "chosen_position": ["A", "B", "A"]},
        {"problem": "r", "score": ["B", None, "B"], "chosen_position": ["A", "B", "A"]},
    ]
    benchmark = RewardMath()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, Draws(rounds=20)))
    assert found["pairs: accuracy", ""] == pytest.approx(1 / 3)
    assert found["pairs: MRR", ""] == pytest.approx((1 + 1 / 3 + 1 / 4) / 3)
    assert found["single pairs: accuracy", ""] == pytest.approx(4 / 9)
    assert found["single pairs: no verdict", ""] == pytest.approx(2 / 9)
    assert found["single pairs: the first one wins", ""] == pytest.approx(4 / 9)
    assert [benchmark.credit(one) for one in made[3:6]] == [1.0, 0.0, None]
    assert "first" in benchmark.baselines(made), "the right one is shown in either place"


def test_texts_of_steps_can_be_told_apart_again() -> None:
    row = {"problem": "p", "problem_id": 3, "chosen_position": "B", "eval_solution_A": ["one", "two"]}
    (case,) = RewardMath().cases({**row, "eval_solution_B": "whole"}, RowPlace(number=5))
    assert [sample.response for sample in case.samples] == ["one\n\ntwo", "whole"]
    assert (case.gold, case.texts) == ({"better": 1, "list": "3"}, True)
    single = {"problem": "p", "problem_id": 3, "solution_type": "chosen", "eval_solution": ["one", "two"]}
    (solution,) = RewardMath().cases(single, RowPlace(number=6))
    assert (solution.samples[0].response, solution.gold) == ("one\n\ntwo", {"list": "3", "right": True})


def test_a_problem_that_was_cut_in_two_is_counted_and_left_out(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"problem": "p", "problem_id": 1, "solution_type": "chosen", "score": 1.0},
        {"problem": "p", "problem_id": 1, "solution_type": "rejected", "score": 0.0},
        {"problem": "q", "problem_id": 2, "solution_type": "chosen", "score": 1.0},
    ]
    benchmark = RewardMath()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))
    assert (found["accuracy", ""], found["problems without a right or a wrong solution", ""]) == (1.0, 0.5)


def test_a_problem_twice_counts_twice_and_is_one_cluster(outcomes: Any) -> None:
    row = {"problem": "p", "solution_reference": ["chosen", "rejected"], "score": [1, 0]}
    benchmark = RewardMath()
    made = outcomes(benchmark, [row, row])
    assert len({one.cluster for one in made}) == 1
    assert benchmark.measures(made, NO_DRAWS)[0].interval.n == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "p", "solution_reference": ["chosen", "x"], "score": [1]}, "1 scores for 2 solutions"),
        ({"problem": "p", "solution_reference": ["x", "y"], "score": [1, 2]}, "0 of 2 solutions are"),
        ({"problem": "p", "solution_reference": ["chosen", "x"], "score": [1, "B"]}, "a score must be a number"),
        ({"problem": "p", "score": ["A"], "chosen_position": ["A", "B"]}, "1 verdicts for 2 comparisons"),
        ({"problem": "p", "score": ["C"], "chosen_position": ["A"]}, "must be A or B"),
        ({"problem": "p", "score": [["A"]], "chosen_position": ["A"]}, "must be A or B"),
        ({"problem": "p", "solution_type": "best", "score": 1}, "must be chosen or rejected"),
        ({"problem": "p", "solution_type": "chosen"}, "'eval_solution' is missing"),
        ({"problem": "p"}, "'solution_reference' is missing"),
        ({"solution_reference": ["chosen", "x"], "score": [1, 2]}, "'problem' is missing"),
    ],
)
def test_a_row_that_does_not_fit_says_why(row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(RewardMath().cases(row, RowPlace(number=0)))
    with pytest.raises(ValueError, match="aggregate='median'"):
        RewardMath(aggregate="median")  # type: ignore[arg-type]
