"""AlpacaEval's numbers of annotators, by hand and by going through every way that an even split can be drawn."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.trust.annotators import (
    bias,
    human_agreement,
    leave_one_out_agreement,
    prefers_first,
    variance,
)

VOTES = st.lists(st.sampled_from([1.0, 2.0]), min_size=1, max_size=4)


def drawn_majorities(votes: Sequence[float]) -> list[float]:
    """What a majority vote can be, each as often as the others."""
    counts = [votes.count(1.0), votes.count(2.0)]
    return [label for label, count in ((1.0, counts[0]), (2.0, counts[1])) if count == max(counts)]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def test_the_example_of_the_released_code() -> None:
    """Four alike, and three against one: one against the rest agrees in 3 of 3 and 1 of 2 of the ways: 87.5 %."""
    assert leave_one_out_agreement([[1, 1, 1, 1], [2, 2, 2, 1]]) == 0.875
    assert variance([[1, 1, 1, 1], [2, 2, 2, 1]]) == 0.125


@given(st.lists(st.tuples(VOTES, VOTES), min_size=1, max_size=6))
def test_agreement_is_the_expectation_over_drawn_majorities(pairs: list[tuple[list[float], list[float]]]) -> None:
    judge, people = [one for one, _ in pairs], [other for _, other in pairs]
    single = [mean([vote == gold for gold in drawn_majorities(votes)]) for one, votes in pairs for vote in one]
    assert human_agreement(judge, people) == pytest.approx(mean(single))
    between = [
        mean([a == b for a, b in itertools.product(drawn_majorities(one), drawn_majorities(votes))])
        for one, votes in pairs
    ]
    assert bias(judge, people) == pytest.approx(1 - mean(between), abs=1e-12)
    alone = [
        mean([vote == gold for gold in drawn_majorities([*one[:at], *one[at + 1 :]])])
        for one in judge
        if len(one) > 1
        for at, vote in enumerate(one)
    ]
    found = leave_one_out_agreement(judge)
    assert found == (pytest.approx(mean(alone)) if alone else None)


def test_missing_annotations_and_continuous_ones() -> None:
    assert human_agreement([[1.25, None]], [[1, 1, 2]]) == 0.75
    assert human_agreement([[None]], [[1]]) is None
    assert human_agreement([[1.0]], [[None]]) is None
    assert bias([[1, 0, 2]], [[1]]) == 0.5
    assert variance([[1.0]]) is None
    with pytest.raises(ValueError, match="1 and 2 pairs"):
        bias([[1]], [[1], [2]])
    with pytest.raises(ValueError, match="preference is 3"):
        human_agreement([[3]], [[1]])


@given(st.lists(st.one_of(st.none(), st.floats(1, 2)), min_size=1, max_size=20))
def test_preference_for_the_first_output(preferences: list[float | None]) -> None:
    known = [one for one in preferences if one is not None]
    assert prefers_first(preferences) == (pytest.approx(2 - statistics.fmean(known)) if known else None)
