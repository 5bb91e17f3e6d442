"""Votes equal counting all subsets, whatever the weights; drawn ones lie near; answers join as the equality says."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.best_of_n.candidates import classes_by_scorer, classes_by_text, numbered_answers, vote_worth
from adjudge.protocol import Sample, Score

VOTERS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(-2, 3), st.integers(0, 1)), min_size=1, max_size=6
)  # answer, weight, truth


def counted(voters: Sequence[tuple[int, int, int]], k: int, unanswered: bool) -> Fraction:
    """Subset by subset, in fractions."""
    worth = []
    for subset in itertools.combinations(voters, k):
        sums: dict[int, int] = {}
        truths: dict[int, list[int]] = {}
        for answer, weight, truth in subset:
            if answer >= 0:
                sums[answer] = sums.get(answer, 0) + weight
                truths.setdefault(answer, []).append(truth)
        tops = [Fraction(sum(truths[one]), len(truths[one])) for one in sums if sums[one] == max(sums.values())]
        none = Fraction(sum(truth for *_, truth in subset), k) if unanswered else Fraction(0)
        worth.append(sum(tops, Fraction(0)) / len(tops) if tops else none)
    return sum(worth, Fraction(0)) / len(worth)


@given(VOTERS, st.booleans(), st.data())
def test_votes_are_those_of_counting_all_subsets(
    voters: list[tuple[int, int, int]], unanswered: bool, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(voters)))
    answers, weights, truth = (list(column) for column in zip(*voters, strict=True))
    worth = vote_worth(
        answers,
        np.array([weights, np.ones(len(voters))], dtype=float),
        np.array(truth, dtype=float),
        k,
        unanswered=np.array(truth, dtype=float) if unanswered else None,
    )
    even = [(answer, 1, right) for answer, _, right in voters]
    assert worth.values[0] == pytest.approx(float(counted(voters, k, unanswered)))
    assert worth.values[1] == pytest.approx(float(counted(even, k, unanswered)))
    assert worth.errors.tolist() == [0.0, 0.0]


def test_sums_that_differ_by_rounding_alone_are_tied() -> None:
    weights = np.array([[0.1, 0.2, 0.3, 0.3, 0.2, 0.1]])
    worth = vote_worth([0, 0, 0, 1, 1, 1], weights, np.array([1.0, 1, 1, 0, 0, 0]), 6)
    assert worth.values[0] == 0.5


def test_weights_as_logarithms_are_those_of_each_draw() -> None:
    """Where the largest is not drawn, the others still differ: of 0, 900 and 1800 the larger drawn one wins."""
    answers, truth = [0, 1, 2, -1], np.array([0.0, 1.0, 0.0, 0.0])
    logs = np.array([[0.0, 900.0, 1800.0, -np.inf]])
    assert vote_worth(answers, logs, truth, 2, logs=(0,)).values[0] == pytest.approx(2 / 6)
    plain = vote_worth(answers, np.log([[1.0, 2.0, 3.0, 4.0]]), truth, 3, logs=(0,)).values
    assert plain == pytest.approx(vote_worth(answers, np.array([[1.0, 2.0, 3.0, 4.0]]), truth, 3).values)


def test_drawn_votes_lie_near_and_repeat() -> None:
    draw = np.random.default_rng(0)
    answers, truth = draw.integers(0, 3, size=16).tolist(), None
    truth = np.array([float(one == 0) for one in answers])
    weights = draw.uniform(size=(2, 16))
    exact = vote_worth(answers, weights, truth, 5, most=10_000)
    found = vote_worth(answers, weights, truth, 5, most=1_000, seed=(1, 2))
    assert exact.errors.tolist() == [0, 0]
    assert (np.abs(found.values - exact.values) < 4 * found.errors).all()
    assert (found.errors < 0.02).all()
    again = vote_worth(answers, weights, truth, 5, most=1_000, seed=(1, 2))
    assert again.values.tolist() == found.values.tolist()
    other = vote_worth(answers, weights, truth, 5, most=1_000, seed=(1, 3))
    assert other.values.tolist() != found.values.tolist()


def test_more_voters_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="a vote of 3 among 2"):
        vote_worth([0, 1], np.ones((1, 2)), np.ones(2), 3)


def test_answers_are_numbered_as_they_come() -> None:
    assert numbered_answers(["b", "", "a", "b"]) == [0, -1, 1, 0]
    assert numbered_answers([]) == []


def test_texts_join_without_their_spaces() -> None:
    assert classes_by_text([["a  b", " a b ", "", "ab", " \n"], []]).numbers == [[0, 0, -1, 1, -1], []]


class Near:
    """Numbers are equal if they differ by at most 1; what is not a number has no score, 13 no equal."""

    name = "near"
    fingerprint = "near:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        found = []
        for one in samples:
            try:
                apart = abs(float(str(one.response)) - float(one.reference))
            except ValueError:
                found.append(Score.failed("gold_unparsable"))
            else:
                found.append(Score.scored(float(apart <= 1 and one.response != "13")))
        return found


def test_classes_are_stars_around_the_commonest_answer() -> None:
    found = classes_by_scorer([["1", "2", "2", "3", "4", "x", "13", ""], ["7"], []], Near())
    assert found.numbers == [[0, 0, 0, 0, 1, -1, -1, -1], [0], []]  # 1 and 3 differ by 2, and both equal 2
    assert found.unparsable == 2
    chained = classes_by_scorer([["1", "2", "3"]], Near()).numbers
    assert chained == [[0, 0, 1]], "without a commonest text the first represents, and 3 does not equal 1"


def test_the_scorer_is_asked_about_each_pair_of_a_round_once() -> None:
    found = classes_by_scorer([["1", "5", "9"], ["1", "1", "1"]], Near())
    assert found.compared == (3 + 2 + 1) + 1
    assert found.undecided == 0


def test_mathematics_that_is_equal_votes_together() -> None:
    from adjudge import load

    answers = [["\\frac{1}{2}", "0.5", "1/2", "\\frac12", "2"]]
    assert classes_by_scorer(answers, load("math")).numbers == [[0, 0, 0, 0, 1]]
