"""PRMBench's numbers by hand and against scikit-learn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evals.benchmarks.process.plain_prm_bench import (
    Tally,
    Variant,
    Verdicts,
    prmbench_result,
    tally,
    verdicts_of,
)

from adjudge.evals.benchmarks.prm_bench import CORRECT, GROUPS


def case(category: str, steps: int, errors: set[int] | None = None, name: str = "a") -> Variant:
    return Variant(
        id=f"{category}_{name}",
        name=name,
        question="q",
        steps=tuple(map(str, range(steps))),
        errors=frozenset(errors or ()),
        category=category,
    )


def test_a_tally_by_hand() -> None:
    found = tally([True, False, True, False, True], {2, 3, 9})
    assert found == Tally(true_positive=2, false_negative=1, false_positive=1, true_negative=1, first_errors=(False,))
    assert found.f1 == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found.negative_f1 == pytest.approx(2 * 1 / (2 * 1 + 1 + 1))
    assert found.prm_score == pytest.approx(0.5 * 2 / 3 + 0.5 * 0.5)
    assert (found.accuracy, found.first_error_accuracy) == (0.6, 0.0)
    assert found.correct_step_accuracy == pytest.approx(2 / 3)
    assert found.wrong_step_accuracy == 0.5


def test_a_result_by_hand() -> None:
    cases = [
        case(CORRECT, 4),
        case("redundency", 4, {1}),
        case("confidence", 2, {0}),
        case("multi_solutions", 2, name="b"),
        case("deception", 2, {1}, name="c"),
    ]
    said = [
        Verdicts(valid=[True, True, True, False]),
        Verdicts(valid=[True, True, True, True], redundant=[False, True, False, True]),  # the second list counts
        Verdicts(valid=[False, True], redundant=[True, True]),  # the first one counts here
        Verdicts(valid=[True, False]),
        None,
    ]
    result = prmbench_result(cases, said)
    assert result.missing == 1
    assert result.categories["redundency"] == Tally(
        true_positive=2, false_negative=1, true_negative=1, first_errors=(True,)
    )
    assert result.total == Tally(true_positive=4, false_negative=2, true_negative=2, first_errors=(True, True))
    assert result.total.prm_score == pytest.approx(0.5 * 8 / 10 + 0.5 * 4 / 6)
    assert result.scores["multi_solutions"] == pytest.approx(2 / 3)
    assert result.scores["confidence"] == 1.0
    assert "deception" not in result.scores
    assert result.groups == {}
    assert result.similarity == pytest.approx((abs(2 / 4 - 3 / 4) + abs(1 / 2 - 3 / 4)) / 2)


def test_groups_are_means_of_their_scores() -> None:
    cases = [
        case(category, 2, None if category == "multi_solutions" else {0})
        for group in GROUPS.values()
        for category in group
    ]
    right = [Verdicts(valid=[not one.errors, True]) for one in cases]
    assert prmbench_result(cases, right).groups == {"simplicity": 1.0, "soundness": 1.0, "sensitivity": 1.0}


@pytest.mark.parametrize("constant", [True, False])
def test_one_answer_for_all_is_worth_less_than_half(constant: bool) -> None:
    """What PRMScore is for: calling every step right has a high F1, and a negative F1 of 0."""
    result = prmbench_result([case("confidence", 10, {3, 4})], [Verdicts(valid=[constant] * 10)])
    assert result.total.prm_score is not None
    assert result.total.prm_score < 0.5
    assert (result.total.negative_f1 if constant else result.total.f1) == 0.0


def test_a_class_without_steps_has_no_f1() -> None:
    assert tally([True], {0}).f1 is None
    assert tally([True], ()).negative_f1 is None
    assert tally([True], ()).prm_score is None
    assert Tally().accuracy is None


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_numbers_equal_scikit_learn(steps: list[tuple[bool, bool]]) -> None:
    from sklearn import metrics

    f1_score: Any = metrics.f1_score
    accuracy_score, recall_score = metrics.accuracy_score, metrics.recall_score

    said = [said for said, _ in steps]
    right = [right for _, right in steps]
    found = tally(said, [at for at, good in enumerate(right) if not good])
    assert found.accuracy == pytest.approx(accuracy_score(right, said))
    if any(right):
        assert found.f1 == pytest.approx(f1_score(right, said, zero_division=0.0))
        assert found.correct_step_accuracy == pytest.approx(recall_score(right, said))
    if not all(right):
        assert found.negative_f1 == pytest.approx(f1_score(right, said, pos_label=False, zero_division=0.0))
        assert found.wrong_step_accuracy == pytest.approx(recall_score(right, said, pos_label=False))
        assert found.first_error_accuracy == float(not said[right.index(False)])


def test_numbers_become_verdicts() -> None:
    assert verdicts_of([0.5, 0.51]) == Verdicts(valid=[False, True])
    found = verdicts_of([0.9], threshold=0.95, redundancy=[0.2])
    assert found == Verdicts(valid=[False], redundant=[True])
    with pytest.raises(ValueError, match="one for each"):
        prmbench_result([case("confidence", 2)], [Verdicts(valid=[True])])
    with pytest.raises(ValueError, match="one for each"):
        prmbench_result([case("confidence", 2)], [])
