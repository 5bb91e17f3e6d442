from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.trust.reliability import (
    brier,
    calibration_error,
    risk_coverage,
)

rows = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.integers(0, 1)), min_size=2, max_size=60
)


def test_equal_width_by_hand() -> None:
    """Two bins: (.1, .3 | 0, 1) is off by .3 and (.6, .8, 1 | 1, 1, 0) by .8 - 2/3."""
    found = calibration_error([0.1, 0.3, 0.6, 0.8, 1.0], [0, 1, 1, 1, 0], bins=2)
    assert [(one.low, one.high, one.count) for one in found.bins] == [(0.0, 0.5, 2), (0.5, 1.0, 3)]
    assert found.expected == pytest.approx(2 / 5 * 0.3 + 3 / 5 * (0.8 - 2 / 3))
    assert found.largest == pytest.approx(0.3)


@pytest.mark.parametrize("bins", [1, 2, 3, 10, 15, 25, 41])
def test_a_bound_belongs_to_the_bin_below_it_however_it_is_rounded(bins: int) -> None:
    """7 / 25 * 25 is 7.000000000000001 as floats go: a bin found by multiplying alone is the wrong one."""
    bounds = [index / bins for index in range(bins + 1)]
    found = calibration_error(bounds, [1] * len(bounds), bins=bins)
    assert [one.count for one in found.bins] == [2] + [1] * (bins - 1)
    assert all(one.low < one.confidence <= one.high or one.low == 0 for one in found.bins)


def test_equal_mass_never_splits_equal_probabilities() -> None:
    found = calibration_error([0.2] * 6 + [0.4, 0.6, 0.8, 0.9], [0] * 6 + [1] * 4, bins=5, binning="equal_mass")
    assert [(one.low, one.high, one.count) for one in found.bins] == [(0.2, 0.2, 6), (0.4, 0.6, 2), (0.8, 0.9, 2)]
    assert found.expected == pytest.approx(0.6 * 0.2 + 0.2 * 0.5 + 0.2 * 0.15)


@given(rows, st.integers(1, 12), st.sampled_from(["equal_width", "equal_mass"]))
def test_bins_hold_every_sample_once_and_the_order_does_not_matter(pairs: Any, bins: int, binning: Any) -> None:
    one, other = ([list(column) for column in zip(*order, strict=True)] for order in (pairs, pairs[::-1]))
    found = calibration_error(one[0], one[1], bins=bins, binning=binning)
    assert sum(cell.count for cell in found.bins) == len(pairs)
    assert found == calibration_error(other[0], other[1], bins=bins, binning=binning)
    assert 0 <= found.expected <= found.largest + 1e-12 <= 1 + 1e-12


@given(rows)
def test_what_scikit_learn_says(pairs: list[tuple[float, int]]) -> None:
    from sklearn.metrics import brier_score_loss

    values, labels = ([pair[place] for pair in pairs] for place in (0, 1))
    whole = [int(label) for label in labels]
    assert brier(values, whole) == pytest.approx(brier_score_loss(whole, values, labels=[0, 1]))


def test_risk_coverage_by_hand() -> None:
    """Kept one by one: losses 0, 1, 0, 1 -> risks 0, 1/2, 1/3, 1/2; the best order 0, 0, 1/3, 1/2."""
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    assert [risk for _, risk in curve.points] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert curve.area == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert curve.excess == pytest.approx(1 / 2 / 4)
    assert curve.risk_at(0.5) == pytest.approx(1 / 2)
    assert curve.risk_at(0.6) == pytest.approx(1 / 3)


def test_equal_confidences_gain_nothing_from_their_order() -> None:
    """Rows sorted by outcome, all equally sure: a curve that follows the rows would begin with a risk of 0."""
    curve = risk_coverage([0.5] * 6, [0, 0, 0, 0, 1, 1])
    assert [risk for _, risk in curve.points] == pytest.approx([1 / 3] * 6)


@given(rows)
def test_the_area_is_what_random_orders_of_the_ties_give(pairs: list[tuple[float, int]]) -> None:
    pairs = pairs[:5]
    sure, lost = zip(*pairs, strict=True)
    areas = []
    for order in itertools.permutations(range(len(pairs))):
        kept = sorted(order, key=lambda index: -sure[index])
        running = list(itertools.accumulate(lost[index] for index in kept))
        areas.append(sum(total / (place + 1) for place, total in enumerate(running)) / len(pairs))
    assert risk_coverage(sure, lost).area == pytest.approx(sum(areas) / len(areas))


def test_a_confidence_that_knows_has_no_excess() -> None:
    draw = random.Random(0)
    losses = [float(draw.random() < 0.3) for _ in range(200)]
    assert risk_coverage([-loss for loss in losses], losses).excess == pytest.approx(0, abs=1e-12)
    assert risk_coverage(losses, losses).excess > 0.2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: brier([0.5], [2]), "neither 0 nor 1"),
        (lambda: brier([1.5], [1]), "not a probability"),
        (lambda: brier([math.nan], [1]), "not a probability"),
        (lambda: brier([math.inf], [1]), "not a probability"),
        (lambda: brier([], []), "0 values"),
        (lambda: calibration_error([0.5], [1], bins=0), "bins=0"),
        (lambda: calibration_error([0.5], [1], binning="width"), "binning='width'"),  # type: ignore[arg-type]
        (lambda: risk_coverage([0.5], [-1.0]), "losses finite and >= 0"),
        (lambda: risk_coverage([0.5], [1.0]).risk_at(0.0), "coverage=0.0"),
    ],
    ids=["label", "probability", "nan", "inf", "nothing", "no bins", "binning", "loss", "coverage"],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
