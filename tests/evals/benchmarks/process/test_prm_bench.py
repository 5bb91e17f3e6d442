"""PRMBench as a benchmark: against the plain metric, with real rows, answer files, and rows without verdicts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.preferences.conftest import outcome_of
from tests.evals.benchmarks.process.plain_prm_bench import (
    PrmBenchResult,
    Variant,
    Verdicts,
    prmbench_result,
    verdicts_of,
)

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.benchmarks.prm_bench import CORRECT, GROUPS, PrmBench
from adjudge.statistics.intervals import NO_DRAWS, Draws

CATEGORIES = [category for group in GROUPS.values() for category in group]


def row(name: str, category: str, count: int, errors: Iterable[int], original: int = 2) -> dict[str, Any]:
    return {
        "idx": name,
        "classification": category,
        "original_question": "o",
        "original_process": [f"o{at}" for at in range(original)],
        "modified_question": "m",
        "modified_process": [f"m{at}" for at in range(count)],
        "error_steps": list(errors),
    }


def judged(case: Case, values: Sequence[float] | None) -> Outcome:
    """The outcome of a case whose steps got these values."""
    steps = () if values is None else tuple(values)
    return replace(outcome_of(case, [None if values is None else min(values)]), steps=(steps,))


def plain(made: Sequence[Case], verdicts: Sequence[Verdicts | None]) -> PrmBenchResult:
    """The plain metric."""
    variants = [
        Variant(
            id=case.id,
            name=case.gold["name"],
            question="",
            steps=("",) * case.gold["steps"],
            errors=frozenset(case.gold["errors"]),
            category=case.part,
        )
        for case in made
    ]
    return prmbench_result(variants, verdicts)


def compare(made: Sequence[Case], values: Sequence[Sequence[float]]) -> None:
    """Numbers of a benchmark of which every row is judged are those of the plain metric."""
    found = numbers(PrmBench().measures([judged(*one) for one in zip(made, values, strict=True)], NO_DRAWS))
    result = plain(made, [verdicts_of(one) for one in values])
    rates = {
        "F1": "f1",
        "negative F1": "negative_f1",
        "accuracy": "accuracy",
        "right-step accuracy": "correct_step_accuracy",
        "wrong-step accuracy": "wrong_step_accuracy",
        "first-error accuracy": "first_error_accuracy",
    }
    for part, counts in [("", result.total), *result.categories.items()]:
        for name, attribute in rates.items():
            assert found[name, part] == same(getattr(counts, attribute)), (name, part)
    assert found["PRMScore", ""] == found["PRMScore, judged rows", ""] == same(result.total.prm_score)
    for category, score in result.scores.items():
        assert found["PRMScore", category] == same(score)
    for group in GROUPS:
        assert found["mean PRMScore", group] == same(result.groups.get(group))
    assert found["similarity", ""] == same(result.similarity)
    assert found["no verdict", ""] == 0.0


def same(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-12)


ROWS = st.lists(
    st.tuples(st.sampled_from(CATEGORIES), st.integers(1, 4), st.sets(st.integers(1, 5), max_size=3)),
    min_size=1,
    max_size=15,
)


@given(ROWS, st.integers(0, 99))
def test_numbers_equal_the_plain_metric(rows: list[tuple[str, int, set[int]]], seed: int) -> None:
    made = cases(PrmBench(), [row(f"{at}", *one) for at, one in enumerate(rows)])
    rng = random.Random(seed)
    compare(made, [[rng.choice([0.1, 0.5, 0.9]) for _ in range(case.gold["steps"])] for case in made])


def test_real_rows(corpora: Any) -> None:
    rows = corpora.rows("prmbench/prmbench.jsonl.gz")
    made = cases(PrmBench(), rows)
    kinds = Counter(case.part for case in made)
    assert len(made) - kinds[CORRECT] == len(rows) == 3108
    assert set(kinds) == {CORRECT, *CATEGORIES}
    rng = random.Random(0)
    compare(made, [[rng.random() for _ in range(case.gold["steps"])] for case in made])
    gold = [[float(at not in case.gold["errors"]) for at in range(case.gold["steps"])] for case in made]
    perfect = [judged(*one) for one in zip(made, gold, strict=True)]
    first = PrmBench().measures(perfect, Draws(rounds=100))[0].interval
    assert (first.known, first.low, first.high, first.n) == (1.0, None, None, 3108), "all resamples agree"
    trivial = PrmBench(threshold=7.0).baselines(perfect)
    scores = {
        name: numbers(PrmBench(threshold=7.0).measures(trivial[name], NO_DRAWS))["PRMScore", ""] for name in trivial
    }
    assert 0.4 < (scores["random"] or 0) < 0.5
    assert (scores["all_right"] or 0) < 0.5
    assert (scores["all_wrong"] or 0) < 0.2


def test_a_row_without_verdicts_is_misjudged_and_counted(tmp_path: Path) -> None:
    made = cases(PrmBench(), [row("a", "confidence", 3, [2]), row("b", "confidence", 2, [1])])
    outcomes = [judged(made[0], [0.9, 0.1, 0.9]), judged(made[1], None)]
    found = numbers(PrmBench().measures(outcomes, NO_DRAWS))
    assert found["PRMScore, judged rows", ""] == 1.0
    assert found["F1", ""] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))  # 2 found, 1 wrong step passed, 1 right one missed
    assert found["negative F1", ""] == pytest.approx(2 * 1 / (2 * 1 + 1 + 1))
    assert (found["first-error accuracy", ""], found["no verdict", ""]) == (0.5, 0.5)
    assert [PrmBench().credit(one) for one in outcomes] == [1.0, None]
    for steps in ((0.9, None, 0.9), (0.9, 0.1)):
        half = replace(outcomes[0], steps=(steps,))
        assert PrmBench().credit(half) is None


def answer(idx: str, **scores: Any) -> dict[str, Any]:
    return {"idx": idx, "scores": scores}


def test_answer_files(tmp_path: Path) -> None:
    rows = [row("a", "redundency", 3, [2]), row("b", "confidence", 2, [1]), row("c", "circular", 2, [1], original=1)]
    answers = [
        answer("correct_a", step_level_validity_labels=[True, True]),
        answer(
            "redundency_a",
            step_level_validity_labels=[True, True, True],
            step_level_redundancy_scores=[0.1, 0.2, 0.15],
        ),
        answer("confidence_b", step_level_validity_scores=[0.3, 0.8], step_level_redundancy_labels=[1, 1]),
        {"idx": "circular_c", "scores": {}, "validity": False},
    ]
    path = written(tmp_path / "rows.json", rows)
    benchmark = PrmBench(answers=written(tmp_path / "answers.json", answers))
    result = run(benchmark, path)
    found = numbers(result.measures)
    assert (found["PRMScore", "redundency"], found["PRMScore", "confidence"]) == (1.0, 1.0)
    assert (found["PRMScore, judged rows", ""], found["PRMScore", "circular"]) == (1.0, 0.0)
    assert found["similarity", ""] == pytest.approx(1 / 3)
    assert result.counts.reasons == {"invalid answer": 1}
    strict = numbers(run(replace_options(benchmark, redundancy_threshold=0.25), path).measures)
    assert strict["negative F1", "redundency"] == 0.0
    harsh = numbers(run(replace_options(benchmark, threshold=0.85), path).measures)
    assert harsh["right-step accuracy", "confidence"] == 0.0


def replace_options(benchmark: PrmBench, **options: Any) -> PrmBench:
    return PrmBench(**{"answers": benchmark.answers, **options})


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1], "give a mapping of lists"),
        ({"step_level_validity_labels": "10"}, "must be a list"),
        ({"step_level_validity_labels": [None, 1]}, "has the item None"),
    ],
)
def test_bad_answers_are_named(tmp_path: Path, scores: Any, message: str) -> None:
    path = written(tmp_path / "answers.json", [{"idx": "confidence_b", "scores": scores}])
    with pytest.raises(ValueError, match=message):
        PrmBench(answers=path).cases(row("b", "confidence", 2, [1]), RowPlace(number=0))


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ({}, "no labels of steps"),
        ({"step_level_validity_labels": [True]}, "1 labels for 2 steps"),
        ({"step_level_validity_labels": []}, "0 labels for 2 steps"),
    ],
)
def test_answers_that_say_too_little_are_no_verdict(tmp_path: Path, scores: Any, reason: str) -> None:
    benchmark = PrmBench(answers=written(tmp_path / "answers.json", [{"idx": "confidence_b", "scores": scores}]))
    (case,) = cases(benchmark, [row("b", "confidence", 2, [1])])
    assert (case.stored[0].value, case.stored[0].reason) == (None, reason)
    (other,) = cases(benchmark, [row("c", "confidence", 2, [1])])
    assert other.stored[0].reason == "no answer"


def test_of_rows_with_one_name_the_first_counts_on_every_pass() -> None:
    benchmark = PrmBench()
    rows = [row("a", "confidence", 2, [1]), row("a", "confidence", 3, [2]), row("a", "redundency", 2, [1])]
    for _ in range(2):
        assert [case.id for case in cases(benchmark, rows)] == ["confidence_a", "correct_a", "redundency_a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error_steps": ["two"]}, "numbers from 1"),
        ({"error_steps": [0]}, "numbers from 1"),
        ({"error_steps": None}, "the column 'error_steps' is missing"),
        ({"modified_process": []}, "must be a list"),
        ({"classification": 3}, "must be text"),
        ({"original_process": None, "classification": "redundency"}, "the column 'original_process' is missing"),
    ],
)
def test_rows_that_are_none_say_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrmBench().cases({**row("a", "confidence", 2, [1]), **change}, RowPlace(number=0))


def test_what_is_right_is_said_in_words() -> None:
    (case,) = cases(PrmBench(), [row("x", "circular", 4, [2, 3])])
    said = [PrmBench().words(judged(case, values)) for values in ([1.0, 0.2, 0.9, 0.1], [1.0] * 4, None)]
    assert {gold for gold, _ in said} == {"wrong steps, counted from 1: 2, 3"}
    assert [notes[0] for _, notes in said] == ["called wrong: 2, 4", "called wrong: none", "no verdict"]
    (clean,) = cases(PrmBench(), [{**row("y", "multi_solutions", 2, []), "error_steps": None}])
    assert PrmBench().words(judged(clean, None))[0] == "wrong steps, counted from 1: none"
