"""Searches find planted errors, ask no more than they must, and let nobody vote who could not judge."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_pipelines.steps.oracles import Scripted, pieces, planted, run

from adjudge.data_pipelines.steps.methods import agreement, quality, values_of
from adjudge.data_pipelines.steps.rollouts import (
    Estimate,
    Prefix,
    Rollout,
    StepLabels,
    label_of,
    monte_carlo,
)
from adjudge.data_pipelines.steps.searches import advantages, binary_search, chance_of
from adjudge.training.step_data import first_error

VOTES = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=8)


@given(
    st.lists(VOTES.filter(lambda votes: len(votes) == 4) | st.lists(st.booleans(), min_size=4, max_size=4), max_size=6)
)
def test_monte_carlo_is_the_mean_of_the_votes_and_the_unjudged_have_none(table: list[list[bool | None]]) -> None:
    oracle = Scripted(lambda prefix, index: table[len(prefix) - 1][index])
    found = run(monte_carlo(oracle, pieces(len(table) + 1), k=4, outcome=True))
    for votes, estimate in zip(table, found, strict=False):
        judged = [vote for vote in votes if vote is not None]
        assert estimate.judged == len(judged)
        assert estimate.value == (sum(judged) / len(judged) if judged else None)
        assert label_of(estimate, "hard") == (float(any(judged)) if judged else None)
    assert found[-1] == Estimate(right=1, judged=1)
    assert oracle.calls == 4 * len(table)


def test_monte_carlo_does_not_ask_about_the_whole_solution() -> None:
    oracle = planted(0)
    assert run(monte_carlo(oracle, pieces(1), k=8, outcome=None)) == (Estimate(),)
    assert oracle.calls == 0


@given(st.integers(1, 200).flatmap(lambda steps: st.tuples(st.just(steps), st.integers(0, steps - 1))))
def test_halving_finds_the_planted_error_in_log2_asks_and_one(case: tuple[int, int]) -> None:
    steps, error = case
    oracle = planted(error)
    found = run(binary_search(oracle, pieces(steps), k=1, outcome=False))
    assert found.first_error == error
    assert found.labels == (*[1.0] * error, 0.0, *[None] * (steps - error - 1))
    assert len(oracle.asked) <= math.ceil(math.log2(steps)) + 1
    assert len(set(oracle.prefixes)) == len(oracle.prefixes)


def test_a_right_solution_proves_its_steps_without_a_question() -> None:
    oracle = planted(0)
    found = run(binary_search(oracle, pieces(5), k=8, outcome=True))
    assert (found.first_error, found.labels, oracle.calls) == (-1, (1.0,) * 5, 0)


def test_nothing_is_searched_where_the_outcome_is_unknown() -> None:
    found = run(binary_search(planted(1), pieces(3), k=8, outcome=None))
    assert (found.first_error, found.labels) == (None, (None, None, None))


def test_a_problem_that_is_never_solved_has_no_first_error() -> None:
    found = run(binary_search(Scripted(lambda prefix, index: False), pieces(4), k=2, outcome=False))
    assert found.first_error is None
    assert found.labels == (None,) * 4


@given(st.sets(st.integers(0, 11)), st.integers(0, 11))
def test_prefixes_that_cannot_be_judged_never_move_the_error(dark: set[int], error: int) -> None:
    oracle = Scripted(lambda prefix, index: None if len(prefix) in dark else len(prefix) <= error)
    found = run(binary_search(oracle, pieces(12), k=2, outcome=False))
    assert found.first_error in (None, error)
    assert all(label is None or label == float(at < error) for at, label in enumerate(found.labels))
    if not dark & {error, error + 1}:
        assert found.first_error == error


def test_verifying_overturns_a_missed_way_and_searches_on_behind_it() -> None:
    # The first two rollouts from step 3 on miss; the error is at step 5.
    def answer(prefix: Prefix, index: int) -> bool:
        return len(prefix) <= 5 and not (len(prefix) == 4 and index < 2)

    assert run(binary_search(Scripted(answer), pieces(8), k=2, outcome=False)).first_error == 3
    again = Scripted(answer)
    assert run(binary_search(again, pieces(8), k=2, outcome=False, verify=2)).first_error == 5


def test_verifying_costs_what_it_says() -> None:
    plain, sure = planted(3), planted(3)
    run(binary_search(plain, pieces(8), k=4, outcome=False))
    run(binary_search(sure, pieces(8), k=4, outcome=False, verify=2))
    assert sure.calls == plain.calls + 2 * 4


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 12))
def test_the_best_of_k_is_the_share_of_k_draws_with_a_right_one(judged: int, right: int, best_of: int) -> None:
    right = min(right, judged)
    found = chance_of(Estimate(right=right, judged=judged), best_of)
    if judged < best_of:
        assert found is None
        return
    missed = Fraction(1)  # all K draws without replacement are wrong
    for draw in range(best_of):
        missed *= Fraction(max(judged - right - draw, 0), judged - draw)
    assert found == pytest.approx(float(1 - missed))


def test_advantages_are_differences_of_the_provers_chances() -> None:
    shares = {0: 2, 1: 4, 2: 1}  # right ones of 4 rollouts, by the length of the prefix
    oracle = Scripted(lambda prefix, index: index < shares[len(prefix)])
    found = run(advantages(oracle, pieces(3), k=4, best_of=2, outcome=False))
    # 1 - C(2,2)/C(4,2) = 5/6; 1; 1 - C(3,2)/C(4,2) = 1/2; the whole solution is wrong.
    assert found.start == pytest.approx(5 / 6)
    assert found.labels == pytest.approx((1.0, 0.5, 0.0))
    assert found.values == pytest.approx((1 / 6, -0.5, -0.5))
    assert sum(one for one in found.values if one is not None) == pytest.approx(0.0 - 5 / 6)


def test_first_pit_asks_nothing_behind_the_first_hopeless_prefix() -> None:
    oracle = planted(1)
    found = run(advantages(oracle, pieces(6), k=4, best_of=1, outcome=False, first_pit=True))
    assert found.labels == (1.0, 0.0, None, None, None, 0.0)
    assert found.values == (0.0, -1.0, None, None, None, None)
    assert max(map(len, oracle.prefixes)) == 2


def test_an_unjudged_prefix_leaves_two_advantages_open() -> None:
    oracle = Scripted(lambda prefix, index: None if len(prefix) == 1 else True)
    found = run(advantages(oracle, pieces(3), k=2, best_of=1, outcome=True))
    assert found.values == (None, None, 0.0)


def way(steps: int, *, right: bool | None = True) -> Rollout:
    return Rollout(pieces=("s",) * steps, right=right)


def test_quality_values_of_a_right_way_climb_evenly_to_one() -> None:
    oracle = Scripted(lambda prefix, index: way(4 - len(prefix)))
    found = run(quality(oracle, pieces(4), k=1, outcome=True))
    assert found.labels == pytest.approx((0.25, 0.5, 0.75, 1.0))


def test_quality_values_by_hand() -> None:
    # Fewest steps left: 2 before, 1 after step 1 (a short cut); step 2 is wrong and keeps m of step 1, which is 2.
    rollouts = [[way(2), way(3)], [way(1)], [way(1, right=False)], [way(0, right=False)]]
    first = 0 + (1 - 0) / 2
    second = first - (1 - first) / 2
    third = max(0.0, second - (1 - second) / 2)
    assert values_of(rollouts) == pytest.approx((first, second, third))


def test_a_right_rollout_from_a_longer_prefix_lies_below_the_shorter_ones_too() -> None:
    rollouts = [[way(9, right=False)], [way(9, right=False)], [way(1)], [way(0, right=False)]]
    assert values_of(rollouts)[:2] == pytest.approx((1 / 3, 1 / 3 + (2 / 3) / 2))


def test_quality_is_unknown_where_nothing_was_solved_or_judged() -> None:
    assert values_of([[way(1, right=False)], [way(1, right=False)], [way(0, right=False)]]) == (None, None)
    unjudged = values_of([[way(2)], [way(1)], [way(1, right=None)], [way(0, right=False)]])
    assert unjudged[0] is not None
    assert unjudged[1:] == (None, None)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.booleans())
def test_quality_values_are_probabilities(right: list[int], outcome: bool) -> None:
    chance = random.Random(str(right))
    rollouts = [[way(chance.randint(0, 5), right=index < count) for index in range(3)] for count in right]
    values = values_of([*rollouts, [way(0, right=outcome)]])
    assert all(value is None or 0 <= value <= 1 for value in values)


@pytest.mark.parametrize(
    ("rollouts", "judge", "found"),
    [
        (1, (1.0, 0.0, None), StepLabels(first_error=1, labels=(1.0, 0.0, None))),
        (-1, (1.0, 1.0, 1.0), StepLabels(first_error=-1, labels=(1.0, 1.0, 1.0))),
        (1, (0.0, 1.0, 1.0), "disagreed"),
        (-1, (1.0, 0.4, 1.0), "disagreed"),
        (None, (1.0, 0.0, None), "rollouts_unclear"),
        (1, (1.0, None, 0.0), "judge_unclear"),
        (-1, (1.0, 1.0, None), "judge_unclear"),
    ],
)
def test_labels_are_kept_only_where_both_name_the_same_first_error(
    rollouts: int | None, judge: tuple[float | None, ...], found: object
) -> None:
    assert agreement(rollouts, judge) == found


@given(st.lists(st.sampled_from([0.0, 0.3, 1.0, None]), max_size=6), st.sampled_from([0.0, 0.5]))
def test_the_first_error_is_told_only_when_all_before_it_is_known(labels: list[float | None], threshold: float) -> None:
    found = first_error(labels, threshold=threshold)
    errors = [at for at, label in enumerate(labels) if label is not None and label <= threshold]
    first = errors[0] if errors else len(labels)
    if None in labels[:first]:
        assert found is None
    else:
        assert found == (errors[0] if errors else -1)
