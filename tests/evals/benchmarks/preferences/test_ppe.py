from __future__ import annotations

import math
import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import roc_auc_score

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.ppe import RIDGE, Battle, Ppe, curve_of, ranking_measures
from adjudge.pages.figures import Curves
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]
MODELS = ["ash", "birch", "cedar", "elm", "fir"]


def human_rows(seed: int, count: int = 400) -> list[Row]:
    """Votes that follow the models' strengths, and scores that follow them less well."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        one, other = draw.sample(range(5), 2)
        gap = one - other + draw.gauss(0, 3)
        rows.append({
            "question_id": f"q{number}", "prompt": f"prompt {draw.randrange(300)}",
            "response_1": "x", "response_2": "y", "model_a": MODELS[one], "model_b": MODELS[other],
            "winner": "tie" if abs(gap) < 0.3 else "model_a" if gap > 0 else "model_b",
            "hard_prompt": number % 3 == 0, "is_code": False,
            "score_1": draw.choice([None, 1.0]) if number % 40 == 0 else one + draw.gauss(0, 4),
            "score_2": float(other),
        })  # fmt: skip
    return rows


def said(row: Row) -> float | None:
    if row["score_1"] is None or row["score_2"] is None:
        return None
    one, other = float(row["score_1"]), float(row["score_2"])
    return 0.5 + 0.5 * ((one > other) - (one < other))


def strengths(games: list[tuple[str, str, float]]) -> dict[str, float]:
    """Bradley and Terry's likelihood with its ridge, by a general optimiser."""

    def loss(values: Any) -> float:
        at = dict(zip(MODELS, values, strict=True))
        total = 0.5 * RIDGE * float(np.sum(np.square(values)))
        for first, second, share in games:
            z = at[first] - at[second]
            total += float(np.logaddexp(0, z)) - share * z
        return total

    found = minimize(loss, np.zeros(5), method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-10})
    return dict(zip(MODELS, found.x, strict=True))


def rates(games: list[tuple[str, str, float]], model: str) -> dict[str, float]:
    found = {}
    for opponent in MODELS:
        shares = [
            share if first == model else 1 - share
            for first, second, share in games
            if {first, second} == {model, opponent}
        ]
        if opponent != model and shares:
            found[opponent] = sum(shares) / len(shares)
    return found


def test_models_are_ranked_as_a_plain_fit_ranks_them(outcomes: Any, numbers: Any) -> None:
    rows = human_rows(0)
    benchmark = Ppe(rank_rounds=20)
    found = numbers(benchmark.measures(outcomes(benchmark, rows), Draws(rounds=20)))
    votes = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
    human = [(row["model_a"], row["model_b"], votes[row["winner"]]) for row in rows]
    scorer = [(row["model_a"], row["model_b"], share) for row in rows if (share := said(row)) is not None]
    one, other = strengths(human), strengths(scorer)
    sides = list(one.values()), list(other.values())
    assert found["Spearman of models", "human"] == pytest.approx(spearmanr(sides[0], sides[1])[0])
    assert found["Kendall of models", "human"] == pytest.approx(kendalltau(sides[0], sides[1])[0])
    rows_of_pearson = []
    for model in MODELS:
        left, right = rates(human, model), rates(scorer, model)
        rows_of_pearson.append(pearsonr([left[name] for name in left], [right[name] for name in left])[0])
    assert found["row-wise Pearson of models", "human"] == pytest.approx(sum(rows_of_pearson) / 5)
    decided = [row for row in rows if row["winner"] != "tie"]
    right_votes = [said(row) == votes[row["winner"]] for row in decided]
    assert found["accuracy", "human"] == pytest.approx(sum(right_votes) / len(decided))
    hard = [hit for hit, row in zip(right_votes, decided, strict=True) if row["hard_prompt"]]
    assert found["accuracy", "human: hard_prompt"] == pytest.approx(sum(hard) / len(hard))
    assert ("accuracy", "human: is_code") not in found


def battles(share: Any, count: int = 60) -> list[Battle]:
    """Every pair of three models as often; each people's order is that of the letters."""
    draw = random.Random(1)
    return [
        Battle(
            first=first, second=second, human=float(draw.random() < 0.9), scorer=share(draw), cluster=f"{number}{first}"
        )
        for number in range(count)
        for first, second in combinations("abc", 2)
    ]


def numbers_of(some: list[Battle]) -> dict[str, float | None]:
    return {one.name: one.interval.value for one in ranking_measures(some, NO_DRAWS, rounds=200)}


def test_confidence_by_known_cases() -> None:
    """A scorer that is people, its opposite, and one that cannot tell the models apart."""
    same = [Battle(**{**_plain(one), "scorer": one.human}) for one in battles(lambda draw: 0.5)]
    found = numbers_of(same)
    assert (found["separability of models"], found["agreement with CI"]) == (1.0, 1.0)
    assert found["Brier of models"] == pytest.approx(0.0, abs=1e-3)
    assert [found["Spearman of models"], found["row-wise Pearson of models"]] == pytest.approx([1.0, 1.0])
    turned = numbers_of([Battle(**{**_plain(one), "scorer": 1 - one.human}) for one in same])
    assert (turned["separability of models"], turned["agreement with CI"]) == (1.0, -1.0)
    assert turned["Brier of models"] == pytest.approx(1.0, abs=1e-3)
    assert turned["Spearman of models"] == -1.0
    blind = numbers_of([Battle(**{**_plain(one), "scorer": 0.5}) for one in same])
    assert (blind["separability of models"], blind["agreement with CI"]) == (0.0, 0.0)
    assert blind["Brier of models"] == pytest.approx(0.25)
    assert blind["row-wise Pearson of models"] is None, "no row varies"
    sure = numbers_of([Battle(**{**_plain(one), "human": 0.5, "scorer": one.human}) for one in same])
    assert sure["separability of models"] == 1.0
    assert sure["agreement with CI"] == 0.0, "people do not tell the models apart"


def _plain(battle: Battle) -> dict[str, Any]:
    return {name: getattr(battle, name) for name in Battle.__slots__}


def test_two_models_and_a_model_against_itself_have_no_ranking() -> None:
    one = Battle(first="a", second="b", human=1.0, scorer=1.0, cluster="x")
    itself = Battle(first="c", second="c", human=1.0, scorer=1.0, cluster="x")
    assert ranking_measures([one, itself], NO_DRAWS, rounds=2) == []
    assert ranking_measures([], NO_DRAWS, rounds=2) == []


def correct_rows(seed: int, name: str, count: int = 25, k: int = 6) -> list[Row]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        labels = [draw.random() < 0.4 for _ in range(k)]
        pairs = [[i, j] for i, j in combinations(range(k), 2) if labels[i] != labels[j]][:4]
        rewards = [None if draw.random() < 0.03 else round(draw.gauss(label, 1), 1) for label in labels]
        rows.append({
            "question_id": str(number), "prompt": f"p{number}", "set": name, "scores": labels,
            "sampled_conflict_pairs": pairs, "reward_scores": rewards,
            **{f"response_{at + 1}": "r" for at in range(k)},
        })  # fmt: skip
    return rows


def plain_best_of(row: Row, k: int) -> float:
    """The mean, over all ways to take k, of the mean label of those with the highest score; a missing one is lowest."""
    keys = [-math.inf if reward is None else reward for reward in row["reward_scores"]]
    found: list[float] = []
    for taken in combinations(range(len(keys)), k):
        top = max(keys[at] for at in taken)
        labels = [float(row["scores"][at]) for at in taken if keys[at] == top]
        found.append(sum(labels) / len(labels))
    return sum(found) / len(found)


@pytest.mark.parametrize("seed", range(3))
def test_best_of_k_is_the_mean_over_all_ways_to_take_k(outcomes: Any, numbers: Any, seed: int) -> None:
    sets = {"math": correct_rows(seed, "math"), "gpqa": correct_rows(seed + 9, "gpqa", count=10)}
    rows = [row for some in sets.values() for row in some]
    benchmark = Ppe()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), Draws(rounds=20)))
    totals: dict[str, list[float]] = {}
    for part, some in sets.items():
        curve = [sum(plain_best_of(row, k) for row in some) / len(some) for k in range(1, 7)]
        best = [
            sum(plain_best_of({**row, "reward_scores": row["scores"]}, k) for row in some) / len(some)
            for k in range(1, 7)
        ]
        expected = {
            "max score": max(curve),
            "end score": curve[-1],
            "loss": sum(one - other for one, other in zip(best, curve, strict=True)) / 6,
            "accuracy of pairs": plain_pairs(some),
        }
        for name, value in expected.items():
            assert found[name, part] == pytest.approx(value), (name, part)
            totals.setdefault(name, []).append(value)
    for name, values in totals.items():
        assert found[name, ""] == pytest.approx(sum(values) / 2)


def plain_pairs(rows: list[Row]) -> float:
    hits: list[bool] = []
    for row in rows:
        for one, other in row["sampled_conflict_pairs"]:
            right, wrong = (one, other) if row["scores"][one] else (other, one)
            above, below = row["reward_scores"][right], row["reward_scores"][wrong]
            hits.append(above is not None and below is not None and bool(above > below))
    return sum(hits) / len(hits)


def test_areas_are_those_of_scikit_learn(outcomes: Any, numbers: Any) -> None:
    rows = [row for row in correct_rows(5, "math", count=60) if None not in row["reward_scores"]]
    benchmark = Ppe()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), Draws(rounds=20)))
    labels = [label for row in rows for label in row["scores"]]
    rewards = [reward for row in rows for reward in row["reward_scores"]]
    assert found["ROC AUC", "math"] == pytest.approx(roc_auc_score(labels, rewards))
    within = [roc_auc_score(row["scores"], row["reward_scores"]) for row in rows if len(set(row["scores"])) == 2]
    assert found["ROC AUC within prompts", "math"] == pytest.approx(sum(within) / len(within))


def test_a_scorer_that_is_the_truth_has_no_loss_and_a_constant_one_gets_the_mean(outcomes: Any, numbers: Any) -> None:
    rows = correct_rows(2, "math")
    benchmark = Ppe()
    for rewards, expected in (
        ([[float(label) for label in row["scores"]] for row in rows], {"loss": 0.0}),
        ([[1.0] * 6 for _ in rows], {"max score": mean_label(rows), "end score": mean_label(rows), "ROC AUC": 0.5}),
    ):
        made = outcomes(benchmark, rows, rewards)
        found = numbers(benchmark.measures(made, NO_DRAWS))
        for name, value in expected.items():
            assert found[name, "math"] == pytest.approx(value, abs=1e-12)


def mean_label(rows: list[Row]) -> float:
    return float(sum(sum(row["scores"]) for row in rows)) / (6 * len(rows))


def test_the_curve_is_drawn_with_that_of_the_labels(outcomes: Any) -> None:
    benchmark = Ppe(set_name="own")
    made = outcomes(benchmark, correct_rows(1, "math", count=5))
    (drawn,) = benchmark.figures(made, ())
    assert isinstance(drawn, Curves)
    assert [one.name for one in drawn.series] == ["own", "own, by the labels"]
    own, best = curve_of(made[0], 6)
    assert best == pytest.approx([max(0.0, value) for value in best])
    assert (own <= best + 1e-12).all()


def test_human_and_correctness_rows_may_stand_in_one_input(outcomes: Any, numbers: Any) -> None:
    benchmark = Ppe(rank_rounds=2)
    made = outcomes(benchmark, [*human_rows(3, count=30), *correct_rows(3, "math", count=5)])
    measures = benchmark.measures(made, NO_DRAWS)
    found = numbers(measures)
    assert found["accuracy", "human"] is not None
    assert found["end score", "math"] is not None
    assert {one.name for one in measures if one.published} == {"accuracy", "accuracy of pairs"}
    assert all(one is None or 0 <= one <= 1 for one in map(benchmark.credit, made))
    assert "first" in benchmark.baselines(made)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"winner": "both"}, None),
        ({"winner": "nobody"}, "the label 'nobody' is none of"),
        ({"winner": None}, "'scores' is missing"),
        ({"response_2": None}, "'response_2' is missing"),
        ({"winner": None, "scores": [True, "x"]}, "a label must be 1 or 0"),
        ({"winner": None, "scores": [True, False], "sampled_conflict_pairs": [[0, 2]]}, "each is two places"),
        ({"winner": None, "scores": [True, False], "sampled_conflict_pairs": [[0]]}, "each is two places"),
        ({"winner": None, "scores": [True, False, True]}, "'response_3' is missing"),
        ({"winner": None, "scores": [True, False], "reward_scores": [1.0]}, "1 scores for 2 responses"),
    ],
)
def test_a_row_that_does_not_fit_says_why(change: Row, message: str | None) -> None:
    row = {"prompt": "p", "response_1": "a", "response_2": "b", "winner": "model_a", **change}
    if message is None:
        (case,) = Ppe().cases(row, RowPlace(number=0))
        assert case.gold["better"] is None
        return
    with pytest.raises(ValueError, match=message):
        list(Ppe().cases(row, RowPlace(number=0)))


def test_a_pair_of_equal_labels_says_nothing_and_is_left_out() -> None:
    row = {"prompt": "p", "response_1": "a", "response_2": "b", "response_3": "c", "scores": [1, 1, 0]}
    (case,) = Ppe().cases({**row, "sampled_conflict_pairs": [[0, 1], [2, 0]]}, RowPlace(number=0, file="gpqa.parquet"))
    assert (case.gold, case.part) == ({"right": [0, 1], "pairs": [[2, 0]]}, "gpqa")
    with pytest.raises(ValueError, match="rank_rounds=1"):
        Ppe(rank_rounds=1)
