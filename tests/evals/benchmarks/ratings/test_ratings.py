"""Scores against ratings: SciPy and scikit-learn, plain loops over pairs, columns of each kind, Prometheus's texts."""

from __future__ import annotations

import dataclasses
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.help_steer import ATTRIBUTES, HelpSteer
from adjudge.evals.benchmarks.ratings import Rated, Ratings, as_rubric, rating_measures, taken_apart
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import NO_DRAWS, Draws

TEXT = """###Task Description:
Rate it.

###The instruction to evaluate:
Say hello.

### Notes:
be kind

###Response to evaluate:
Hello.
###Score Rubrics:
none

###Reference Answer (Score 5):
Hello!

###Score Rubrics:
[Is it kind?]
Score 1: no.
Score 5: yes.

###Feedback: """


def made(seed: int, count: int = 150) -> list[Rated]:
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        rating = draw.randint(1, 5)
        value = None if draw.random() < 0.1 else float(np.clip(round(rating + draw.gauss(0, 1.2) * 2) / 2, 1, 5))
        rows.append(Rated(float(rating), value, "", f"c{draw.randrange(40)}"))
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_scipy_scikit_learn_and_plain_loops(seed: int) -> None:
    rows = made(seed)
    found = numbers(rating_measures(rows, NO_DRAWS, same_scale=True))
    ratings = [row.rating for row in rows if row.value is not None]
    values = [row.value for row in rows if row.value is not None]
    assert found["Pearson", ""] == pytest.approx(stats.pearsonr(values, ratings).statistic)
    assert found["Spearman", ""] == pytest.approx(stats.spearmanr(values, ratings).statistic)
    assert found["Kendall", ""] == pytest.approx(stats.kendalltau(values, ratings).statistic)
    assert found["MSE", ""] == pytest.approx(metrics.mean_squared_error(ratings, values))
    assert found["MAE", ""] == pytest.approx(metrics.mean_absolute_error(ratings, values))
    assert found["R2", ""] == pytest.approx(metrics.r2_score(ratings, values))
    assert found["no verdict", ""] == pytest.approx(1 - len(values) / len(rows))
    same = sum(row.value is not None and int(row.value + 0.5) == row.rating for row in rows)
    assert found["same rating", ""] == pytest.approx(same / len(rows))
    pairs = [(a, b) for a, b in permutations(rows, 2) if a.cluster == b.cluster and a.rating > b.rating]
    known = [(a.value, b.value) for a, b in pairs if a.value is not None and b.value is not None]
    right, tied = sum(a > b for a, b in known), sum(a == b for a, b in known)
    assert found["pairs in order", ""] == pytest.approx(right / len(pairs))
    assert found["pairs, ties as half", ""] == pytest.approx((right + tied / 2) / len(pairs))
    assert found["tied pairs", ""] == pytest.approx(tied / len(pairs))


def test_bounds_hold_the_numbers() -> None:
    for one in rating_measures(made(4), Draws(rounds=200), same_scale=True):
        low, value, high = one.interval.low, one.interval.value, one.interval.high
        assert low is not None
        assert value is not None
        assert high is not None
        assert low <= value <= high, one.name


def test_bounds_of_pearson_are_those_of_whole_clusters() -> None:
    sides = {"a": ([1.0, 2.0, 4.0], [2.0, 1.0, 2.0]), "b": ([3.0, 5.0, 4.0], [4.0, 5.0, 3.0])}
    rows = [Rated(y, x, "", name) for name, (xs, ys) in sides.items() for x, y in zip(xs, ys, strict=True)]
    found = next(one.interval for one in rating_measures(rows, Draws(rounds=400), same_scale=False))
    drawn = [stats.pearsonr(*sides[name]).statistic for name in "ab"]
    whole = stats.pearsonr([row.value or 0 for row in rows], [row.rating for row in rows]).statistic
    assert found.value == pytest.approx(whole)
    assert (found.low, found.high) == pytest.approx((min(*drawn, whole), max(*drawn, whole)))


@pytest.mark.parametrize(
    ("values", "ratings"),
    [
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]),
        ([None, None], [1.0, 2.0]),
        ([3.0], [3.0]),
    ],
)
def test_what_the_rows_do_not_say_is_unknown(values: list[float | None], ratings: list[float]) -> None:
    rows = [Rated(rating, value, "", "c") for rating, value in zip(ratings, values, strict=True)]
    found = numbers(rating_measures(rows, Draws(rounds=20), same_scale=True))
    assert found["Pearson", ""] is found["Spearman", ""] is found["Kendall", ""] is None
    if None in values:
        assert (found["MSE", ""], found["same rating", ""], found["pairs in order", ""]) == (None, 0.0, 0.0)


def test_pearson_keeps_its_digits_far_from_zero() -> None:
    rows = made(5)
    far = [row._replace(value=None if row.value is None else 1e9 + 1e-3 * row.value) for row in rows]
    near, moved = (numbers(rating_measures(some, NO_DRAWS, same_scale=False)) for some in (rows, far))
    assert moved["Pearson", ""] == pytest.approx(near["Pearson", ""], abs=1e-4)
    assert ("MSE", "") not in near


def test_ratings_of_any_columns_and_their_mean(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"q": "a", "r": "one", "human_scores": [1, 2], "said": 1.0, "kind": "x"},
        {"q": "a", "r": "four", "human_scores": ["4", 4.0], "said": 3.0, "kind": "x"},
        {"q": "b", "r": "five", "human_scores": 5, "said": None},
        {"q": "b", "r": "unrated", "human_scores": None, "said": 2},
    ]
    benchmark = Ratings(prompt_column="q", response_column="r", score_column="said", part_column="", same_scale=True)
    result = run(benchmark, written(tmp_path / "in.json", rows))
    assert (result.counts.cases, result.counts.failed) == (3, 1)
    assert any("1 rows are not part" in note for note in result.notes)
    assert [case.gold["rating"] for case in cases(benchmark, rows)] == [1.5, 4.0, 5.0]
    found = numbers(result.measures)
    assert (found["MSE", ""], found["pairs in order", ""]) == pytest.approx(((0.25 + 1) / 2, 1.0))
    assert set(result.measures[0].baselines) == {"mean_rating", "longer", "random"}
    mse = next(one for one in result.measures if one.name == "R2")
    assert mse.baselines["mean_rating"] == pytest.approx(0.0)
    assert [benchmark.credit(one) for one in stored_outcomes(benchmark, rows)] == [0.875, 0.75, None]
    by_part = Ratings(prompt_column="q", response_column="r", score_column="said", part_column="kind")
    with pytest.raises(ValueError, match="the column 'kind' is missing"):
        cases(by_part, rows)


@pytest.mark.parametrize(
    ("rating", "said"),
    [("good", "a rating must be a finite number"), (True, "a rating must be"), ([], "it must be a number, or a list"),
     (7, "say what the scale is with --low and --high"), (float("nan"), "a rating must be")],
)  # fmt: skip
def test_what_is_no_rating_is_said(rating: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cases(Ratings(), [{"prompt": "p", "response": "r", "rating": rating}])


def test_scales_and_columns_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="the highest must lie above the lowest"):
        Ratings(low=5, high=5)
    with pytest.raises(ValueError, match="no column of a rating; name it with --rating-column"):
        cases(Ratings(), [{"prompt": "p", "response": "r"}])
    with pytest.raises(ValueError, match="no column of a response; name it with --response-column"):
        cases(Ratings(), [{"prompt": "p", "rating": 1}])


def test_a_text_of_prometheus_is_taken_apart(tmp_path: Path) -> None:
    asked = taken_apart(TEXT)
    assert asked is not None
    assert asked.instruction == "Say hello.\n\n### Notes:\nbe kind"
    assert asked.response == "Hello.\n###Score Rubrics:\nnone"
    assert (asked.reference, asked.rubric) == ("Hello!", "[Is it kind?]\nScore 1: no.\nScore 5: yes.")
    assert taken_apart("###Response to evaluate:\nx") is None
    assert taken_apart(TEXT.replace("###Score Rubrics:\n", "\n")) is None
    (case,) = cases(Ratings(), [{"instruction": TEXT, "gpt4_score": [3, 4, 5], "category": "writing"}])
    (sample,) = case.samples
    assert (sample.prompt, sample.response, sample.reference) == (asked.instruction, asked.response, "Hello!")
    assert (dict(sample.extra), case.gold, case.part) == ({"rubric": asked.rubric}, {"rating": 4.0}, "writing")
    (plain,) = cases(Ratings(), [{"instruction": "Do it.", "response": "r", "rating": 2}])
    assert plain.samples[0].prompt == "Do it."


def test_rubrics_of_biggen_and_of_the_feedback_collection_are_one_form() -> None:
    wanted = {"criteria": "c", **{str(level): f"l{level}" for level in range(1, 6)}}
    levels = {f"score{level}_description": f"l{level}" for level in range(1, 6)}
    assert as_rubric({"criteria": "c", **levels}) == wanted
    assert as_rubric("any text") == "any text"
    row = {
        "orig_instruction": "i", "orig_response": "r", "orig_reference_answer": "a", "orig_criteria": "c",
        "orig_score": "4", **{f"orig_{name}": text for name, text in levels.items()},
    }  # fmt: skip
    (case,) = cases(Ratings(), [row])
    assert (case.samples[0].extra["rubric"], case.samples[0].reference, case.gold["rating"]) == (wanted, "a", 4.0)


def steer_rows(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for at in range(80):
        ratings = {name: draw.randint(0, 4) for name in ATTRIBUTES}
        predicted = {f"predicted_{name}": rating + draw.gauss(0, 1) for name, rating in ratings.items()}
        rows.append({"prompt": f"p{at // 2}", "response": "r" * at, **ratings, **predicted})
    rows[3]["predicted_coherence"] = None
    return rows


def test_each_attribute_of_help_steer_has_its_own_predictions() -> None:
    rows, benchmark = steer_rows(0), HelpSteer()
    found = numbers(benchmark.measures(stored_outcomes(benchmark, rows), NO_DRAWS))
    correlations, errors = [], []
    for name in ATTRIBUTES:
        own = [(row[name], row[f"predicted_{name}"]) for row in rows if row[f"predicted_{name}"] is not None]
        rated, said = zip(*own, strict=True)
        assert found["Pearson", name] == pytest.approx(stats.pearsonr(rated, said).statistic)
        assert found["Kendall", name] == pytest.approx(stats.kendalltau(rated, said).statistic)
        assert found["R2", name] == pytest.approx(metrics.r2_score(rated, said))
        correlations.append(found["Pearson", name])
        errors.append(found["MSE", name])
    assert found["Pearson", "mean of attributes"] == pytest.approx(np.mean([one for one in correlations if one]))
    assert found["MSE", "mean of attributes"] == pytest.approx(np.mean([one for one in errors if one]))
    assert found["no verdict", "coherence"] == pytest.approx(1 / 80)
    as_list = [{**row, "all": [row.get(f"predicted_{name}") for name in ATTRIBUTES]} for row in rows]
    listed = HelpSteer(prediction_columns="all")
    assert numbers(listed.measures(stored_outcomes(listed, as_list), NO_DRAWS)) == found


def test_one_number_is_compared_with_each_attribute_or_with_one(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if not name.startswith("predicted")} for row in steer_rows(1)]
    scorer = "{length: {unit: characters, max_length: 100, buffer: 99}}"
    found = numbers(run(HelpSteer(), written(tmp_path / "in.json", rows), scorer).measures)
    assert {part for name, part in found if name == "Spearman"} == set(ATTRIBUTES)
    assert not any(name == "MSE" for name, _ in found)
    one = numbers(run(HelpSteer(attribute="verbosity"), str(tmp_path / "in.json"), scorer).measures)
    assert one == {key: value for key, value in found.items() if key[1] == "verbosity"}
    steps = stored_outcomes(HelpSteer(), steer_rows(1))[0]
    of_a_process_model = dataclasses.replace(steps, reasons=("",))
    rates: list[Measure] = list(HelpSteer().measures([of_a_process_model], NO_DRAWS))
    assert not any(rate.name == "MSE" for rate in rates), "five steps are no five attributes"


def test_what_help_steer_refuses() -> None:
    row = {"prompt": "p", "response": "r", "helpfulness": 3}
    with pytest.raises(ValueError, match="attribute='beauty'; it must be one of helpfulness"):
        HelpSteer(attribute="beauty")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a rating must be a number from 0 to 4"):
        cases(HelpSteer(), [{**row, "helpfulness": 5}])
    with pytest.raises(ValueError, match="none of the ratings"):
        cases(HelpSteer(), [{"prompt": "p", "response": "r"}])
    with pytest.raises(ValueError, match="holds 2 numbers; give 5"):
        cases(HelpSteer(prediction_columns="all"), [{**row, "all": [1, 2]}])
    some = HelpSteer(attribute="verbosity")
    with pytest.raises(ValueError, match="no row has a rating of the attribute 'verbosity'"):
        some.measures(stored_outcomes(some, [row]), NO_DRAWS)
