"""Made data: known weights come back, and length cannot buy a win rate.  The leaderboard itself is in real_text."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adjudge.evals.benchmarks.alpaca_eval import (
    Annotation,
    LengthControl,
    annotations_of,
    fit_length_control,
    share_of,
)
from adjudge.statistics.logistic import sigmoid


def made(theta: float, phi: float, gamma: float, *, longer: float, n: int = 805, seed: int = 0) -> list[Annotation]:
    """Shares of a judge with known weights, on outputs `longer` characters longer than the baseline's on average."""
    draw = random.Random(seed)
    base = [draw.randint(500, 3000) for _ in range(n)]
    own = [max(1, int(length + draw.gauss(longer, 600))) for length in base]
    difficulty = [draw.gauss(0, 1.5) for _ in range(n)]
    shorter = [one.shorter for one in annotations_of([0.5] * n, own, base, difficulty)]
    shares = [sigmoid(theta + phi * s + gamma * d) for s, d in zip(shorter, difficulty, strict=True)]
    return annotations_of(shares, own, base, difficulty)


def gamed(phi: float, gamma: float) -> list[Annotation]:
    """The baseline against itself, once concise and once verbose: length and difficulty are all there is."""
    rows: list[Annotation] = []
    for sign, seed in ((1, 11), (-1, 12)):
        rows += [replace(one, gamed=True) for one in made(0.0, phi, gamma, longer=-sign * 800.0, seed=seed)]
    return rows


@pytest.mark.parametrize("weights", [(-0.6, -1.5, 0.9), (0.4, -0.7, 0.2), (1.9, -1.0, 0.25)], ids=str)
@pytest.mark.parametrize("longer", [-700.0, 0.0, 900.0])
def test_known_weights_come_back_whatever_the_lengths(weights: tuple[float, float, float], longer: float) -> None:
    rows = made(*weights, longer=longer)
    fitted = fit_length_control(rows, gamed(*weights[1:]))
    assert (fitted.theta, fitted.phi, fitted.gamma) == pytest.approx(weights, abs=0.03)
    difficulties = [one.difficulty for one in rows]
    honest = LengthControl(theta=weights[0], phi=weights[1], gamma=weights[2]).win_rate(difficulties)
    assert fitted.win_rate(difficulties) == pytest.approx(honest, abs=0.5)


def peer(rows: list[Annotation]) -> list[float]:
    """The published fit, as scikit-learn's own cross-validated class makes it: phi, gamma, theta and C."""
    import sklearn
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import GroupKFold

    design = np.array([[row.shorter, row.difficulty, float(not row.gamed)] for row in rows] * 2)
    shares = np.array([row.share for row in rows])
    chance = np.r_[shares, 1 - shares]
    weight = np.array([0.1 if row.gamed else 1.0 for row in rows] * 2)

    def loss(preferred: Any, p: Any, true_prob: Any, true_sample_weight: Any) -> float:
        share = np.where(preferred == 1, true_prob, 1 - true_prob)
        return float(-np.mean((share * np.log(p) + (1 - share) * np.log(1 - p)) * true_sample_weight))

    with sklearn.config_context(enable_metadata_routing=True):
        scoring = make_scorer(loss, response_method="predict_proba", greater_is_better=False)
        scoring.set_score_request(true_sample_weight=True, true_prob=True)
        logistic: Any = LogisticRegressionCV  # its stubs know other types
        model = logistic(
            cv=GroupKFold(5),
            scoring=scoring,
            random_state=123,
            solver="liblinear",
            fit_intercept=False,
            l1_ratios=(1.0,),
            use_legacy_attributes=False,
        )
        model.set_fit_request(sample_weight=True).fit(
            design,
            np.repeat([1, 0], len(rows)),
            sample_weight=chance * weight,
            groups=np.tile(np.arange(len(rows)), 2),
            true_sample_weight=weight,
            true_prob=chance,
        )
    return [*model.coef_[0], model.C_]


@pytest.mark.parametrize("weights", [(-0.6, -1.5, 0.9), (1.9, -1.0, 0.25)], ids=str)
def test_the_fit_is_that_of_scikit_learns_own_class(weights: tuple[float, float, float]) -> None:
    draw = random.Random(1)
    noisy = [
        replace(one, share=min(max(one.share + draw.gauss(0, 0.2), 0.0), 1.0))
        for one in made(*weights, longer=0, n=200)
    ]
    others = gamed(*weights[1:])
    fitted = fit_length_control(noisy, others)
    assert [fitted.phi, fitted.gamma, fitted.theta, fitted.strength] == pytest.approx(peer([*others, *noisy]), rel=1e-6)


def test_padding_buys_a_win_rate_and_not_a_length_controlled_one() -> None:
    plain, padded = (made(-1.0, -1.5, 0.5, longer=longer) for longer in (0.0, 2000.0))
    raw = [100 * sum(one.share for one in rows) / len(rows) for rows in (plain, padded)]
    controlled = [
        fit_length_control(rows, gamed(-1.5, 0.5)).win_rate([one.difficulty for one in plain])
        for rows in (plain, padded)
    ]
    assert raw[1] > raw[0] + 15
    assert controlled[1] == pytest.approx(controlled[0], abs=1.0)


def test_the_gamed_baselines_hold_the_length_term_where_a_model_says_nothing_about_it() -> None:
    """A model that is always much longer: without the gamed rows length and quality cannot be told apart."""
    draw = random.Random(5)
    rows = [
        Annotation(share=sigmoid(-1.0 + 1.5 * 0.99), shorter=-0.99 + 0.005 * draw.random(), difficulty=draw.gauss(0, 1))
        for _ in range(805)
    ]
    truth = LengthControl(theta=-1.0, phi=-1.5, gamma=0.0).win_rate([0.0])
    alone, held = fit_length_control(rows), fit_length_control(rows, gamed(-1.5, 0.0))
    assert abs(held.win_rate([0.0]) - truth) < 2 < 5 < abs(alone.win_rate([0.0]) - truth)


def test_the_published_difficulty_term_averages_over_instructions() -> None:
    control = LengthControl(theta=math.log(3), phi=-2.0, gamma=0.0)
    assert control.win_rate([0.0, 5.0, -5.0]) == pytest.approx(75.0)
    assert LengthControl(theta=0.0, phi=-2.0, gamma=2.0).win_rate([3.0, -3.0]) == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("preference", "share"), [(1.0, 0.0), (2, 1.0), (1.25, 0.25), (1.5, 0.5), (0, 0.5), (None, None), (math.nan, None)]
)
def test_preferences(preference: float | None, share: float | None) -> None:
    assert share_of(preference) == share


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: share_of(2.5), "preference is 2.5"),
        (lambda: share_of(-1), "preference is -1"),
        (lambda: annotations_of([0.5, 0.5], [1, 2], [2, 3], [0, 0]), "same number everywhere"),
        (lambda: annotations_of([0.5], [1, 2], [2, 3], [0, 0]), "1 shares, 2 and 2 lengths"),
        (lambda: fit_length_control([Annotation(share=0.5, shorter=0.0)] * 9), "9 annotations"),
        (lambda: fit_length_control([Annotation(share=1.5, shorter=0.0)] * 10), "share 1.5"),
        (lambda: LengthControl(theta=0, phi=0, gamma=0).win_rate([]), "no instructions"),
    ],
    ids=["too high", "too low", "no difference", "lengths", "folds", "share", "nothing"],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
